// Convolutions, pools, resizing and sampling: channels-first in ONNX.
#include <algorithm>
#include <array>

#include "runtime/geometry/windows.h"
#include "tools/onnx/export/node_writer.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

template <class A>
Attributes window_of_conv(const A& conv) {
  return {
      {"strides", conv.strides}, {"pads", conv.pads}, {"dilations", conv.dilations}, {"group", conv.groups}};
}

struct Rounding {
  bool up = false;
  Longs pads;
};

/// Windows that would start in the padding at the end do not count, but the shape inference of ONNX and of
/// runtimes counts them with ceil_mode. Where there are such, the number is rounded down, and axes that round
/// up are padded instead, if that is another padding of the same result.
template <class A>
Rounding rounding_of(const NodeWriter& n, const A& pool, bool counts_padding) {
  Rounding given{pool.ceil_mode, pool.pads};
  const Value &x = n.input(0), &y = n.output();
  if (!pool.ceil_mode || !x.is_static() || !y.is_static()) return given;
  const auto geometry = pool_geometry(x.info().shape, pool);
  if (!geometry.ok()) return given;
  const auto rank = static_cast<size_t>(geometry->rank);
  Rounding down{false, Longs(2 * rank)};
  bool drops = false, pads_more = false, is_same = true;
  for (size_t i = 0; i < rank; ++i) {
    const WindowAxis& axis = geometry->axes[i];
    const int64_t beyond =
        (axis.output - 1) * axis.stride + axis.reach() - axis.input - axis.pad_begin - axis.pad_end;
    down.pads[i] = axis.pad_begin;
    down.pads[rank + i] = axis.pad_end + std::max<int64_t>(0, beyond);
    drops = drops || beyond < 0;
    pads_more = pads_more || beyond > 0;
    is_same = is_same && (beyond <= 0 || (!counts_padding && down.pads[rank + i] < axis.kernel));
  }
  return is_same && (drops || !pads_more) ? down : given;
}

template <class A>
Attributes window_of_pool(const NodeWriter& n, const A& pool, bool counts_padding = false) {
  Rounding rounding = rounding_of(n, pool, counts_padding);
  return {{"kernel_shape", pool.kernel},
          {"strides", pool.strides},
          {"pads", std::move(rounding.pads)},
          {"dilations", pool.dilations},
          {"ceil_mode", static_cast<int64_t>(rounding.up)}};
}

Result<bool> write_conv(NodeWriter& n) {
  const auto& conv = n.as<op::ConvAttributes>();
  const op::EpilogueAttributes* epilogue = conv.epilogue.get();
  const bool biased = epilogue != nullptr && epilogue->has_bias;
  const bool residual = epilogue != nullptr && epilogue->has_residual;
  const bool active = epilogue != nullptr && epilogue->activation != op::Activation::None;
  Names inputs = {n.in_first(0), n.in_first(1)};
  if (biased) inputs.push_back(n.in(2));
  if (!residual && !active) {
    n.add("Conv", inputs, {n.out_first()}, window_of_conv(conv));
    return true;
  }
  const std::string added = residual ? n.in_first(n.node.inputs.size() - 1) : std::string();
  std::string y = n.emit("Conv", inputs, window_of_conv(conv));
  if (residual && !active) n.add("Add", {y, added}, {n.out_first()});
  if (residual && active) y = n.emit("Add", {y, added});
  if (active) write_epilogue(n, epilogue, y, n.output().dtype, n.out_first());
  return true;
}

/// The output padding; with a size of the result, what gives it.
Result<Longs> output_padding_of(const NodeWriter& n, const op::ConvTransposeAttributes& conv) {
  const auto sizes = n.known_longs(2);
  const size_t spatial = conv.strides.size();
  Longs padding = conv.output_padding;
  padding.resize(spatial);
  for (size_t i = 0; i < spatial && n.has(2); ++i) {
    const Dim &extent = n.input(0).dims[i + 1], &kernel = n.input(1).dims[i + 1];
    if (!sizes || !extent.is_known() || !kernel.is_known())
      return unsupported("its output size depends on the inputs; fix the dimensions with --dim");
    padding[i] =
        (*sizes)[i] - ((extent.extent - 1) * conv.strides[i] + (kernel.extent - 1) * conv.dilations[i] + 1 -
                       conv.pads[i] - conv.pads[i + spatial]);
  }
  for (size_t i = 0; i < spatial; ++i)
    if (padding[i] < 0 || (padding[i] > 0 && padding[i] >= conv.strides[i]))
      return unsupported(padding[i], " elements of output padding with stride ", conv.strides[i],
                         "; ONNX allows fewer than the stride, and none below 0");
  return padding;
}

