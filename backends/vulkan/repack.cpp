#include "backends/vulkan/repack.h"

#include <cstring>

namespace rt::vulkan {
namespace {

void copy_on_host(const PaddedCopy& copy, const float* source, float* target) {
  const size_t rank = copy.extents.size();
  std::vector<int64_t> at(rank, 0);
  const int64_t count = copy.elements();
  for (int64_t i = 0; i < count; ++i) {
    bool inside = true;
    int64_t offset = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t here = at[axis] - (copy.before.empty() ? 0 : copy.before[axis]);
      inside = inside && here >= 0 && here < copy.extents[axis];
      offset += here * copy.strides[axis];
    }
    target[i] = inside ? source[offset] : 0.0f;
    for (size_t axis = rank; axis-- > 0;) {
      if (++at[axis] < copy.padded_extents[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

int64_t PaddedCopy::elements() const noexcept {
  int64_t product = 1;
  for (int64_t extent : padded_extents) product *= extent;
  return product;
}

Ref padded_copy(Program& program, const VulkanDevice& device, const Ref& source, const PaddedCopy& copy,
                const float* constant) {
  const auto bytes = static_cast<uint64_t>(copy.elements()) * sizeof(float);
  if (constant != nullptr)
    return program.packed(bytes, [copy, constant](std::span<std::byte> target) {
      copy_on_host(copy, constant, reinterpret_cast<float*>(target.data()));
    });
  const Ref target = program.scratch(bytes);
  program.dispatch_each(Shader::pad_4, copy.elements(), device.plan().elementwise_lanes)
      .spec(copy.extents.size())
      .spec(0)
      .spec(0)
      .push(copy.elements())
      .push(0)
      .push(0)
      .push_axes(copy.padded_extents, 1)
      .push_axes(copy.before, 0)
      .push_axes(copy.extents, 1)
      .push_axes(copy.strides, 0)
      .read(0, source)
      .write(1, target);
  return target;
}

bool through_texels(const VulkanDevice& device, uint64_t bytes) {
  return device.plan().texel_loads && bytes / 16 <= device.facts().max_texel_elements;
}

}  // namespace rt::vulkan
