// Mixtures of experts (com.microsoft MoE and QMoE): a token goes through the k of E feed-forward networks
// that its router chooses, and their results are added with the router's weights (Shazeer et al. 2017,
// arXiv:1701.06538).
//
// All tokens go through all experts, in one matmul for each layer, and count 0 where they were not chosen; a
// single token, as in decoding, only reads the weights of its own experts.
#include <array>

#include "tools/onnx/activations.h"
#include "tools/onnx/blocked.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// One layer of all experts. Weights [E,N,..], or [N,E,..] where the inputs of the experts stand side by
/// side.
struct Layer {
  BlockedWeight weight;  ///< only `values`, float: not quantized
  ValueId bias = kNoValue;
  Blocking blocking;  ///< of one expert
  int64_t rows = 0;
  bool side_by_side = false;

  bool is_absent() const { return weight.values == kNoValue; }
};

enum class Gate { None, Separate, Interleaved, Halves };

struct Mixture {
  int64_t experts = 0, chosen = 0, hidden = 0, inner = 0;
  std::string activation;
  Gate gate = Gate::None;
  SwiGlu swiglu;

  ValueId x = kNoValue;        ///< [T,hidden]
  ValueId all = kNoValue;      ///< [T,E], 0 for experts that a token did not choose
  ValueId weights = kNoValue;  ///< [T,k]
  ValueId indices = kNoValue;  ///< i64 [T,k]
  Layer first, gating, second;

  Mixture within(const BodyWriter::Body& body) const {
    Mixture copy = *this;
    for (ValueId* id : {&copy.x, &copy.all, &copy.weights, &copy.indices}) *id = body.within(*id);
    for (Layer* layer : {&copy.first, &copy.gating, &copy.second})
      for (ValueId* id : {&layer->weight.values, &layer->weight.scales, &layer->weight.offsets, &layer->bias})
        *id = body.within(*id);
    return copy;
  }
};

// --- the experts' networks

/// x [T,..] times the layer's weights of `count` experts.
ValueId times(Emitter& e, const Layer& layer, ValueId x, int64_t count) {
  const int64_t rows = layer.side_by_side ? layer.rows : layer.rows * count;
  const auto flat = [&](ValueId id) { return id == kNoValue ? id : reshape_to(e, id, {rows, -1}); };
  const BlockedWeight weight{flat(layer.weight.values), flat(layer.weight.scales),
                             flat(layer.weight.offsets)};
  if (weight.scales == kNoValue) {
    op::MatMulAttributes attributes;
    attributes.transpose_b = true;
    return e.emit(attributes, {x, weight.values});
  }
  Blocking blocking = layer.blocking;
  blocking.n = rows;
  if (layer.side_by_side) blocking.k *= count;
  return matmul_blocked(e, x, weight, blocking, kNoValue);
}

/// The layer of the chosen experts alone.
Layer of_experts(Emitter& e, const Layer& layer, ValueId indices) {
  Layer own = layer;
  for (ValueId* id : {&own.weight.values, &own.weight.scales, &own.weight.offsets})
    if (*id != kNoValue) *id = take(e, *id, indices, layer.side_by_side ? 1 : 0);
  if (own.bias != kNoValue) own.bias = take(e, own.bias, indices, 0);
  return own;
}

Result<ValueId> plain_activation(Emitter& e, std::string_view name, ValueId x) {
  if (name == "identity") return x;
  if (name == "relu") return e.emit(op::ReluAttributes{}, {x});
  if (name == "silu") return e.emit(op::SiluAttributes{}, {x});
  op::GeluAttributes gelu;
  gelu.tanh_approximation = true;
  if (name == "gelu") return e.emit(gelu, {x});
  return cannot("activation_type '", name, "'; export with relu, gelu, silu, swiglu or identity");
}

/// [T,count,inner] from the first layer's results [T,count,rows], and the gating layer's, if any.
Result<ValueId> activated_rows(Emitter& e, const Mixture& m, ValueId first, ValueId gating, int64_t count) {
  if (m.activation != "swiglu") {
    RT_ASSIGN(const ValueId y, plain_activation(e, m.activation, first));
    return gating == kNoValue ? y : e.mul(y, gating);
  }
  if (m.gate == Gate::Separate) return m.swiglu.of(e, first, gating);
  if (m.gate == Gate::Halves)
    return m.swiglu.of(e, slice(e, first, 2, 0, m.inner), slice(e, first, 2, m.inner, 2 * m.inner));
  const ValueId pairs = reshape_to(e, first, {-1, count, m.inner, 2});
  const auto part = [&](int64_t at) {
    return reshape_to(e, slice(e, pairs, 3, at, at + 1), {-1, count, m.inner});
  };
  return m.swiglu.of(e, part(0), part(1));
}

