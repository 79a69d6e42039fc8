// The working memory that rtconvert prints is what a session reports: needs the cpu backend.
#include <gtest/gtest.h>

#include "runtime/session/session.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/rtconvert/planned_peak.h"

namespace rt {
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

}  // namespace
}  // namespace rt
