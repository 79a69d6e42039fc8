#include "tests/differential/known.h"

#include "tests/differential/blocks.h"

namespace librt::test {

namespace {

std::string slice(Draft& draft, const std::string& x, int64_t start, int64_t end, int64_t axis) {
  return draft.node("Slice", {x, draft.ints({start}), draft.ints({end}), draft.ints({axis})});
}

std::string mean(Draft& draft, const std::string& x, int64_t axis) {
  return draft.node("ReduceMean", {x}, {{"axes", Extents{axis}}, {"keepdims", 0}});
}

std::string extent(Draft& draft, const std::string& x, int64_t axis) {
  return draft.node("Gather", {draft.node("Shape", {x}), draft.number(axis)});
}

std::string divided(Draft& draft, const std::string& a, int64_t by) {
  return draft.node("Div", {a, draft.number(by)});
}

std::string as_list(Draft& draft, const std::string& number) {
  return draft.node("Unsqueeze", {number, draft.ints({0})});
}

std::string concat(Draft& draft, const Names& parts) {
  return draft.node("Concat", parts, {{"axis", 0}});
}

std::string weights(Draft& draft, const Extents& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 7) / 4 - 0.5f);
  return draft.floats(dims, values);
}

// Each returns the name of the model's output.

std::string mean_of_first_16(Draft& d) {
  return mean(d, slice(d, d.input("x", kOnnxFloat, {"b", "n"}), 0, 16, 1), 1);
}

std::string last_32(Draft& d) {
  return mean(d, slice(d, d.input("x", kOnnxFloat, {"b", "n"}), -32, kToTheEnd, 1), 1);
}

std::string at_most_1000_boxes(Draft& d) {
  return mean(d, slice(d, d.input("x", kOnnxFloat, {"n", "4"}), 0, 1000, 0), 0);
}

std::string picture_crop(Draft& d) {
  const std::string x = d.input("x", kOnnxFloat, {"1", "1", "h", "w"});
  return mean(d, slice(d, slice(d, x, 0, 64, 2), 0, 64, 3), 2);
}

std::string range_of_frames(Draft& d) {
  const std::string n = divided(d, extent(d, d.input("x", kOnnxFloat, {"b", "n"}), 1), 160);
  return d.node("Cast", {d.node("Range", {d.number(0), n, d.number(1)})}, {{"to", kOnnxFloat}});
}

std::string strided_convolution_and_view(Draft& d) {
  const std::string x = d.input("x", kOnnxFloat, {"b", "1", "n"});
  const std::string frames = d.node("Conv", {x, weights(d, {4, 1, 5})}, {{"strides", Extents{160}}});
  const std::string shape =
      concat(d, {as_list(d, extent(d, frames, 0)), d.ints({2, 2}), as_list(d, extent(d, frames, 2))});
  return mean(d, d.node("Reshape", {frames, shape}), 3);
}

std::string strided_pooling_and_flatten(Draft& d) {
  const std::string x = d.input("x", kOnnxFloat, {"b", "3", "h", "w"});
  const std::string pooled =
      d.node("MaxPool", {x}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{4, 2}}});
  const std::string rows = d.node("Reshape", {pooled, d.ints({0, 0, -1})});
  return d.node("Transpose", {rows}, {{"perm", Extents{0, 2, 1}}});
}

std::string padded_to_64(Draft& d) {
  const std::string x = d.input("x", kOnnxFloat, {"b", "n"});
  const std::string rest = d.node("Mod", {extent(d, x, 1), d.number(64)});
  const std::string missing = d.node("Mod", {d.node("Sub", {d.number(64), rest}), d.number(64)});
  const std::string padded = d.node("Pad", {x, concat(d, {d.ints({0, 0, 0}), as_list(d, missing)})});
  const std::string shape = concat(d, {as_list(d, extent(d, x, 0)), d.ints({-1, 64})});
  return mean(d, d.node("Reshape", {padded, shape}), 1);
}

std::string unfolded(Draft& d) {
  const std::string x = d.input("x", kOnnxFloat, {"b", "n"});
  const std::string frames =
      d.node("Add", {divided(d, d.node("Sub", {extent(d, x, 1), d.number(8)}), 4), d.number(1)});
  const std::string first = d.node("Mul", {d.node("Range", {d.number(0), frames, d.number(1)}), d.number(4)});
  const std::string index = d.node("Add", {d.node("Unsqueeze", {first, d.ints({1})}),
                                           d.node("Range", {d.number(0), d.number(8), d.number(1)})});
  return mean(d, d.node("Gather", {x, index}, {{"axis", 1}}), 2);
}

std::string few_best(Draft& d) {
  const std::string x = d.input("x", kOnnxFloat, {"b", "n"});
  const std::string k = as_list(d, d.node("Min", {extent(d, x, 1), d.number(5)}));
  return mean(d, d.nodes("TopK", {x, k}, 2)[0], 1);
}

}  // namespace

std::vector<std::pair<std::string, rt_onnx::ModelProto>> known_models() {
  constexpr std::pair<const char*, std::string (*)(Draft&)> kKnown[] = {
      {"mean of x[:, :16]", mean_of_first_16},
      {"mean of x[:, -32:]", last_32},
      {"boxes[:1000]", at_most_1000_boxes},
      {"picture[.., :64, :64]", picture_crop},
      {"arange(n // 160)", range_of_frames},
      {"Conv1d of stride 160 and a view", strided_convolution_and_view},
      {"strided pooling and a view", strided_pooling_and_flatten},
      {"padding to a multiple of 64", padded_to_64},
      {"unfold", unfolded},
      {"topk(min(n, 5))", few_best}};
  std::vector<std::pair<std::string, rt_onnx::ModelProto>> models;
  for (const auto& [name, write] : kKnown) {
    Draft draft(17);
    draft.set_outputs({write(draft)});
    models.emplace_back(name, std::move(draft.model));
  }
  return models;
}

}  // namespace librt::test