/// The sum over `count` experts by weight [T,count]: [T,hidden].
Result<ValueId> sum_of_experts(Emitter& e, const Mixture& m, ValueId weight, int64_t count) {
  const auto layer_of = [&](const Layer& layer) {
    if (layer.is_absent()) return ValueId{kNoValue};
    const ValueId y = reshape_to(e, times(e, layer, m.x, count), {-1, count, layer.rows});
    return layer.bias == kNoValue ? y : e.add(y, layer.bias);
  };
  RT_ASSIGN(const ValueId rows, activated_rows(e, m, layer_of(m.first), layer_of(m.gating), count));
  const ValueId weighted = e.mul(rows, reshape_to(e, weight, {-1, count, 1}));
  ValueId y = times(e, m.second, reshape_to(e, weighted, {-1, count * m.inner}), count);
  if (m.second.bias != kNoValue) y = e.add(y, e.emit(op::MatMulAttributes{}, {weight, m.second.bias}));
  return y;
}

Result<ValueId> sum_for_one_token(Emitter& e, Mixture m) {
  const ValueId indices = reshape_to(e, m.indices, {m.chosen});
  for (Layer* layer : {&m.first, &m.gating, &m.second})
    if (!layer->is_absent()) *layer = of_experts(e, *layer, indices);
  return sum_of_experts(e, m, m.weights, m.chosen);
}

Result<ValueId> mixture(NodeContext& c, const Mixture& m) {
  Emitter& e = c.emit;
  const Dim tokens = e.value(m.x).dims[0];
  if (tokens.extent == 1) return sum_for_one_token(e, m);
  // Gradients of an If are not taken where its condition depends on extents.
  if (tokens.is_known() || m.chosen == m.experts || c.options.untie)
    return sum_of_experts(e, m, m.all, m.experts);
  const auto write = [&](bool one) {
    return [&m, one](const BodyWriter::Body& body) -> std::vector<ValueId> {
      const Mixture own = m.within(body);
      Result<ValueId> y =
          one ? sum_for_one_token(body.emit, own) : sum_of_experts(body.emit, own, own.all, own.experts);
      if (!y.ok()) body.emit.fail(y.status());
      if (!body.emit.status().ok()) return {};
      const std::array extents{Extent::dim(body.emit, own.x, 0), Extent::of(own.hidden)};
      return {reshape_to(body.emit, *y, extents)};
    };
  };
  const ValueId count = reshape_to(e, dims_product(e, m.x, 0, 1), {});
  const ValueId is_one = e.emit(op::EqualAttributes{}, {count, e.scalar(1, DType::I64)});
  const std::vector<ValueId> outputs = c.bodies().choose(is_one, write(true), write(false));
  return outputs.empty() ? ValueId{kNoValue} : outputs[0];
}

// --- the router

struct Router {
  ValueId scores = kNoValue;   ///< [T,E]
  ValueId weights = kNoValue;  ///< [T,E] instead of the scores' softmax; or none
  bool normalizes = false;     ///< the weights of the chosen experts have the sum 1
};

void route(NodeContext& c, const Router& router, DType real, Mixture& m) {
  Emitter& e = c.emit;
  const ValueId scores = as_type(e, router.scores, DType::F32);
  const ValueId operands[] = {scores, e.ints({{m.chosen}})};
  op::TopKAttributes top;
  top.axis = 1;
  const std::vector<ValueId> best = e.emit_many(make_op(top), operands, 2);
  op::SoftmaxAttributes softmax;
  softmax.axis = 1;
  op::GatherElementsAttributes along;
  along.axis = 1;
  ValueId weights = kNoValue;
  if (router.weights != kNoValue) {
    weights = e.emit(along, {as_type(e, router.weights, DType::F32), best[1]});
    if (router.normalizes) weights = e.div(weights, e.reduce_sum(weights, {1}));
  } else if (router.normalizes) {
    weights = e.emit(softmax, {best[0]});
  } else {
    weights = e.emit(along, {e.emit(softmax, {scores}), best[1]});
  }
  m.indices = best[1];
  m.weights = as_type(e, weights, real);
  const ValueId none = e.emit(op::ExpandAttributes{}, {e.scalar(0, real), e.shape_of(scores)});
  op::ScatterElementsAttributes scatter;
  scatter.axis = 1;
  m.all = e.emit(scatter, {none, m.indices, m.weights});
}

// --- the operators

/// An operator's inputs of one layer.
struct LayerInputs {
  size_t weight, scales, zeros, bias;
};

