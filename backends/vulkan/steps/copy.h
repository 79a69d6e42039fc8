// Copies between index spaces as dispatches of the copy shader, in elements as wide as the strides allow.
#pragma once

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {

/// One copy: strides[0] and `from` address the source, strides[1] and `to` the destination, in elements of
/// `size` bytes.
struct StridedCopy {
  StridedSpace space;
  int64_t from = 0;
  int64_t to = 0;
  size_t size = 4;
};

/// Ok when the space, collapsed, has few enough axes and elements of this type can be moved.
Status copy_supports(const Device& device, DType dtype, StridedSpace space);
void add_copy(Program& program, const VulkanDevice& device, StridedCopy copy, const Ref& source,
              const Ref& destination);

}  // namespace librt::vulkan
