// Fake quantization: its positions in an imported net, and its conversion after training.
#include "tests/passes/support.h"
#include "tools/compiler/quantize/quantize_aware.h"

namespace librt::compiler::test {
namespace {

bool none(const std::string&) {
  return false;
}

/// Channels first, as an importer writes it: convolutions with normalization and an addition, a Concat, a
/// classifier.
void imported_net(Net& net) {
  Builder& b = net.b;
  const auto normalized = [&](ValueId x, Shape weight, uint32_t seed, bool relu) {
    ValueId y = net.to_last(net.conv(x, weight, seed, {1, 1, 1, 1}));
    const Shape channels{weight[0]};
    y = net.to_first(b.emit(op::BatchNormAttributes{}, {y, random_constant(b, channels, seed + 1, 0.5, 1.5),
                                                        random_constant(b, channels, seed + 2, -0.2, 0.2),
                                                        random_constant(b, channels, seed + 3, -0.2, 0.2),
                                                        random_constant(b, channels, seed + 4, 0.5, 1.5)}));
    return relu ? b.emit(op::ReluAttributes{}, {y}) : y;
  };
  b.set_scope("stem");
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}, {.extent = 8}, {.extent = 8}});
  const ValueId first = normalized(x, {8, 3, 3, 4}, 10, true);
  b.set_scope("body");
  const ValueId sum =
      b.emit(op::ReluAttributes{}, {b.add(normalized(first, {8, 3, 3, 8}, 20, false), first)});
  op::ConcatAttributes concat;
  concat.axis = 1;
  const ValueId both =
      b.emit(concat, {normalized(sum, {8, 3, 3, 8}, 30, true), normalized(sum, {4, 3, 3, 8}, 40, true)});
  b.set_scope("head");
  const ValueId flat =
      b.reshape(normalized(both, {3, 3, 3, 12}, 50, true), b.ints(std::array<int64_t, 2>{-1, 192}));
  net.output(b.add(b.emit(op::MatMulAttributes{}, {flat, random_constant(b, {192, 5}, 4, -0.1, 0.1)}),
                   random_constant(b, {5}, 5)));
}

/// Observed ranges, as from calibration.
std::map<ValueId, Observed> observe_ranges(const Graph& graph, const QuantizationChoice& choice) {
  std::map<ValueId, Observed> observed;
  for (const ValueId value : choice.values) {
    Graph copy = graph;
    copy.outputs = {value};
    EXPECT_TRUE(expand_composites(copy, {}).ok());
    const ops::HostTensor seen = results_of(copy)[0];
    Range& range = observed[value].range;
    for (int64_t i = 0; i < seen.info.elements(); ++i) {
      const auto number = static_cast<float>(load_element(seen.bytes.data(), DType::F32, i));
      range = {std::min(range.low, number), std::max(range.high, number)};
    }
  }
  return observed;
}

/// The model with fake quantization and these ranges, its states frozen to constants.
ModelGraph trained(const Graph& graph, const QuantizationChoice& choice,
                   const std::map<ValueId, Observed>& observed) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = graph});
  Graph& infer = model.entries[0].graph;
  insert_fake_quantization(infer, model.states, choice, observed);
  EXPECT_TRUE(verify(infer, &model.states).ok()) << verify(infer, &model.states).message();
  EXPECT_TRUE(freeze_states(model).ok());
  return model;
}
ModelGraph trained(const Graph& graph, const KeepPredicate& keep) {
  const QuantizationChoice choice = choose_fake_quantized(graph, keep);
  return trained(graph, choice, observe_ranges(graph, choice));
}

TEST(QuantizeAware, TensorsAndWeightsAreFakeQuantized) {
  Net net;
  imported_net(net);
  const QuantizationChoice choice = choose_fake_quantized(net.graph, none);
  EXPECT_EQ(choice.matmuls.size(), 6u);
  // The input; after the stem; both operands of the addition and its result; the Concat; the classifier's
  // input. The first operand of the addition is the stem's result.
  EXPECT_EQ(choice.values.size(), 6u);
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = net.graph});
  insert_fake_quantization(model.entries[0].graph, model.states, choice, {});
  EXPECT_EQ(model.states.size(), 2 * choice.values.size());
  EXPECT_EQ(count(model.entries[0].graph, OpKind::FakeQuantize), choice.values.size() + 6);
  EXPECT_EQ(model.states[0].name, "x.range_low");
}

