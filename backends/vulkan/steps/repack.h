// Repacks operands for the vec4 loads of GEMM: innermost extents padded with zeros.
//
// Knows: dispatches of the pad shader, and the same on the host for constants. Must not know: which matmul
// uses them.
#pragma once

#include <span>
#include <vector>

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {

/// An operand as an index space, and its padded extents; the padding is zeros.
struct PaddedCopy {
  std::vector<int64_t> extents;         ///< of the source, at most kMaxAxes axes
  std::vector<int64_t> strides;         ///< of the source
  std::vector<int64_t> padded_extents;  ///< of the result, which is dense
  std::vector<int64_t> before{};        ///< offset of the source in the result; empty: zero
  size_t element = 4;                   ///< bytes, 4 or 2

  int64_t elements() const noexcept;
};

/// The padded copy of `source`: made by a dispatch into scratch in every run or, if `constant` is given, once
/// on the host.
Ref padded_copy(Program& program, const VulkanDevice& device, const Ref& source, const PaddedCopy& copy,
                const void* constant);

/// An operand as a matrix [rows, columns] of whole vec4 rows: copied only if they are not.
Ref whole_rows(Program& program, const VulkanDevice& device, const NodeView& node, size_t input, int64_t rows,
               int64_t columns);

/// How a GEMM loads its operands; see shaders/load.glsl.
enum class Load : uint8_t { Buffer, Texel, Subgroup };

/// Whether a matrix of this many bytes is read through a texel buffer, four elements at a time.
bool through_texels(const VulkanDevice& device, uint64_t bytes, size_t element = 4);

/// A dispatch of a cast shader, in as many parts as the device's binding limit requires; sizes are bytes per
/// element.
void add_cast(Program& program, const VulkanDevice& device, Shader shader, int64_t count, const Ref& from,
              size_t from_size, const Ref& to, size_t to_size);
/// f32 as f16 or bf16.
void add_narrowing(Program& program, const VulkanDevice& device, int64_t count, const Ref& from,
                   const Ref& to, DType dtype);

}  // namespace librt::vulkan
