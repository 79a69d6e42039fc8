#include "backends/vulkan/kernel_families.h"

namespace librt::vulkan {

#define RT_FAMILY(stem) std::span<const KernelRow> rows_##stem();
#include "vulkan_families.inc"
#undef RT_FAMILY

std::vector<std::span<const KernelRow>> kernel_families() {
  return {
#define RT_FAMILY(stem) rows_##stem(),
#include "vulkan_families.inc"
#undef RT_FAMILY
  };
}

}  // namespace librt::vulkan
