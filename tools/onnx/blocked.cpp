#include "tools/onnx/blocked.h"

#include <algorithm>

#include "runtime/core/element.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// Quantized value i of those packed into bytes, the first in the low bits.
int64_t packed_number(const std::byte* bytes, int64_t i, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const auto byte = std::to_integer<unsigned>(bytes[i / per_byte]);
  return static_cast<int64_t>((byte >> static_cast<unsigned>(i % per_byte * bits)) & ((1u << bits) - 1));
}

/// In the format of WeightQuantizedMatMul: pairs of 4-bit values less 8, or signed bytes.
Result<ValueId> values_of(NodeContext& c, const Blocking& b, ValueId weight) {
  const int64_t columns = b.blocks() * b.size;
  if (b.bits == 4) return reshape_to(c.emit, weight, {b.n, columns / 2});
  const auto known = c.emit.known_value(weight);
  if (!known) return cannot("weights of ", b.bits, " bits that are no constant; make them one");
  TensorInfo info{.dtype = b.bits == 8 ? DType::I8 : DType::U8,
                  .shape = {b.n, b.bits == 8 ? columns : columns / 2}};
  std::vector<std::byte> bytes(info.bytes());
  const auto* from = static_cast<const std::byte*>(known->data);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (b.bits == 8) {
      bytes[i] = from[i] ^ std::byte{0x80};
      continue;
    }
    const auto code = [&](size_t at) {  // the middle of 2 bits is 2, of 4 bits 8
      return static_cast<unsigned>(packed_number(from, static_cast<int64_t>(at), 2) + 6);
    };
    bytes[i] = static_cast<std::byte>(code(2 * i) | code(2 * i + 1) << 4);
  }
  const std::string name = c.value(weight).name;
  const ValueId id = c.emit.constant(info, Blob::own(std::move(bytes)));
  if (id != kNoValue) c.emit.graph()[id].name = name;
  return id;
}

/// The zero points minus the middle, f32 [N,blocks], from `rows` rows of whole bytes; kNoValue where all are
/// the middle.
Result<ValueId> zero_offsets(NodeContext& c, const Blocking& b, ValueId zeros, int64_t rows) {
  if (zeros == kNoValue) return ValueId{kNoValue};
  Emitter& e = c.emit;
  const DType dtype = e.value(zeros).dtype;
  if (dtype != DType::U8) {
    const ValueId real = reshape_to(e, zeros, {b.n, b.blocks()});
    return e.sub(as_type(e, real, DType::F32), e.scalar(static_cast<double>(b.middle()), DType::F32));
  }
  const auto known = c.emit.known_value(zeros);
  if (!known) return cannot("zero points that are no constant; make them one");
  const int64_t numbers = b.n * b.blocks() / rows, row_bytes = (numbers * b.bits + 7) / 8;
  if (known->info.elements() != rows * row_bytes)
    return invalid_model("zero_points: expected ", rows, " rows of ", row_bytes, " bytes, found ",
                         known->info);
  const TensorInfo info{.dtype = DType::F32, .shape = {b.n, b.blocks()}};
  std::vector<std::byte> bytes(info.bytes());
  bool any = false;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < numbers; ++i) {
      const auto* at = static_cast<const std::byte*>(known->data) + row * row_bytes;
      const int64_t offset = packed_number(at, i, b.bits) - b.middle();
      any = any || offset != 0;
      store_element(bytes.data(), DType::F32, row * numbers + i, static_cast<double>(offset));
    }
  return any ? e.constant(info, Blob::own(std::move(bytes))) : ValueId{kNoValue};
}

/// Matmul of the sums of x over its blocks and the offsets times the scales.
ValueId matmul_of_offsets(Emitter& e, const Blocking& b, ValueId x, ValueId factors) {
  if (x == kNoValue) return kNoValue;
  std::vector<Extent> extents = extents_of(e, x);
  extents.back() = Extent::of(b.blocks());
  extents.push_back(Extent::of(b.size));
  op::ReduceSumAttributes last;
  last.axes = {static_cast<int64_t>(extents.size()) - 1};
  last.keep_dims = false;
  op::MatMulAttributes attributes;
  attributes.transpose_b = true;
  return e.emit(std::move(attributes), {e.emit(std::move(last), {reshape_to(e, x, extents)}), factors});
}

}  // namespace

Result<BlockedWeight> blocked_weight(NodeContext& c, const Blocking& b, ValueId weight, ValueId scales,
                                     ValueId zeros, std::optional<int64_t> zero_rows) {
  const Value& value = c.value(weight);
  Shape shape;
  for (const Dim& dim : value.dims) shape.push_back(dim.is_known() ? dim.extent : -1);
  const auto bytes = std::ranges::count(shape, -1) > 0 ? std::nullopt : shape.checked_elements();
  if (value.dtype != DType::U8 || bytes != b.n * b.blocks() * (b.size * b.bits / 8))
    return invalid_model("expected ", b.n, " x ", b.blocks(), " blocks of ", b.size * b.bits / 8,
                         " bytes as weights, found ", name_of(value.dtype), shape);
  BlockedWeight result;
  RT_ASSIGN(result.values, values_of(c, b, weight));
  RT_ASSIGN(result.offsets, zero_offsets(c, b, zeros, zero_rows.value_or(b.n)));
  result.scales = reshape_to(c.emit, as_type(c.emit, scales, DType::F32), {b.n, b.blocks()});
  return result;
}

ValueId matmul_blocked(Emitter& e, ValueId x, const BlockedWeight& weight, const Blocking& b, ValueId bias) {
  op::WeightQuantizedMatMulAttributes attributes;
  attributes.bits = b.bits == 8 ? 8 : 4;
  attributes.group_size = b.size;
  const ValueId y = e.emit(attributes, {x, weight.values, weight.scales, bias});
  if (weight.offsets == kNoValue) return y;
  return e.sub(y, matmul_of_offsets(e, b, x, e.mul(weight.offsets, weight.scales)));
}

ValueId unpacked_values(Emitter& e, ValueId bytes, int64_t bits) {
  if (bits == 8 || bytes == kNoValue) return bytes;
  const int rank = e.value(bytes).rank();
  op::BitShiftAttributes right;
  right.left = false;
  std::vector<ValueId> parts;
  for (int64_t at = 0; at < 8; at += bits) {
    ValueId part = bytes;
    if (at > 0) part = e.emit(right, {part, e.scalar(static_cast<double>(at), DType::U8)});
    if (at + bits < 8)
      part = e.emit(op::BitwiseAndAttributes{},
                    {part, e.scalar(static_cast<double>((int64_t{1} << bits) - 1), DType::U8)});
    parts.push_back(unsqueeze(e, part, {{rank}}));
  }
  std::vector<Extent> extents = extents_of(e, bytes);
  const Dim last = e.value(bytes).dims.back();
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  extents.back() = Extent::of(last.is_known() && last.extent < kMostBytes ? last.extent * 8 / bits : -1);
  return reshape_to(e, concat(e, parts, rank), extents);
}

}  // namespace librt::onnx
