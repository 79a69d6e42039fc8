// What is the same for every element of a channel, between quantized tensors.
#include <cmath>

#include "runtime/core/element.h"
#include "tools/compiler/passes/affine.h"
#include "tools/compiler/passes/pattern.h"
#include "tools/compiler/passes/quantize_rewrites.h"

namespace librt::compiler {
namespace {

/// The longest chain of nodes, and the most channels, that are looked at.
constexpr size_t kMostNodes = 16;
constexpr int64_t kMostChannels = int64_t{1} << 20;

ValueId f32_constant(GraphEdit& edit, const std::vector<double>& numbers) {
  return constant_of(edit, {.dtype = DType::F32, .shape = {static_cast<int64_t>(numbers.size())}}, numbers);
}

bool all_finite_in_f32(const std::vector<double>& numbers) {
  for (const double number : numbers)
    if (!std::isfinite(static_cast<float>(number))) return false;
  return true;
}

}  // namespace

//   x8 - DQ - BatchNorm - Add a vector over the channels - Relu - Q - y8        ->        x8 -
//   Requantize(Relu) - y8
//
// with any chain of BatchNorm and of Add, Sub, Mul and Div with constants, and any activation of an epilogue.
bool quantize_affine(GraphEdit& edit, const Target& target) {
  ValueId at = edit.node(target.node).inputs[0];
  const NodeId last = edit.producer_id(at);
  if (last == kNoNode || edit.value(at).rank() == 0 || !is_inner(edit, at)) return false;
  op::RequantizeAttributes attributes;
  attributes.to = static_cast<uint8_t>(target.to);
  if (const auto activation = activation_of(edit.node(last))) {
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>(*activation);
    at = edit.node(last).inputs[0];
  }
  const Dim channel = edit.value(at).dims.back();
  if (channel.symbol >= 0 || channel.extent < 1 || channel.extent > kMostChannels) return false;
  const auto channels = static_cast<size_t>(channel.extent);
  Affine all{.factor = std::vector<double>(channels, 1), .offset = std::vector<double>(channels, 0)};
  std::optional<Quantized> x;
  for (size_t nodes = 0; !(x = whole_quantized(edit, at)); ++nodes) {
    const Node* node = edit.producer(at);
    if (node == nullptr || nodes == kMostNodes || !is_inner(edit, at)) return false;
    std::optional<Affine> step;
    ValueId before = kNoValue;
    for (size_t operand = 0; operand < std::min<size_t>(node->inputs.size(), 2) && !step; ++operand) {
      if (operand == 1 && node->kind() == OpKind::BatchNorm) break;
      before = node->inputs[operand];
      if (before != kNoValue && !edit.is_constant(before) && edit.same_info(before, at))
        step = affine_of(edit, *node, operand, channel.extent);
    }
    if (!step) return false;
    for (size_t i = 0; i < channels; ++i) {
      all.offset[i] += all.factor[i] * step->offset[i];
      all.factor[i] *= step->factor[i];
    }
    at = before;
  }
  const auto scale = edit.uniform(x->scale), zero = x->zero == kNoValue ? 0.0 : edit.uniform(x->zero);
  if (edit.is_constant(x->quantized) || !scale || !zero) return false;
  for (size_t i = 0; i < channels; ++i) {
    all.factor[i] *= *scale;
    all.offset[i] -= all.factor[i] * *zero;
  }
  if (!all_finite_in_f32(all.factor) || !all_finite_in_f32(all.offset)) return false;
  edit.name_after(last);
  const ValueId y = edit.node(target.node).outputs[0];
  const ValueId fresh =
      edit.emit(std::move(attributes), {x->quantized, f32_constant(edit, all.factor),
                                        f32_constant(edit, all.offset), target.scale, target.zero});
  if (fresh == kNoValue) return false;
  edit.replace(y, fresh);
  return true;
}

}  // namespace librt::compiler
