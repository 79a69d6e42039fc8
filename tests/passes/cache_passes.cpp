// Growing inputs become states: the rewritten graph, run step by step, must compute what the original
// computes when the caller passes its past on.
#include <cmath>

#include "tools/compiler/cache/cache.h"

#include "tests/passes/support.h"

namespace librt::compiler {
namespace {

using namespace test;

constexpr int64_t kHeads = 4, kGroups = 2, kWidth = 3, kFeatures = kHeads * kWidth, kCapacity = 8;

ModelGraph model_of(Graph graph) {
  ModelGraph model;
  model.entries.push_back({"infer", std::move(graph)});
  return model;
}

ops::HostTensor noise(const TensorInfo& info, uint32_t seed) {
  ops::HostTensor tensor(info);
  tensor.bytes = random_bytes(info, seed);
  return tensor;
}

ops::HostTensor ones(const TensorInfo& info) {
  ops::HostTensor tensor(info);
  for (int64_t i = 0; i < info.elements(); ++i) store_element(tensor.bytes.data(), info.dtype, i, 1);
  return tensor;
}

std::vector<ops::HostTensor> run(const Graph& graph, const std::vector<ops::HostTensor>& inputs,
                                 std::vector<ops::HostTensor>* states) {
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  auto results = ops::evaluate_graph(graph, views, states);
  EXPECT_TRUE(results.ok()) << results.status().message() << print(graph);
  return results.ok() ? std::move(*results) : std::vector<ops::HostTensor>{};
}

/// A decoder layer by layer: features [1,S,F] in; `join` combines the new keys and values [1,G,S,D] with past
/// ones.
struct Decoder : Net {
  bool spelled_out = false;

  /// As exporters write it: keys and values repeated for the heads that share them, matmuls, a softmax.
  ValueId written_attention(ValueId q, ValueId k, ValueId v, ValueId mask) {
    const auto repeated = [&](ValueId x) {
      const ValueId column = b.reshape(x, b.ints(std::vector<int64_t>{1, kGroups, 1, -1, kWidth}));
      const ValueId wide = b.emit(op::ExpandAttributes{},
                                  {column, b.ints(std::vector<int64_t>{1, 1, kHeads / kGroups, 1, 1})});
      return b.reshape(wide, b.ints(std::vector<int64_t>{1, kHeads, -1, kWidth}));
    };
    ValueId scores = b.emit(op::MatMulAttributes{}, {q, b.transpose(repeated(k), {0, 1, 3, 2})});
    scores = b.mul(scores, b.scalar(1 / std::sqrt(double(kWidth)), DType::F32));
    if (mask != kNoValue) scores = b.add(scores, mask);
    return b.emit(op::MatMulAttributes{}, {b.emit(op::SoftmaxAttributes{}, {scores}), repeated(v)});
  }
  ValueId heads(ValueId x, int64_t count, uint32_t seed) {
    const ValueId matmul =
        b.emit(op::MatMulAttributes{}, {x, random_constant(b, {kFeatures, count * kWidth}, seed)});
    return b.transpose(b.reshape(matmul, b.ints(std::vector<int64_t>{1, -1, count, kWidth})), {0, 2, 1, 3});
  }
  ValueId concat(std::vector<ValueId> parts, int64_t axis) {
    op::ConcatAttributes attributes;
    attributes.axis = axis;
    return b.emit_many(make_op(attributes), parts, 1)[0];
  }
  /// join(new, past): the keys or values that attention reads.
  template <class Concat>
  ValueId layer(ValueId x, uint32_t seed, ValueId mask, const Concat& join) {
    const ValueId q = heads(x, kHeads, seed);
    const ValueId k = join(heads(x, kGroups, seed + 1), 0), v = join(heads(x, kGroups, seed + 2), 1);
    const ValueId y =
        spelled_out ? written_attention(q, k, v, mask) : b.emit(op::AttentionAttributes{}, {q, k, v, mask});
    return b.add(x, b.reshape(b.transpose(y, {0, 2, 1, 3}), b.ints(std::vector<int64_t>{1, -1, kFeatures})));
  }
};

/// All layers in one tensor [L,G,P,D], one token per step: keys and values are selected by Gather and stacked
/// again.
Graph stacked(bool reversed = false) {
  Decoder net;
  const Dim past_length = net.symbol("P");
  const std::vector<Dim> dims{{.extent = 2}, {.extent = kGroups}, past_length, {.extent = kWidth}};
  ValueId x = net.input({{.extent = 1}, {.extent = 1}, {.extent = kFeatures}});
  const ValueId past[] = {net.input(dims, "past_k"), net.input(dims, "past_v")};
  std::vector<ValueId> present[2];
  for (int64_t layer = 0; layer < 2; ++layer)
    x = net.layer(x, uint32_t(10 * layer + 1), kNoValue, [&](ValueId fresh, size_t which) {
      const ValueId index = net.b.scalar(double(layer), DType::I64);
      const ValueId old = net.b.emit(op::GatherAttributes{}, {past[which], index});
      const ValueId entries = net.b.reshape(fresh, net.b.ints(std::vector<int64_t>{kGroups, 1, kWidth}));
      const ValueId grown = net.concat({old, entries}, 1);
      const ValueId whole = net.b.reshape(grown, net.b.ints(std::vector<int64_t>{1, kGroups, -1, kWidth}));
      present[which].insert(reversed ? present[which].begin() : present[which].end(), whole);
      return whole;
    });
  net.output(x, "y");
  net.output(net.concat(present[0], 0), "present_k");
  net.output(net.concat(present[1], 0), "present_v");
  return std::move(net.graph);
}

/// A pair of inputs per layer, any number of tokens per step, learned positions and a mask computed from
/// shapes and from an input of ones.
struct Direct : Decoder {
  ValueId x, mask_input = kNoValue, past[4], mask, present[4];
  Dim past_length = symbol("past_length"), fresh = symbol("length"), total = symbol("past_length + length");

