#include "backends/vulkan/steps/conv.h"

#include <algorithm>

#include "backends/vulkan/self_tests/self_test.h"
#include "backends/vulkan/steps/gemm.h"

namespace librt::vulkan {
namespace {

bool every_tap_inside(const ConvSides& sides) {
  if (sides.transposed) return false;
  return std::ranges::all_of(sides.axes, [](const WindowAxis& axis) {
    return axis.pad_begin <= 0 && axis.position(axis.output - 1, axis.kernel - 1) < axis.input;
  });
}

/// Rows of `channels` elements, padded to whole vec4s.
Ref padded_rows(Program& program, const VulkanDevice& device, const Ref& source, int64_t rows,
                int64_t channels, DType dtype, const void* constant) {
  if (channels % 4 == 0) return source;
  return padded_copy(program, device, source,
                     {.extents = {rows, channels},
                      .strides = {channels, 1},
                      .padded_extents = {rows, round_up4(channels)},
                      .element = size_of(dtype)},
                     constant);
}

/// The shader's types: of x, weight and bias, of the result, of the residual.
void specialize_types(Step& step, DType dtype, DType stored) {
  step.spec(element_of(dtype)).spec(element_of(stored)).spec(element_of(dtype));
}

/// With few input channels each tap has little work: where the taps of a row are contiguous, a kernel row
/// becomes one tap with kernel width * channels, over an explicitly padded image.
bool folds_rows(const ConvSides& sides) {
  return !sides.transposed && sides.groups == 1 && sides.in_channels <= 4 && sides.axes[1].kernel > 1 &&
         sides.axes[1].dilation == 1 && sides.out_pixels() > 0;
}

/// The geometry that the shader then sees.
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

/// load: the fastest kind allowed.
ConvTile choose_tile(const DevicePlan& plan, int64_t pixels, int64_t channels, Load load) {
  ConvTile tile{pixels < 8 ? 1 : 8, 8, plan.tile_lanes, plan.texel_loads ? 1 : 8,
                load == Load::Buffer ? load : Load::Texel};
  if (load == Load::Subgroup && plan.subgroup_tiles && pixels >= 4 * tile.lanes) {
    // Lanes share the weights, so that wide tiles cost few loads; seven rows if that leaves fewer pixels
    // over.
    tile.load = Load::Subgroup;
    if (channels > 8) tile.columns = 16;
    const auto computed = [&](int64_t rows) { return ceil_div(pixels, rows * tile.lanes) * rows; };
    if (8 * computed(7) <= 7 * computed(8)) tile.rows = 7;
    return tile;
  }
  // Lanes along pixels if there are enough, the rest along channels.
  while (tile.lanes_n < tile.lanes && tile.lanes_n * tile.columns < channels &&
         (tile.lanes / tile.lanes_n - 1) * tile.rows >= pixels)
    tile.lanes_n *= 2;
  return tile;
}

Shader shader_of(const ConvSides& sides, Load load) {
  constexpr Shader kShaders[2][3] = {
      {Shader::conv_buffer, Shader::conv_texel, Shader::conv_subgroup},
      {Shader::conv_transposed_buffer, Shader::conv_transposed_texel, Shader::conv_transposed_subgroup}};
  return kShaders[sides.transposed][static_cast<size_t>(load)];
}

/// The shader's kForm.
uint32_t form_of(const ConvSides& sides) {
  return (every_tap_inside(sides) ? 1u : 0u) + (sides.group_out() % 4 == 0 ? 2u : 0u);
}

/// Pixels as the shader counts them; if transposed, those of each phase of the stride are padded to equal
/// counts.
int64_t counted_pixels(const ConvSides& sides) {
  int64_t pixels = sides.out_pixels();
  if (sides.transposed)
    for (size_t i = 0; i < 2; ++i)
      pixels = pixels / std::max<int64_t>(sides.out_extent[i], 1) *
               ceil_div(sides.out_extent[i], sides.axes[i].stride) * sides.axes[i].stride;
  return pixels;
}

/// x and weight as the shader reads them: rows of whole vec4s, `group_in` input channels per tap.
/// stored: the result's type; only f32 if not stored in fours.
void add_tiles(Program& program, const ConvSides& sides, const ConvOperands& operands, int64_t group_in,
               const EpiloguePlan& epilogue, const ConvTile& tile, DType stored) {
  const int64_t pixels = counted_pixels(sides);
  const int64_t row_tiles = ceil_div(pixels, tile.rows * (tile.lanes / tile.lanes_n));
  const int64_t column_groups = ceil_div(sides.group_out(), tile.columns * tile.lanes_n);
  Step& step = program.dispatch(shader_of(sides, tile.load),
                                static_cast<uint64_t>(row_tiles * column_groups * sides.groups),
                                static_cast<uint32_t>(tile.lanes));
  step.loops(sides.taps() * (group_in / 4 + 1));
  step.spec(static_cast<uint64_t>(tile.rows))
      .spec(static_cast<uint64_t>(tile.columns))
      .spec(static_cast<uint64_t>(tile.lanes_n))
      .spec(form_of(sides));
  epilogue.specialize(step);
  specialize_types(step, operands.dtype, stored);
  // The shader's out_c is also the stride of the output's pixels; padded columns of the weight are never
  // stored.
  step.push(pixels)
      .push(sides.out_extent[0])
      .push(sides.out_extent[1])
      .push(sides.in_extent[0])
      .push(sides.in_extent[1]);
  step.push(round_up4(sides.in_channels) / 4)
      .push(group_in / 4)
      .push(sides.group_out())
      .push(sides.out_channels);
  push_axis_pairs(step, sides);
  step.push(row_tiles).push(column_groups).push(epilogue.activation.alpha).push(epilogue.activation.beta);
  const bool texel = tile.load != Load::Buffer;
  const size_t element = size_of(operands.dtype);
  step.matrix(0, operands.x, texel, element).matrix(1, operands.weight, texel, element).write(2, operands.y);
  epilogue.bind(step);
}

/// The reference result for small_integers(): a scalar loop over each window's taps.
std::vector<float> host_conv(const ConvSides& sides, const std::vector<float>& x,
                             const std::vector<float>& weight, int64_t weight_columns) {
  const auto& [h, w, d] = sides.axes;
  std::vector<float> y(static_cast<size_t>(sides.out_pixels() * sides.out_channels));
  for (int64_t oh = 0; oh < h.output; ++oh)
    for (int64_t ow = 0; ow < w.output; ++ow)
      for (int64_t tap = 0; tap < sides.taps(); ++tap) {
        const int64_t ih = h.position(oh, tap / w.kernel), iw = w.position(ow, tap % w.kernel);
        if (ih < 0 || ih >= h.input || iw < 0 || iw >= w.input) continue;
        const int64_t window = oh * w.output + ow, position = ih * w.input + iw;
        const int64_t from = sides.transposed ? window : position, to = sides.transposed ? position : window;
        for (int64_t o = 0; o < sides.out_channels; ++o)
          for (int64_t c = 0; c < sides.in_channels; ++c) {
            const int64_t at = sides.transposed ? (c * sides.taps() + tap) * weight_columns + o
                                                : (o * sides.taps() + tap) * weight_columns + c;
            y[static_cast<size_t>(to * sides.out_channels + o)] +=
                x[static_cast<size_t>(from * sides.in_channels + c)] * weight[static_cast<size_t>(at)];
          }
      }
  return y;
}

/// A 3x3 convolution of at least `windows` windows, of stride 2 if transposed.
ConvSides sides_of_test(bool transposed, bool padded, int64_t windows, int64_t in_channels,
                        int64_t out_channels) {
  ConvSides sides;
  sides.transposed = transposed;
  sides.batch = 1;
  sides.in_channels = in_channels;
  sides.out_channels = out_channels;
  for (size_t i = 0; i < 2; ++i) {
    WindowAxis& axis = sides.axes[i];
    axis.kernel = 3;
    axis.stride = transposed ? 2 : 1;
    axis.output = i == 1 ? 7 : ceil_div(windows, 7);
    axis.pad_begin = padded ? 1 : 0;
    axis.input = axis.position(axis.output - 1, axis.kernel - 1) + 1 - axis.pad_begin;
    sides.in_extent[i] = transposed ? axis.output : axis.input;
    sides.out_extent[i] = transposed ? axis.input : axis.output;
  }
  sides.in_extent[2] = sides.out_extent[2] = 1;
  return sides;
}

/// Operands and expected results of such a convolution, without its steps.
SelfTest test_of(const ConvSides& sides, DType dtype) {
  const int64_t in_pixels = sides.in_extent[0] * sides.in_extent[1];
  const int64_t columns = round_up4(sides.transposed ? sides.out_channels : sides.in_channels);
  const int64_t rows = sides.taps() * (sides.transposed ? sides.in_channels : sides.out_channels);
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  test.inputs = {small_integers(in_pixels * sides.in_channels, 1), small_integers(rows * columns, 2)};
  test.expected = host_conv(sides, test.inputs[0], test.inputs[1], columns);
  for (auto& input : test.inputs) input = stored_as(dtype, input);
  return test;
}

/// With a full tile and partial ones.
SelfTest conv_test(const ConvSides& like, DType dtype, const ConvTile& tile) {
  const uint32_t form = form_of(like);
  const ConvSides sides =
      sides_of_test(like.transposed, (form & 1) == 0, tile.rows * (tile.lanes / tile.lanes_n) + 1, 8,
                    tile.columns * tile.lanes_n + (form & 2 ? 4 : 3));
  SelfTest test = test_of(sides, dtype);
  const ConvOperands operands{.x = in(0), .weight = in(1), .y = out(0), .dtype = dtype};
  add_tiles(*test.program, sides, operands, sides.in_channels, {}, tile, DType::F32);
  return test;
}

// --- with cooperative matrices

/// stored: the result's type.
void add_matrices(Program& program, const MatrixPlan& plan, const ConvSides& sides,
                  const ConvOperands& operands, const EpiloguePlan& epilogue, DType stored) {
  const uint32_t subgroups_m = plan.subgroups / plan.subgroups_n;
  const int64_t row_tiles = ceil_div(sides.out_pixels(), plan.rows * subgroups_m);
  const int64_t column_groups = ceil_div(sides.out_channels, plan.columns * plan.subgroups_n);
  Step& step = program.dispatch(Shader::gemm_matrices_conv, static_cast<uint64_t>(row_tiles * column_groups),
                                plan.lanes);
  step.spec(plan.rows).spec(plan.columns).spec(plan.subgroups_n).spec(1);
  epilogue.specialize(step);
  specialize_types(step, operands.dtype, stored);
  step.spec(plan.m).spec(plan.n).spec(plan.k).spec(subgroups_m).spec(plan.step).spec(false).spec(true);
  step.push(sides.out_pixels()).push(sides.out_channels).push(sides.taps() * sides.in_channels);
  step.push(sides.in_channels / 4);
  step.push(sides.out_extent[0]).push(sides.out_extent[1]).push(sides.in_extent[0]).push(sides.in_extent[1]);
  push_axis_pairs(step, sides);
  step.push(row_tiles).push(column_groups).push(epilogue.activation.alpha).push(epilogue.activation.beta);
  const size_t element = size_of(operands.dtype);
  step.matrix(0, operands.x, false, element).matrix(1, operands.weight, false, element).write(2, operands.y);
  epilogue.bind(step);
}

/// With a full tile and partial ones, and steps of k that end within a tap.
SelfTest matrix_conv_test(const MatrixPlan& plan, DType dtype) {
  const ConvSides sides = sides_of_test(false, true, plan.rows * (plan.subgroups / plan.subgroups_n) + 1, 12,
                                        plan.columns * plan.subgroups_n + 4);
  SelfTest test = test_of(sides, dtype);
  const ConvOperands operands{.x = in(0), .weight = in(1), .y = out(0), .dtype = dtype};
  add_matrices(*test.program, plan, sides, operands, {}, DType::F32);
  return test;
}

}  // namespace

bool ConvSides::pointwise() const {
  return taps() == 1 && in_extent == out_extent && std::ranges::all_of(axes, [](const WindowAxis& axis) {
           return axis.stride == 1 && axis.pad_begin == 0;
         });
}

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
                       " output channels, expected multiples of 4");
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
  const size_t element = size_of(operands.dtype);
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
                           .before = {0, given.axes[0].pad_begin, given.axes[1].pad_begin, 0},
                           .element = element},
                          nullptr)
            : padded_rows(program, device, operands.x, in_pixels, sides.in_channels, operands.dtype, nullptr);
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
                            .padded_extents = {in_c, sides.taps(), columns},
                            .element = element},
                           operands.constant_weight);
  } else {
    weight = padded_rows(program, device, operands.weight, given.out_channels * given.taps(),
                         given.group_in(), operands.dtype, operands.constant_weight);
    weight_elements = sides.out_channels * sides.taps() * group_in;
  }
  const auto most = static_cast<uint64_t>(std::max(in_pixels * in_c, weight_elements));
  const bool texel = through_texels(device, most * element, element);
  // Results that are not stored in fours are rounded by a separate step.
  const bool wide = operands.dtype != DType::F32 && sides.group_out() % 4 != 0;
  const int64_t results = sides.out_pixels() * sides.out_channels;
  ConvOperands prepared{.x = x, .weight = weight, .y = operands.y, .dtype = operands.dtype};
  if (wide) {
    const uint64_t bytes = static_cast<uint64_t>(results) * sizeof(float);
    if (bytes > device.plan().max_binding_bytes)
      return program.decline(unsupported("a result of ", bytes_text(bytes),
                                         " before it is rounded, the device binds at most ",
                                         bytes_text(device.plan().max_binding_bytes), " at once"));
    prepared.y = program.scratch(bytes);
  }
  const DType stored = wide ? DType::F32 : operands.dtype;

  std::string reasons;
  for (const Load load : {Load::Subgroup, Load::Texel, Load::Buffer}) {
    if (!texel && load != Load::Buffer) continue;
    const ConvTile tile = choose_tile(device.plan(), counted_pixels(sides), sides.group_out(), load);
    const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
    const Status trusted =
        device.self_tests().trusted(shader_of(sides, tile.load),
                                    {word(tile.lanes), word(tile.rows), word(tile.columns),
                                     word(tile.lanes_n), form_of(sides), element_of(operands.dtype)},
                                    [&] { return conv_test(sides, operands.dtype, tile); });
    if (trusted.ok()) {
      add_tiles(program, sides, prepared, group_in, epilogue, tile, stored);
      if (wide) add_narrowing(program, device, results, prepared.y, operands.y, operands.dtype);
      return;
    }
    append(reasons, reasons.empty() ? "" : "; ", trusted.message());
  }
  program.decline(Status(Code::Unsupported, reasons));
}

