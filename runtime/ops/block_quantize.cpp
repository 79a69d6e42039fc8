// BlockQuantize and BlockDequantize: block-wise 8-bit quantization with a scale per block; quantized values
// are indices into a codebook (Dettmers et al. 2022).
#include <cmath>
#include <limits>

#include "runtime/ops/optimizer.h"
#include "runtime/ops/values.h"

namespace librt::ops {

Status expect_codebook(const NodeView& node, size_t i) {
  RT_TRY(expect_dtype_and_rank(node, i, "codebook", DTypeSet(DType::F32), 1, 1));
  const int64_t levels = node.shape(i)[0];
  if (levels >= 2 && levels <= 256) return {};
  return invalid_argument("expected a codebook of 2 to 256 values, found ", levels);
}

Status check_block_size(int64_t block_size) {
  if (block_size >= 1 && block_size <= kMostBlockSize) return {};
  return invalid_argument("expected a block_size from 1 to ", kMostBlockSize, ", found ", block_size);
}

namespace {

constexpr const char* kNoGradient = "quantized values are integers";

Status check_blocks(const NodeView& node, size_t codebook, int64_t block_size) {
  RT_TRY(check_block_size(block_size));
  return expect_codebook(node, codebook);
}

Status infer_block_quantize(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const int64_t block = node.as<op::BlockQuantizeAttributes>().block_size;
  RT_TRY(expect_dtype(node, 0, "x", DTypeSet(DType::F32)));
  RT_TRY(check_blocks(node, 1, block));
  RT_TRY(add_output(outputs, DType::U8, node.shape(0)));
  return add_output(outputs, DType::F32, {(node.input(0).elements() + block - 1) / block});
}

/// In f32 as on devices: thresholds are the midpoints of adjacent codebook entries, times the scale.
Status eval_block_quantize(const NodeView& node, std::span<const ConstTensorView> inputs,
                           std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::BlockQuantizeAttributes>();
  const auto* x = static_cast<const float*>(inputs[0].data);
  const auto* codebook = static_cast<const float*>(inputs[1].data);
  auto* codes = static_cast<uint8_t*>(outputs[0].data);
  const int64_t count = inputs[0].info.elements(), levels = inputs[1].info.elements();
  for (int64_t begin = 0; begin < count; begin += attributes.block_size) {
    const int64_t end = std::min(begin + attributes.block_size, count);
    float scale = 0;
    for (int64_t i = begin; i < end; ++i)
      if (std::fabs(x[i]) > scale || std::isnan(x[i])) scale = std::fabs(x[i]);
    static_cast<float*>(outputs[1].data)[begin / attributes.block_size] = scale;
    for (int64_t i = begin; i < end; ++i) {
      int64_t code = attributes.keep_positive && x[i] > 0 ? 1 : 0;
      while (code + 1 < levels && x[i] >= 0.5f * (codebook[code] + codebook[code + 1]) * scale) ++code;
      codes[i] = static_cast<uint8_t>(code);
    }
  }
  return {};
}

Status infer_block_dequantize(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const int64_t block = node.as<op::BlockDequantizeAttributes>().block_size;
  RT_TRY(expect_dtype(node, 0, "quantized values", DTypeSet(DType::U8)));
  RT_TRY(check_blocks(node, 2, block));
  RT_TRY(expect_dtype_and_shape(node, 1, "scales", DTypeSet(DType::F32),
                                {(node.input(0).elements() + block - 1) / block}));
  return add_output(outputs, DType::F32, node.shape(0));
}

Status eval_block_dequantize(const NodeView& node, std::span<const ConstTensorView> inputs,
                             std::span<const TensorView> outputs) {
  const int64_t block = node.as<op::BlockDequantizeAttributes>().block_size;
  const auto* codes = static_cast<const uint8_t*>(inputs[0].data);
  const auto* scales = static_cast<const float*>(inputs[1].data);
  const auto* codebook = static_cast<const float*>(inputs[2].data);
  const int64_t last = inputs[2].info.elements() - 1;
  for (int64_t i = 0; i < inputs[0].info.elements(); ++i)
    static_cast<float*>(outputs[0].data)[i] = codebook[std::min<int64_t>(codes[i], last)] * scales[i / block];
  return {};
}

}  // namespace

RT_PAGE(BlockQuantize) = {.kind = OpKind::BlockQuantize,
                          .inputs = {2, 2},
                          .outputs = {2, 2},
                          .infer = infer_block_quantize,
                          .cost = [](const NodeView& node) { return elementwise_cost(node, 18); },
                          .arithmetic = Arithmetic::PrecisionSensitive,
                          .extents = ExtentRule::Own};
RT_COMPILER_PAGE(BlockQuantize) = {.eval = eval_block_quantize, .no_gradient = kNoGradient};

RT_PAGE(BlockDequantize) = {.kind = OpKind::BlockDequantize,
                            .inputs = {3, 3},
                            .infer = infer_block_dequantize,
                            .cost = [](const NodeView& node) { return elementwise_cost(node, 1); },
                            .arithmetic = Arithmetic::PrecisionSensitive,
                            .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(BlockDequantize) = {.eval = eval_block_dequantize, .no_gradient = kNoGradient};

}  // namespace librt::ops
