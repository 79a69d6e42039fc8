#include "backends/vulkan/conv_steps.h"

#include <algorithm>

namespace rt::vulkan {
namespace {

void push_axis_pairs(Step& step, const ConvSides& sides) {
  const auto& [h, w, d] = sides.axes;
  step.push(h.kernel).push(w.kernel).push(h.stride).push(w.stride);
  step.push(h.pad_begin).push(w.pad_begin).push(h.dilation).push(w.dilation);
}

bool every_tap_inside(const ConvSides& sides) {
  if (sides.transposed) return false;
  return std::all_of(sides.axes.begin(), sides.axes.end(), [](const WindowAxis& axis) {
    return axis.pad_begin <= 0 && axis.position(axis.output - 1, axis.kernel - 1) < axis.input;
  });
}

/// Rows of `channels` floats, padded to whole vec4s.
Ref padded_rows(Program& program, const VulkanDevice& device, const Ref& source, int64_t rows,
                int64_t channels, const float* constant) {
  if (channels % 4 == 0) return source;
  return padded_copy(
      program, device, source,
      {.extents = {rows, channels}, .strides = {channels, 1}, .padded_extents = {rows, round_up4(channels)}},
      constant);
}

/// Few input channels leave little to do between two taps: where the taps of a row lie side by side, a row of
/// the kernel becomes one tap with that many channels, over an image whose padding is written out.
bool folds_rows(const ConvSides& sides) {
  return !sides.transposed && sides.groups == 1 && sides.in_channels <= 4 && sides.axes[1].kernel > 1 &&
         sides.axes[1].dilation == 1 && sides.out_pixels() > 0;
}

/// The sides as the shader then sees them.
ConvSides fold_rows(ConvSides sides) {
  for (size_t i = 0; i < 2; ++i) {
    WindowAxis& axis = sides.axes[i];
    axis.pad_begin = 0;
    axis.input = axis.position(axis.output - 1, axis.kernel - 1) + 1;
    sides.in_extent[i] = axis.input;
  }
  sides.axes[1].kernel = 1;
  return sides;
}

struct ConvTile {
  int64_t rows, columns, lanes, lanes_n;
  Load load;
};

ConvTile choose_tile(const DevicePlan& plan, int64_t pixels, int64_t channels, bool texel) {
  ConvTile tile{pixels < 8 ? 1 : 8, 8, plan.tile_lanes, plan.texel_loads ? 1 : 8,
                texel ? Load::Texel : Load::Buffer};
  if (texel && plan.subgroup_tiles && pixels >= 4 * tile.lanes) {
    // Lanes share the weights, so that wide tiles cost few loads; seven rows where fewer pixels are then left
    // over.
    tile.load = Load::Subgroup;
    if (channels > 8) tile.columns = 16;
    const auto computed = [&](int64_t rows) { return ceil_div(pixels, rows * tile.lanes) * rows; };
    if (8 * computed(7) <= 7 * computed(8)) tile.rows = 7;
    return tile;
  }
  // Lanes along pixels where there are enough, the rest along channels.
  while (tile.lanes_n < tile.lanes && tile.lanes_n * tile.columns < channels &&
         (tile.lanes / tile.lanes_n - 1) * tile.rows >= pixels)
    tile.lanes_n *= 2;
  return tile;
}

}  // namespace

ConvSides conv_sides(const ConvGeometry& geometry, bool transposed) {
  ConvSides sides;
  sides.transposed = transposed;
  sides.in_channels = transposed ? geometry.output_channels : geometry.input_channels;
  sides.out_channels = transposed ? geometry.input_channels : geometry.output_channels;
  sides.batch = geometry.batch;
  sides.groups = geometry.groups;
  sides.axes = geometry.axes;
  for (size_t i = 0; i < 3; ++i) {
    sides.in_extent[i] = transposed ? geometry.axes[i].output : geometry.axes[i].input;
    sides.out_extent[i] = transposed ? geometry.axes[i].input : geometry.axes[i].output;
  }
  return sides;
}

Status tiled_conv_supports(const ConvSides& sides) {
  if (sides.in_extent[2] != 1 || sides.out_extent[2] != 1 || sides.axes[2].kernel != 1)
    return unsupported("three spatial axes");
  if (sides.groups > 1 && (sides.group_in() % 4 != 0 || (sides.transposed && sides.group_out() % 4 != 0)))
    return unsupported("groups of ", sides.group_in(), " input and ", sides.group_out(),
                       " output channels, which are not whole vec4s");
  return {};
}

Status depthwise_supports(const ConvSides& sides) {
  if (sides.transposed || sides.in_extent[2] != 1 || sides.out_extent[2] != 1 || sides.axes[2].kernel != 1)
    return unsupported("not a two-dimensional forward convolution");
  if (sides.group_in() != 1 || sides.group_out() != 1) return unsupported("not depthwise");
  if (sides.in_channels % 4 != 0) return unsupported(sides.in_channels, " channels, not a multiple of four");
  return {};
}

void add_tiled_conv(Program& program, const VulkanDevice& device, const ConvSides& given,
                    const ConvOperands& operands, const EpiloguePlan& epilogue) {
  const bool folds = folds_rows(given);
  const ConvSides sides = folds ? fold_rows(given) : given;
  const int64_t in_pixels = sides.batch * sides.in_extent[0] * sides.in_extent[1];
  const int64_t in_c = round_up4(sides.in_channels);
  const auto [height, width, channels] =
      std::array{given.in_extent[0], given.in_extent[1], given.in_channels};
  const Ref x =
      folds ? padded_copy(program, device, operands.x,
                          {.extents = {given.batch, height, width, channels},
                           .strides = {height * width * channels, width * channels, channels, 1},
                           .padded_extents = {given.batch, sides.in_extent[0], sides.in_extent[1], in_c},
                           .before = {0, given.axes[0].pad_begin, given.axes[1].pad_begin, 0}},
                          nullptr)
            : padded_rows(program, device, operands.x, in_pixels, sides.in_channels, nullptr);
  const int64_t group_in = folds ? in_c * given.axes[1].kernel : sides.groups == 1 ? in_c : sides.group_in();
  Ref weight = operands.weight;
  int64_t weight_elements = 0;
  if (sides.transposed) {
    // [C,K..,O/groups]: rows along O, and zero rows for padded input channels.
    const int64_t columns = round_up4(sides.group_out());
    weight_elements = in_c * sides.taps() * columns;
    if (columns != sides.group_out() || in_c != sides.in_channels)
      weight = padded_copy(program, device, operands.weight,
                           {.extents = {sides.in_channels, sides.taps(), sides.group_out()},
                            .strides = {sides.taps() * sides.group_out(), sides.group_out(), 1},
                            .padded_extents = {in_c, sides.taps(), columns}},
                           operands.constant_weight);
  } else {
    weight = padded_rows(program, device, operands.weight, given.out_channels * given.taps(),
                         given.group_in(), operands.constant_weight);
    weight_elements = sides.out_channels * sides.taps() * group_in;
  }
  const auto x_bytes = static_cast<uint64_t>(in_pixels * in_c) * sizeof(float);
  const bool texel =
      through_texels(device, std::max(x_bytes, static_cast<uint64_t>(weight_elements) * sizeof(float)));

  int64_t pixels = sides.out_pixels();
  if (sides.transposed)
    for (size_t i = 0; i < 2; ++i)
      pixels = pixels / std::max<int64_t>(sides.out_extent[i], 1) *
               ceil_div(sides.out_extent[i], sides.axes[i].stride) * sides.axes[i].stride;
  const ConvTile tile = choose_tile(device.plan(), pixels, sides.group_out(), texel);
  const int64_t row_tiles = ceil_div(pixels, tile.rows * (tile.lanes / tile.lanes_n));
  const int64_t column_groups = ceil_div(sides.group_out(), tile.columns * tile.lanes_n);

  constexpr Shader kShaders[2][3] = {
      {Shader::conv_buffer, Shader::conv_texel, Shader::conv_subgroup},
      {Shader::conv_transposed_buffer, Shader::conv_transposed_texel, Shader::conv_transposed_subgroup}};
  Step& step = program.dispatch(kShaders[sides.transposed][static_cast<size_t>(tile.load)],
                                static_cast<uint64_t>(row_tiles * column_groups * sides.groups),
                                static_cast<uint32_t>(tile.lanes));
  step.spec(static_cast<uint64_t>(tile.rows))
      .spec(static_cast<uint64_t>(tile.columns))
      .spec(static_cast<uint64_t>(tile.lanes_n))
      .spec((every_tap_inside(sides) ? 1 : 0) + (sides.group_out() % 4 == 0 ? 2 : 0));
  epilogue.specialize(step);
  // The shader's out_c also spaces the output's pixels; padded columns of the weight are never stored.
  step.push(pixels)
      .push(sides.out_extent[0])
      .push(sides.out_extent[1])
      .push(sides.in_extent[0])
      .push(sides.in_extent[1]);
  step.push(in_c / 4).push(group_in / 4).push(sides.group_out()).push(sides.out_channels);
  push_axis_pairs(step, sides);
  step.push(row_tiles).push(column_groups).push(epilogue.alpha).push(epilogue.beta);
  step.matrix(0, x, texel).matrix(1, weight, texel).write(2, operands.y);
  epilogue.bind(step);
}

void add_depthwise_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                        const ConvOperands& operands, const EpiloguePlan& epilogue) {
  const int64_t channels = sides.in_channels;
  // [C,taps] becomes [taps,C].
  const Ref weight = padded_copy(program, device, operands.weight,
                                 {.extents = {sides.taps(), channels},
                                  .strides = {1, sides.taps()},
                                  .padded_extents = {sides.taps(), channels}},
                                 operands.constant_weight);
  const auto bytes =
      static_cast<uint64_t>(sides.batch * sides.in_extent[0] * sides.in_extent[1] * channels) * 4;
  const bool texel = through_texels(device, bytes);
  const WindowAxis& row = sides.axes[1];
  // Neighbours share their taps where these lie side by side; seven divide the extents of most networks.
  const bool shares = row.dilation == 1 && row.kernel <= 7 && row.stride <= 2;
  const int64_t pixels = shares && sides.out_extent[1] > 4 ? 7 : 4;
  const int64_t tiles_w = ceil_div(sides.out_extent[1], pixels);
  const int64_t count = sides.batch * sides.out_extent[0] * tiles_w * (channels / 4);
  Step& step = program.dispatch_each(texel ? Shader::depthwise_texel : Shader::depthwise_buffer, count, 64);
  step.spec(static_cast<uint64_t>(pixels))
      .spec(static_cast<uint64_t>(shares ? row.kernel : 0))
      .spec(static_cast<uint64_t>(shares ? row.stride : 0))
      .spec(0);
  epilogue.specialize(step);
  step.push(count).push(tiles_w).push(sides.out_extent[0]).push(sides.out_extent[1]);
  step.push(sides.in_extent[0]).push(sides.in_extent[1]).push(channels / 4);
  push_axis_pairs(step, sides);
  step.push(epilogue.alpha).push(epilogue.beta);
  step.matrix(0, operands.x, texel).matrix(1, weight, texel).write(2, operands.y);
  epilogue.bind(step);
}

