// Operands brought into the shape that the vec4 loads of products need: innermost extents padded with zeros.
//
// Knows: dispatches of the pad shader, and the same on the host for constants. Must not know: which product
// asks.
#pragma once

#include <span>
#include <vector>

#include "backends/vulkan/support.h"

namespace rt::vulkan {

/// An f32 operand as an index space, and the extents it is to have; the excess is zeros.
struct PaddedCopy {
  std::vector<int64_t> extents;         ///< of the source, at most kMaxAxes axes
  std::vector<int64_t> strides;         ///< of the source
  std::vector<int64_t> padded_extents;  ///< of the result, which is dense
  std::vector<int64_t> before{};        ///< where the source begins in it; empty: at zero

  int64_t elements() const noexcept;
};

/// The padded copy of `source`: made by a dispatch into scratch at every run or, where `constant` is given,
/// once on the host.
Ref padded_copy(Program& program, const VulkanDevice& device, const Ref& source, const PaddedCopy& copy,
                const float* constant);

/// How a product reads its factors; see shaders/load.glsl.
enum class Load : uint8_t { Buffer, Texel, Subgroup };

/// Whether a matrix of this many bytes is read through a texel buffer.
bool through_texels(const VulkanDevice& device, uint64_t bytes);

}  // namespace rt::vulkan
