#include "backends/vulkan/steps/copy.h"

#include "backends/vulkan/dispatch/split.h"

namespace librt::vulkan {

Status copy_supports(const Device& device, DType dtype, StridedSpace space) {
  const FeatureFacts& features = cast(device).facts().features;
  if (size_of(dtype) == 1 && !features.storage_8bit)
    return unsupported("the device's shaders cannot move ", name_of(dtype), " (8-bit storage is missing)");
  if (size_of(dtype) == 2 && !features.storage_16bit)
    return unsupported("the device's shaders cannot move ", name_of(dtype), " (16-bit storage is missing)");
  space.collapse();
  if (space.rank() > kMaxAxes)
    return unsupported("a movement that needs ", space.rank(), " axes after collapsing, ", kMaxAxes,
                       " are supported");
  return {};
}

void add_copy(Program& program, const VulkanDevice& device, StridedCopy copy, const Ref& source,
              const Ref& destination) {
  if (copy.space.elements() == 0) return;
  copy.space.collapse();
  StridedSpace& space = copy.space;
  if (space.rank() == 1 && space.strides[0][0] == 1 && space.strides[1][0] == 1) {
    const auto size = static_cast<uint64_t>(copy.size);
    const auto bytes = static_cast<uint64_t>(space.elements()) * size;
    const auto part = [&](const Ref& ref, int64_t first) {
      return Ref{ref.kind, ref.index, ref.offset + static_cast<uint64_t>(first) * size, bytes};
    };
    return program.copy(part(destination, copy.to), part(source, copy.from));
  }
  while (copy.size < 16 && copy.from % 2 == 0 && copy.to % 2 == 0 && in_groups(space, 2, false)) {
    copy.size *= 2;
    copy.from /= 2;
    copy.to /= 2;
    space.extents.back() /= 2;
    for (auto& strides : space.strides)
      for (size_t axis = 0; axis + 1 < strides.size(); ++axis) strides[axis] /= 2;
  }
  const Shader shader = copy.size == 1   ? Shader::copy_1
                        : copy.size == 2 ? Shader::copy_2
                        : copy.size == 4 ? Shader::copy_4
                        : copy.size == 8 ? Shader::copy_8
                                         : Shader::copy_16;
  const auto size = static_cast<int64_t>(copy.size);
  StridedOperand from{source, space.strides[0], size, copy.from * size},
      to{destination, space.strides[1], size, copy.to * size};
  for (StridedOperand* operand : {&from, &to})
    for (int64_t& stride : operand->strides) stride *= size;
  const StridedOperand operands[] = {from, to};
  for (const Part& part : parts_of(device, space.extents, {}, operands)) {
    const Window read = window_of(device, from, part), written = window_of(device, to, part);
    program.dispatch_each(shader, part.elements(), device.plan().elementwise_lanes)
        .spec(space.rank())
        .push(part.elements())
        .push(read.first)
        .push(written.first)
        .push_axes(part.count, 1)
        .push_axes(space.strides[0], 0)
        .push_axes(space.strides[1], 0)
        .read(0, read.ref)
        .write(1, written.ref);
  }
}

}  // namespace librt::vulkan
