#include "tools/compiler/quantize/quantize_weights.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/ops/control.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

/// A MatMul of f32 with a constant matrix, its weight as [N,K].
struct Matmul {
  ValueId x = kNoValue, y = kNoValue, bias = kNoValue, residual = kNoValue;
  op::EpilogueAttributes activation;
  int64_t n = 0, k = 0;
  std::vector<float> weight;
};

std::optional<Matmul> matmul_of(GraphEdit& edit, NodeId id) {
  if (!edit.is_alive(id, OpKind::MatMul)) return std::nullopt;
  const Node& node = edit.node(id);
  const auto& attributes = node.as<op::MatMulAttributes>();
  const Value& weight = edit.value(node.inputs[1]);
  if (!edit.is_constant(node.inputs[1]) || weight.dtype != DType::F32 || weight.rank() != 2)
    return std::nullopt;
  if (edit.value(node.inputs[0]).rank() < 2 || attributes.transpose_a || edit.is_constant(node.inputs[0]))
    return std::nullopt;
  Matmul matmul{.x = node.inputs[0], .y = node.outputs[0]};
  const Shape shape = weight.info().shape;
  matmul.n = shape[attributes.transpose_b ? 0 : 1];
  matmul.k = shape[attributes.transpose_b ? 1 : 0];
  if (const auto& epilogue = attributes.epilogue) {
    matmul.activation.activation = epilogue->activation;
    matmul.activation.alpha = epilogue->alpha;
    matmul.activation.beta = epilogue->beta;
    if (epilogue->has_bias) matmul.bias = node.inputs[2];
    if (epilogue->has_residual) matmul.residual = node.inputs.back();
    if (matmul.bias != kNoValue && edit.value(matmul.bias).rank() != 1) return std::nullopt;
  }
  const auto* numbers = reinterpret_cast<const float*>(weight.data.data);
  matmul.weight.resize(static_cast<size_t>(matmul.n * matmul.k));
  for (int64_t n = 0; n < matmul.n; ++n)
    for (int64_t k = 0; k < matmul.k; ++k)
      matmul.weight[static_cast<size_t>(n * matmul.k + k)] =
          numbers[attributes.transpose_b ? n * matmul.k + k : k * matmul.n + n];
  return matmul;
}

float scale_of(std::span<const float> numbers, float quantized_weight) {
  float most = 0;
  for (const float number : numbers) most = std::max(most, std::abs(number));
  return std::max(most / quantized_weight, 1e-20f);
}

int code_of(float number, float scale, int low, int high) {
  return std::clamp(static_cast<int>(std::nearbyint(number / scale)), low, high);
}

/// Emits what the new node does not compute as nodes after it.
void finish(GraphEdit& edit, const Matmul& matmul, ValueId y) {
  if (matmul.residual != kNoValue) y = edit.builder().add(y, matmul.residual);
  if (matmul.activation.activation != op::Activation::None)
    y = edit.builder().emit_many(operator_of(function_call(&matmul.activation)), std::array{y}, 1)[0];
  if (y != kNoValue) edit.replace(matmul.y, y);
}

/// Whether a value is a table that only Gathers of rows read, none of which stays in f32.
bool is_table(GraphEdit& edit, ValueId id, const KeepPredicate& keep) {
  constexpr int64_t kRows = 64, kWidth = 16;
  const Value& value = edit.value(id);
  if (!edit.is_constant(id) || value.dtype != DType::F32 || value.rank() != 2) return false;
  const Shape shape = value.info().shape;
  if (shape[0] < kRows || shape[1] < kWidth || edit.is_output(id)) return false;
  const std::vector<NodeId> users = edit.users(id);
  return std::all_of(users.begin(), users.end(), [&](NodeId user) {
    const Node& node = edit.node(user);
    if (node.kind() != OpKind::Gather || keep(node.name) || node.inputs[1] == id) return false;
    const int64_t axis = node.as<op::GatherAttributes>().axis;
    return axis == 0 || axis == -2;
  });
}

