// Operators of images whose extents only a run knows: against plain loops, and against the same model with
// these extents fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/ops/evaluate.h"
#include "tests/support/importer_model.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/shape/ratio.h"

namespace librt::onnx {
namespace {

using test::ImporterModel;
using test::values_of;

void ints(rt_onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(7);
  for (const int64_t value : values) attribute->add_ints(value);
}

std::vector<float> noise(size_t count, float phase = 0) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = std::sin(phase + static_cast<float>(i * i + 3 * i) * 1.7f);
  return numbers;
}

void expect_near(const ops::HostTensor& found, const Shape& shape, const std::vector<double>& wanted) {
  EXPECT_EQ(found.info.shape, shape);
  const std::vector<float> values = values_of(found);
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(static_cast<double>(values[i]), wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << i;
}

// --- DeformConv

/// A deformable convolution: x [N,C,H,W], offsets [N,G k k 2,H',W'], mask [N,G k k,H',W'].
struct Deformable {
  int64_t n = 2, c = 4, outputs = 6, kernel = 3, stride = 2, pad = 1, dilation = 1, groups = 2,
          offset_groups = 2;
  int64_t result(int64_t extent) const {
    return (extent + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  }

  std::vector<double> reference(const std::vector<float>& x, const std::vector<float>& weight,
                                const std::vector<float>& offsets, const std::vector<float>& mask, int64_t h,
                                int64_t w) const {
    const int64_t oh = result(h), ow = result(w), taps = kernel * kernel, in_group = c / groups;
    const auto at = [](const std::vector<float>& values, int64_t i) {
      return static_cast<double>(values[static_cast<size_t>(i)]);
    };
    std::vector<double> y;
    for (int64_t b = 0; b < n; ++b)
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t p = 0; p < oh * ow; ++p) {
          double sum = 0;
          for (int64_t i = 0; i < in_group; ++i)
            for (int64_t t = 0; t < taps; ++t) {
              const int64_t channel = o / (outputs / groups) * in_group + i;
              const int64_t group = channel / (c / offset_groups);
              const int64_t point = (b * offset_groups + group) * taps + t;
              const double row = static_cast<double>(p / ow * stride - pad + t / kernel * dilation) +
                                 at(offsets, (2 * point) * oh * ow + p);
              const double column = static_cast<double>(p % ow * stride - pad + t % kernel * dilation) +
                                    at(offsets, (2 * point + 1) * oh * ow + p);
              const double low_row = std::floor(row), low_column = std::floor(column);
              double sample = 0;
              for (int corner = 0; corner < 4; ++corner) {
                const double r = low_row + corner / 2, q = low_column + corner % 2;
                if (r < 0 || q < 0 || r >= static_cast<double>(h) || q >= static_cast<double>(w)) continue;
                sample +=
                    (1 - std::abs(row - r)) * (1 - std::abs(column - q)) *
                    at(x, ((b * c + channel) * h + static_cast<int64_t>(r)) * w + static_cast<int64_t>(q));
              }
              sum += at(weight, (o * in_group + i) * taps + t) * sample * at(mask, point * oh * ow + p);
            }
          y.push_back(sum);
        }
    return y;
  }
};

TEST(OpenImages, DeformConv) {
  const Deformable d;
  const int64_t taps = d.kernel * d.kernel;
  const std::vector<float> weight = noise(static_cast<size_t>(d.outputs * d.c / d.groups * taps), 1);
  // Offsets that the net computes from x, and offsets that are an input of their own.
  for (const bool own : {false, true}) {
    ImporterModel model(19);
    model.input("x", {"n", std::to_string(d.c), "h", "w"});
    model.floats("weight", {d.outputs, d.c / d.groups, d.kernel, d.kernel}, weight);
    if (own) {
      model.input("offsets", {"n", std::to_string(2 * d.offset_groups * taps), "oh", "ow"});
      model.input("mask", {"n", std::to_string(d.offset_groups * taps), "oh", "ow"});
    } else {
      model.floats("to_offsets", {2 * d.offset_groups * taps, d.c, 3, 3},
                   noise(static_cast<size_t>(2 * d.offset_groups * taps * d.c * 9), 2));
      model.floats("to_mask", {d.offset_groups * taps, d.c, 3, 3},
                   noise(static_cast<size_t>(d.offset_groups * taps * d.c * 9), 3));
      for (const auto& [from, to] : {std::pair("to_offsets", "offsets"), std::pair("to_mask", "mask")}) {
        auto& node = model.node("Conv", {"x", from}, {to});
        ints(node, "strides", {d.stride, d.stride});
        ints(node, "pads", {1, 1, 1, 1});
      }
    }
    auto& node = model.node("DeformConv", {"x", "weight", "offsets", "", "mask"}, {"y"},
                            {{"group", d.groups}, {"offset_group", d.offset_groups}});
    ints(node, "strides", {d.stride, d.stride});
    ints(node, "pads", {d.pad, d.pad, d.pad, d.pad});
    model.output("y");
    model.output("offsets");
    model.output("mask");
    auto converted = model.convert();
    ASSERT_TRUE(converted.ok()) << converted.status().message() << model.reasons();
    ModelGraph graph = std::move(converted).value();
    ASSERT_TRUE(compiler::optimize(graph, {}, nullptr).ok());
    for (const auto& [h, w] : {std::pair<int64_t, int64_t>{5, 8}, {1, 1}, {12, 3}}) {
      const int64_t oh = d.result(h), ow = d.result(w);
      const std::vector<float> x = noise(static_cast<size_t>(d.n * d.c * h * w));
      std::vector<float> offsets = noise(static_cast<size_t>(d.n * 2 * d.offset_groups * taps * oh * ow), 4);
      for (float& offset : offsets) offset *= 2.5f;
      std::vector<float> mask = noise(static_cast<size_t>(d.n * d.offset_groups * taps * oh * ow), 5);
      std::vector<ConstTensorView> inputs = {{x.data(), {DType::F32, {d.n, d.c, h, w}}}};
      if (own) {
        inputs.push_back({offsets.data(), {DType::F32, {d.n, 2 * d.offset_groups * taps, oh, ow}}});
        inputs.push_back({mask.data(), {DType::F32, {d.n, d.offset_groups * taps, oh, ow}}});
      }
      const auto outputs = ops::evaluate_graph(graph.entries[0].graph, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      if (!own) {
        offsets = values_of((*outputs)[1]);
        mask = values_of((*outputs)[2]);
      }
      expect_near((*outputs)[0], {d.n, d.outputs, oh, ow}, d.reference(x, weight, offsets, mask, h, w));
    }
    if (!own) continue;
    // Offsets for another number of positions.
    const std::vector<float> x = noise(static_cast<size_t>(d.n * d.c * 5 * 8));
    const std::vector<float> offsets(static_cast<size_t>(d.n * 2 * d.offset_groups * taps * 4 * 4));
    const std::vector<float> mask(offsets.size() / 2);
    const ConstTensorView inputs[] = {{x.data(), {DType::F32, {d.n, d.c, 5, 8}}},
                                      {offsets.data(), {DType::F32, {d.n, 2 * d.offset_groups * taps, 4, 4}}},
                                      {mask.data(), {DType::F32, {d.n, d.offset_groups * taps, 4, 4}}}};
    EXPECT_FALSE(ops::evaluate_graph(graph.entries[0].graph, inputs).ok());
  }
}

// --- Col2Im

TEST(OpenImages, Col2Im) {
  constexpr int64_t kChannels = 2, kHigh = 2, kWide = 3, kStrideH = 2, kStrideW = 1, kPadH = 1, kPadW = 2,
                    kDilationW = 2;
  ImporterModel model(18);
  model.input("x", {"n", std::to_string(kChannels * kHigh * kWide), "l"});
  model.input("like", {"h", "w"});
  model.integers("block", {2}, {kHigh, kWide});
  model.node("Shape", {"like"}, {"image"});
  auto& node = model.node("Col2Im", {"x", "image", "block"}, {"y"});
  ints(node, "strides", {kStrideH, kStrideW});
  ints(node, "pads", {kPadH, kPadW, kPadH, kPadW});
  ints(node, "dilations", {1, kDilationW});
  model.output("y");
  auto converted = model.convert();
  ASSERT_TRUE(converted.ok()) << converted.status().message() << model.reasons();
  ModelGraph graph = std::move(converted).value();
  ASSERT_TRUE(compiler::optimize(graph, {}, nullptr).ok());
  const auto run = [&](int64_t n, int64_t l, int64_t h, int64_t w, const std::vector<float>& x) {
    const std::vector<float> like(static_cast<size_t>(h * w));
    const ConstTensorView inputs[] = {{x.data(), {DType::F32, {n, kChannels * kHigh * kWide, l}}},
                                      {like.data(), {DType::F32, {h, w}}}};
    return ops::evaluate_graph(graph.entries[0].graph, inputs);
  };
  for (const auto& [h, w] : {std::pair<int64_t, int64_t>{4, 5}, {1, 1}, {7, 3}}) {
    const int64_t rows = (h + 2 * kPadH - kHigh) / kStrideH + 1;
    const int64_t columns = (w + 2 * kPadW - kDilationW * (kWide - 1) - 1) / kStrideW + 1;
    const int64_t n = 2, l = rows * columns;
    const std::vector<float> x = noise(static_cast<size_t>(n * kChannels * kHigh * kWide * l));
    std::vector<double> wanted(static_cast<size_t>(n * kChannels * h * w));
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
      const int64_t window = i % l, tap = i / l % (kHigh * kWide), image = i / l / (kHigh * kWide);
      const int64_t r = window / columns * kStrideH - kPadH + tap / kWide;
      const int64_t q = window % columns * kStrideW - kPadW + tap % kWide * kDilationW;
      if (r >= 0 && q >= 0 && r < h && q < w)
        wanted[static_cast<size_t>((image * h + r) * w + q)] +=
            static_cast<double>(x[static_cast<size_t>(i)]);
    }
    const auto outputs = run(n, l, h, w, x);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    expect_near((*outputs)[0], {n, kChannels, h, w}, wanted);
    EXPECT_FALSE(
        run(n, l + 1, h, w, noise(static_cast<size_t>(n * kChannels * kHigh * kWide * (l + 1)))).ok());
  }
}

// --- Resize

/// What the model with open extents declares is what it has in a run, and up to 65536 what a run with these
/// extents fixed, which multiplies in f32, has as well.
TEST(OpenImages, ResizedExtents) {
  int declared = 0;
  for (const float scale :
       {1.1f, 2.0f / 3, 0.6666667f, 3.0f, 0.5f, 1.5f, 0.7f, 1.3f, 0.123456f, 300.0f, 1e-3f}) {
    ImporterModel model(13);
    model.input("x", {"b", "1", "n"});
    model.floats("scales", {3}, {1, 1, scale});
    model.node("Resize", {"x", "", "scales"}, {"y"});
    model.node("Shape", {"y"}, {"shape"});
    model.output("shape");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    const Graph& open = graph->entries[0].graph;
    std::optional<Dim> length;
    for (const Node& node : open.nodes)
      if (node.kind() == OpKind::Resize) length = open[node.outputs[0]].dims[1];
    ASSERT_TRUE(length && length->symbol >= 0);
    const Symbol& symbol = open.symbols[static_cast<size_t>(length->symbol)];
    declared += !symbol.definition.empty();
    // 180 times 1.3f is a bit less than 234.
    EXPECT_EQ(symbol.definition.empty(), compiler::ratio_of_extents(scale).denominator == 0);
    const auto n = static_cast<size_t>(std::find_if(open.symbols.begin(), open.symbols.end(),
                                                    [](const Symbol& s) { return s.name == "n"; }) -
                                       open.symbols.begin());
    constexpr int64_t kMost = 1 << 24;
    for (const int64_t extent :
         {int64_t{0}, int64_t{1}, int64_t{10}, int64_t{180}, int64_t{65535}, int64_t{65536}, int64_t{65537},
          int64_t{999999}, kMost - 1, kMost, kMost + 1, kMost + 3}) {
      const double product = static_cast<double>(scale) * static_cast<double>(extent);
      if (product >= 0x1p31) continue;
      SCOPED_TRACE(text("scale ", static_cast<double>(scale), ", extent ", extent));
      ModelGraph fixed = *graph;
      Graph& at = fixed.entries[0].graph;
      for (Value& value : at.values)
        if (value.role == Role::Input) value.dims = {{.extent = 1}, {.extent = 1}, {.extent = extent}};
      const compiler::Builder builder(at, &fixed.states);
      ASSERT_TRUE(builder.status().ok()) << builder.status().message();
      const auto shape = builder.known_entries(at.outputs[0]);
      ASSERT_EQ(shape.size(), 3U);
      ASSERT_TRUE(shape[2]);
      if (!symbol.definition.empty()) {
        std::vector<int64_t> extents(open.symbols.size(), 1);
        extents[n] = extent;
        EXPECT_EQ(evaluate(symbol.definition, extents), shape[2]);
      }
      const auto single = static_cast<int64_t>(static_cast<float>(extent) * scale);
      if (extent <= compiler::kComparedExtents) {
        EXPECT_EQ(*shape[2], single);
      }
    }
  }
  EXPECT_GE(declared, 7);
}

}  // namespace
}  // namespace librt::onnx
