#include "backends/vulkan/dispatch/strided.h"

namespace librt::vulkan {

void StridedSpace::collapse() {
  std::vector<int64_t> merged;
  std::vector<std::vector<int64_t>> merged_strides(strides.size());
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    bool mergeable = !merged.empty();
    for (size_t operand = 0; mergeable && operand < strides.size(); ++operand)
      mergeable = merged_strides[operand].back() == strides[operand][axis] * extents[axis];
    if (mergeable) {
      merged.back() *= extents[axis];
      for (size_t operand = 0; operand < strides.size(); ++operand)
        merged_strides[operand].back() = strides[operand][axis];
    } else {
      merged.push_back(extents[axis]);
      for (size_t operand = 0; operand < strides.size(); ++operand)
        merged_strides[operand].push_back(strides[operand][axis]);
    }
  }
  if (merged.empty()) {
    merged.push_back(1);
    for (auto& operand : merged_strides) operand.push_back(0);
  }
  extents = std::move(merged);
  strides = std::move(merged_strides);
}

StridedSpace broadcast_space(const Shape& output, std::span<const Shape> operands) {
  StridedSpace space;
  space.extents.assign(output.begin(), output.end());
  for (const Shape& operand : operands) {
    const auto dense = strides_of(operand);
    const int missing = output.rank() - operand.rank();
    std::vector<int64_t> strides(static_cast<size_t>(output.rank()), 0);
    for (int axis = 0; axis < operand.rank(); ++axis)
      if (operand[axis] != 1) strides[static_cast<size_t>(axis + missing)] = dense[static_cast<size_t>(axis)];
    space.strides.push_back(std::move(strides));
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
