// Convolutions: channels-last inside, with transposes around them for ONNX's layout.
#include <algorithm>
#include <memory>

#include "tools/onnx/activations.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/window.h"

namespace librt::onnx {
namespace {

// The convolution of inputs (x, weight, [bias]), as [N,S..,C].
Result<ValueId> convolved(NodeContext& c) {
  RT_ASSIGN(auto kernel, kernel_of(c, 1));
  RT_ASSIGN(const Window window, window_of(c, std::move(kernel), true, AutoPad::ApplyOrDefer));
  op::ConvAttributes attributes;
  attributes.strides = window.strides;
  attributes.pads = window.pads;
  attributes.dilations = window.dilations;
  attributes.groups = c.integer("group", 1);
  const ValueId x = pad_same(c.emit, to_channels_last(c.emit, c.input(0)), window, 0);
  const ValueId weight = weight_channels_last(c, 1);
  if (!c.has(2)) return c.emit.emit(std::move(attributes), {x, weight});
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->has_bias = true;
  return c.emit.emit(std::move(attributes), {x, weight, c.input(2)});
}

Status conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  RT_ASSIGN(const ValueId y, convolved(c));
  return c.result(to_channels_first(c.emit, y));
}

// x [N,S..,C], weight [O,K..,C/groups], which is the layout inside.
Status channels_last_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  const auto count = static_cast<size_t>(std::max(c.rank() - 2, 0));
  if (count < 1 || c.rank(1) != c.rank())
    return invalid_model("expected an input [N,S..,C] and weights of its rank, found ranks ", c.rank(),
                         " and ", c.rank(1));
  if (const std::string mode = c.string("auto_pad", "NOTSET"); mode != "NOTSET" && mode != "VALID")
    return cannot("auto_pad ", mode, "; export with explicit padding");
  c.ignore({"kernel_shape"});  // the weight's
  op::ConvAttributes attributes;
  attributes.strides = c.integers("strides");
  attributes.pads = c.integers("pads");
  attributes.dilations = c.integers("dilations");
  attributes.groups = c.integer("group", 1);
  if (attributes.strides.empty()) attributes.strides.assign(count, 1);
  if (attributes.dilations.empty()) attributes.dilations.assign(count, 1);
  if (attributes.pads.empty()) attributes.pads.assign(2 * count, 0);
  if (!c.has(2)) return c.result(c.emit.emit(std::move(attributes), {c.input(0), c.input(1)}));
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->has_bias = true;
  return c.result(c.emit.emit(std::move(attributes), {c.input(0), c.input(1), c.input(2)}));
}

// activation(conv(x, weight, bias) + sum)
Status fused_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  RT_ASSIGN(ValueId y, convolved(c));
  if (c.has(3)) y = c.emit.add(y, to_channels_last(c.emit, c.input(3)));
  RT_ASSIGN(y, activated(c, y, c.string("activation", ""), c.reals("activation_params")));
  return c.result(to_channels_first(c.emit, y));
}

// Padding for an output of extents output_shape, or `stride` times the input for SAME. total = stride (S - 1)
// + output_padding + (K - 1) dilation + 1 - output; a negative total is output padding.
Status pad_to_output(NodeContext& c, Window& window, std::vector<int64_t>& output_padding,
                     std::span<const int64_t> output_shape, bool lower) {
  const auto count = static_cast<size_t>(window.spatial);
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = c.extent(0, static_cast<int>(i) + 2);
    if (extent < 0 && !output_shape.empty())
      return cannot("output_shape needs to know the input's extents; fix them with --dim");
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t total = reach - window.strides[i] + output_padding[i];  // where output = stride S
    if (!output_shape.empty())
      total = window.strides[i] * (extent - 1) + output_padding[i] + reach - output_shape[i];
    if (total < 0) {
      output_padding[i] -= total;
      total = 0;
    }
    std::tie(window.pads[i], window.pads[i + count]) = split_padding(total, lower);
  }
  return {};
}

Status conv_transpose(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  RT_ASSIGN(auto kernel, kernel_of(c, 1));
  const std::string mode = c.string("auto_pad", "NOTSET");
  std::vector<int64_t> output_shape = c.integers("output_shape");
  // Old exporters give batch and channels as well.
  if (static_cast<int>(output_shape.size()) == c.rank() && c.rank() > 2)
    output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  // SAME refers to the output's extents here.
  RT_ASSIGN(Window window, window_of(c, std::move(kernel), true, same ? AutoPad::Ignore : AutoPad::Apply));
  const auto count = static_cast<size_t>(window.spatial);
  std::vector<int64_t> output_padding = c.integers("output_padding");
  if (output_padding.empty()) output_padding.assign(count, 0);
  if (output_padding.size() != count || (!output_shape.empty() && output_shape.size() != count))
    return invalid_model("output_padding and output_shape need ", count, " numbers");
  if (same || !output_shape.empty())
    // Without auto_pad an odd element of padding goes first, as in SAME_LOWER.
    RT_TRY(pad_to_output(c, window, output_padding, output_shape, mode != "SAME_UPPER"));
  op::ConvTransposeAttributes attributes;
  attributes.strides = window.strides;
  attributes.pads = window.pads;
  attributes.dilations = window.dilations;
  attributes.output_padding = output_padding;
  attributes.groups = c.integer("group", 1);
  const ValueId x = to_channels_last(c.emit, c.input(0));
  const ValueId weight = weight_channels_last(c, 1);
  const ValueId y = c.has(2) ? c.emit.emit(std::move(attributes), {x, weight, kNoValue, c.input(2)})
                             : c.emit.emit(std::move(attributes), {x, weight});
  return c.result(to_channels_first(c.emit, y));
}

constexpr ImportRow kConvRows[] = {
    {"", "Conv", 1, kNewestOpset, conv},
    {"com.microsoft", "NhwcConv", 1, kNewestOpset, channels_last_conv},
    {"com.microsoft", "FusedConv", 1, kNewestOpset, fused_conv},
    {"", "ConvTranspose", 1, kNewestOpset, conv_transpose},
};

}  // namespace

std::span<const ImportRow> rows_conv() {
  return kConvRows;
}

}  // namespace librt::onnx
