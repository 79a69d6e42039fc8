// Shared by convolutions and pools: kernel, strides, dilations, padding by attribute or by auto_pad.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/onnx/node.h"

namespace librt::onnx {

struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  ///< all begins, then all ends
  int spatial = 0;            ///< number of spatial axes
  /// SAME padding that depends on dynamic extents: pads are 0, and pad_same() must be called.
  bool pads_are_open = false;
  bool lower = false;  ///< SAME_LOWER
};

/// Whether auto_pad becomes pads; pads, or pad_same() for dynamic extents; or is left to the caller.
enum class AutoPad { Apply, ApplyOrDefer, Ignore };

/// Reads and checks kernel_shape (or takes `kernel` where the weight determines it), strides, dilations, pads
/// and auto_pad of a node whose input 0 is [N,C,S..]. SAME padding with a stride needs static extents unless
/// deferred.
Result<Window> window_of(NodeContext& c, std::vector<int64_t> kernel, bool has_dilations,
                         AutoPad auto_pad = AutoPad::Apply);

/// x [N,S..,C], padded with `fill` by the SAME padding for each run's extents if pads_are_open, else
/// unchanged.
ValueId pad_same(Emitter& emit, ValueId x, const Window& window, double fill);

/// The means of x [N,C,S..] over the windows (pool.cpp).
ValueId average_pooled(NodeContext& c, ValueId x, const Window& window, bool ceil_mode,
                       bool count_include_pad);

/// The spatial extents of the weight [O,C,K..] that input i is, which must be static.
Result<std::vector<int64_t>> kernel_of(const NodeContext& c, size_t i);
/// Input i [A,B,K..] as [A,K..,B].
ValueId weight_channels_last(NodeContext& c, size_t i);

/// Splits the total padding of one axis; SAME_LOWER puts the odd one first.
std::pair<int64_t, int64_t> split_padding(int64_t total, bool lower);

}  // namespace librt::onnx
