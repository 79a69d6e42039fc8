// Blockwise-quantized weights of com.microsoft. MatMulNBits: a matmul with symmetric 4- or 8-bit weights;
// other zero points subtract a second matmul, of the sums of x over the blocks. GatherBlockQuantized: the
// rows are gathered as they are stored and dequantized afterwards. MatMulBnb4: 4-bit floats, which become
// floats.
#include <array>

#include "runtime/core/element.h"
#include "tools/onnx/blocked.h"
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

Status check_extents(const Blocking& b) {
  constexpr int64_t kLargest = int64_t{1} << 31;
  if (b.k < 1 || b.n < 1 || b.k > kLargest || b.n > kLargest)
    return invalid_model("expected extents K and N of at least 1, found ", b.k, " and ", b.n);
  if (b.size < 16 || b.size > kLargest || (b.size & (b.size - 1)) != 0)
    return invalid_model("block_size: expected a power of two of at least 16, found ", b.size);
  return {};
}

Result<Blocking> blocking_of(NodeContext& c) {
  Blocking b{c.integer("K", 0), c.integer("N", 0), c.integer("bits", 4), c.integer("block_size", 0)};
  c.ignore({"accuracy_level"});  // how a runtime may round x
  RT_TRY(check_extents(b));
  if (b.bits != 2 && b.bits != 4 && b.bits != 8)
    return cannot("weights of ", b.bits, " bits; quantize to 2, 4 or 8");
  if (c.integer("weight_prepacked", 0) != 0)
    return cannot("weights in the layout of one device; export without prepacking");
  if (c.has(kGroupIndex)) return cannot("g_idx is not supported; quantize without reordered groups");
  return b;
}

/// x in f32, zero-padded to whole blocks.
ValueId whole_blocks(NodeContext& c, const Blocking& b) {
  Emitter& e = c.emit;
  const ValueId x = as_type(e, c.input(kBlockedX), DType::F32);
  const int64_t missing = b.blocks() * b.size - b.k;
  if (missing == 0) return x;
  std::vector<int64_t> pads(static_cast<size_t>(2 * c.rank(kBlockedX)), 0);
  pads.back() = missing;
  return e.emit(op::PadAttributes{}, {x, e.ints(pads), e.scalar(0, DType::F32)});
}

Status matmul_n_bits(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 6));
  Emitter& e = c.emit;
  RT_ASSIGN(const Blocking b, blocking_of(c));
  if (c.rank(kBlockedX) < 1 ||
      (c.extent(kBlockedX, c.rank() - 1) >= 0 && c.extent(kBlockedX, c.rank() - 1) != b.k))
    return invalid_model("expected K = ", b.k, " columns of input 0, found ",
                         c.rank() < 1 ? 0 : c.extent(kBlockedX, c.rank() - 1));
  RT_ASSIGN(const BlockedWeight weight,
            blocked_weight(c, b, c.input(kBlockedWeight), c.input(kBlockScales), c.input(kBlockZeros)));
  const ValueId bias = as_type(e, c.input(kBlockedBias), DType::F32);
  const ValueId y = matmul_blocked(e, whole_blocks(c, b), weight, b, bias);
  return c.result(as_type(e, y, c.dtype(kBlockedX)));
}

// --- MatMulBnb4

