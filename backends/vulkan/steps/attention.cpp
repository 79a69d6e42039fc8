#include "backends/vulkan/steps/attention.h"

#include <algorithm>
#include <cmath>

namespace librt::vulkan {

AttentionProblem attention_problem(const NodeView& node) {
  const Shape &q = node.shape(kQuery), &v = node.shape(kValue);
  AttentionProblem p{q[0], q[1], v[1], q[2], v[2], q[3], v[3], 0};
  p.rows = p.groups == 0 ? 0 : p.heads / p.groups * p.queries;
  return p;
}

Status supports_attention(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  const DType mask = node.has(kMask) ? node.dtype(kMask) : DType::F32;
  RT_TRY(storable(device, mask));
  if (mask != DType::F32 && mask != DType::Bool) return unsupported("masks of type ", name_of(mask));
  return {};
}

Ref attention_rows(Program& program, const VulkanDevice& device, const NodeView& node, size_t input) {
  const Shape& shape = node.shape(input);
  return whole_rows(program, device, node, input, shape.elements(0, 3), shape[3]);
}

uint64_t largest_operand(const NodeView& node, std::initializer_list<size_t> inputs) {
  int64_t largest = 0;
  for (const size_t input : inputs) {
    const Shape& shape = node.shape(input);
    largest = std::max(largest, shape.elements(0, 3) * ceil_div(shape[3], 4));
  }
  return static_cast<uint64_t>(largest) * 16;
}

namespace {

void push_mask_strides(Step& step, const NodeView& node) {
  int64_t strides[4] = {};
  if (node.has(kMask)) {
    const Shape& mask = node.shape(kMask);
    int64_t stride = 1;
    for (int axis = 3, own = mask.rank() - 1; own >= 0; --axis, --own) {
      strides[axis] = mask[own] == 1 ? 0 : stride;
      stride *= mask[own];
    }
  }
  for (int64_t stride : strides) step.push(stride);
}

void push_windows(Step& step, const NodeView& node, const AttentionParameters& parameters) {
  constexpr int64_t kUnbounded = 1 << 29;  // positions and windows are added in 32 bits
  const int64_t one = node.has(kQueryPosition) && node.input(kQueryPosition).elements() != 1 ? 1 : 0;
  step.push(one);
  step.push(std::min(parameters.left_window, kUnbounded));
  step.push(parameters.causal ? int64_t{0} : std::min(parameters.right_window, kUnbounded));
  const auto width = static_cast<float>(node.shape(kQuery)[3]);
  step.push(parameters.scale != 0 ? parameters.scale : 1 / std::sqrt(width)).push(parameters.softcap);
}

}  // namespace

void push_attention(Step& step, const NodeView& node, const AttentionParameters& parameters,
                    bool leaves_parts, const AttentionParts& parts) {
  const AttentionProblem p = attention_problem(node);
  step.spec(parameters.softcap != 0).spec(node.has(kMask)).spec(node.has(kKvLength));
  step.spec(node.has(kQueryPosition)).spec(leaves_parts);
  step.push(p.batch).push(p.rows).push(p.queries).push(p.groups == 0 ? 0 : p.heads / p.groups);
  step.push(p.groups).push(p.keys).push(ceil_div(p.d, 4)).push(ceil_div(p.e, 4)).push(p.d).push(p.e);
  step.push(parts.blocks).push(parts.chunks).push(parts.splits);
  push_mask_strides(step, node);
  push_windows(step, node, parameters);
  if (node.has(kMask)) step.read(4, in(kMask));
  if (node.has(kKvLength)) step.read(5, in(kKvLength));
  if (node.has(kQueryPosition)) step.read(6, in(kQueryPosition));
}

}  // namespace librt::vulkan
