// movement, gather, resize, shape_ops.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

using List = std::vector<int64_t>;

op::TransposeAttributes permuted(List permutation) {
  op::TransposeAttributes attributes;
  attributes.permutation = std::move(permutation);
  return attributes;
}

op::SliceAttributes sliced(List axes, List steps) {
  op::SliceAttributes attributes;
  attributes.axes = std::move(axes);
  attributes.steps = std::move(steps);
  return attributes;
}

template <class Attributes>
Attributes on_axis(int64_t axis) {
  Attributes attributes;
  attributes.axis = axis;
  return attributes;
}

op::ResizeAttributes resized(op::ResizeMode mode, op::ResizeCoordinates coordinates) {
  op::ResizeAttributes attributes;
  attributes.mode = mode;
  attributes.coordinates = coordinates;
  return attributes;
}

}  // namespace

std::vector<Case> cases_movement() {
  std::vector<Case> cases;
  cases.push_back(make_case("identity", op::IdentityAttributes{}, {f32({3, 4})}));
  cases.push_back(make_case("reshape", op::ReshapeAttributes{}, {f32({2, 3, 4}), ints({6, -1})}));
  cases.push_back(make_case("transpose_2d", permuted({1, 0}), {f32({17, 33})}));
  cases.push_back(make_case("transpose_nchw", permuted({0, 3, 1, 2}), {f32({2, 5, 6, 7})}));
  cases.push_back(make_case("transpose_heads", permuted({0, 2, 1, 3}), {f32({2, 5, 3, 8})}));
  cases.push_back(make_case("transpose_reverse", permuted({3, 2, 1, 0}), {f32({2, 3, 4, 5})}));
  cases.push_back(make_case("transpose_u8", permuted({1, 0}), {in_range(tensor(DType::U8, {5, 7}), 0, 50)}));
  cases.push_back(make_case("transpose_i64", permuted({1, 2, 0}), {tensor(DType::I64, {2, 3, 4})}));
  cases.push_back(no_gradient(make_case("transpose_f16", permuted({1, 0}), {tensor(DType::F16, {6, 5})})));
  // Exceeds the buffer binding limit of small devices.
  cases.push_back(no_gradient(make_case("transpose_large", permuted({1, 0}), {f32({617, 443})})));
  cases.push_back(no_gradient(
      make_case("concat_large", on_axis<op::ConcatAttributes>(1), {f32({501, 301}), f32({501, 303})})));
  cases.push_back(no_gradient(make_case("slice_large", sliced({0, 1}, {-1, 2}),
                                        {f32({617, 443}), ints({-1, 1}), ints({-1000, 1000})})));
  cases.push_back(make_case("concat_last", on_axis<op::ConcatAttributes>(-1),
                            {f32({2, 3, 4}), f32({2, 3, 5}), f32({2, 3, 1})}));
  cases.push_back(make_case("concat_first", on_axis<op::ConcatAttributes>(0), {f32({2, 3}), f32({4, 3})}));
  cases.push_back(make_case("concat_i64", on_axis<op::ConcatAttributes>(0),
                            {tensor(DType::I64, {2}), tensor(DType::I64, {3})}));
  cases.push_back(make_case("concat_empty", on_axis<op::ConcatAttributes>(1), {f32({2, 0}), f32({2, 3})}));
  cases.push_back(
      make_case("slice", sliced({1, 2}, {1, 1}), {f32({3, 5, 6}), ints({1, -4}), ints({4, 1000})}));
  cases.push_back(no_gradient(
      make_case("slice_steps", sliced({0, 1}, {2, -1}), {f32({7, 5}), ints({1, -1}), ints({7, -1000})})));
  cases.push_back(make_case("slice_i64", sliced({0}, {1}), {tensor(DType::I64, {6}), ints({2}), ints({5})}));
  cases.push_back(make_case("pad", op::PadAttributes{}, {f32({2, 3, 4}), ints({0, 1, 2, 1, 0, 1})}));
  op::PadAttributes reflect;
  reflect.mode = op::PadMode::Reflect;
  cases.push_back(
      no_gradient(make_case("pad_reflect", reflect, {f32({1, 5, 6, 3}), ints({0, 2, 1, 0, 0, 1, 2, 0})})));
  op::PadAttributes edge;
  edge.mode = op::PadMode::Edge;
  cases.push_back(no_gradient(make_case("pad_edge", edge, {f32({4, 5}), ints({1, 2, 0, 1})})));
  cases.push_back(no_gradient(make_case("pad_value", op::PadAttributes{},
                                        {f32({2, 3}), ints({1, 1, 1, 1}), with_values(weight({}), {-1.5})})));
  cases.push_back(
      no_gradient(make_case("pad_crop", op::PadAttributes{}, {f32({4, 6}), ints({-1, 1, 0, -2})})));
  cases.push_back(make_case("expand", op::ExpandAttributes{}, {f32({3, 1, 5}), ints({2, 3, 4, 5})}));
  cases.push_back(make_case("expand_scalar", op::ExpandAttributes{}, {f32({}), ints({3, 2})}));
  cases.push_back(make_case("tile", op::TileAttributes{}, {f32({2, 3}), ints({2, 3})}));
  cases.push_back(make_case("gather_rows", on_axis<op::GatherAttributes>(0),
                            {f32({9, 5}), with_values(tensor(DType::I64, {2, 3}), {0, 8, -1, 3, 3, 2})}));
  cases.push_back(make_case("gather_inner", on_axis<op::GatherAttributes>(1),
                            {f32({3, 6, 2}), with_values(tensor(DType::I32, {2}), {5, 0})}));
  cases.push_back(make_case("gather_scalar", on_axis<op::GatherAttributes>(0),
                            {f32({4, 3}), with_values(tensor(DType::I64, {}), {2})}));
  cases.push_back(make_case("gather_i64", on_axis<op::GatherAttributes>(0),
                            {tensor(DType::I64, {5}), with_values(tensor(DType::I64, {3}), {4, 0, -2})}));
  cases.push_back(make_case("scatter_add", on_axis<op::ScatterAddAttributes>(0),
                            {ints({5, 3}), with_values(tensor(DType::I64, {4}), {1, 1, 4, 0}), f32({4, 3})}));
  cases.back().gradient = false;
  const auto add_resize = [&](const char* name, op::ResizeMode mode, op::ResizeCoordinates coordinates,
                              CaseInput x, std::vector<double> sizes) {
    cases.push_back(make_case(name, resized(mode, coordinates), {std::move(x), ints(std::move(sizes))}));
  };
  add_resize("resize_nearest", op::ResizeMode::Nearest, op::ResizeCoordinates::Asymmetric, f32({1, 3, 4, 5}),
             {6, 8});
  add_resize("resize_linear", op::ResizeMode::Linear, op::ResizeCoordinates::HalfPixel, f32({2, 3, 4, 3}),
             {7, 6});
  add_resize("resize_linear_corners", op::ResizeMode::Linear, op::ResizeCoordinates::AlignCorners,
             f32({1, 4, 4, 2}), {6, 9});
  add_resize("resize_cubic", op::ResizeMode::Cubic, op::ResizeCoordinates::HalfPixel, f32({1, 5, 5, 2}),
             {8, 7});
  cases.push_back(no_gradient(
      make_case("resize_scales", resized(op::ResizeMode::Linear, op::ResizeCoordinates::PytorchHalfPixel),
                {f32({1, 4, 4, 3}), std::nullopt, with_values(weight({2}), {2, 1.5})})));
  cases.push_back(make_case("shape", op::ShapeAttributes{}, {f32({2, 3, 4})}));
  op::ConstantOfShapeAttributes filled;
  filled.dtype = static_cast<uint8_t>(DType::F32);
  filled.value = 1.25;
  cases.push_back(make_case("constant_of_shape", filled, {ints({2, 3})}));
  auto scalar = [](double value) {
    CaseInput input = with_values(tensor(DType::I64, {}), {value});
    input.constant = true;
    return input;
  };
  cases.push_back(make_case("range", op::RangeAttributes{}, {scalar(1), scalar(10), scalar(3)}));
  return cases;
}

}  // namespace librt::test