/// Quantized values [rows,width] and scales [rows,1] of a table.
std::pair<ValueId, ValueId> quantized_table(GraphEdit& edit, ValueId table) {
  const Shape shape = edit.value(table).info().shape;
  const auto* numbers = reinterpret_cast<const float*>(edit.value(table).data.data);
  const auto rows = static_cast<size_t>(shape[0]), width = static_cast<size_t>(shape[1]);
  std::vector<float> scales(rows);
  std::vector<std::byte> quantized_weight(rows * width);
  for (size_t row = 0; row < rows; ++row) {
    const std::span<const float> part(numbers + row * width, width);
    scales[row] = scale_of(part, 127);
    for (size_t i = 0; i < width; ++i)
      quantized_weight[row * width + i] = static_cast<std::byte>(code_of(part[i], scales[row], -127, 127));
  }
  Builder& b = edit.builder();
  return {b.constant({.dtype = DType::I8, .shape = shape}, Blob::own(std::move(quantized_weight))),
          b.constant({.dtype = DType::F32, .shape = {shape[0], 1}},
                     Blob::copy_of(scales.data(), scales.size() * sizeof(float)))};
}

/// rewrite(graph) and, of all branches and bodies in it, rewrite(body): how many nodes they changed.
template <class Rewrite>
Result<size_t> with_bodies(Graph& graph, const Rewrite& rewrite) {
  RT_ASSIGN(size_t changed, rewrite(graph));
  for (Node& node : graph.nodes) {
    if (!ops::is_control(node.kind())) continue;
    for (Graph& body : node.bodies) {
      RT_ASSIGN(const size_t own, with_bodies(body, rewrite));
      changed += own;
    }
  }
  return changed;
}

/// change(id, product) returns whether it did.
template <class Change>
Result<size_t> for_each_matmul(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep,
                               const Change& change) {
  GraphEdit edit(graph, states);
  RT_TRY(Status(edit.status()));
  size_t changed = 0;
  const NodeId count = edit.node_count();
  for (NodeId id = 0; id < count && edit.status().ok(); ++id) {
    if (!edit.is_alive(id, OpKind::MatMul) || keep(edit.node(id).name)) continue;
    const auto matmul = matmul_of(edit, id);
    if (!matmul) continue;
    edit.name_after(id);
    if (change(edit, *matmul)) ++changed;
  }
  RT_TRY(edit.finish());
  return changed;
}

Result<size_t> quantize_graph_dynamically(Graph& graph, const std::vector<State>& states,
                                          const KeepPredicate& keep) {
  std::map<ValueId, std::vector<ValueId>> quantized;  // the input of several MatMuls is quantized once
  return for_each_matmul(graph, states, keep, [&](GraphEdit& edit, const Matmul& matmul) {
    Builder& b = edit.builder();
    std::vector<ValueId>& x = quantized[matmul.x];
    if (x.empty()) x = b.emit_many(make_op(op::DynamicQuantizeLinearAttributes{}), std::array{matmul.x}, 3);
    const auto rows = static_cast<size_t>(matmul.k), columns = static_cast<size_t>(matmul.n);
    std::vector<float> scales;
    std::vector<std::byte> quantized_weight(matmul.weight.size());
    for (size_t n = 0; n < columns; ++n) {
      const std::span<const float> row = std::span(matmul.weight).subspan(n * rows, rows);
      scales.push_back(scale_of(row, 127));
      for (size_t k = 0; k < rows; ++k)
        quantized_weight[k * columns + n] = static_cast<std::byte>(code_of(row[k], scales.back(), -127, 127));
    }
    const ValueId weight = b.constant({.dtype = DType::I8, .shape = {matmul.k, matmul.n}},
                                      Blob::own(std::move(quantized_weight)));
    const ValueId scale = b.constant({.dtype = DType::F32, .shape = {matmul.n}},
                                     Blob::copy_of(scales.data(), scales.size() * sizeof(float)));
    op::QuantizedMatMulAttributes attributes;
    attributes.to = static_cast<uint8_t>(DType::F32);
    Matmul rest = matmul;
    if (matmul.residual == kNoValue && matmul.activation.activation != op::Activation::None) {
      attributes.epilogue = std::make_unique<op::EpilogueAttributes>(matmul.activation);
      rest.activation.activation = op::Activation::None;
    }
    finish(edit, rest,
           edit.emit(std::move(attributes), {x[0], weight, b.mul(scale, x[1]), x[2], matmul.bias}));
    return true;
  });
}

