#include "backends/vulkan/dispatch/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace librt::vulkan {
namespace {

constexpr int64_t kVec4Bytes = 16;  ///< bytes per vec4 load
constexpr int64_t kTile = 16;       ///< long parts are whole tiles of this many rows

int64_t steps(const Part& part, size_t axis) {
  return std::max<int64_t>(part.count[axis] - 1, 0);
}

/// The axis along which the window of `walk` is longest and can be cut.
std::optional<size_t> axis_to_cut(const StridedOperand& operand, const Part& part,
                                  std::span<const int64_t> multiples) {
  std::optional<size_t> longest;
  int64_t most = 0;
  for (size_t axis = 0; axis < part.count.size(); ++axis) {
    const int64_t length = steps(part, axis) * std::abs(operand.strides[axis]);
    const int64_t multiple = multiples.empty() ? 1 : multiples[axis];
    if (length <= most || part.count[axis] <= multiple) continue;
    most = length;
    longest = axis;
  }
  return longest;
}

}  // namespace

int64_t Part::elements() const noexcept {
  int64_t product = 1;
  for (int64_t extent : count) product *= extent;
  return product;
}

Window window_of(const VulkanDevice& device, const StridedOperand& operand, const Part& part) {
  int64_t begin = static_cast<int64_t>(operand.ref.offset) + operand.from, before = 0,
          length = operand.element;
  for (size_t axis = 0; axis < part.count.size(); ++axis) {
    if (part.count[axis] == 0 && operand.strides[axis] != 0) return {operand.ref};
    begin += part.first[axis] * operand.strides[axis];
    const int64_t reach = steps(part, axis) * operand.strides[axis];
    if (reach < 0) before -= reach;
    length += std::abs(reach);
  }
  const auto alignment = std::max(kVec4Bytes, static_cast<int64_t>(std::max(device.facts().storage_alignment,
                                                                            device.facts().texel_alignment)));
  const int64_t low = begin - before, aligned = low / alignment * alignment;
  Window window;
  window.ref = operand.ref;
  window.ref.offset = static_cast<uint64_t>(aligned);
  window.ref.bytes = static_cast<uint64_t>(low - aligned + length);
  window.first = (begin - aligned) / operand.element;
  return window;
}

std::vector<Part> parts_of(const VulkanDevice& device, std::span<const int64_t> extents,
                           std::span<const int64_t> multiples, std::span<const StridedOperand> operands) {
  const uint64_t most = device.plan().max_binding_bytes;
  std::vector<Part> parts;
  std::vector<Part> open{{std::vector<int64_t>(extents.size(), 0), {extents.begin(), extents.end()}}};
  while (!open.empty()) {
    Part part = std::move(open.back());
    open.pop_back();
    std::optional<size_t> axis;
    for (const StridedOperand& operand : operands)
      if (!axis && window_of(device, operand, part).bytes() > most)
        axis = axis_to_cut(operand, part, multiples);
    if (!axis) {
      parts.push_back(std::move(part));
      continue;
    }
    const int64_t count = part.count[*axis];
    const int64_t multiple = count >= 4 * kTile ? kTile : multiples.empty() ? 1 : multiples[*axis];
    const int64_t half = ceil_div(ceil_div(count, 2), multiple) * multiple;
    Part rest = part;
    part.count[*axis] = half;
    rest.first[*axis] += half;
    rest.count[*axis] -= half;
    open.push_back(std::move(rest));
    open.push_back(std::move(part));
  }
  return parts;
}

std::vector<Rows> ranges_of_rows(const VulkanDevice& device, int64_t rows,
                                 std::span<const int64_t> row_bytes) {
  const auto alignment = static_cast<int64_t>(device.plan().alignment);
  int64_t multiple = 1, most = rows;
  for (const int64_t bytes : row_bytes) {
    multiple = std::lcm(multiple, alignment / std::gcd(alignment, bytes));
    most = std::min(most, static_cast<int64_t>(device.plan().max_binding_bytes) / bytes);
  }
  if (most < rows) most = most / multiple * multiple;
  std::vector<Rows> ranges;
  for (int64_t first = 0; first < rows && most > 0; first += most)
    ranges.push_back({first, std::min(most, rows - first), first + most >= rows});
  return ranges;
}

Status rows_fit(const Device& device, int64_t rows, std::span<const int64_t> row_bytes) {
  if (rows == 0 || !ranges_of_rows(cast(device), rows, row_bytes).empty()) return {};
  return unsupported("rows of ", bytes_text(static_cast<uint64_t>(*std::ranges::max_element(row_bytes))),
                     ", the device binds at most ", bytes_text(cast(device).plan().max_binding_bytes),
                     " at once");
}

Ref rows_of(Ref whole, const Rows& range, int64_t row_bytes) {
  const auto before = static_cast<uint64_t>(range.first * row_bytes);
  whole.offset += before;
  if (!range.last)
    whole.bytes = static_cast<uint64_t>(range.count * row_bytes);
  else if (whole.bytes > 0)
    whole.bytes -= before;
  return whole;
}

}  // namespace librt::vulkan