TEST(QuantizeAware, EndsInIntegers) {
  Net net;
  imported_net(net);
  ModelGraph fake = trained(net.graph, none), real = fake;
  ASSERT_TRUE(optimize(fake, {}, nullptr).ok());
  Graph& infer = real.entries[0].graph;
  const std::set<std::string> kept = release_weights(infer);
  EXPECT_TRUE(kept.empty());
  ASSERT_TRUE(optimize(real, {.residuals = false}, nullptr).ok());
  const auto matmuls = quantize_as_trained(infer, kept);
  ASSERT_TRUE(matmuls.ok()) << matmuls.status().message();
  EXPECT_EQ(matmuls->matmuls, 6u);
  ASSERT_TRUE(optimize(real, {}, nullptr).ok());
  EXPECT_EQ(count(infer, OpKind::QuantizedConv), 5u) << print(infer);
  EXPECT_EQ(count(infer, OpKind::QuantizedMatMul), 1u) << print(infer);
  EXPECT_EQ(count(infer, OpKind::QuantizedAdd), 1u) << print(infer);
  EXPECT_EQ(count(infer, OpKind::QuantizeLinear), 1u) << print(infer);
  EXPECT_EQ(count(infer, OpKind::DequantizeLinear) + count(infer, OpKind::FakeQuantize), 0u) << print(infer);
  const auto want = results_of(fake.entries[0].graph), got = results_of(infer);
  double power = 0, noise = 0;
  for (int64_t i = 0; i < want[0].info.elements(); ++i) {
    const double w = load_element(want[0].bytes.data(), DType::F32, i);
    const double difference = w - load_element(got[0].bytes.data(), DType::F32, i);
    power += w * w;
    noise += difference * difference;
  }
  // Only ties are rounded differently.
  EXPECT_GT(10 * std::log10(power / noise), 40);
}

TEST(QuantizeAware, ExcludedMatmulsStayInFloat) {
  Net net;
  imported_net(net);
  ModelGraph model = trained(net.graph, [](const std::string& name) { return name.starts_with("head"); });
  Graph& infer = model.entries[0].graph;
  const std::set<std::string> kept = release_weights(infer);
  ASSERT_TRUE(optimize(model, {.residuals = false}, nullptr).ok());
  const auto matmuls = quantize_as_trained(infer, kept);
  ASSERT_TRUE(matmuls.ok()) << matmuls.status().message();
  EXPECT_EQ(matmuls->matmuls, 4u);
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  EXPECT_EQ(count(infer, OpKind::Conv) + count(infer, OpKind::MatMul), 2u) << print(infer);
}

TEST(QuantizeAware, ATensorThatWasAlwaysZeroStaysInFloat) {
  Net net;
  imported_net(net);
  const QuantizationChoice choice = choose_fake_quantized(net.graph, none);
  std::map<ValueId, Observed> observed = observe_ranges(net.graph, choice);
  observed[choice.values.back()].range = {};
  ModelGraph model = trained(net.graph, choice, observed);
  Graph& infer = model.entries[0].graph;
  const std::set<std::string> kept = release_weights(infer);
  ASSERT_TRUE(optimize(model, {.residuals = false}, nullptr).ok());
  const auto made = quantize_as_trained(infer, kept);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->zeros.size(), 1u);
  EXPECT_LT(made->matmuls, 6u);
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  EXPECT_EQ(count(infer, OpKind::Conv) + count(infer, OpKind::MatMul), 6 - made->matmuls) << print(infer);
  EXPECT_EQ(count(infer, OpKind::FakeQuantize), 0u) << print(infer);
}

TEST(QuantizeAware, RangesThatSawNothingAreAnError) {
  Net net;
  imported_net(net);
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = net.graph});
  Graph& infer = model.entries[0].graph;
  insert_fake_quantization(infer, model.states, choose_fake_quantized(infer, none), {});
  const auto open = quantize_as_trained(infer, {});
  ASSERT_FALSE(open.ok());
  EXPECT_NE(open.status().message().find("is no constant"), std::string::npos) << open.status().message();
  ASSERT_TRUE(freeze_states(model).ok());
  release_weights(infer);
  const auto empty = quantize_as_trained(infer, {});
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.status().message().find("nothing but zeros"), std::string::npos)
      << empty.status().message();
}

}  // namespace
}  // namespace librt::compiler::test
