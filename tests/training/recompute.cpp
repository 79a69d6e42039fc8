// Recomputation must not change results and must save memory, in sessions of the backend argv[1].
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "tests/support/backend_main.h"
#include "tests/training/step_session.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/recompute.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/train/training_graph.h"
#include "tools/compiler/writer.h"
#include "tools/convert/planned_peak.h"

namespace librt {
namespace {

using test::StepSession;
using tools::Array;

using test::backend_name;
constexpr int64_t kBatch = 64, kWidth = 48;

std::vector<float> waves(size_t count, float phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 0.3f * std::cos(phase + 1.3f * static_cast<float>(i));
  return values;
}

Array floats(const char* name, std::vector<int64_t> dims, const std::vector<float>& values) {
  Array made{.name = name, .type = DType::F32, .dims = std::move(dims), .bytes = {}};
  made.bytes.resize(values.size() * sizeof(float));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

// Blocks of matmul, normalization, Gelu, a Reshape back and forth, and dropout.
ModelGraph compiled(int blocks) {
  ModelGraph model;
  Graph graph;
  compiler::Builder builder(graph);
  const auto weight = [&](const std::string& name, Shape shape, float phase) {
    const auto values = waves(static_cast<size_t>(shape.elements()), phase);
    const ValueId made = builder.constant({.dtype = DType::F32, .shape = shape},
                                          Blob::copy_of(values.data(), values.size() * sizeof(float)));
    builder.graph().values[made].name = name;
    return made;
  };
  ValueId y = builder.input("x", DType::F32, {{.symbol = graph.symbol("batch")}, {.extent = kWidth}});
  for (int i = 0; i < blocks; ++i) {
    builder.set_scope(text("block", i));
    const auto phase = static_cast<float>(i);
    y = builder.emit(op::MatMulAttributes{}, {y, weight(text("w", i), {kWidth, kWidth}, phase)});
    y = builder.emit(op::LayerNormAttributes{}, {y, weight(text("scale", i), {kWidth}, 1 + phase)});
    y = builder.emit(op::GeluAttributes{}, {y});
    y = builder.reshape(y, builder.ints(std::vector<int64_t>{-1, 4, kWidth / 4}));
    y = builder.emit(op::TanhAttributes{}, {y});
    y = builder.reshape(y, builder.ints(std::vector<int64_t>{-1, kWidth}));
    y = compiler::emit_dropout(builder, y, builder.scalar(0.2, DType::F32), builder.shape_of(y), i + 1).y;
  }
  EXPECT_TRUE(builder.status().ok()) << builder.status().message();
  builder.output(y);
  model.entries.push_back({.name = "infer", .graph = std::move(graph)});
  compiler::TrainOptions options;
  options.loss.loss = compiler::Loss::MeanSquaredError;
  options.optimizer.optimizer.optimizer = compiler::Optimizer::Adam;
  Status status = compiler::add_train_entry(model, options, nullptr);
  if (status.ok()) status = compiler::optimize(model, {}, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

std::vector<std::byte> file_of(const ModelGraph& model) {
  auto bytes = compiler::serialize_model(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>();
}

uint64_t peak_of(const ModelGraph& model) {
  const auto peak =
      convert::planned_peak(*model.entry("train_step"), model.states, {{"batch", kBatch}}, backend_name);
  EXPECT_TRUE(peak.ok()) << peak.status().message();
  return peak.ok() ? *peak : 0;
}

TEST(Recompute, SavesMemoryAndKeepsEveryBit) {
  const ModelGraph plain = compiled(6);
  ModelGraph lean = plain;
  const auto report = compiler::recompute(*lean.entry("train_step"), lean.states, {{"batch", kBatch}}, 0);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->nodes, 0u);
  EXPECT_GT(report->added_flops, 0);
  EXPECT_LT(report->added_flops, report->flops);
  EXPECT_LT(report->live_after, report->live_before * 2 / 3);
  EXPECT_LT(peak_of(lean), peak_of(plain));
  std::printf("%zu nodes more, live %lu of %lu bytes, planned %lu of %lu\n", report->nodes,
              static_cast<unsigned long>(report->live_after), static_cast<unsigned long>(report->live_before),
              static_cast<unsigned long>(peak_of(lean)), static_cast<unsigned long>(peak_of(plain)));

  StepSession a(file_of(plain), backend_name, "train_step"), b(file_of(lean), backend_name, "train_step");
  for (int step = 0; step < 3; ++step) {
    const std::vector<Array> batch = {
        floats("x", {kBatch, kWidth},
               waves(static_cast<size_t>(kBatch * kWidth), 0.1f * static_cast<float>(step))),
        floats("target", {kBatch, kWidth}, waves(static_cast<size_t>(kBatch * kWidth), 2)),
        floats("learning_rate", {}, {0.01f})};
    ASSERT_TRUE(a.run(batch)) << a.error();
    ASSERT_TRUE(b.run(batch)) << b.error();
    EXPECT_EQ(a.output("loss")->bytes, b.output("loss")->bytes);
  }
  for (const State& state : plain.states) {
    const auto x = a.state(state.name), y = b.state(state.name);
    ASSERT_TRUE(x && y) << a.error() << b.error();
    EXPECT_EQ(x->bytes, y->bytes) << state.name;
  }
}

TEST(Recompute, StopsWhereItIsAskedTo) {
  ModelGraph model = compiled(4);
  Graph& graph = *model.entry("train_step");
  const size_t nodes = graph.nodes.size();
  const auto nothing = compiler::recompute(graph, model.states, {{"batch", kBatch}}, uint64_t{1} << 40);
  ASSERT_TRUE(nothing.ok()) << nothing.status().message();
  EXPECT_EQ(nothing->nodes, 0u);
  EXPECT_EQ(graph.nodes.size(), nodes);
  const uint64_t wanted = nothing->live_before * 9 / 10;
  const auto some = compiler::recompute(graph, model.states, {{"batch", kBatch}}, wanted);
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_LE(some->live_after, wanted);
  const auto most = compiler::recompute(graph, model.states, {{"batch", kBatch}}, 0);
  ASSERT_TRUE(most.ok()) << most.status().message();
  EXPECT_GT(most->nodes, 0u);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