Status matrix_conv_supports(const VulkanDevice& device, const ConvSides& sides, DType dtype) {
  RT_TRY(tiled_conv_supports(sides));
  RT_TRY(matrices_support(device, dtype, sides.out_pixels(), sides.out_channels));
  if (sides.transposed || sides.groups != 1 || (sides.in_channels | sides.out_channels) % 4 != 0)
    return unsupported("expected one group and channels that are multiples of 4");
  const MatrixPlan& plan = device.plan().half_matrices;
  if (plan.lanes % (plan.step / 4) != 0)
    return unsupported("workgroups of ", plan.lanes, " lanes, expected a multiple of the row length of ",
                       plan.step / 4, " vec4s");
  return {};
}

void add_matrix_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                     const ConvOperands& operands, const EpiloguePlan& epilogue) {
  const MatrixPlan& plan = device.plan().half_matrices;
  const Status trusted = device.self_tests().trusted(
      Shader::gemm_matrices_conv,
      {plan.lanes, plan.rows, plan.columns, plan.subgroups_n, plan.m, plan.n, plan.k, plan.step},
      [&] { return matrix_conv_test(plan, operands.dtype); });
  if (!trusted.ok()) return program.decline(trusted);
  add_matrices(program, plan, sides, operands, epilogue, operands.dtype);
}

