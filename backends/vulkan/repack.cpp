#include "backends/vulkan/repack.h"

#include <algorithm>

#include "backends/vulkan/split.h"

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
  std::vector<int64_t> before = copy.before;
  before.resize(copy.extents.size(), 0);
  Walk from{source, copy.strides}, to{target, std::vector<int64_t>(copy.extents.size(), 1)};
  for (size_t axis = copy.extents.size(); axis-- > 1;)
    to.strides[axis - 1] = to.strides[axis] * copy.padded_extents[axis];
  for (Walk* walk : {&from, &to})
    for (int64_t& stride : walk->strides) stride *= sizeof(float);
  const Walk walks[] = {from, to};
  for (const Part& part : parts_of(device, copy.padded_extents, {}, walks)) {
    // What the part reads of the source; `limit` and `shift` count from there.
    Part read = part;
    std::vector<int64_t> limit = copy.extents, shift = before;
    for (size_t axis = 0; axis < limit.size(); ++axis) {
      const int64_t begin = part.first[axis] - before[axis], end = begin + part.count[axis];
      read.first[axis] = std::clamp<int64_t>(begin, 0, std::max<int64_t>(limit[axis] - 1, 0));
      read.count[axis] = std::clamp<int64_t>(end, read.first[axis], limit[axis]) - read.first[axis];
      limit[axis] -= read.first[axis];
      shift[axis] += read.first[axis] - part.first[axis];
    }
    const Window window = window_of(device, from, read), written = window_of(device, to, part);
    program.dispatch_each(Shader::pad_4, part.elements(), device.plan().elementwise_lanes)
        .spec(limit.size())
        .spec(0)
        .spec(0)
        .push(part.elements())
        .push(0)
        .push(window.first)
        .push(written.first)
        .push_axes(part.count, 1)
        .push_axes(shift, 0)
        .push_axes(limit, 1)
        .push_axes(copy.strides, 0)
        .read(0, window.ref)
        .write(1, written.ref);
  }
  return target;
}

bool through_texels(const VulkanDevice& device, uint64_t bytes) {
  return device.plan().texel_loads && bytes / 16 <= device.facts().max_texel_elements;
}

}  // namespace rt::vulkan
