// Matmuls with blockwise-quantized weights (com.microsoft MatMulNBits): a matmul with symmetric 4- or 8-bit
// weights; other zero points subtract a second matmul, of the sums of x over the blocks.
#include <array>
#include <cstring>

#include "runtime/core/element.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

enum BlockedInput : size_t {
  kBlockedX,
  kBlockedWeight,
  kBlockScales,
  kBlockZeros,
  kGroupIndex,
  kBlockedBias
};

struct Blocking {
  int64_t k = 0, n = 0, bits = 4, size = 0;

  int64_t blocks() const { return (k + size - 1) / size; }
  int64_t middle() const { return int64_t{1} << (bits - 1); }
};

Result<Blocking> blocking_of(NodeContext& c) {
  Blocking b{c.integer("K", 0), c.integer("N", 0), c.integer("bits", 4), c.integer("block_size", 0)};
  c.ignore({"accuracy_level"});  // how a runtime may round x
  constexpr int64_t kLargest = int64_t{1} << 31;
  if (b.k < 1 || b.n < 1 || b.k > kLargest || b.n > kLargest)
    return invalid_model("expected extents K and N of at least 1, found ", b.k, " and ", b.n);
  if (b.size < 16 || b.size > kLargest || (b.size & (b.size - 1)) != 0)
    return invalid_model("block_size: expected a power of two of at least 16, found ", b.size);
  if (b.bits != 2 && b.bits != 4 && b.bits != 8)
    return cannot("weights of ", b.bits, " bits; quantize to 2, 4 or 8");
  if (c.integer("weight_prepacked", 0) != 0)
    return cannot("weights in the layout of one device; export without prepacking");
  if (c.has(kGroupIndex)) return cannot("g_idx is not supported; quantize without reordered groups");
  const Value& weight = c.value(c.input(kBlockedWeight));
  int64_t bytes = 1;
  for (const Dim& dim : weight.dims) bytes *= dim.is_known() ? dim.extent : -1;
  if (weight.dtype != DType::U8 || bytes != b.n * b.blocks() * (b.size * b.bits / 8))
    return invalid_model("expected ", b.n, " x ", b.blocks(), " blocks of ", b.size * b.bits / 8,
                         " bytes as weights, found ", name_of(weight.dtype), " of ", bytes, " elements");
  return b;
}

/// Quantized value i of those packed into bytes, the first in the low bits.
int64_t packed_number(const std::byte* bytes, int64_t i, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const auto byte = std::to_integer<unsigned>(bytes[i / per_byte]);
  return static_cast<int64_t>((byte >> static_cast<unsigned>(i % per_byte * bits)) & ((1u << bits) - 1));
}

/// In the format of WeightQuantizedMatMul: pairs of 4-bit values less 8, or signed bytes.
Result<ValueId> blocked_weight(NodeContext& c, const Blocking& b) {
  const int64_t columns = b.blocks() * b.size;
  const ValueId weight = c.input(kBlockedWeight);
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

/// The zero points minus the middle, f32 [N,blocks]; kNoValue where all are the middle.
Result<ValueId> zero_offsets(NodeContext& c, const Blocking& b) {
  if (!c.has(kBlockZeros)) return ValueId{kNoValue};
  Emitter& e = c.emit;
  const ValueId zeros = c.input(kBlockZeros);
  if (c.dtype(kBlockZeros) != DType::U8) {
    const ValueId real = reshape_to(e, zeros, {b.n, b.blocks()});
    return e.sub(c.dtype(kBlockZeros) == DType::F32 ? real : e.cast(real, DType::F32),
                 e.scalar(static_cast<double>(b.middle()), DType::F32));
  }
  const auto known = c.emit.known_value(zeros);
  if (!known) return cannot("zero points that are no constant; make them one");
  const int64_t row = (b.blocks() * b.bits + 7) / 8;
  if (known->info.elements() != b.n * row)
    return invalid_model("zero_points: expected ", b.n, " rows of ", row, " bytes, found ", known->info);
  const TensorInfo info{.dtype = DType::F32, .shape = {b.n, b.blocks()}};
  std::vector<std::byte> bytes(info.bytes());
  bool any = false;
  for (int64_t n = 0; n < b.n; ++n)
    for (int64_t block = 0; block < b.blocks(); ++block) {
      const auto* at = static_cast<const std::byte*>(known->data) + n * row;
      const int64_t offset = packed_number(at, block, b.bits) - b.middle();
      any = any || offset != 0;
      store_element(bytes.data(), DType::F32, n * b.blocks() + block, static_cast<double>(offset));
    }
  return any ? e.constant(info, Blob::own(std::move(bytes))) : ValueId{kNoValue};
}

/// x in f32, zero-padded to whole blocks.
ValueId whole_blocks(NodeContext& c, const Blocking& b) {
  Emitter& e = c.emit;
  ValueId x = c.input(kBlockedX);
  if (c.dtype(kBlockedX) != DType::F32) x = e.cast(x, DType::F32);
  const int64_t missing = b.blocks() * b.size - b.k;
  if (missing == 0) return x;
  std::vector<int64_t> pads(static_cast<size_t>(2 * c.rank(kBlockedX)), 0);
  pads.back() = missing;
  return e.emit(op::PadAttributes{}, {x, e.ints(pads), e.scalar(0, DType::F32)});
}

/// Matmul of the sums of x over its blocks and the offsets times the scales.
ValueId matmul_of_offsets(NodeContext& c, const Blocking& b, ValueId x, ValueId factors) {
  Emitter& e = c.emit;
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

Status matmul_n_bits(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 6));
  Emitter& e = c.emit;
  RT_ASSIGN(const Blocking b, blocking_of(c));
  if (c.rank(kBlockedX) < 1 ||
      (c.extent(kBlockedX, c.rank() - 1) >= 0 && c.extent(kBlockedX, c.rank() - 1) != b.k))
    return invalid_model("expected K = ", b.k, " columns of input 0, found ",
                         c.rank() < 1 ? 0 : c.extent(kBlockedX, c.rank() - 1));
  RT_ASSIGN(const ValueId weight, blocked_weight(c, b));
  RT_ASSIGN(const ValueId offsets, zero_offsets(c, b));
  const auto real = [&](ValueId id) { return e.value(id).dtype == DType::F32 ? id : e.cast(id, DType::F32); };
  const ValueId scales = reshape_to(e, real(c.input(kBlockScales)), {b.n, b.blocks()});
  const ValueId x = whole_blocks(c, b);
  op::WeightQuantizedMatMulAttributes attributes;
  attributes.bits = b.bits == 8 ? 8 : 4;
  attributes.group_size = b.size;
  const ValueId bias = c.has(kBlockedBias) ? real(c.input(kBlockedBias)) : kNoValue;
  ValueId y = e.emit(attributes, {x, weight, scales, bias});
  if (offsets != kNoValue) y = e.sub(y, matmul_of_offsets(c, b, x, e.mul(offsets, scales)));
  return c.result(c.dtype(kBlockedX) == DType::F32 ? y : e.cast(y, c.dtype(kBlockedX)));
}

constexpr ImportRow kBlockedRows[] = {
    {"com.microsoft", "MatMulNBits", 1, kNewestOpset, matmul_n_bits},
};

}  // namespace

std::span<const ImportRow> rows_weight_quantized() {
  return kBlockedRows;
}

}  // namespace librt::onnx