  ValueId extent_of(ValueId value, int64_t axis) {
    const ValueId index = b.scalar(double(axis), DType::I64);
    return b.emit(op::GatherAttributes{}, {b.shape_of(value), index});
  }
  ValueId range(ValueId from, ValueId to) {
    return b.emit(op::RangeAttributes{}, {from, to, b.scalar(1, DType::I64)});
  }
  explicit Direct(bool causal = true, bool spelled = false, bool with_input = true, bool two_names = false) {
    spelled_out = spelled;
    x = input({{.extent = 1}, fresh, {.extent = kFeatures}});
    if (with_input) mask_input = input({{.extent = 1}, total}, "attention_mask", DType::I64);
    const Dim other = two_names ? symbol("past_sliding_length") : past_length;
    for (size_t i = 0; i < 4; ++i)
      past[i] = input({{.extent = 1}, {.extent = kGroups}, i < 2 ? past_length : other, {.extent = kWidth}},
                      text("past.", i));
    const ValueId zero = b.scalar(0, DType::I64);
    const ValueId first = extent_of(past[0], 2), end = b.add(first, extent_of(x, 1));
    const ValueId positions = range(first, end);
    const ValueId table = random_constant(b, {64, kFeatures}, 90);
    ValueId y = b.add(x, b.emit(op::GatherAttributes{}, {table, positions}));
    const ValueId column = b.reshape(positions, b.ints(std::vector<int64_t>{-1, 1}));
    const ValueId row = causal ? range(zero, end) : b.add(range(zero, end), b.scalar(1, DType::I64));
    const ValueId seen = b.emit(op::LessOrEqualAttributes{}, {row, column});
    const ValueId keep =
        with_input ? b.emit(op::AndAttributes{}, {seen, b.cast(mask_input, DType::Bool)}) : seen;
    const ValueId hidden = b.scalar(-3e38, DType::F32);
    mask = b.emit(op::WhereAttributes{}, {keep, b.scalar(0, DType::F32), hidden});
    for (size_t layer = 0; layer < 2; ++layer)
      y = this->layer(y, uint32_t(10 * layer + 1), mask, [&](ValueId entries, size_t which) {
        return present[2 * layer + which] = concat({past[2 * layer + which], entries}, 2);
      });
    output(y, "y");
    for (size_t i = 0; i < 4; ++i) output(present[i], text("present.", i));
  }
};

/// Steps with these numbers of tokens. The original's inputs: x, [mask], pasts; its outputs: y, presents.
void compare_steps(const Graph& original, bool has_mask, std::vector<int64_t> steps) {
  ModelGraph before = model_of(original);
  ASSERT_TRUE(optimize(before, {}, nullptr).ok());
  ModelGraph model = before;
  CacheReport report;
  Status status = add_cache(model, {.length = kCapacity, .pairs = {}}, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  status = optimize(model, {}, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  status = verify(model);
  ASSERT_TRUE(status.ok()) << status.message();
  const Graph& cached = model.entries[0].graph;
  EXPECT_EQ(cached.inputs.size(), 1u) << print(cached);
  EXPECT_EQ(cached.outputs.size(), 1u);
  EXPECT_EQ(report.states, 4u);
  EXPECT_EQ(count(cached, OpKind::TensorScatter), 4u);
  EXPECT_EQ(report.inputs.size(), original.inputs.size() - 1);

  // Two texts: a reset starts a new one.
  for (int text = 0; text < 2; ++text) {
    std::vector<ops::HostTensor> states = ops::initial_states(model.states), past;
    int64_t length = 0;
    for (const int64_t tokens : steps) {
      std::vector<ops::HostTensor> inputs{
          noise({DType::F32, {1, tokens, kFeatures}}, static_cast<uint32_t>(length + 7 * text))};
      const auto got = run(cached, inputs, &states);
      if (has_mask) inputs.push_back(ones({DType::I64, {1, length + tokens}}));
      for (size_t i = inputs.size(); i < original.inputs.size(); ++i) {
        TensorInfo info{DType::F32, {}};
        for (const Dim& dim : original[original.inputs[i]].dims)
          info.shape.push_back(dim.is_known() ? dim.extent : 0);
        inputs.push_back(length == 0 ? ops::HostTensor(info) : past[i - (has_mask ? 2 : 1)]);
      }
      auto want = run(before.entries[0].graph, inputs, nullptr);
      ASSERT_FALSE(want.empty() || got.empty());
      ASSERT_EQ(want[0].info, got[0].info);
      for (int64_t i = 0; i < want[0].info.elements(); ++i)
        ASSERT_NEAR(load_element(want[0].bytes.data(), DType::F32, i),
                    load_element(got[0].bytes.data(), DType::F32, i), 1e-5)
            << "after " << length << " tokens\n"
            << print(cached);
      past.assign(std::make_move_iterator(want.begin() + 1), std::make_move_iterator(want.end()));
      length += tokens;
      EXPECT_EQ(load_integer(states[0].bytes.data(), DType::I64, 0), length);
    }
  }
}

std::string refusal(const Graph& graph, std::vector<std::pair<std::string, std::string>> pairs = {}) {
  ModelGraph model = model_of(graph);
  EXPECT_TRUE(optimize(model, {}, nullptr).ok());
  const Status status = add_cache(model, {.length = kCapacity, .pairs = std::move(pairs)}, nullptr);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(model.states.empty());
  return status.message();
}

TEST(Cache, LayersStackedInOneInput) {
  compare_steps(stacked(), false, {1, 1, 1, 1});
}

TEST(Cache, PairsWithMaskAndPositions) {
  compare_steps(Direct().graph, true, {3, 1, 2, 1});
}

// A model with caches of a window, which are caches of all positions here, names their lengths apart.
TEST(Cache, PastsOfTwoNamesGrowAlike) {
  compare_steps(Direct(true, false, true, true).graph, true, {3, 1, 2, 1});
}

TEST(Cache, AttentionAsExportersWriteIt) {
  compare_steps(Direct(true, true).graph, true, {3, 1, 2, 1});
  compare_steps(Direct(true, true, false).graph, false, {2, 1, 1});
}

TEST(Cache, ModelHoldsCapacity) {
  ModelGraph model = model_of(stacked());
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  ASSERT_TRUE(
      add_cache(model, {.length = 5, .pairs = {{"past_k", "present_k"}, {"past_v", "present_v"}}}, nullptr)
          .ok());
  EXPECT_EQ(model.metadata.back(), (std::pair<std::string, std::string>(kCacheCapacityKey, "5")));
  EXPECT_EQ(model.states[0].name, kCacheLengthState);
  EXPECT_EQ(model.states[0].kind, StateKind::Counter);
  EXPECT_EQ(model.states[1].info.shape, (Shape{1, kGroups, 5, kWidth}));
}

TEST(Cache, OutputsThatAreNotTheNextInputAreRefused) {
  EXPECT_NE(refusal(stacked(true)).find("layout differs"), std::string::npos);
}

TEST(Cache, OtherMasksAreRefused) {
  EXPECT_NE(refusal(Direct(false).graph).find("neither causal"), std::string::npos);
}

TEST(Cache, OtherReadersAreRefusedByName) {
  Direct net;
  op::ReduceSumAttributes sum;
  sum.axes = {2};
  net.b.set_scope("adds_up");
  net.output(net.b.emit(std::move(sum), {net.present[0]}), "sum");
  const std::string message = refusal(net.graph);
  EXPECT_NE(message.find("'adds_up'"), std::string::npos) << message;
  EXPECT_NE(message.find("not part of a recognized attention"), std::string::npos) << message;
}

TEST(Cache, LengthsAsDataAreRefusedByName) {
  Direct net;
  net.b.set_scope("counts");
  op::ReduceSumAttributes all;
  all.keep_dims = false;
  const ValueId extents = net.b.cast(net.b.shape_of(net.past[0]), DType::F32);
  net.output(net.b.mul(net.x, net.b.emit(std::move(all), {extents})), "scaled");
  const std::string message = refusal(net.graph);
  EXPECT_NE(message.find("follows from the length of the cache"), std::string::npos) << message;
}

TEST(Cache, UnknownNamesAndModelsWithoutCacheAreRefused) {
  EXPECT_NE(refusal(stacked(), {{"past", "present"}}).find("no input 'past'"), std::string::npos);
  EXPECT_NE(refusal(stacked(), {{"past_k", "present_v"}}).find("'present_v'"), std::string::npos);
  Net net;
  net.output(net.unary(op::ReluAttributes{}, net.input({net.symbol("n"), {.extent = 2}})));
  EXPECT_NE(refusal(net.graph).find("no input has new entries appended"), std::string::npos);
}

}  // namespace
}  // namespace librt::compiler