void push_sides(Step& step, const ConvSides& sides, int64_t count) {
  step.push(count).push(sides.in_channels).push(sides.out_channels).push(sides.groups);
  for (int64_t extent : sides.in_extent) step.push(extent);
  for (int64_t extent : sides.out_extent) step.push(extent);
  for (const WindowAxis& axis : sides.axes) step.push(axis.kernel);
  for (const WindowAxis& axis : sides.axes) step.push(axis.stride);
  for (const WindowAxis& axis : sides.axes) step.push(axis.pad_begin);
  for (const WindowAxis& axis : sides.axes) step.push(axis.dilation);
}

void add_direct_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                     const ConvOperands& operands, const EpiloguePlan& epilogue) {
  const int64_t count = sides.out_pixels() * sides.out_channels;
  Step& step = program.dispatch_each(sides.transposed ? Shader::conv_direct_transposed : Shader::conv_direct,
                                     count, device.plan().elementwise_lanes);
  step.spec(0).spec(0).spec(0).spec(0);
  epilogue.specialize(step);
  push_sides(step, sides, count);
  step.push(epilogue.alpha).push(epilogue.beta);
  step.read(0, operands.x).read(1, operands.weight).write(2, operands.y);
  epilogue.bind(step);
}

}  // namespace rt::vulkan
