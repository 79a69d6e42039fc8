#include "backends/vulkan/dispatch/strided_space.h"

#include "runtime/geometry/broadcast.h"
#include "runtime/geometry/merge_axes.h"

namespace librt::vulkan {

void StridedSpace::collapse() {
  std::vector<int64_t*> operands;
  for (auto& operand : strides) operands.push_back(operand.data());
  auto rank = static_cast<size_t>(merge_axes(extents, operands));
  if (rank == 0) {
    rank = 1;
    extents.assign(1, 1);
    for (auto& operand : strides) operand.assign(1, 0);
  }
  extents.resize(rank);
  for (auto& operand : strides) operand.resize(rank);
}

StridedSpace broadcast_space(const Shape& output, std::span<const Shape> operands) {
  StridedSpace space;
  space.extents.assign(output.begin(), output.end());
  for (const Shape& operand : operands) {
    const auto strides = broadcast_strides(operand, output.rank());
    space.strides.emplace_back(strides.begin(), strides.begin() + output.rank());
  }
  space.collapse();
  return space;
}

bool in_groups(const StridedSpace& space, int64_t width, bool allow_splat) {
  if (space.extents.back() % width != 0) return false;
  for (const auto& strides : space.strides) {
    const bool splat = allow_splat && strides.back() == 0;
    if (strides.back() != 1 && !splat) return false;
    for (size_t axis = 0; axis + 1 < strides.size(); ++axis)
      if (!splat && strides[axis] % width != 0) return false;
  }
  return true;
}

}  // namespace librt::vulkan