Result<bool> write_conv_transpose(NodeWriter& n) {
  const auto& conv = n.as<op::ConvTransposeAttributes>();
  RT_ASSIGN(Longs padding, output_padding_of(n, conv));
  Attributes attributes = window_of_conv(conv);
  attributes.push_back({"output_padding", std::move(padding)});
  const Names inputs = {n.in_first(0), n.in_first(1), n.in(3)};
  n.add("ConvTranspose", inputs, {n.out_first()}, attributes);
  return true;
}

/// x as u8 where it is i8, and its zero point: 128 more than the signed ones. Runtimes have convolutions of
/// unsigned activations.
Names unsigned_operand(NodeWriter& n, const std::string& x, size_t zero) {
  if (n.dtype() == DType::U8) return {x, n.in(zero)};
  const std::string offset = n.number(128, DType::I32);
  const auto shifted = [&](const std::string& value) {
    return n.cast(n.emit("Add", {n.cast(value, DType::I32), offset}), DType::U8);
  };
  return {shifted(x), n.has(zero) ? shifted(n.in(zero)) : n.number(128, DType::U8)};
}

/// A zero point for each channel of the weight, which runtimes do not take, is multiplied with the sums of x
/// that a convolution with ones gives. Exact: all are integers.
Result<bool> write_conv_integer(NodeWriter& n) {
  const Attributes window = window_of_conv(n.as<op::ConvIntegerAttributes>());
  const Names x = unsigned_operand(n, n.in_first(0), 2);
  const std::string weight = n.in_first(1);
  if (!n.has(3) || n.rank(3) == 0) {
    n.add("ConvInteger", {x[0], weight, x[1], n.in(3)}, {n.out_first()}, window);
    return true;
  }
  Longs column(static_cast<size_t>(n.rank() - 1), 1);
  column[0] = -1;
  const std::string one = n.number(1, n.dtype(1)), zero = n.cast(n.reshaped(n.in(3), column), DType::I32);
  const std::string ones = n.emit("Expand", {one, n.emit("Shape", {weight})});
  const std::string sums = n.emit("ConvInteger", {x[0], ones, x[1]}, window);
  const std::string uncentered = n.emit("ConvInteger", {x[0], weight, x[1]}, window);
  n.add("Sub", {uncentered, n.emit("Mul", {sums, zero})}, {n.out_first()});
  return true;
}

Result<bool> write_max_pool(NodeWriter& n) {
  n.add("MaxPool", {n.in_first(0)}, {n.out_first()}, window_of_pool(n, n.as<op::MaxPoolAttributes>()));
  return true;
}

Result<bool> write_max_pool_indices(NodeWriter& n) {
  const auto& pool = n.as<op::MaxPoolIndicesAttributes>();
  Attributes attributes = window_of_pool(n, pool);
  attributes.push_back({"storage_order", static_cast<int64_t>(pool.column_major)});
  const std::string x = n.in_first(0), values = n.writer.fresh(text(n.writer.node_name(), "/values"));
  n.add("MaxPool", {x}, {values, n.out_first()}, attributes);
  return true;
}

Result<bool> write_average_pool(NodeWriter& n) {
  const auto& pool = n.as<op::AveragePoolAttributes>();
  const bool counts_padding = pool.count_include_pad && std::any_of(pool.pads.begin(), pool.pads.end(),
                                                                    [](int64_t pad) { return pad != 0; });
  Attributes attributes = window_of_pool(n, pool, counts_padding);
  attributes.push_back({"count_include_pad", static_cast<int64_t>(counts_padding)});
  n.add("AveragePool", {n.in_first(0)}, {n.out_first()}, attributes);
  return true;
}

Result<bool> write_batch_norm(NodeWriter& n) {
  if (n.rank() < 2) return false;
  const Names inputs = {n.in_first(0), n.in(1), n.in(2), n.in(3), n.in(4)};
  const auto& norm = n.as<op::BatchNormAttributes>();
  n.add("BatchNormalization", inputs, {n.out_first()},
        {{"epsilon", norm.epsilon}, {"momentum", norm.momentum}});
  return true;
}

constexpr const char* kInterpolations[] = {"nearest", "linear", "cubic"};

