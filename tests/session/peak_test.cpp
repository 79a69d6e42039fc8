// The working memory that rtconvert prints equals what a session reports: needs the cpu backend.
#include <gtest/gtest.h>

#include "runtime/session/session.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
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

TEST(PlannedPeak, OfAttentionGrowsWithTheSequenceNotItsSquare) {
  const uint64_t one = attention_peak(512), four = attention_peak(2048);
  const uint64_t scores = uint64_t{8} * 2048 * 2048 * sizeof(float);
  EXPECT_LT(four, scores / 32);
  EXPECT_LE(four, 4 * one);
}

}  // namespace
}  // namespace librt
