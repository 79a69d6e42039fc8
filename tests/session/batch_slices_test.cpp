// Steps that run for some samples at a time, and values that are written where they are joined: the results
// are those without either. Needs the cpu backend.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runtime/backend/registry.h"
#include "runtime/session/session.h"
#include "tests/support/numbers.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;
using test::numbers;

constexpr int64_t kBatch = 8;
constexpr uint64_t kSmallCache = 128 << 10, kLargeCache = uint64_t{1} << 40;

/// A graph of x f32[batch, shape..].
struct Net {
  std::shared_ptr<ModelGraph> model = std::make_shared<ModelGraph>();
  Graph graph;
  Builder build{graph, &model->states};
  ValueId x = kNoValue;
  Shape shape;

  explicit Net(Shape with_batch) : shape(std::move(with_batch)) {
    graph.name = "infer";
    std::vector<Dim> dims;
    for (int i = 0; i < shape.rank(); ++i) dims.push_back({.extent = shape[i]});
    x = build.input("x", DType::F32, dims);
  }
  ValueId weight(const Shape& of) {
    const Floats values =
        numbers(static_cast<size_t>(of.elements()), static_cast<uint32_t>(graph.values.size()));
    return build.constant({DType::F32, of}, Blob::copy_of(values.data(), values.size() * sizeof(float)));
  }
  ValueId conv(ValueId from, int64_t in, int64_t out, int64_t kernel, int64_t groups = 1,
               int64_t stride = 1) {
    op::ConvAttributes attributes;
    attributes.strides = {stride, stride};
    attributes.pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    attributes.dilations = {1, 1};
    attributes.groups = groups;
    return build.emit(std::move(attributes), {from, weight({out, kernel, kernel, in / groups})});
  }
  ValueId concat(std::vector<ValueId> parts, int64_t axis) {
    op::ConcatAttributes attributes;
    attributes.axis = axis;
    return build.emit_many(make_op(attributes), parts, 1)[0];
  }
  ValueId relu(ValueId from) { return build.emit(op::ReluAttributes{}, {from}); }
  ValueId max_pool(ValueId from) {
    op::MaxPoolAttributes attributes;
    attributes.kernel = attributes.strides = {2, 2};
    attributes.pads = {0, 0, 0, 0};
    attributes.dilations = {1, 1};
    return build.emit(std::move(attributes), {from});
  }

  struct Outcome {
    std::vector<Floats> outputs;
    std::string plan;
    uint64_t peak = 0;
  };
  /// On the CPU, with a cache of so many bytes.
  Outcome run(uint64_t cache_bytes) const {
    Outcome outcome;
    auto device = open_device("cpu", {});
    EXPECT_TRUE(device.ok()) << device.status().message();
    if (!device.ok()) return outcome;
    const_cast<DeviceInfo&>((*device)->info()).cache_bytes = cache_bytes;
    auto session = Session::create_on(DeviceSet::adopt(std::move(*device)).value(), model, {.tuning = false});
    EXPECT_TRUE(session.ok()) << session.status().message();
    if (!session.ok()) return outcome;
    const Floats input = numbers(static_cast<size_t>(shape.elements()), 7);
    const size_t bytes = input.size() * sizeof(float);
    for (int round = 0; round < 2; ++round) {
      Status status = (*session)->set_input(0, {input.data(), {DType::F32, shape}}, bytes);
      if (status.ok()) status = (*session)->run();
      EXPECT_TRUE(status.ok()) << status.message();
    }
    for (size_t i = 0; i < model->entries[0].graph.outputs.size(); ++i) {
      const auto tensor = (*session)->output(i);
      EXPECT_TRUE(tensor.ok()) << tensor.status().message();
      if (!tensor.ok()) continue;
      const auto* values = reinterpret_cast<const float*>(tensor->data);
      outcome.outputs.emplace_back(values, values + tensor->info.elements());
    }
    outcome.plan = (*session)->plan_text();
    outcome.peak = (*session)->memory().peak_planned;
    return outcome;
  }
  /// Both ways; sliced: whether small caches are expected to give slices; smaller: and less memory.
  void expect_same(bool sliced, bool smaller) {
    EXPECT_TRUE(build.status().ok()) << build.status().message();
    model->entries.push_back({"infer", std::move(graph)});
    const Status optimized = compiler::optimize(*model, {}, nullptr);
    ASSERT_TRUE(optimized.ok()) << optimized.message();
    const Outcome whole = run(kLargeCache), parts = run(kSmallCache);
    EXPECT_EQ(whole.plan.find("[0:"), std::string::npos) << whole.plan;
    EXPECT_EQ(parts.plan.find("[0:") != std::string::npos, sliced) << parts.plan;
    if (smaller) {
      EXPECT_LT(parts.peak, whole.peak);
    }
    ASSERT_EQ(whole.outputs.size(), parts.outputs.size());
    for (size_t i = 0; i < whole.outputs.size(); ++i) {
      ASSERT_EQ(whole.outputs[i].size(), parts.outputs[i].size());
      for (size_t k = 0; k < whole.outputs[i].size(); ++k)
        ASSERT_NEAR(whole.outputs[i][k], parts.outputs[i][k], 1e-4f * std::abs(whole.outputs[i][k]) + 1e-5f)
            << "output " << i << " at " << k;
    }
  }
};