Result<Mixture> mixture_of(NodeContext& c, const LayerInputs& first, const LayerInputs& gating,
                           const LayerInputs& second) {
  Mixture m;
  if (!c.has(second.weight)) return invalid_model("input ", second.weight, " is missing");
  m.chosen = c.integer("k", 1);
  m.activation = c.string("activation_type", "relu");
  m.swiglu.alpha = c.real("activation_alpha", 1);
  m.swiglu.beta = c.real("activation_beta", 0);
  if (c.attribute("swiglu_limit") != nullptr) m.swiglu.limit = c.real("swiglu_limit", 0);
  if (c.integer("use_sparse_mixer", 0) != 0)
    return cannot("use_sparse_mixer is not supported; export without it");
  if (c.integer("swiglu_limit_after_activation", 0) != 0)
    return cannot("swiglu_limit_after_activation is not supported; export without it");
  const int64_t fusion = c.integer("swiglu_fusion", 0);
  if (m.activation == "swiglu") {
    if (fusion < 0 || fusion > 2) return invalid_model("swiglu_fusion: expected 0 to 2, found ", fusion);
    m.gate = fusion == 0 ? Gate::Separate : fusion == 1 ? Gate::Interleaved : Gate::Halves;
    if ((m.gate == Gate::Separate) != c.has(gating.weight))
      return invalid_model("swiglu_fusion ", fusion, ": expected fc3_experts_weights with 0 alone");
  }
  if (c.rank(0) != 2 && c.rank(0) != 3)
    return invalid_model("expected an input of rank 2 or 3, found ", c.rank(0));
  m.hidden = c.extent(0, c.rank(0) - 1);
  if (c.rank(first.weight) != 3) return invalid_model("expected weights of rank 3");
  m.experts = c.extent(first.weight, 0);
  const int64_t rows = c.extent(first.weight, 1);
  if (m.hidden < 0 || m.experts < 0 || rows < 0)
    return cannot("a hidden size or weights of unknown extents; fix them with --dim");
  constexpr int64_t kMost = int64_t{1} << 20;
  if (m.hidden < 1 || rows < 1 || m.experts > kMost || m.hidden > kMost || rows > kMost)
    return invalid_model("expected experts, rows and columns between 1 and ", kMost, ", found ", m.experts,
                         ", ", rows, " and ", m.hidden);
  const bool fused = m.gate == Gate::Interleaved || m.gate == Gate::Halves;
  if (fused && rows % 2 != 0) return invalid_model("a fused gate: expected even rows, found ", rows);
  m.inner = fused ? rows / 2 : rows;
  if (m.chosen < 1 || m.chosen > m.experts)
    return invalid_model("k: expected 1 to ", m.experts, " experts, found ", m.chosen);
  return m;
}

/// The layer with [rows, columns] weights for each expert. block_size: 0, one block for each row; bits: 0,
/// floats.
Result<Layer> layer_of(NodeContext& c, const Mixture& m, const LayerInputs& inputs, int64_t rows,
                       int64_t columns, int64_t bits, int64_t block_size, DType real, bool side_by_side) {
  Layer layer{.rows = rows, .side_by_side = side_by_side};
  if (!c.has(inputs.weight)) return layer;
  Emitter& e = c.emit;
  if (c.has(inputs.bias))
    layer.bias = reshape_to(e, as_type(e, c.input(inputs.bias), real), {m.experts, rows});
  ValueId weight = c.input(inputs.weight);
  if (bits == 0) {
    layer.weight.values = reshape_to(e, as_type(e, weight, real), {m.experts, rows, columns});
  } else {
    if (!c.has(inputs.scales)) return invalid_model("input ", inputs.scales, ", the scales, is missing");
    layer.blocking = {.k = columns, .n = rows, .bits = bits, .size = block_size == 0 ? columns : block_size};
    if (columns % layer.blocking.size != 0)
      return invalid_model("block_size ", block_size, " does not divide ", columns, " columns");
    if (columns * bits % 8 != 0 || columns % 2 != 0)
      return cannot(columns, " columns of ", bits, " bits, which are not whole bytes");
    Blocking every = layer.blocking;
    every.n *= m.experts;
    // One zero point for each row: packed along the rows of an expert.
    const auto zero_rows = block_size == 0 ? std::optional(m.experts) : std::nullopt;
    RT_ASSIGN(layer.weight,
              blocked_weight(c, every, weight, c.input(inputs.scales), c.input(inputs.zeros), zero_rows));
    for (ValueId* id : {&layer.weight.values, &layer.weight.scales, &layer.weight.offsets})
      if (*id != kNoValue) *id = reshape_to(e, *id, {m.experts, rows, -1});
  }
  if (side_by_side)
    for (ValueId* id : {&layer.weight.values, &layer.weight.scales, &layer.weight.offsets})
      if (*id != kNoValue) *id = transposed(c.emit, *id, {1, 0, 2});
  return layer;
}

