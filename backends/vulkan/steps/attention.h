// Shared by the dispatches of attention and of its gradients; see shaders/attention.glsl.
//
// Knows: operands, masks and windows as the shaders expect them. Must not know: how the work is partitioned.
#pragma once

#include <cmath>
#include <initializer_list>

#include "backends/vulkan/steps/repack.h"

namespace librt::vulkan {

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kKvLength, kQueryPosition, kOutput, kGradOutput };

struct AttentionProblem {
  int64_t batch, heads, groups, queries, keys, d, e;
  int64_t rows;  ///< of one group of heads
};
AttentionProblem attention_problem(const NodeView& node);

/// Checks masks and sizes.
Status supports_attention(const Device& device, const NodeView& node);

/// An operand [B, H, rows, columns] whose rows are whole vec4s.
Ref attention_rows(Program& program, const VulkanDevice& device, const NodeView& node, size_t input);

/// Bytes of the largest of these operands with rows padded to whole vec4s.
uint64_t largest_operand(const NodeView& node, std::initializer_list<size_t> inputs);

struct AttentionParts {
  int64_t blocks, chunks, splits;
};
struct AttentionParameters {
  float scale, softcap;
  bool causal;
  int64_t left_window, right_window;
};
/// Constants from constant_id 5 on, all push constants, masks and positions (bindings 4 to 6).
void push_attention(Step& step, const NodeView& node, const AttentionParameters& parameters,
                    bool leaves_parts, const AttentionParts& parts);
template <class Attributes>
AttentionParameters attention_parameters(const NodeView& node) {
  const auto& a = node.as<Attributes>();
  return {a.scale, a.softcap, a.causal, a.left_window, a.right_window};
}

}  // namespace librt::vulkan