TEST(BatchSlices, InvertedResidualsWithSqueezeAndExcitation) {
  Net net({kBatch, 32, 32, 16});
  const ValueId wide = net.relu(net.conv(net.x, 16, 64, 1));
  const ValueId deep = net.relu(net.conv(wide, 64, 64, 3, 64));
  const ValueId mean = net.build.reduce_mean(deep, {1, 2});
  const ValueId gate =
      net.build.emit(op::SigmoidAttributes{}, {net.conv(net.relu(net.conv(mean, 64, 16, 1)), 16, 64, 1)});
  const ValueId narrow = net.conv(net.build.mul(deep, gate), 64, 16, 1);
  const ValueId joined = net.build.add(narrow, net.x);  // a residual
  const ValueId next = net.relu(net.conv(net.relu(net.conv(joined, 16, 64, 1)), 64, 64, 3, 64, 2));
  net.build.output(net.conv(next, 64, 16, 1));
  net.build.output(net.build.reduce_mean(joined, {1, 2}, false));
  net.expect_same(true, true);
}

TEST(BatchSlices, BranchesThatAreJoinedAndReadAgain) {
  Net net({kBatch, 16, 32, 32});  // channels first, as ONNX has them
  const ValueId x = net.build.transpose(net.x, {0, 2, 3, 1});
  const ValueId first = net.relu(net.conv(x, 16, 64, 1));
  const ValueId second = net.relu(net.conv(first, 64, 64, 3, 64));
  const ValueId both = net.concat({first, second, first}, -1);
  const ValueId scaled = net.build.mul(both, net.weight({192}));
  const ValueId pooled = net.max_pool(scaled);
  net.build.output(net.conv(pooled, 192, 8, 1));
  net.build.output(second);  // of a run, and of the graph
  net.expect_same(true, true);
}

TEST(BatchSlices, SamplesThatAreMixedAreNotSliced) {
  Net net({kBatch, 32, 32, 16});
  const ValueId wide = net.relu(net.conv(net.x, 16, 64, 1));
  const ValueId deep = net.relu(net.conv(wide, 64, 64, 3, 64));
  const ValueId over_samples = net.build.reduce_mean(deep, {0});  // [1,32,32,64]
  const ValueId centred = net.build.sub(deep, over_samples);      // all samples of deep before the first
  op::SliceAttributes reverse;
  reverse.axes = {0};
  reverse.steps = {-1};
  const std::array<int64_t, 1> from{-1}, to{-kBatch - 1};
  const ValueId reversed =
      net.build.emit(std::move(reverse), {centred, net.build.ints(from), net.build.ints(to)});
  const std::array<int64_t, 4> turned{kBatch, 16, 64, 64};
  const ValueId flat = net.build.reshape(net.build.transpose(reversed, {1, 0, 2, 3}), net.build.ints(turned));
  net.build.output(net.relu(flat));
  net.build.output(net.relu(net.build.mul(reversed, reversed)));
  net.expect_same(true, false);  // what is before the mean, alone
}

TEST(BatchSlices, WeightsThatComeFromTheBatchAreNotSliced) {
  Net net({16, 16, 16, 16});
  const ValueId y = net.relu(net.relu(net.x));
  op::ConvAttributes conv;
  conv.strides = {1, 1};
  conv.pads = {0, 0, 0, 0};
  conv.dilations = {1, 1};
  net.build.output(net.relu(net.relu(net.build.emit(std::move(conv), {net.relu(y), net.build.neg(y)}))));
  net.expect_same(false, false);
}

TEST(JoinedInPlace, NestedPartsRepeatedPartsAndLaterReaders) {
  Net net({1, 8, 64});
  const auto part = [&](float factor) {
    return net.relu(net.build.mul(net.x, net.build.scalar(factor, DType::F32)));
  };
  const ValueId a = part(2), b = part(-3), c = part(5);
  const ValueId inner = net.concat({a, b}, 1);
  const ValueId outer =
      net.concat({inner, c, a, net.x}, 1);  // a is there twice, x is not the graph's to move
  net.build.output(net.relu(net.build.add(outer, net.build.scalar(-0.25, DType::F32))));
  net.build.output(net.build.emit(op::TanhAttributes{}, {net.build.add(a, b)}));  // later than the join
  net.build.output(net.build.emit(op::ExpAttributes{}, {inner}));
  net.build.output(net.concat({c, b}, 1));  // parts of the first are copied to the second
  net.model->entries.push_back({"infer", std::move(net.graph)});
  const Net::Outcome outcome = net.run(kLargeCache);
  ASSERT_EQ(outcome.outputs.size(), 4u);
  const Floats x = numbers(8 * 64, 7);
  const size_t n = x.size();
  const auto of = [&](size_t i, float factor) { return std::max(0.0f, x[i] * factor); };
  for (size_t i = 0; i < n; ++i) {
    const std::array<float, 5> joined{of(i, 2), of(i, -3), of(i, 5), of(i, 2), x[i]};
    for (size_t k = 0; k < joined.size(); ++k)
      ASSERT_NEAR(outcome.outputs[0][k * n + i], std::max(0.0f, joined[k] - 0.25f), 1e-6f) << k << ", " << i;
    ASSERT_NEAR(outcome.outputs[1][i], std::tanh(of(i, 2) + of(i, -3)), 1e-5f);
    ASSERT_NEAR(outcome.outputs[2][i], std::exp(of(i, 2)), 1e-5f);
    ASSERT_NEAR(outcome.outputs[2][n + i], std::exp(of(i, -3)), 1e-5f);
    ASSERT_NEAR(outcome.outputs[3][i], of(i, 5), 1e-6f);
    ASSERT_NEAR(outcome.outputs[3][n + i], of(i, -3), 1e-6f);
  }
  // b is the second half of the last output; inner, c, a and x begin a multiple of 2048 bytes after outer.
  EXPECT_NE(outcome.plan.find("-> Relu_1 f32[1,8,64] @output 3+2048"), std::string::npos) << outcome.plan;
  EXPECT_NE(outcome.plan.find("-> Relu f32[1,8,64] @arena+6144"), std::string::npos) << outcome.plan;
}

}  // namespace
}  // namespace librt
