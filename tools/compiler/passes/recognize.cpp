// recognize: finds composites that a model spells out in smaller operators: Silu, HardSwish, HardSigmoid,
// Gelu, LayerNorm, RmsNorm.
//
// A pattern is replaced only where nothing outside reads its inner values. Reassociates: the composite's
// kernels round at other points; the constants of a pattern may be off by 0.1 % (models in 16 bits).
#include <algorithm>
#include <cmath>

#include "runtime/geometry/norm.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

bool is_near(std::optional<double> number, double wanted) {
  return number && std::abs(*number - wanted) <= 1e-3 * std::abs(wanted);
}

/// A product of factors and a scalar, through nested Mul, Div by constants, and Neg.
struct GateFactors {
  double scale = 1;
  std::vector<ValueId> values;
};

void collect_factors(GraphEdit& edit, ValueId value, int depth, GateFactors& factors, Interior& interior) {
  if (const auto number = edit.uniform(value)) {
    factors.scale *= *number;
    return;
  }
  const NodeId id = edit.producer_id(value);
  const OpKind kind = id == kNoNode || depth == 0 ? OpKind::NONE : edit.node(id).kind();
  if (kind == OpKind::Mul) {
    interior.push_back(id);
    const std::vector<ValueId> inputs = edit.node(id).inputs;
    for (ValueId input : inputs) collect_factors(edit, input, depth - 1, factors, interior);
  } else if (kind == OpKind::Div && edit.uniform(edit.node(id).inputs[1]).value_or(0) != 0) {
    interior.push_back(id);
    factors.scale /= *edit.uniform(edit.node(id).inputs[1]);
    collect_factors(edit, edit.node(id).inputs[0], depth - 1, factors, interior);
  } else {
    factors.values.push_back(value);
  }
}

GateFactors factors_of(GraphEdit& edit, ValueId value, Interior& interior, int depth = 4) {
  GateFactors factors;
  collect_factors(edit, value, depth, factors, interior);
  return factors;
}

/// x where value = x + number.
ValueId plus_number(GraphEdit& edit, ValueId value, double number, Interior& interior) {
  const Node* add = edit.producer(value, OpKind::Add);
  if (add == nullptr) return kNoValue;
  for (size_t i = 0; i < 2; ++i)
    if (is_near(edit.uniform(add->inputs[i]), number)) {
      interior.push_back(edit.producer_id(value));
      return add->inputs[1 - i];
    }
  return kNoValue;
}

/// x where value = kind(x).
ValueId operand_of(GraphEdit& edit, ValueId value, OpKind kind, Interior& interior) {
  const Node* node = edit.producer(value, kind);
  if (node == nullptr) return kNoValue;
  interior.push_back(edit.producer_id(value));
  return node->inputs[0];
}

/// x where value = clip(x + 3, 0, 6).
ValueId relu6_of_plus_3(GraphEdit& edit, ValueId value, Interior& interior) {
  const Node* clip = edit.producer(value, OpKind::Clip);
  if (clip == nullptr) return kNoValue;
  const auto& range = clip->as<op::ClipAttributes>();
  if (range.minimum != 0 || range.maximum != 6) return kNoValue;
  const ValueId sum = clip->inputs[0];
  interior.push_back(edit.producer_id(value));
  return plus_number(edit, sum, 3, interior);
}

/// x where value = scale x.
ValueId scaled(GraphEdit& edit, ValueId value, double scale, Interior& interior) {
  const GateFactors factors = factors_of(edit, value, interior);
  return factors.values.size() == 1 && is_near(factors.scale, scale) ? factors.values[0] : kNoValue;
}

// --- gates: x times a function of x

/// value = 1 + erf(x / sqrt 2)
bool is_erf_gate(GraphEdit& edit, ValueId x, ValueId value, Interior& interior) {
  const ValueId erf = plus_number(edit, value, 1, interior);
  const ValueId argument = erf == kNoValue ? kNoValue : operand_of(edit, erf, OpKind::Erf, interior);
  return argument != kNoValue && scaled(edit, argument, std::sqrt(0.5), interior) == x;
}

bool is_cube(const GateFactors& factors, ValueId x, size_t power) {
  return factors.values.size() == power &&
         std::all_of(factors.values.begin(), factors.values.end(), [&](ValueId value) { return value == x; });
}

/// value = 0.044715 x^3
bool is_scaled_cube(GraphEdit& edit, ValueId x, ValueId value, Interior& interior) {
  const GateFactors factors = factors_of(edit, value, interior);
  if (!is_near(factors.scale, 0.044715)) return false;
  if (is_cube(factors, x, 3)) return true;
  const Node* pow = factors.values.size() == 1 ? edit.producer(factors.values[0], OpKind::Pow) : nullptr;
  if (pow == nullptr || pow->inputs[0] != x || edit.uniform(pow->inputs[1]) != 3) return false;
  interior.push_back(edit.producer_id(factors.values[0]));
  return true;
}

