#include "tools/onnx/window.h"

#include <algorithm>

#include "tools/onnx/shapes.h"

namespace librt::onnx {

std::pair<int64_t, int64_t> split_padding(int64_t total, bool lower) {
  const int64_t small = total / 2;
  return lower ? std::pair(total - small, small) : std::pair(small, total - small);
}

namespace {

constexpr int64_t kLargest = int64_t{1} << 31;

// One value per spatial axis, or `otherwise` for each.
Result<std::vector<int64_t>> per_axis(NodeContext& c, std::string_view name, size_t count, int64_t least,
                                      int64_t otherwise) {
  std::vector<int64_t> numbers = c.integers(name);
  if (numbers.empty()) numbers.assign(count, otherwise);
  if (numbers.size() != count)
    return invalid_model(name, ": expected ", count, " numbers, found ", numbers.size());
  for (int64_t number : numbers)
    if (number < least || number > kLargest)
      return invalid_model(name, ": expected at least ", least, ", found ", number);
  return numbers;
}

}  // namespace

Result<Window> window_of(NodeContext& c, std::vector<int64_t> kernel, bool has_dilations, AutoPad auto_pad) {
  Window window;
  window.spatial = c.rank() - 2;
  if (window.spatial < 1) return invalid_model("expected an input [N,C,S..], found rank ", c.rank());
  const auto count = static_cast<size_t>(window.spatial);
  const std::vector<int64_t> declared = c.integers("kernel_shape");
  if (kernel.empty()) kernel = declared;
  if (kernel.size() != count || (!declared.empty() && declared != kernel))
    return invalid_model("kernel_shape: expected ", count, " extents that agree with the weight");
  for (int64_t extent : kernel)
    if (extent < 1 || extent > kLargest) return invalid_model("kernel_shape: found ", extent);
  window.kernel = std::move(kernel);
  RT_ASSIGN(window.strides, per_axis(c, "strides", count, 1, 1));
  window.dilations.assign(count, 1);
  if (has_dilations) {
    RT_ASSIGN(window.dilations, per_axis(c, "dilations", count, 1, 1));
  }
  const std::string mode = c.string("auto_pad", "NOTSET");
  RT_ASSIGN(window.pads, per_axis(c, "pads", 2 * count, 0, 0));
  if (mode == "NOTSET" || mode.empty() || auto_pad == AutoPad::Ignore) return window;
  std::fill(window.pads.begin(), window.pads.end(), 0);
  if (mode == "VALID") return window;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return invalid_model("auto_pad: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, found ", mode);
  window.lower = mode == "SAME_LOWER";
  for (size_t i = 0; i < count; ++i)
    window.pads_are_open |= window.strides[i] != 1 && c.extent(0, static_cast<int>(i) + 2) < 0;
  if (window.pads_are_open && auto_pad == AutoPad::Apply)
    return cannot("auto_pad ", mode, " with a stride needs to know the extents; fix them with --dim");
  for (size_t i = 0; i < count && !window.pads_are_open; ++i) {
    const int64_t reach = window.dilations[i] * (window.kernel[i] - 1) + 1;
    const int64_t stride = window.strides[i];
    const int64_t extent = c.extent(0, static_cast<int>(i) + 2);
    const int64_t steps = extent < 0 ? 0 : (extent + stride - 1) / stride;
    const int64_t total =
        stride == 1 ? reach - 1 : std::max<int64_t>((steps - 1) * stride + reach - extent, 0);
    std::tie(window.pads[i], window.pads[i + count]) = split_padding(total, window.lower);
  }
  return window;
}

// total = max((ceil(S / stride) - 1) stride + reach - S, 0) on each axis, in integers.
ValueId pad_same(Emitter& emit, ValueId x, const Window& window, double fill) {
  if (!window.pads_are_open) return x;
  const auto number = [&](int64_t n) { return shape_vector(emit, std::vector{Extent::of(n)}); };
  std::vector<ValueId> begins = {number(0)}, ends = {number(0)};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t reach = window.dilations[i] * (window.kernel[i] - 1) + 1;
    const int axis = static_cast<int>(i) + 1;
    const ValueId stride = number(window.strides[i]);
    const ValueId extent = dims_product(emit, x, axis, axis + 1);
    const ValueId steps =
        emit.emit(op::DivAttributes{}, {emit.add(extent, number(window.strides[i] - 1)), stride});
    const ValueId covered = emit.add(emit.mul(emit.add(steps, number(-1)), stride), number(reach));
    const ValueId total = emit.emit(op::MaximumAttributes{}, {emit.sub(covered, extent), number(0)});
    const ValueId small = emit.emit(op::DivAttributes{}, {total, number(2)});
    const ValueId large = emit.sub(total, small);
    begins.push_back(window.lower ? large : small);
    ends.push_back(window.lower ? small : large);
  }
  begins.push_back(number(0));
  ends.push_back(number(0));
  begins.insert(begins.end(), ends.begin(), ends.end());
  return emit.emit(op::PadAttributes{}, {x, concat_values(emit, begins), emit.scalar_like(fill, x)});
}

Result<std::vector<int64_t>> kernel_of(const NodeContext& c, size_t i) {
  if (c.rank(i) != c.rank(0))
    return invalid_model("the weight has rank ", c.rank(i), ", the input has rank ", c.rank(0));
  std::vector<int64_t> kernel;
  for (int axis = 2; axis < c.rank(i); ++axis) {
    if (c.extent(i, axis) < 0) return cannot("the kernel's extents are not known; fix them with --dim");
    kernel.push_back(c.extent(i, axis));
  }
  return kernel;
}

ValueId weight_channels_last(NodeContext& c, size_t i) {
  std::vector<int64_t> permutation = {0};
  for (int axis = 2; axis < c.rank(i); ++axis) permutation.push_back(axis);
  permutation.push_back(1);
  return transposed(c.emit, c.input(i), std::move(permutation));
}

}  // namespace librt::onnx