/// The operand's entries for the spatial axes, with those of batch and channels before each part of them.
std::string entries_of_all_axes(NodeWriter& n, size_t i, const std::string& ahead, int parts) {
  if (!n.has(i)) return {};
  if (parts == 1) return n.emit("Concat", {ahead, n.in(i)}, {{"axis", int64_t{0}}});
  const std::string halves = n.reshaped(n.in(i), {parts, -1});
  return n.reshaped(n.emit("Concat", {ahead, halves}, {{"axis", int64_t{1}}}), {-1});
}

/// Of batch and channels the whole, as a scale or as the start and end of what is taken.
std::string floats(NodeWriter& n, const std::vector<float>& values, const Longs& dims) {
  std::string name = n.writer.fresh(text(n.writer.node_name(), "/constant"));
  n.writer.initializer(name, n.onnx_type(DType::F32), dims)
      .set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

Result<bool> write_resize(NodeWriter& n) {
  constexpr const char* kCoordinates[] = {"half_pixel",        "pytorch_half_pixel",   "align_corners",
                                          "asymmetric",        "half_pixel_symmetric", "tf_half_pixel_for_nn",
                                          "tf_crop_and_resize"};
  constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const auto& resize = n.as<op::ResizeAttributes>();
  const Attributes attributes = {
      {"mode", std::string(kInterpolations[static_cast<size_t>(resize.mode)])},
      {"coordinate_transformation_mode", std::string(kCoordinates[static_cast<size_t>(resize.coordinates)])},
      {"nearest_mode", std::string(kNearest[static_cast<size_t>(resize.nearest)])},
      {"cubic_coeff_a", resize.cubic_a},
      {"exclude_outside", static_cast<int64_t>(resize.exclude_outside)},
      {"antialias", static_cast<int64_t>(resize.antialias)},
      {"extrapolation_value", resize.extrapolation}};
  // For all axes: runtimes mistake the attribute `axes` where they move Transposes.
  const std::string x = n.in_first(0);
  Names inputs = {x, {}, {}, {}};
  if (n.has(3)) inputs[1] = entries_of_all_axes(n, 3, floats(n, {0, 0, 1, 1}, {2, 2}), 2);
  if (n.has(2)) inputs[2] = entries_of_all_axes(n, 2, floats(n, {1, 1}, {2}), 1);
  if (n.has(1) && !n.has(2))  // else they are what the scales give
    inputs[3] =
        entries_of_all_axes(n, 1, n.emit("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{2}}}), 1);
  n.add("Resize", inputs, {n.out_first()}, attributes);
  return true;
}

Result<bool> write_grid_sample(NodeWriter& n) {
  constexpr const char* kPadding[] = {"zeros", "border", "reflection"};
  const auto& sample = n.as<op::GridSampleAttributes>();
  const Names inputs = {n.in_first(0), n.in(1)};
  n.add("GridSample", inputs, {n.out_first()},
        {{"mode", std::string(kInterpolations[static_cast<size_t>(sample.mode)])},
         {"padding_mode", std::string(kPadding[static_cast<size_t>(sample.padding)])},
         {"align_corners", static_cast<int64_t>(sample.align_corners)}});
  return true;
}

Result<bool> write_roi_align(NodeWriter& n) {
  const auto& roi = n.as<op::RoiAlignAttributes>();
  const std::string indices = n.dtype(2) == DType::I64 ? n.in(2) : n.cast(n.in(2), DType::I64);
  const Names inputs = {n.in_first(0), n.in(1), indices};
  n.add(
      "RoiAlign", inputs, {n.out_first()},
      {{"output_height", roi.height},
       {"output_width", roi.width},
       {"sampling_ratio", roi.sampling_ratio},
       {"spatial_scale", roi.spatial_scale},
       {"mode", std::string(roi.maximum ? "max" : "avg")},
       {"coordinate_transformation_mode", std::string(roi.half_pixel ? "half_pixel" : "output_half_pixel")}});
  return true;
}

constexpr ExportRow kConv[] = {
    {OpKind::Conv, write_conv},
    {OpKind::ConvTranspose, write_conv_transpose},
    {OpKind::ConvInteger, write_conv_integer},
    {OpKind::MaxPool, write_max_pool},
    {OpKind::MaxPoolIndices, write_max_pool_indices},
    {OpKind::AveragePool, write_average_pool},
    {OpKind::BatchNorm, write_batch_norm},
    {OpKind::Resize, write_resize},
    {OpKind::GridSample, write_grid_sample},
    {OpKind::RoiAlign, write_roi_align},
};

}  // namespace

std::span<const ExportRow> export_rows_conv() {
  return kConv;
}

}  // namespace librt::onnx
