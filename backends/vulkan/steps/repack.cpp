#include "backends/vulkan/steps/repack.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/dispatch/split.h"

namespace librt::vulkan {
namespace {

void copy_on_host(const PaddedCopy& copy, const std::byte* source, std::byte* target) {
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
    std::byte* to = target + static_cast<size_t>(i) * copy.element;
    if (inside)
      std::memcpy(to, source + static_cast<size_t>(offset) * copy.element, copy.element);
    else
      std::memset(to, 0, copy.element);
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
                const void* constant) {
  const auto bytes = static_cast<uint64_t>(copy.elements()) * copy.element;
  if (constant != nullptr)
    return program.packed(bytes, [copy, constant](std::span<std::byte> target) {
      copy_on_host(copy, static_cast<const std::byte*>(constant), target.data());
    });
  const Ref target = program.scratch(bytes);
  std::vector<int64_t> before = copy.before;
  before.resize(copy.extents.size(), 0);
  const auto element = static_cast<int64_t>(copy.element);
  StridedOperand from{source, copy.strides, element},
      to{target, std::vector<int64_t>(copy.extents.size(), 1), element};
  for (size_t axis = copy.extents.size(); axis-- > 1;)
    to.strides[axis - 1] = to.strides[axis] * copy.padded_extents[axis];
  for (StridedOperand* operand : {&from, &to})
    for (int64_t& stride : operand->strides) stride *= element;
  const StridedOperand operands[] = {from, to};
  for (const Part& part : parts_of(device, copy.padded_extents, {}, operands)) {
    // The range of the source that the part reads; `limit` and `shift` count from there.
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
    program
        .dispatch_each(copy.element == 2 ? Shader::pad_2 : Shader::pad_4, part.elements(),
                       device.plan().elementwise_lanes)
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

Ref whole_rows(Program& program, const VulkanDevice& device, const NodeView& node, size_t input, int64_t rows,
               int64_t columns) {
  if (columns % 4 == 0) return in(input);
  const auto* constant = static_cast<const float*>(node.inputs[input].value);
  if (constant != nullptr) program.replaces(input);
  return padded_copy(
      program, device, in(input),
      {.extents = {rows, columns}, .strides = {columns, 1}, .padded_extents = {rows, round_up4(columns)}},
      constant);
}

bool through_texels(const VulkanDevice& device, uint64_t bytes, size_t element) {
  return device.plan().texel_loads && bytes / (4 * element) <= device.facts().max_texel_elements;
}

void add_cast(Program& program, const VulkanDevice& device, Shader shader, int64_t count, const Ref& from,
              size_t from_size, const Ref& to, size_t to_size) {
  const int64_t bytes[] = {static_cast<int64_t>(from_size), static_cast<int64_t>(to_size)};
  for (const Rows& part : ranges_of_rows(device, count, bytes))
    program.dispatch_each(shader, part.count, device.plan().elementwise_lanes)
        .push(part.count)
        .read(0, rows_of(from, part, bytes[0]))
        .write(1, rows_of(to, part, bytes[1]));
}

void add_narrowing(Program& program, const VulkanDevice& device, int64_t count, const Ref& from,
                   const Ref& to, DType dtype) {
  add_cast(program, device, dtype == DType::F16 ? Shader::cast_f32_f16 : Shader::cast_f32_bf16, count, from,
           sizeof(float), to, size_of(dtype));
}

}  // namespace librt::vulkan