DepthwiseTile::DepthwiseTile(const ConvSides& sides, int64_t channels) : width(channels) {
  const WindowAxis& row = sides.axes[1];
  // Neighbours share their taps where these are contiguous; seven divides the extents of most networks.
  const bool shares = row.dilation == 1 && row.kernel <= 7 && row.stride <= 2;
  pixels = shares && sides.out_extent[1] > 4 ? 7 : 4;
  taps = shares ? row.kernel : 0;
  stride = shares ? row.stride : 0;
  tiles_w = ceil_div(sides.out_extent[1], pixels);
  count = sides.batch * sides.out_extent[0] * tiles_w * (sides.in_channels / width);
}

void DepthwiseTile::push(Step& step, const ConvSides& sides) const {
  step.push(count).push(tiles_w).push(sides.out_extent[0]).push(sides.out_extent[1]);
  step.push(sides.in_extent[0]).push(sides.in_extent[1]).push(sides.in_channels / width);
  push_axis_pairs(step, sides);
}

void add_depthwise_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                        const ConvOperands& operands, const EpiloguePlan& epilogue) {
  const int64_t channels = sides.in_channels;
  // [C,taps] becomes [taps,C].
  const Ref weight = padded_copy(program, device, operands.weight,
                                 {.extents = {sides.taps(), channels},
                                  .strides = {1, sides.taps()},
                                  .padded_extents = {sides.taps(), channels},
                                  .element = size_of(operands.dtype)},
                                 operands.constant_weight);
  const size_t element = size_of(operands.dtype);
  const auto bytes =
      static_cast<uint64_t>(sides.batch * sides.in_extent[0] * sides.in_extent[1] * channels) * element;
  const bool texel = through_texels(device, bytes, element);
  const DepthwiseTile tile(sides, 4);
  Step& step =
      program.dispatch_each(texel ? Shader::depthwise_texel : Shader::depthwise_buffer, tile.count, 64);
  step.spec(static_cast<uint64_t>(tile.pixels))
      .spec(static_cast<uint64_t>(tile.taps))
      .spec(static_cast<uint64_t>(tile.stride))
      .spec(0);
  epilogue.specialize(step);
  specialize_types(step, operands.dtype, operands.dtype);
  tile.push(step, sides);
  step.push(epilogue.activation.alpha).push(epilogue.activation.beta);
  step.matrix(0, operands.x, texel, element).matrix(1, weight, texel, element).write(2, operands.y);
  epilogue.bind(step);
}

void push_axis_pairs(Step& step, const ConvSides& sides) {
  const auto& [h, w, d] = sides.axes;
  step.push(h.kernel).push(w.kernel).push(h.stride).push(w.stride);
  step.push(h.pad_begin).push(w.pad_begin).push(h.dilation).push(w.dilation);
}

void push_sides(Step& step, const ConvSides& sides) {
  step.push(sides.in_channels).push(sides.out_channels).push(sides.groups);
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
  step.push(count);
  push_sides(step, sides);
  step.push(epilogue.activation.alpha).push(epilogue.activation.beta);
  step.read(0, operands.x).read(1, operands.weight).write(2, operands.y);
  epilogue.bind(step);
}

}  // namespace librt::vulkan
