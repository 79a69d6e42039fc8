// Which constants of a net become trained weights.
#include "tools/compiler/train/train_entry.h"

#include <gtest/gtest.h>

#include "tools/compiler/builder.h"

namespace librt::test {
namespace {

ValueId weight(compiler::Builder& builder, const std::string& name, Shape shape) {
  const std::vector<float> numbers(static_cast<size_t>(shape.elements()), 0.5f);
  const ValueId id = builder.constant({.dtype = DType::F32, .shape = shape},
                                      Blob::copy_of(numbers.data(), numbers.size() * sizeof(float)));
  builder.graph().values[id].name = name;
  return id;
}

TEST(TrainEntry, OneElementIsAWeightOnlyAsOperandOfALayer) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  compiler::Builder builder(model.entries[0].graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = 2}, {.extent = 3}});
  const ValueId matmul = builder.emit(op::MatMulAttributes{}, {x, weight(builder, "linear.weight", {3, 1})});
  const ValueId sum = builder.add(weight(builder, "linear.bias", {1}), matmul);
  builder.output(builder.mul(sum, weight(builder, "temperature", {1})));
  ASSERT_TRUE(builder.status().ok()) << builder.status().message();
  compiler::TrainReport report;
  const Status status =
      compiler::add_train_entry(model, {.loss = {.loss = compiler::Loss::MeanSquaredError}}, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(report.trained, (std::vector<std::string>{"linear.weight", "linear.bias"}));
}

}  // namespace
}  // namespace librt::test
