// Whether rtconvert --open-batch notices that a model mixes the samples of a batch: needs the cpu backend.
#include <gtest/gtest.h>

#include <array>

#include "tools/compiler/builder.h"
#include "tools/convert/open_batch.h"

namespace librt {
namespace {

using compiler::Builder;

/// x [batch, 4, 6] with operations after it.
template <class Emit>
ModelGraph model_of(const Emit& emit) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Builder builder(model.entries[0].graph);
  const ValueId x =
      builder.input("x", DType::F32, {{.symbol = builder.symbol("batch")}, {.extent = 4}, {.extent = 6}});
  builder.output(emit(builder, x));
  EXPECT_TRUE(builder.status().ok()) << builder.status().message();
  return model;
}

ValueId reshape(Builder& builder, ValueId x, std::array<int64_t, 3> extents) {
  return builder.reshape(x, builder.ints(extents));
}

TEST(OpenBatch, TakesModelsThatKeepSamplesApart) {
  for (const ModelGraph& model :
       {model_of([](Builder&b, ValueId x) { return b.emit(op::ReluAttributes{}, {x}); }),
        model_of([](Builder&b, ValueId x) {
          return reshape(b, b.emit(op::TanhAttributes{}, {reshape(b, x, {-1, 2, 12})}), {-1, 4, 6});
        })}) {
    const auto checked = convert::check_open_batch(model, {});
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    EXPECT_EQ(*checked, "");
  }
}

TEST(OpenBatch, RefusesModelsThatMixSamples) {
  // As view(1, -1, 6) is exported with a batch of 1.
  const auto mixed =
      convert::check_open_batch(model_of([](Builder& b, ValueId x) {
                                  op::SoftmaxAttributes softmax;
                                  softmax.axis = 1;
                                  return reshape(b, b.emit(softmax, {reshape(b, x, {1, -1, 6})}), {-1, 4, 6});
                                }),
                                {});
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.status().message().find("mixes the samples of a batch of 3"), std::string::npos)
      << mixed.status().message();
}

TEST(OpenBatch, RefusesModelsThatRunWithOneSampleOnly) {
  const auto fixed =
      convert::check_open_batch(model_of([](Builder& b, ValueId x) {
                                  return b.add(x, reshape(b, b.emit(op::ReluAttributes{}, {x}), {1, 4, 6}));
                                }),
                                {});
  ASSERT_FALSE(fixed.ok());
  EXPECT_NE(fixed.status().message().find("but not of 3"), std::string::npos) << fixed.status().message();
}

TEST(OpenBatch, SaysWhyItIsNotChecked) {
  const auto random = convert::check_open_batch(model_of([](Builder& b, ValueId x) {
                                                  op::RandomNormalAttributes normal;
                                                  return b.add(x, b.emit(normal, {b.shape_of(x)}));
                                                }),
                                                {});
  ASSERT_TRUE(random.ok()) << random.status().message();
  EXPECT_NE(random->find("random numbers"), std::string::npos) << *random;
}

}  // namespace
}  // namespace librt
