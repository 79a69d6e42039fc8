// Matmuls, of floats, integers and quantized weights.
#include <numeric>

#include "tools/onnx/export/node_writer.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

std::string matmul_operand(NodeWriter& n, size_t i, bool transpose) {
  if (!transpose || n.rank(i) < 2) return n.in(i);
  Longs order(static_cast<size_t>(n.rank(i)));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  if (n.input(i).role != Role::Constant) return n.transposed(n.in(i), order);
  std::string name = n.writer.initializer_name(n.forms(i), "/transposed");
  n.writer.initializer(name, n.input(i), order);
  return name;
}

/// activation(sum + operands..) into the node's result.
void finish(NodeWriter& n, const op::EpilogueAttributes* epilogue, std::string sum, const Names& operands) {
  const bool active = epilogue != nullptr && epilogue->activation != op::Activation::None;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i + 1 < operands.size() || active)
      sum = n.emit("Add", {sum, operands[i]});
    else
      n.add("Add", {sum, operands[i]}, {n.out()});
  }
  if (active) write_epilogue(n, epilogue, sum, n.output().dtype, n.out());
}

Result<bool> write_matmul(NodeWriter& n) {
  const auto& matmul = n.as<op::MatMulAttributes>();
  const op::EpilogueAttributes* epilogue = matmul.epilogue.get();
  const Names factors = {matmul_operand(n, 0, matmul.transpose_a), matmul_operand(n, 1, matmul.transpose_b)};
  Names operands;
  if (epilogue != nullptr && epilogue->has_bias) operands.push_back(n.in(2));
  if (epilogue != nullptr && epilogue->has_residual) operands.push_back(n.in(n.node.inputs.size() - 1));
  const bool plain =
      operands.empty() && (epilogue == nullptr || epilogue->activation == op::Activation::None);
  if (plain)
    n.add("MatMul", factors, {n.out()});
  else
    finish(n, epilogue, n.emit("MatMul", factors), operands);
  return true;
}

/// Whether the operand is a scalar or one element for each entry of the last axis.
bool along_columns(const NodeWriter& n, size_t i) {
  return !n.has(i) || n.rank(i) <= 1 || n.input(i).dims[static_cast<size_t>(n.rank(i)) - 2].extent == 1;
}

Result<bool> write_matmul_integer(NodeWriter& n) {
  if ((!n.has(2) || n.rank(2) == 0) && along_columns(n, 3)) {
    n.add("MatMulInteger", n.ins(), {n.out()});
    return true;
  }
  // A zero point for each row, which runtimes leave out: exact in i32.
  const auto centered = [&](size_t i, size_t zero) {
    const std::string x = n.cast(n.in(i), DType::I32);
    return n.has(zero) ? n.emit("Sub", {x, n.cast(n.in(zero), DType::I32)}) : x;
  };
  const Names factors = {centered(0, 2), centered(1, 3)};
  n.add("MatMul", factors, {n.out()});
  return true;
}

// --- weights of 8 and 4 bits

constexpr int kOnnxInt4 = 22;

/// Weight [N,K] of signed 8-bit integers, or of pairs of 4-bit integers plus 8, as ONNX's [K,N].
std::string transposed_integers(NodeWriter& n, bool nibbles, int64_t rows, int64_t columns) {
  const auto* from = reinterpret_cast<const uint8_t*>(n.input(1).data.data);
  std::string bytes(static_cast<size_t>(nibbles ? (rows * columns + 1) / 2 : rows * columns), '\0');
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t source = row * columns + k, target = k * rows + row;
      if (!nibbles) {
        bytes[static_cast<size_t>(target)] = static_cast<char>(from[source]);
        continue;
      }
      const unsigned code = (from[source / 2] >> (source % 2 * 4) & 15u) ^ 8u;  // less 8, in two's complement
      bytes[static_cast<size_t>(target / 2)] |= static_cast<char>(code << (target % 2 * 4));
    }
  std::string name = n.writer.initializer_name(n.forms(1), "/integers");
  n.writer.initializer(name, nibbles ? kOnnxInt4 : n.onnx_type(DType::I8), {columns, rows})
      .set_raw_data(std::move(bytes));
  return name;
}

Result<bool> write_weight_quantized(NodeWriter& n) {
  const auto& matmul = n.as<op::WeightQuantizedMatMulAttributes>();
  if (n.input(1).role != Role::Constant || n.input(2).role != Role::Constant) return false;
  const bool nibbles = matmul.bits == 4;
  const int64_t rows = n.input(1).dims[0].extent, columns = n.input(1).dims[1].extent * (nibbles ? 2 : 1);
  n.writer.require_opset(21);
  const std::string integers = transposed_integers(n, nibbles, rows, columns);
  const std::string scale = n.writer.initializer_name(n.forms(2), "/transposed");
  n.writer.initializer(scale, n.input(2), {1, 0});
  const Attributes blocks = {{"axis", int64_t{0}}, {"block_size", matmul.group_size}};
  const Names factors = {n.in(0), n.emit("DequantizeLinear", {integers, scale}, blocks)};
  if (n.has(3))
    n.add("Add", {n.emit("MatMul", factors), n.in(3)}, {n.out()});
  else
    n.add("MatMul", factors, {n.out()});
  return true;
}

constexpr ExportRow kMatmul[] = {
    {OpKind::MatMul, write_matmul},
    {OpKind::MatMulInteger, write_matmul_integer},
    {OpKind::WeightQuantizedMatMul, write_weight_quantized},
};

}  // namespace

std::span<const ExportRow> export_rows_matmul() {
  return kMatmul;
}

}  // namespace librt::onnx
