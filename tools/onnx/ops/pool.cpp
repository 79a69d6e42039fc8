// Pools: channels-last inside.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/window.h"

namespace librt::onnx {
namespace {

template <class Attributes>
Attributes with_window(const Window& window, bool ceil_mode) {
  Attributes attributes;
  attributes.kernel = window.kernel;
  attributes.strides = window.strides;
  attributes.pads = window.pads;
  attributes.dilations = window.dilations;
  attributes.ceil_mode = ceil_mode;
  return attributes;
}

Status max_pool(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const Window window, window_of(c, {}, true, AutoPad::ApplyOrDefer));
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
  const bool column_major = c.integer("storage_order", 0) != 0;  // of the second output
  if (window.pads_are_open && c.wants(1))
    return cannot("positions under SAME padding with a stride need to know the extents; fix them with --dim");
  const ValueId x = pad_same(c.emit, to_channels_last(c.emit, c.input(0)), window,
                             -std::numeric_limits<double>::infinity());
  c.outputs = {
      to_channels_first(c.emit, c.emit.emit(with_window<op::MaxPoolAttributes>(window, ceil_mode), {x}))};
  if (!c.wants(1)) return {};
  auto attributes = with_window<op::MaxPoolIndicesAttributes>(window, ceil_mode);
  attributes.column_major = column_major;
  c.outputs.push_back(to_channels_first(c.emit, c.emit.emit(std::move(attributes), {x})));
  return {};
}

}  // namespace

ValueId average_pooled(NodeContext& c, ValueId x, const Window& window, bool ceil_mode,
                       bool count_include_pad) {
  auto attributes = with_window<op::AveragePoolAttributes>(window, ceil_mode);
  attributes.count_include_pad = count_include_pad;
  x = to_channels_last(c.emit, x);
  const ValueId padded = pad_same(c.emit, x, window, 0);
  const ValueId means = c.emit.emit(op::AveragePoolAttributes(attributes), {padded});
  if (!window.pads_are_open || count_include_pad) return to_channels_first(c.emit, means);
  // The mean over the window, divided by the part of it that is no padding.
  std::vector<Extent> extents = extents_of(c.emit, x);
  extents.front() = extents.back() = Extent::of(1);
  const ValueId ones =
      c.emit.emit(op::ExpandAttributes{}, {c.emit.scalar_like(1, x), shape_vector(c.emit, extents)});
  const ValueId parts = c.emit.emit(std::move(attributes), {pad_same(c.emit, ones, window, 0)});
  return to_channels_first(c.emit, c.emit.emit(op::DivAttributes{}, {means, parts}));
}

namespace {

// ONNX Runtime's max pool for [N,S..,C].
Status max_pool_channels_last(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  if (c.string("auto_pad", "NOTSET").starts_with("SAME"))
    return cannot("auto_pad SAME with the channels last; give pads");
  RT_ASSIGN(const Window window, window_of(c, {}, true, AutoPad::Ignore));
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
  return c.result(c.emit.emit(with_window<op::MaxPoolAttributes>(window, ceil_mode), {c.input(0)}));
}

Status average_pool(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const Window window, window_of(c, {}, true, AutoPad::ApplyOrDefer));
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
  return c.result(average_pooled(c, c.input(0), window, ceil_mode, c.integer("count_include_pad", 0) != 0));
}

// (sum |x|^p)^(1/p), the sum being the mean over the whole window times its size.
Status lp_pool(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const Window window, window_of(c, {}, true, AutoPad::ApplyOrDefer));
  if (c.integer("ceil_mode", 0) != 0) return cannot("ceil_mode is not supported; pad the input instead");
  const auto p = static_cast<double>(c.integer("p", 2));
  double size = 1;
  for (int64_t extent : window.kernel) size *= static_cast<double>(extent);
  const ValueId x = c.emit.emit(op::AbsAttributes{}, {c.input(0)});
  const ValueId powers = c.emit.emit(op::PowAttributes{}, {x, c.emit.scalar_like(p, x)});
  const ValueId sum = c.emit.mul(average_pooled(c, powers, window, false, true), c.emit.scalar_like(size, x));
  return c.result(c.emit.emit(op::PowAttributes{}, {sum, c.emit.scalar_like(1 / p, x)}));
}

template <class Attributes>
Status global_pool(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  if (c.rank() < 3) return invalid_model("expected an input [N,C,S..], found rank ", c.rank());
  Attributes attributes;
  for (int axis = 1; axis + 1 < c.rank(); ++axis) attributes.axes.push_back(axis);
  const ValueId x = to_channels_last(c.emit, c.input(0));
  return c.result(to_channels_first(c.emit, c.emit.emit(std::move(attributes), {x})));
}

constexpr ImportRow kPoolRows[] = {
    {"", "MaxPool", 1, kNewestOpset, max_pool},
    {"com.microsoft", "NhwcMaxPool", 1, kNewestOpset, max_pool_channels_last},
    {"", "AveragePool", 1, kNewestOpset, average_pool},
    {"", "LpPool", 2, kNewestOpset, lp_pool},
    {"", "GlobalAveragePool", 1, kNewestOpset, global_pool<op::ReduceMeanAttributes>},
    {"", "GlobalMaxPool", 1, kNewestOpset, global_pool<op::ReduceMaxAttributes>},
};

}  // namespace

std::span<const ImportRow> rows_pool() {
  return kPoolRows;
}

}  // namespace librt::onnx