/// The values of 4 bits of bitsandbytes' two types: a float of one sign, two exponent and one mantissa bit,
/// and NormalFloat4 (Dettmers et al. 2023, arXiv:2305.14314, appendix E).
constexpr std::array<float, 16> kFloat4{
    0,     0.0052083333f,  0.66666667f,  1,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -0.0052083333f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr std::array<float, 16> kNormalFloat4{
    -1,          -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0,
    0.07958030f, 0.16093020f,  0.24611230f,  0.33791524f,  0.44070983f,  0.56261700f,  0.72295684f,  1};

/// The weight [N,K] in floats: its values are not evenly spaced, so no integers with a scale equal them.
Result<ValueId> float4_weight(NodeContext& c, const Blocking& b, bool normal) {
  const auto bytes = c.emit.known_value(c.input(1)), largest = c.emit.known_value(c.input(2));
  if (!bytes || !largest) return cannot("weights or absmax that are no constants; make them constants");
  const int64_t count = b.n * b.k;
  if (bytes->info.dtype != DType::U8 || bytes->info.elements() != (count + 1) / 2)
    return invalid_model("expected u8 of ", (count + 1) / 2, " elements as weights, found ", bytes->info);
  if (!is_float(largest->info.dtype) || largest->info.elements() != (count + b.size - 1) / b.size)
    return invalid_model("expected ", (count + b.size - 1) / b.size, " floats as absmax, found ",
                         largest->info);
  const TensorInfo info{.dtype = c.dtype(), .shape = {b.n, b.k}};
  std::vector<std::byte> values(info.bytes());
  for (int64_t i = 0; i < count; ++i) {
    const auto pair = std::to_integer<unsigned>(static_cast<const std::byte*>(bytes->data)[i / 2]);
    const size_t index = i % 2 == 0 ? pair >> 4 : pair & 15;  // the first in the high bits
    const double scale = load_element(largest->data, largest->info.dtype, i / b.size);
    store_element(values.data(), info.dtype, i,
                  static_cast<double>(normal ? kNormalFloat4[index] : kFloat4[index]) * scale);
  }
  const std::string name = c.value(c.input(1)).name;
  const ValueId id = c.emit.constant(info, Blob::own(std::move(values)));
  if (id != kNoValue) c.emit.graph()[id].name = name;
  return id;
}

Status matmul_float4(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  c.ignore({"training_mode"});
  const Blocking b{c.integer("K", 0), c.integer("N", 0), 4, c.integer("block_size", 0)};
  RT_TRY(check_extents(b));
  const int64_t type = c.integer("quant_type", -1);
  if (type != 0 && type != 1) return invalid_model("quant_type: expected 0 (FP4) or 1 (NF4), found ", type);
  if (!DTypeSet{DType::F32, DType::F16, DType::BF16}.contains(c.dtype()))
    return invalid_model("expected a float input, found ", name_of(c.dtype()));
  RT_ASSIGN(const ValueId weight, float4_weight(c, b, type == 1));
  op::MatMulAttributes attributes;
  attributes.transpose_b = c.integer("transB", 1) != 0;
  return c.result(c.emit.emit(attributes, {c.input(0), weight}));
}

// --- GatherBlockQuantized

/// What GatherBlockQuantized reads: the quantized values, and what dequantizes them along `axis`.
struct BlockTable {
  ValueId values = kNoValue, scales = kNoValue, zeros = kNoValue;
  int axis = 0;
  int64_t bits = 4, block = 0;
  bool packed = false;  ///< several values in a byte, along the last axis

  ValueId dequantized(Emitter& e) const {
    ValueId quantized = values, zero = zeros;
    if (packed) {
      const DType u8 = DType::U8;
      quantized = unpacked_values(e, quantized, bits);
      if (zero == kNoValue)
        zero = e.emit(op::ExpandAttributes{},
                      {e.scalar(static_cast<double>(int64_t{1} << (bits - 1)), u8), e.shape_of(scales)});
      else if (const int last = e.value(scales).rank() - 1; bits < 8)
        zero = slice_between(e, unpacked_values(e, zero, bits), last, e.ints({{0}}),
                             dims_product(e, scales, last, last + 1));
    }
    op::DequantizeLinearAttributes attributes;
    attributes.axis = axis;
    attributes.block_size = block;
    attributes.to = static_cast<uint8_t>(e.value(scales).dtype);
    return e.emit(attributes, {quantized, scales, zero});
  }
};

Result<BlockTable> block_table_of(NodeContext& c, int gather_axis) {
  BlockTable table{.values = c.input(0), .scales = c.input(2), .zeros = c.input(3)};
  RT_ASSIGN(table.axis, c.axis(c.integer("quantize_axis", 1), c.rank()));
  table.bits = c.integer("bits", 4);
  table.block = c.integer("block_size", 128);
  if (c.dtype() != DType::U8 && c.dtype() != DType::I8)
    return cannot("quantized values of type ", name_of(c.dtype()), "; quantize to 2, 4 or 8 bits");
  table.packed = c.dtype() == DType::U8 && c.narrow_type(0) == 0;
  if (table.packed && table.bits != 2 && table.bits != 4 && table.bits != 8)
    return cannot("values of ", table.bits, " bits; quantize to 2, 4 or 8");
  if (table.block < 16 || (table.block & (table.block - 1)) != 0)
    return invalid_model("block_size: expected a power of two of at least 16, found ", table.block);
  if (table.packed && (gather_axis != 0 || table.axis == 0))
    return invalid_model("packed values: expected gather_axis 0 and another quantize_axis, found ",
                         gather_axis, " and ", table.axis);
  if (c.rank(2) != c.rank() || (c.has(3) && c.rank(3) != c.rank()))
    return invalid_model("expected scales and zero points of the data's rank ", c.rank(), ", found ",
                         c.rank(2));
  return table;
}

Status gather_block_quantized(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 4));
  Emitter& e = c.emit;
  RT_ASSIGN(const int axis, c.axis(c.integer("gather_axis", 0), c.rank()));
  RT_ASSIGN(BlockTable table, block_table_of(c, axis));
  const ValueId indices = c.input(1);
  ValueId y = kNoValue;
  if (axis == table.axis) {
    y = take(e, table.dequantized(e), indices, axis);
  } else {
    for (ValueId* part : {&table.values, &table.scales, &table.zeros})
      if (*part != kNoValue) *part = take(e, *part, indices, axis);
    if (!e.status().ok()) return {};
    if (table.axis > axis) table.axis += c.rank(1) - 1;
    y = table.dequantized(e);
  }
  c.set_narrow_type(y, 0);
  return c.result(y);
}

constexpr ImportRow kBlockedRows[] = {
    {"com.microsoft", "MatMulBnb4", 1, kNewestOpset, matmul_float4},
    {"com.microsoft", "GatherBlockQuantized", 1, kNewestOpset, gather_block_quantized},
    {"com.microsoft", "MatMulNBits", 1, kNewestOpset, matmul_n_bits},
};

}  // namespace

std::span<const ImportRow> rows_weight_quantized() {
  return kBlockedRows;
}

}  // namespace librt::onnx
