#include "backends/vulkan/steps/winograd.h"

#include <algorithm>
#include <functional>

#include "backends/vulkan/self_tests/self_test.h"
#include "backends/vulkan/steps/gemm.h"

namespace librt::vulkan {
namespace {

constexpr int64_t kTile = 4, kPoints = 36;

int64_t tiles_of(const ConvSides& sides, size_t axis) {
  return ceil_div(sides.out_extent[axis], kTile);
}
int64_t tiles_of(const ConvSides& sides) {
  return sides.batch * tiles_of(sides, 0) * tiles_of(sides, 1);
}

/// G g G' of the windows [O,3,3,C]: [36,C,O].
void transform_weights(const ConvSides& sides, const float* weight, float* points) {
  constexpr double kFactors[6][3] = {{0.25, 0, 0},
                                     {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                     {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                     {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                     {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                     {0, 0, 1}};
  const int64_t inputs = sides.in_channels, outputs = sides.out_channels;
  for (int64_t c = 0; c < inputs; ++c)
    for (int64_t o = 0; o < outputs; ++o) {
      const float* const window = weight + o * 9 * inputs + c;
      double half_way[6][3] = {};
      for (int64_t p = 0; p < 6; ++p)
        for (int64_t w = 0; w < 3; ++w)
          for (int64_t h = 0; h < 3; ++h)
            half_way[p][w] += kFactors[p][h] * static_cast<double>(window[(h * 3 + w) * inputs]);
      for (int64_t p = 0; p < 6; ++p)
        for (int64_t q = 0; q < 6; ++q) {
          double sum = 0;
          for (int64_t w = 0; w < 3; ++w) sum += kFactors[q][w] * half_way[p][w];
          points[((p * 6 + q) * inputs + c) * outputs + o] = static_cast<float>(sum);
        }
    }
}

Step& add_tiles(Program& program, const VulkanDevice& device, const ConvSides& sides, Shader shader,
                std::span<const int64_t> extent, int64_t channels, bool texel) {
  const int64_t width = texel ? channels / 4 : channels, count = tiles_of(sides) * width;
  Step& step = program.dispatch_each(shader, count, device.plan().texel_loads ? 64 : 128);
  step.push(count).push(tiles_of(sides, 0)).push(tiles_of(sides, 1));
  step.push(extent[0]).push(extent[1]).push(width);
  return step;
}

/// Shaders that read through texel buffers, vec4s of channels each, or single channels.
Shader patches_shader(bool texel) {
  return texel ? Shader::winograd_patches_texel : Shader::winograd_patches_buffer;
}
Shader results_shader(bool texel) {
  return texel ? Shader::winograd_results_texel : Shader::winograd_results_buffer;
}

/// patches: [36,tiles,C] of x.
void add_patches(Program& program, const VulkanDevice& device, const ConvSides& sides, const Ref& x,
                 const Ref& patches, bool texel) {
  add_tiles(program, device, sides, patches_shader(texel), sides.in_extent, sides.in_channels, texel)
      .push(sides.axes[0].pad_begin)
      .push(sides.axes[1].pad_begin)
      .matrix(0, x, texel)
      .write(1, patches);
}

/// points: [36,tiles,O], of the results y.
void add_results(Program& program, const VulkanDevice& device, const ConvSides& sides, const Ref& points,
                 const Ref& y, const EpiloguePlan& epilogue, bool texel) {
  Step& step =
      add_tiles(program, device, sides, results_shader(texel), sides.out_extent, sides.out_channels, texel);
  for (int i = 0; i < 4; ++i) step.spec(0);
  epilogue.specialize(step);
  step.push(epilogue.activation.alpha).push(epilogue.activation.beta);
  step.matrix(0, points, texel).write(2, y);
  epilogue.bind(step);
}

/// factors x factors' of each 6x6 points of x, `at` (row, column): element (p, q) of the product.
template <size_t kRows>
float both_ways(const double (&factors)[kRows][6], size_t p, size_t q,
                const std::function<double(size_t, size_t)>& at) {
  double sum = 0;
  for (size_t h = 0; h < 6; ++h)
    for (size_t w = 0; w < 6; ++w) sum += factors[p][h] * factors[q][w] * at(h, w);
  return static_cast<float>(sum);
}

/// Two images of which the tiles reach beyond the end.
ConvSides sides_of_test() {
  ConvSides sides;
  sides.batch = 2;
  sides.in_channels = 8;
  sides.out_channels = 12;
  for (size_t i = 0; i < 2; ++i) sides.axes[i].pad_begin = 1;
  sides.in_extent = sides.out_extent = {9, 6, 1};
  return sides;
}

SelfTest patches_test(const VulkanDevice& device, bool texel) {
  constexpr double kFactors[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                     {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  const ConvSides sides = sides_of_test();
  const int64_t channels = sides.in_channels, height = sides.in_extent[0], width = sides.in_extent[1];
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  test.inputs = {small_integers(sides.batch * height * width * channels, 1)};
  for (size_t point = 0; point < kPoints; ++point)
    for (int64_t i = 0; i < tiles_of(sides) * channels; ++i) {
      const int64_t tile = i / channels, row = tile / tiles_of(sides, 1);
      const int64_t left = tile % tiles_of(sides, 1) * kTile - 1, top = row % tiles_of(sides, 0) * kTile - 1;
      const auto at = [&](size_t h, size_t w) {
        const int64_t y = top + static_cast<int64_t>(h), x = left + static_cast<int64_t>(w);
        if (y < 0 || y >= height || x < 0 || x >= width) return 0.0;
        const int64_t pixel = (row / tiles_of(sides, 0) * height + y) * width + x;
        return static_cast<double>(test.inputs[0][static_cast<size_t>(pixel * channels + i % channels)]);
      };
      test.expected.push_back(both_ways(kFactors, point / 6, point % 6, at));
    }
  add_patches(*test.program, device, sides, in(0), out(0), texel);
  return test;
}

SelfTest results_test(const VulkanDevice& device, bool texel) {
  constexpr double kFactors[4][6] = {
      {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
  const ConvSides sides = sides_of_test();
  const int64_t channels = sides.out_channels, count = tiles_of(sides) * channels;
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  test.inputs = {small_integers(kPoints * count, 1)};
  for (int64_t i = 0; i < sides.out_pixels() * channels; ++i) {
    const int64_t pixel = i / channels, column = pixel % sides.out_extent[1],
                  row = pixel / sides.out_extent[1] % sides.out_extent[0],
                  image = pixel / sides.out_extent[1] / sides.out_extent[0];
    const int64_t tile = (image * tiles_of(sides, 0) + row / kTile) * tiles_of(sides, 1) + column / kTile;
    const auto at = [&](size_t h, size_t w) {
      const auto point = static_cast<int64_t>(h * 6 + w);
      return static_cast<double>(
          test.inputs[0][static_cast<size_t>(point * count + tile * channels + i % channels)]);
    };
    test.expected.push_back(
        both_ways(kFactors, static_cast<size_t>(row % kTile), static_cast<size_t>(column % kTile), at));
  }
  add_results(*test.program, device, sides, in(0), out(0), {}, texel);
  return test;
}

bool loads_texels(const VulkanDevice& device, const ConvSides& sides) {
  const int64_t in_pixels = sides.batch * sides.in_extent[0] * sides.in_extent[1];
  const int64_t most =
      std::max(in_pixels * sides.in_channels, kPoints * tiles_of(sides) * sides.out_channels);
  return through_texels(device, static_cast<uint64_t>(most) * sizeof(float));
}

}  // namespace

Status winograd_supports(const VulkanDevice& device, const ConvSides& sides) {
  bool fits = !sides.transposed && sides.groups == 1 && sides.in_extent[2] == 1 && sides.out_extent[2] == 1 &&
              sides.axes[2].kernel == 1;
  for (size_t i = 0; i < 2; ++i) {
    const WindowAxis& axis = sides.axes[i];
    fits = fits && axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
  }
  if (!fits) return unsupported("Winograd needs two spatial axes, one group, and 3x3 windows with stride 1");
  const int64_t inputs = sides.in_channels, outputs = sides.out_channels, tiles = tiles_of(sides);
  if (inputs % 4 != 0 || outputs % 4 != 0)
    return unsupported("channels must be multiples of 4, not ", inputs, " and ", outputs);
  // A direct convolution multiplies four times as often, and Winograd's moves 4.5 times the bytes of inputs
  // and results, and four times those of weights: with few channels or tiles that takes longer. On lavapipe,
  // one thread: 64 channels at 56x56 1.3 times as fast as the direct one, 128 at 28x28 1.7, 256 at 40x40 2.3,
  // 32 to 256 at 40x40 as fast. GPUs have fewer bytes for each multiplication.
  const bool software = device.plan().texel_loads;
  const int64_t least = software ? 28 : 64, least_tiles = software ? 12 : 32;
  if (inputs * outputs < least * (inputs + outputs) || tiles < least_tiles)
    return unsupported("Winograd is not faster for ", inputs, " to ", outputs, " channels and ", tiles,
                       " tiles of 4x4 results");
  const auto bytes =
      static_cast<uint64_t>(kPoints * std::max({tiles * inputs, tiles * outputs, inputs * outputs})) *
      sizeof(float);
  if (bytes > device.plan().max_binding_bytes)
    return unsupported("points of ", bytes_text(bytes), ", the device binds at most ",
                       bytes_text(device.plan().max_binding_bytes), " at once");
  return {};
}

void add_winograd_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                       const ConvOperands& operands, const EpiloguePlan& epilogue) {
  const auto trusted = [&](bool texel) -> Status {
    SelfTests& tests = device.self_tests();
    RT_TRY(tests.trusted(patches_shader(texel), {}, [&] { return patches_test(device, texel); }));
    return tests.trusted(results_shader(texel), {}, [&] { return results_test(device, texel); });
  };
  bool texel = loads_texels(device, sides);
  Status status = trusted(texel);
  if (!status.ok() && texel) status = trusted(texel = false);
  if (!status.ok()) return program.decline(std::move(status));
  const int64_t tiles = tiles_of(sides), inputs = sides.in_channels, outputs = sides.out_channels;
  const auto bytes = [](int64_t elements) { return static_cast<uint64_t>(elements) * sizeof(float); };
  const Ref weights = program.packed(
      bytes(kPoints * inputs * outputs),
      [=, weight = static_cast<const float*>(operands.constant_weight)](std::span<std::byte> to) {
        transform_weights(sides, weight, reinterpret_cast<float*>(to.data()));
      });
  const Ref patches = program.scratch(bytes(kPoints * tiles * inputs)),
            points = program.scratch(bytes(kPoints * tiles * outputs));
  add_patches(program, device, sides, operands.x, patches, texel);
  TiledGemm gemm{.m = tiles, .n = outputs, .k = inputs};
  gemm.a = {.ref = patches, .row_stride = inputs / 4, .batch_strides = {0, tiles * inputs / 4}};
  gemm.b = {.ref = weights, .row_stride = outputs / 4, .batch_strides = {0, inputs * outputs / 4}};
  gemm.batch = {1, kPoints};
  add_gemm(program, device, gemm, points);
  add_results(program, device, sides, points, operands.y, epilogue, texel);
}

}  // namespace librt::vulkan