Result<size_t> quantize_graph_tables(Graph& graph, const std::vector<State>& states,
                                     const KeepPredicate& keep) {
  GraphEdit edit(graph, states);
  RT_TRY(Status(edit.status()));
  size_t changed = 0;
  const auto count = static_cast<ValueId>(graph.values.size());
  for (ValueId table = 0; table < count && edit.status().ok(); ++table) {
    const std::vector<NodeId> users = edit.users(table);
    if (users.empty() || !is_table(edit, table, keep)) continue;
    const auto [quantized_weight, scales] = quantized_table(edit, table);
    for (const NodeId user : users) {
      const ValueId indices = edit.node(user).inputs[1], y = edit.node(user).outputs[0];
      edit.name_after(user);
      const ValueId row = edit.emit(op::GatherAttributes{}, {quantized_weight, indices});
      const ValueId scale = edit.emit(op::GatherAttributes{}, {scales, indices});
      edit.replace(y, edit.builder().mul(edit.builder().cast(row, DType::F32), scale));
    }
    ++changed;
  }
  RT_TRY(edit.finish());
  return changed;
}

Result<size_t> quantize_graph_weights(Graph& graph, const std::vector<State>& states,
                                      const KeepPredicate& keep, int64_t bits, int64_t group_size) {
  return for_each_matmul(graph, states, keep, [&](GraphEdit& edit, const Matmul& matmul) {
    if (matmul.k % group_size != 0 || (bits == 4 && matmul.k % 2 != 0)) return false;
    Builder& b = edit.builder();
    const int high = bits == 4 ? 7 : 127, low = bits == 4 ? -8 : -127;
    const auto group = static_cast<size_t>(group_size);
    std::vector<float> scales;
    std::vector<std::byte> quantized_weight(matmul.weight.size() / (bits == 4 ? 2 : 1), std::byte{0});
    for (size_t first = 0; first < matmul.weight.size(); first += group) {
      const std::span<const float> part = std::span(matmul.weight).subspan(first, group);
      scales.push_back(scale_of(part, static_cast<float>(high)));
      for (size_t i = 0; i < group; ++i) {
        const int code = code_of(part[i], scales.back(), low, high);
        const size_t at = first + i;
        if (bits == 8)
          quantized_weight[at] = static_cast<std::byte>(code);
        else
          quantized_weight[at / 2] |= static_cast<std::byte>((code + 8) << (at % 2 == 0 ? 0 : 4));
      }
    }
    const ValueId weight = b.constant({.dtype = bits == 4 ? DType::U8 : DType::I8,
                                       .shape = {matmul.n, bits == 4 ? matmul.k / 2 : matmul.k}},
                                      Blob::own(std::move(quantized_weight)));
    const ValueId scale = b.constant({.dtype = DType::F32, .shape = {matmul.n, matmul.k / group_size}},
                                     Blob::copy_of(scales.data(), scales.size() * sizeof(float)));
    op::WeightQuantizedMatMulAttributes attributes;
    attributes.bits = bits;
    attributes.group_size = group_size;
    finish(edit, matmul, edit.emit(attributes, {matmul.x, weight, scale, matmul.bias}));
    return true;
  });
}

}  // namespace

Result<size_t> quantize_dynamically(Graph& graph, const std::vector<State>& states,
                                    const KeepPredicate& keep) {
  return with_bodies(graph, [&](Graph& part) { return quantize_graph_dynamically(part, states, keep); });
}

Result<size_t> quantize_tables(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep) {
  return with_bodies(graph, [&](Graph& part) { return quantize_graph_tables(part, states, keep); });
}

Result<size_t> quantize_weights(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep,
                                int64_t bits, int64_t group_size) {
  return with_bodies(
      graph, [&](Graph& part) { return quantize_graph_weights(part, states, keep, bits, group_size); });
}

}  // namespace librt::compiler
