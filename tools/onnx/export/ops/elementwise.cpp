// Operators that work element by element, in whatever order of axes their operands are there.
#include <array>
#include <cfloat>
#include <cmath>

#include "runtime/geometry/function.h"
#include "tools/onnx/export/node_writer.h"

namespace librt::onnx {

Names operands_in_one_order(NodeWriter& n, bool& first) {
  const int rank = n.output().rank();
  bool prefers = false, possible = rank >= 3;
  for (size_t i = 0; i < n.node.inputs.size(); ++i) {
    if (!n.has(i)) continue;
    prefers = prefers || n.prefers_first(i);
    possible = possible && (n.rank(i) == rank || n.rank(i) <= 1);
  }
  first = prefers && possible;
  if (!first) return n.ins();
  Names names;
  for (size_t i = 0; i < n.node.inputs.size(); ++i) {
    if (n.has(i) && n.rank(i) == 1) {  // along the last axis, which is the second then
      Longs column(static_cast<size_t>(rank - 1), 1);
      column[0] = -1;
      names.push_back(n.reshaped(n.in(i), column));
    } else {
      names.push_back(n.in_first(i));
    }
  }
  return names;
}

namespace {

std::string result_in(NodeWriter& n, bool first) {
  return first ? n.out_first() : n.out();
}

// --- functions of one operand

struct Call {
  std::string op;
  Names inputs;
  Attributes attributes;
};

/// ONNX's name of an operator that is called something else there.
std::string_view onnx_name(OpKind kind) {
  switch (kind) {
    case OpKind::Minimum: return "Min";
    case OpKind::Maximum: return "Max";
    default: return name_of(kind);
  }
}

std::string bound(NodeWriter& n, float value, DType type) {
  return std::abs(value) >= FLT_MAX ? std::string() : n.number(static_cast<double>(value), type);
}

Call call_of(NodeWriter& n, const Node& function, const std::string& x, DType type) {
  const std::string op(onnx_name(function.kind()));
  switch (function.kind()) {
    case OpKind::LeakyRelu: return {op, {x}, {{"alpha", function.as<op::LeakyReluAttributes>().alpha}}};
    case OpKind::Elu: return {op, {x}, {{"alpha", function.as<op::EluAttributes>().alpha}}};
    case OpKind::HardSigmoid: {
      const auto& hard = function.as<op::HardSigmoidAttributes>();
      return {op, {x}, {{"alpha", hard.alpha}, {"beta", hard.beta}}};
    }
    case OpKind::Clip: {
      const auto& clip = function.as<op::ClipAttributes>();
      return {op, {x, bound(n, clip.minimum, type), bound(n, clip.maximum, type)}, {}};
    }
    case OpKind::Gelu: {
      const bool tanh = function.as<op::GeluAttributes>().tanh_approximation;
      return {op, {x}, {{"approximate", std::string(tanh ? "tanh" : "none")}}};
    }
    case OpKind::Silu: return {"Mul", {x, n.emit("Sigmoid", {x})}, {}};
    default: return {op, {x}, {}};
  }
}

Result<bool> write_unary(NodeWriter& n) {
  bool first = false;
  const std::string x = operands_in_one_order(n, first)[0];
  const Call call = call_of(n, n.node, x, n.dtype());
  n.add(call.op, call.inputs, {result_in(n, first)}, call.attributes);
  return true;
}

Result<bool> write_identity(NodeWriter& n) {
  if (n.has(1)) return unsupported("ONNX has no operator that requires a shape");
  return write_unary(n);
}

Result<bool> write_cast(NodeWriter& n) {
  bool first = false;
  const Names x = operands_in_one_order(n, first);
  const auto to = static_cast<DType>(n.as<op::CastAttributes>().to);
  n.add("Cast", x, {result_in(n, first)}, {{"to", int64_t{n.onnx_type(to)}}});
  return true;
}

// --- functions of several

Result<bool> write_broadcast(NodeWriter& n) {
  bool first = false;
  const Names inputs = operands_in_one_order(n, first);
  n.add(std::string(onnx_name(n.node.kind())), inputs, {result_in(n, first)});
  return true;
}

/// ONNX's Mod of floats has the sign of the dividend only.
Result<bool> write_mod(NodeWriter& n) {
  bool first = false;
  const bool truncated = n.as<op::ModAttributes>().truncated, real = is_float(n.dtype());
  const Names inputs = operands_in_one_order(n, first);
  const int64_t fmod = truncated || real;
  if (truncated || !real) {
    n.add("Mod", inputs, {result_in(n, first)}, {{"fmod", fmod}});
    return true;
  }
  const std::string zero = n.number(0, n.dtype());
  const std::string remainder = n.emit("Mod", inputs, {{"fmod", fmod}});
  const std::string opposite =
      n.emit("Xor", {n.emit("Less", {remainder, zero}), n.emit("Less", {inputs[1], zero})});
  const std::string moves = n.emit("And", {opposite, n.emit("Not", {n.emit("Equal", {remainder, zero})})});
  n.add("Where", {moves, n.emit("Add", {remainder, inputs[1]}), remainder}, {result_in(n, first)});
  return true;
}

Result<bool> write_shift(NodeWriter& n) {
  if (is_signed_integer(n.dtype()))
    return unsupported("ONNX shifts unsigned integers only, found ", name_of(n.dtype()));
  bool first = false;
  const Names inputs = operands_in_one_order(n, first);
  const bool left = n.as<op::BitShiftAttributes>().left;
  n.add("BitShift", inputs, {result_in(n, first)}, {{"direction", std::string(left ? "LEFT" : "RIGHT")}});
  return true;
}

constexpr ExportRow kElementwise[] = {
    {OpKind::Abs, write_unary},
    {OpKind::Neg, write_unary},
    {OpKind::Exp, write_unary},
    {OpKind::Log, write_unary},
    {OpKind::Sqrt, write_unary},
    {OpKind::Reciprocal, write_unary},
    {OpKind::Sin, write_unary},
    {OpKind::Cos, write_unary},
    {OpKind::Tanh, write_unary},
    {OpKind::Sigmoid, write_unary},
    {OpKind::Relu, write_unary},
    {OpKind::Erf, write_unary},
    {OpKind::Floor, write_unary},
    {OpKind::Ceil, write_unary},
    {OpKind::Round, write_unary},
    {OpKind::Sign, write_unary},
    {OpKind::Not, write_unary},
    {OpKind::Softplus, write_unary},
    {OpKind::LeakyRelu, write_unary},
    {OpKind::Elu, write_unary},
    {OpKind::HardSigmoid, write_unary},
    {OpKind::HardSwish, write_unary},
    {OpKind::Clip, write_unary},
    {OpKind::Gelu, write_unary},
    {OpKind::Silu, write_unary},
    {OpKind::Atan, write_unary},
    {OpKind::Identity, write_identity},
    {OpKind::Cast, write_cast},
    {OpKind::Add, write_broadcast},
    {OpKind::Sub, write_broadcast},
    {OpKind::Mul, write_broadcast},
    {OpKind::Div, write_broadcast},
    {OpKind::Pow, write_broadcast},
    {OpKind::Minimum, write_broadcast},
    {OpKind::Maximum, write_broadcast},
    {OpKind::Equal, write_broadcast},
    {OpKind::Less, write_broadcast},
    {OpKind::LessOrEqual, write_broadcast},
    {OpKind::Greater, write_broadcast},
    {OpKind::GreaterOrEqual, write_broadcast},
    {OpKind::And, write_broadcast},
    {OpKind::Or, write_broadcast},
    {OpKind::Xor, write_broadcast},
    {OpKind::Where, write_broadcast},
    {OpKind::BitwiseAnd, write_broadcast},
    {OpKind::BitwiseOr, write_broadcast},
    {OpKind::BitwiseXor, write_broadcast},
    {OpKind::Mod, write_mod},
    {OpKind::BitShift, write_shift},
};

}  // namespace

void write_epilogue(NodeWriter& n, const op::EpilogueAttributes* epilogue, std::string x, DType type,
                    const std::string& result) {
  Node function;
  function.op = operator_of(function_call(epilogue));
  const Call call = call_of(n, function, x, type);
  n.add(call.op, call.inputs, {result}, call.attributes);
}

std::span<const ExportRow> export_rows_elementwise() {
  return kElementwise;
}

}  // namespace librt::onnx