/// value = 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)), or with the bracket as x (1 + 0.044715 x x)
bool is_tanh_gate(GraphEdit& edit, ValueId x, ValueId value, Interior& interior) {
  const ValueId tanh = plus_number(edit, value, 1, interior);
  const ValueId argument = tanh == kNoValue ? kNoValue : operand_of(edit, tanh, OpKind::Tanh, interior);
  if (argument == kNoValue) return false;
  const GateFactors factors = factors_of(edit, argument, interior);
  if (!is_near(factors.scale, 0.7978845608)) return false;
  if (factors.values.size() == 1) {
    const Node* sum = edit.producer(factors.values[0], OpKind::Add);
    if (sum == nullptr) return false;
    interior.push_back(edit.producer_id(factors.values[0]));
    const std::vector<ValueId> terms = sum->inputs;
    for (size_t i = 0; i < 2; ++i)
      if (terms[i] == x && is_scaled_cube(edit, x, terms[1 - i], interior)) return true;
    return false;
  }
  if (factors.values.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (factors.values[i] != x) continue;
    const ValueId square = plus_number(edit, factors.values[1 - i], 1, interior);
    if (square == kNoValue) continue;
    const GateFactors inner = factors_of(edit, square, interior);
    return is_near(inner.scale, 0.044715) && is_cube(inner, x, 2);
  }
  return false;
}

bool is_half_plus_sixth(GraphEdit& edit, ValueId x, ValueId value, Interior& interior) {
  const Node* gate = edit.producer(value, OpKind::HardSigmoid);
  if (gate == nullptr || gate->inputs[0] != x) return false;
  const auto& attributes = gate->as<op::HardSigmoidAttributes>();
  if (!is_near(static_cast<double>(attributes.alpha), 1.0 / 6) || attributes.beta != 0.5f) return false;
  interior.push_back(edit.producer_id(value));
  return true;
}

/// Mul or Div at the root of x gate(x) scale.
void recognize_gate(GraphEdit& edit, NodeId root) {
  if (!is_float(edit.value(edit.node(root).outputs[0]).dtype)) return;
  Interior base;
  const GateFactors factors = factors_of(edit, edit.node(root).outputs[0], base);
  std::erase(base, root);
  if (factors.values.size() == 1 && is_near(factors.scale, 1.0 / 6)) {
    Interior interior = base;
    const ValueId x = relu6_of_plus_3(edit, factors.values[0], interior);
    if (x == kNoValue || !is_closed(edit, root, interior)) return;
    op::HardSigmoidAttributes attributes;
    attributes.alpha = 1.0f / 6;
    attributes.beta = 0.5f;
    edit.rewrite(root, attributes, {x});
    return;
  }
  if (factors.values.size() != 2) return;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = factors.values[i], gate = factors.values[1 - i];
    if (!edit.same_info(x, edit.node(root).outputs[0])) continue;
    const auto matches = [&](double scale, auto&& predicate) {
      if (!is_near(factors.scale, scale)) return false;
      Interior interior = base;
      return predicate(interior) && is_closed(edit, root, interior);
    };
    if (matches(1, [&](Interior& in) { return operand_of(edit, gate, OpKind::Sigmoid, in) == x; })) {
      edit.rewrite(root, op::SiluAttributes{}, {x});
      return;
    }
    if (matches(1, [&](Interior& in) { return is_half_plus_sixth(edit, x, gate, in); }) ||
        matches(1.0 / 6, [&](Interior& in) { return relu6_of_plus_3(edit, gate, in) == x; })) {
      edit.rewrite(root, op::HardSwishAttributes{}, {x});
      return;
    }
    if (matches(0.5, [&](Interior& in) { return is_erf_gate(edit, x, gate, in); })) {
      edit.rewrite(root, op::GeluAttributes{}, {x});
      return;
    }
    if (matches(0.5, [&](Interior& in) { return is_tanh_gate(edit, x, gate, in); })) {
      op::GeluAttributes attributes;
      attributes.tanh_approximation = true;
      edit.rewrite(root, attributes, {x});
      return;
    }
  }
}

// --- LayerNorm and RmsNorm

/// The first of the axes when they are the last ones of x, in order; nullopt otherwise.
std::optional<int64_t> trailing_axis(GraphEdit& edit, ValueId x, const op::ReduceMeanAttributes& attributes) {
  const int rank = edit.value(x).rank();
  if (!attributes.keep_dims || attributes.axes.empty()) return std::nullopt;
  std::vector<int64_t> axes;
  for (int64_t axis : attributes.axes) axes.push_back(axis < 0 ? axis + rank : axis);
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return std::nullopt;
  return axes[0];
}

