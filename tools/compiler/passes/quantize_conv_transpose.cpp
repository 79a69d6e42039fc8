// Transposed convolutions of dequantized tensors, computed on integers.
#include "tools/compiler/passes/conv_transpose.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {

//   x8 - DQ -.                             x8 ------.
//            ConvTranspose - y      ->              QuantizedMatMul - Reshape - Transpose - Reshape - y
//   w8 - DQ -'                             w8 ------'
//
// where windows lie side by side.
void quantize_conv_transpose(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId> inputs = edit.node(id).inputs;
  const auto x = whole_quantized(edit, inputs[0]), weight = quantized_of(edit, inputs[1]);
  if (!x || !weight || edit.value(edit.node(id).outputs[0]).dtype != DType::F32) return;
  const auto found = side_by_side(edit, id);
  if (!found || (weight->axis >= 0 && weight->axis != static_cast<int64_t>(found->window.size()) + 1)) return;
  const ValueId symmetric = symmetric_weight(edit, weight->quantized, weight->zero);
  if (symmetric == kNoValue) return;
  edit.name_after(id);
  op::DequantizeLinearAttributes real;
  real.to = static_cast<uint8_t>(DType::F32);
  real.axis = 1;
  const ValueId matrix = reshaped_constant(edit, symmetric, {found->inputs, found->taps * found->channels});
  const ValueId scale = by_tap(edit, weight->scale, *found),
                bias = by_tap(edit, edit.input(edit.node(id), 3), *found);
  const ValueId dequantized = edit.emit(real, {matrix, scale});
  const NodeId matmul = put_matmul(edit, id, *found, dequantized, bias, x->quantized);
  if (matmul != kNoNode) quantize_matmul(edit, matmul);
}

}  // namespace librt::compiler
