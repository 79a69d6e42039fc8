// The valid range of generated integer inputs.
#include "tools/compiler/shape/index_bounds.h"

#include <gtest/gtest.h>

#include "tools/compiler/builder.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/zoo/zoo.h"

namespace librt::test {
namespace {

TEST(IndexBounds, TokensAndLabels) {
  auto model = compiler::build_zoo_model("char_transformer");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(compiler::index_bounds(*model->entry("infer")),
            (std::map<std::string, int64_t>{
                {model->entry("infer")->values[model->entry("infer")->inputs[0]].name, 256}}));
  compiler::TrainOptions training;
  training.loss.class_axis = -1;
  ASSERT_TRUE(compiler::add_train_entry(*model, training, nullptr).ok());
  const auto bounds = compiler::index_bounds(*model->entry("train_step"));
  EXPECT_EQ(bounds.at("labels"), 256);
  EXPECT_EQ(bounds.size(), 2u);
}

TEST(IndexBounds, TheSmallestTableCountsAlsoAfterMovements) {
  Graph graph;
  compiler::Builder builder(graph);
  const ValueId large = builder.input("large", DType::F32, {{.extent = 9}, {.extent = 2}});
  const ValueId small = builder.input("small", DType::F32, {{.extent = 4}, {.extent = 7}});
  const ValueId index = builder.input("index", DType::I32, {{.extent = 3}});
  const ValueId free = builder.input("free", DType::I64, {{.extent = 3}});
  builder.output(builder.emit(op::GatherAttributes{}, {large, index}));
  op::GatherAttributes columns;
  columns.axis = -1;
  builder.output(builder.emit(columns, {small, builder.cast(index, DType::I64)}));
  const ValueId picked = builder.input("picked", DType::I64, {{.extent = 5}});
  const ValueId medium = builder.input("medium", DType::F32, {{.extent = 6}});
  builder.output(
      builder.emit(op::GatherAttributes{}, {medium, builder.emit(op::GatherAttributes{}, {picked, index})}));
  builder.output(builder.cast(free, DType::F32));
  ASSERT_TRUE(builder.status().ok()) << builder.status().message();
  EXPECT_EQ(compiler::index_bounds(graph), (std::map<std::string, int64_t>{{"index", 5}, {"picked", 6}}));
}

TEST(IndexBounds, LabelOfOneSample) {
  Graph graph;
  compiler::Builder builder(graph);
  const ValueId scores = builder.input("scores", DType::F32, {{.extent = 7}});
  const ValueId labels = builder.input("labels", DType::I64, {});
  builder.output(builder.cast(labels, DType::F32));
  builder.output(scores);
  ASSERT_TRUE(builder.status().ok()) << builder.status().message();
  EXPECT_EQ(compiler::index_bounds(graph), (std::map<std::string, int64_t>{{"labels", 7}}));
}

}  // namespace
}  // namespace librt::test