Status finish(NodeContext& c, const Router& router, DType real, Mixture& m) {
  Emitter& e = c.emit;
  if (!e.status().ok()) return {};
  m.x = as_type(e, reshape_to(e, c.input(0), {-1, m.hidden}), real);
  route(c, router, real, m);
  if (!e.status().ok()) return {};
  RT_ASSIGN(const ValueId y, mixture(c, m));
  if (!e.status().ok()) return {};
  return c.result(reshape_to(e, as_type(e, y, c.dtype()), extents_of(e, c.input(0))));
}

Status moe(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 8));
  constexpr size_t kNone = 99;
  constexpr LayerInputs kFirst{2, kNone, kNone, 3}, kSecond{4, kNone, kNone, 5}, kGating{6, kNone, kNone, 7};
  RT_ASSIGN(Mixture m, mixture_of(c, kFirst, kGating, kSecond));
  const Router router{.scores = c.input(1), .normalizes = c.integer("normalize_routing_weights", 0) != 0};
  const DType real = c.dtype();
  const int64_t rows = c.extent(kFirst.weight, 1);
  RT_ASSIGN(m.first, layer_of(c, m, kFirst, rows, m.hidden, 0, 0, real, false));
  RT_ASSIGN(m.gating, layer_of(c, m, kGating, m.inner, m.hidden, 0, 0, real, false));
  RT_ASSIGN(m.second, layer_of(c, m, kSecond, m.hidden, m.inner, 0, 0, real, true));
  return finish(c, router, real, m);
}

Status quantized_moe(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 21));
  constexpr LayerInputs kFirst{2, 3, 11, 4}, kSecond{5, 6, 12, 7}, kGating{8, 9, 13, 10};
  constexpr size_t kRouterWeights = 14;
  c.ignore(
      {"accuracy_level", "weights_prepacked"});  // how a runtime may round x; the CPU's layout is the raw one
  if (const std::string type = c.string("quant_type", "int"); type != "int")
    return cannot("quant_type '", type, "'; quantize to integers");
  for (size_t i = kRouterWeights + 1; i < c.inputs.size(); ++i)
    if (c.has(i)) return cannot("input ", i, " belongs to narrow floats; quantize to integers");
  RT_ASSIGN(Mixture m, mixture_of(c, kFirst, kGating, kSecond));
  // ONNX Runtime's CPU kernel takes the softmax of the chosen scores alone, whatever
  // normalize_routing_weights is.
  const bool normalizes = c.integer("normalize_routing_weights", 0) != 0;
  const Router router{.scores = c.input(1),
                      .weights = c.input(kRouterWeights),
                      .normalizes = normalizes || !c.has(kRouterWeights)};
  const int64_t bits = c.integer("expert_weight_bits", 4), block_size = c.integer("block_size", 0);
  if (block_size != 0 && (block_size < 16 || (block_size & (block_size - 1)) != 0))
    return invalid_model("block_size: expected a power of two of at least 16, found ", block_size);
  const auto layer = [&](const LayerInputs& inputs, std::string_view name, int64_t rows, int64_t columns,
                         bool side_by_side) -> Result<Layer> {
    const int64_t own = c.integer(name, bits);
    if (own != 2 && own != 4 && own != 8)
      return cannot("experts' weights of ", own, " bits; quantize to 2, 4 or 8");
    return layer_of(c, m, inputs, rows, columns, own, block_size, DType::F32, side_by_side);
  };
  const int64_t rows = c.extent(kFirst.weight, 1);
  RT_ASSIGN(m.first, layer(kFirst, "fc1_expert_weight_bits", rows, m.hidden, false));
  RT_ASSIGN(m.gating, layer(kGating, "fc3_expert_weight_bits", m.inner, m.hidden, false));
  RT_ASSIGN(m.second, layer(kSecond, "fc2_expert_weight_bits", m.hidden, m.inner, true));
  return finish(c, router, DType::F32, m);
}

constexpr ImportRow kExpertRows[] = {
    {"com.microsoft", "MoE", 1, kNewestOpset, moe},
    {"com.microsoft", "QMoE", 1, kNewestOpset, quantized_moe},
};

}  // namespace

std::span<const ImportRow> rows_experts() {
  return kExpertRows;
}

}  // namespace librt::onnx
