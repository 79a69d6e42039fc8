// The working memory that rtconvert prints equals what a session reports: needs the cpu backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "runtime/session/session.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/convert/planned_peak.h"

namespace librt {
namespace {

void compare(const char* name, const std::map<std::string, int64_t>& extents) {
  auto built = compiler::build_zoo_model(name);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const Status optimized = compiler::optimize(*built, {}, nullptr);
  ASSERT_TRUE(optimized.ok()) << optimized.message();
  const auto model = std::make_shared<const ModelGraph>(std::move(built).value());
  const Graph& graph = model->entries[0].graph;
  const auto printed = convert::planned_peak(graph, model->states, extents, "cpu");
  ASSERT_TRUE(printed.ok()) << printed.status().message();

  std::vector<TensorInfo> shapes;
  for (const ValueId input : graph.inputs) {
    shapes.push_back({.dtype = graph[input].dtype, .shape = {}});
    for (const Dim& dim : graph[input].dims)
      shapes.back().shape.push_back(
          dim.is_known() ? dim.extent : extents.at(graph.symbols[static_cast<size_t>(dim.symbol)].name));
  }
  auto session = Session::create(model, {.backend = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Status prepared = (*session)->prepare_for(shapes);
  ASSERT_TRUE(prepared.ok()) << prepared.message();
  EXPECT_GT(*printed, 0u);
  EXPECT_EQ(*printed, (*session)->memory().peak_planned);
}

TEST(PlannedPeak, OfAConvolutionNetIsWhatTheSessionReports) {
  compare("lenet5", {{"batch", 3}});
}

TEST(PlannedPeak, OfATransformerLayerIsWhatTheSessionReports) {
  compare("bert_layer", {{"batch", 2}, {"sequence", 16}});
}

/// Self-attention with 8 heads of width 32 over a sequence.
uint64_t attention_peak(int64_t sequence) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries[0].graph;
  compiler::Builder builder(graph);
  const Dim positions{.symbol = graph.symbol("sequence")};
  const ValueId x = builder.input("x", DType::F32, {{.extent = 1}, {.extent = 8}, positions, {.extent = 32}});
  builder.output(builder.emit(op::ReluAttributes{}, {builder.emit(op::AttentionAttributes{}, {x, x, x})}));
  EXPECT_TRUE(compiler::optimize(model, {}, nullptr).ok());
  const auto peak = convert::planned_peak(graph, {}, {{"sequence", sequence}}, "cpu");
  EXPECT_TRUE(peak.ok()) << peak.status().message();
  return peak.ok() ? *peak : 0;
}

/// Counts what it hands out.
struct Held {
  uint64_t now = 0, most = 0;

  static void* allocate(void* user, size_t bytes, size_t alignment) {
    auto& held = *static_cast<Held*>(user);
    held.most = std::max(held.most, held.now += bytes);
    return std::aligned_alloc(alignment, bytes);
  }
  static void release(void* user, void* memory, size_t bytes, size_t) {
    static_cast<Held*>(user)->now -= bytes;
    std::free(memory);
  }
};

TEST(MemoryReport, IsWhatASessionTakes) {
  for (const char* name : {"lenet5", "resnet18_cifar", "mobilenet_v2", "mlp"}) {
    auto built = compiler::build_zoo_model(name);
    ASSERT_TRUE(built.ok()) << built.status().message();
    ASSERT_TRUE(compiler::optimize(*built, {}, nullptr).ok());
    const auto bytes = compiler::serialize_model(*built);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    auto read = read_model(Blob::copy_of(bytes->data(), bytes->size()));
    ASSERT_TRUE(read.ok()) << read.status().message();
    const auto model = std::make_shared<const ModelGraph>(std::move(*read));
    const Graph& graph = model->entries[0].graph;
    const auto planned = convert::planned_memory(graph, model->states, {{"batch", 3}}, "cpu");
    ASSERT_TRUE(planned.ok()) << planned.status().message();

    Held held;
    const rt_allocator hook{sizeof(rt_allocator), &held, Held::allocate, Held::release};
    auto session = Session::create(model, {.backend = "cpu", .allocator = hook});
    ASSERT_TRUE(session.ok()) << session.status().message();
    Shape shape;
    for (const Dim& dim : graph[graph.inputs[0]].dims) shape.push_back(dim.is_known() ? dim.extent : 3);
    ops::HostTensor input({.dtype = DType::F32, .shape = shape});
    ASSERT_TRUE((*session)->set_input(0, input.view(), input.bytes.size()).ok());
    ASSERT_TRUE((*session)->run().ok());
    // Each of a few hundred blocks is rounded up to 64 bytes.
    EXPECT_NEAR(static_cast<double>(held.most), static_cast<double>(planned->total()),
                0.01 * static_cast<double>(planned->total()) + 16384)
        << name;
  }
}

TEST(PlannedPeak, OfAttentionGrowsWithTheSequenceNotItsSquare) {
  const uint64_t one = attention_peak(512), four = attention_peak(2048);
  const uint64_t scores = uint64_t{8} * 2048 * 2048 * sizeof(float);
  EXPECT_LT(four, scores / 32);
  EXPECT_LE(four, 4 * one);
}

}  // namespace
}  // namespace librt