/// root = d / sqrt(mean(d d) + epsilon), with d = x - mean(x) for a LayerNorm, else an RmsNorm of d
void recognize_norm(GraphEdit& edit, NodeId root) {
  const ValueId d = edit.node(root).inputs[0];
  Interior interior;
  ValueId deviation = edit.node(root).inputs[1];
  if (edit.node(root).kind() == OpKind::Mul)
    deviation = operand_of(edit, deviation, OpKind::Reciprocal, interior);
  if (deviation == kNoValue) return;
  ValueId x = d;
  std::optional<int64_t> axis;
  const Node* center = edit.producer(d, OpKind::Sub);
  const Node* mean = center == nullptr ? nullptr : edit.producer(center->inputs[1], OpKind::ReduceMean);
  const bool centered = mean != nullptr && mean->inputs[0] == center->inputs[0];
  if (centered) {
    x = center->inputs[0];
    interior.push_back(edit.producer_id(d));
    interior.push_back(edit.producer_id(center->inputs[1]));
    axis = trailing_axis(edit, x, mean->as<op::ReduceMeanAttributes>());
    if (!axis) return;
  }

  const ValueId sum = operand_of(edit, deviation, OpKind::Sqrt, interior);
  const Node* add = sum == kNoValue ? nullptr : edit.producer(sum, OpKind::Add);
  if (add == nullptr) return;
  interior.push_back(edit.producer_id(sum));
  for (size_t i = 0; i < 2; ++i) {
    const auto epsilon = edit.uniform(add->inputs[i]);
    const Node* variance = edit.producer(add->inputs[1 - i], OpKind::ReduceMean);
    if (!epsilon || *epsilon <= 0 || variance == nullptr) continue;
    const auto of_variance = trailing_axis(edit, d, variance->as<op::ReduceMeanAttributes>());
    if (!of_variance || (centered && of_variance != axis)) return;
    interior.push_back(edit.producer_id(add->inputs[1 - i]));
    const ValueId square = variance->inputs[0];
    const Node* product = edit.producer(square);
    const bool squares =
        product != nullptr &&
        ((product->kind() == OpKind::Mul && product->inputs[0] == d && product->inputs[1] == d) ||
         (product->kind() == OpKind::Pow && product->inputs[0] == d &&
          edit.uniform(product->inputs[1]) == 2));
    if (!squares) return;
    interior.push_back(edit.producer_id(square));
    if (!is_closed(edit, root, interior)) return;
    const auto rewrite = [&](auto attributes) {
      attributes.axis = *of_variance;
      attributes.epsilon = static_cast<float>(*epsilon);
      edit.rewrite(root, attributes, {x});
    };
    if (centered)
      rewrite(op::LayerNormAttributes{});
    else if (edit.same_info(x, edit.node(root).outputs[0]))
      rewrite(op::RmsNormAttributes{});
    return;
  }
}

/// LayerNorm(x) scale + bias or RmsNorm(x) scale, one operand at a time.
void recognize_scale_and_bias(GraphEdit& edit, NodeId root) {
  const bool is_scale = edit.node(root).kind() == OpKind::Mul;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId normalized = edit.node(root).inputs[i], operand = edit.node(root).inputs[1 - i];
    const Node* norm = edit.producer(normalized, OpKind::LayerNorm);
    if (norm == nullptr && is_scale) norm = edit.producer(normalized, OpKind::RmsNorm);
    if (norm == nullptr || edit.use_count(normalized) != 1 ||
        !edit.same_info(normalized, edit.node(root).outputs[0]))
      continue;
    std::vector<ValueId> inputs = norm->inputs;
    inputs.resize(3, kNoValue);
    const size_t slot = is_scale ? 1 : 2;
    if (inputs[slot] != kNoValue || inputs[2] != kNoValue) continue;
    // A parameter has exactly the normalized axes, whatever computes it.
    const Value& value = edit.value(operand);
    const auto& dims = edit.value(normalized).dims;
    const auto axis = normalized_axis(norm_attributes(*norm).axis, static_cast<int>(dims.size()));
    const auto first = dims.begin() + *axis;
    if (!value.is_static() || !std::equal(first, dims.end(), value.dims.begin(), value.dims.end())) continue;
    inputs[slot] = operand;
    if (inputs[2] == kNoValue) inputs.pop_back();
    const auto rewrite = [&](auto attributes) { edit.rewrite(root, attributes, inputs); };
    if (const auto* layer = norm->op.AsLayerNorm())
      rewrite(*layer);
    else
      rewrite(*norm->op.AsRmsNorm());
    return;
  }
}

void visit(GraphEdit& edit, NodeId id) {
  const auto is = [&](OpKind kind) { return edit.is_alive(id, kind); };
  if (is(OpKind::Mul) || is(OpKind::Div)) recognize_gate(edit, id);
  if (is(OpKind::Mul) || is(OpKind::Div)) recognize_norm(edit, id);
  if (is(OpKind::Mul) || is(OpKind::Add)) recognize_scale_and_bias(edit, id);
}

}  // namespace

Status recognize(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (size_t before = 0;; before = edit.changes()) {
    for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) visit(edit, id);
    if (edit.changes() == before || !edit.status().ok()) break;
  }
  return edit.finish();
}

}  // namespace librt::compiler
