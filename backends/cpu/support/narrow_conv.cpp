#include "backends/cpu/support/narrow_conv.h"

#include <algorithm>

#include "backends/cpu/simd/narrow_conv.h"
#include "backends/cpu/support/conv_shape.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

/// Lines of a window, whose addresses are on the stack.
constexpr int64_t kMostLines = 256;
/// Multiply-adds that take as long as the sum of a vector's lanes and its store.
constexpr int64_t kSumOfLanes = 8;
/// Elements of the result that get their epilogue at a time, from L1.
constexpr int64_t kFinished = 2048;

/// What both have in common: a result of rows along the last axis, whose points are computed in stretches.
struct Narrow {
  const NarrowConvLoops* loops;
  ConvGeometry g;
  Finish finish;
  EpilogueInputs inputs;

  const WindowAxis& last() const noexcept { return g.axes[static_cast<size_t>(g.rank - 1)]; }
  /// Rows of one side, and taps, along the axes before the last one.
  int64_t rows(int64_t WindowAxis::*extent) const noexcept {
    return g.batch * points_of(g, extent, g.rank - 1);
  }
  int64_t lines() const noexcept { return points_of(g, &WindowAxis::kernel, g.rank - 1); }

  /// compute(row, first point in it, points, their results) writes `outputs` elements for each point of
  /// `rows` rows of `width`, of `work` multiply-adds each; they get their epilogue while they are in L1.
  template <class Compute>
  void run_stretches(const Call& call, int64_t rows, int64_t width, int64_t outputs, int64_t work,
                     const Compute& compute) const noexcept {
    const auto operand = [&](int i) { return i >= 0 ? call.in<float>(static_cast<size_t>(i)) : nullptr; };
    float* const y = call.out<float>();
    const int64_t most = std::max<int64_t>(1, kFinished / outputs);
    parallel_for(rows * width, work, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t point = begin; point < end;) {
        const int64_t at = point % width, count = std::min({end - point, width - at, most});
        compute(point / width, at, count, y + point * outputs);
        finish.run_part(y, operand(inputs.bias), operand(inputs.residual), point * outputs,
                        (point + count) * outputs);
        point += count;
      }
    });
  }
};

struct NarrowConv : Narrow {
  /// The lines of the windows of a row of the result that lie inside of the image: x at position 0 of the
  /// last axis, and the weights of its first tap. Returns their number.
  int64_t lines_of(int64_t row, const float* image, const float* weight, NarrowLine* lines) const noexcept {
    const int64_t channels = g.input_channels, taps = last().kernel, all = this->lines();
    int64_t found = 0;
    for (int64_t line = 0; line < all; ++line) {
      int64_t place = row, tap = line, index = 0, stride = 1;
      bool inside = true;
      for (int i = g.rank - 1; i-- > 0;) {
        const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
        const int64_t at = axis.position(place % axis.output, tap % axis.kernel);
        inside = inside && at >= 0 && at < axis.input;
        index += at * stride;
        stride *= axis.input;
        place /= axis.output;
        tap /= axis.kernel;
      }
      if (inside)
        lines[found++] = {image + (place * stride + index) * last().input * channels,
                          weight + line * taps * channels};
    }
    return found;
  }

  /// `points` points of one row of the result, from `begin` on.
  void run_row(const float* image, const float* weight, int64_t row, int64_t begin, int64_t points,
               float* y) const noexcept {
    const WindowAxis& axis = last();
    const int64_t channels = g.input_channels, stride = lines() * axis.kernel * channels,
                  end = begin + points;
    NarrowLine whole[kMostLines], part[kMostLines];
    const int64_t count = lines_of(row, image, weight, whole);
    // The points whose windows lie inside along the last axis.
    const int64_t first = std::clamp((axis.pad_begin + axis.stride - 1) / axis.stride, begin, end);
    const int64_t reach = axis.input + axis.pad_begin - axis.kernel;
    const int64_t after = std::clamp(reach < 0 ? 0 : reach / axis.stride + 1, first, end);
    const auto run = [&](int64_t point, int64_t some) noexcept {
      const int64_t start = axis.position(point, 0), from = std::max(-start, int64_t{0}),
                    to = std::max(from, std::min(axis.input - start, axis.kernel));
      for (int64_t i = 0; i < count; ++i)
        part[i] = {whole[i].x + (start + from) * channels, whole[i].weight + from * channels};
      loops->convolve(part, count, (to - from) * channels, axis.stride * channels, some, g.output_channels,
                      stride, y + (point - begin) * g.output_channels);
    };
    for (int64_t point = begin; point < first; ++point) run(point, 1);
    if (after > first) run(first, after - first);
    for (int64_t point = after; point < end; ++point) run(point, 1);
  }

  void run(const Call& call) const noexcept {
    const float *const image = call.in<float>(0), *const weight = call.in<float>(1);
    run_stretches(call, rows(&WindowAxis::output), last().output, g.output_channels,
                  lines() * last().kernel * g.input_channels * g.output_channels,
                  [&](int64_t row, int64_t begin, int64_t points, float* y) noexcept {
                    run_row(image, weight, row, begin, points, y);
                  });
  }
};

/// y [N,S k..,O] from x [N,S..,C], windows k.. side by side: of a row of x and a tap along the axes before
/// the last, y has a row of k O floats for each point, each the dot product with a row of weights.
struct NarrowUpsampling : Narrow {  // the input of g is y
  int64_t outputs() const noexcept { return last().kernel * g.input_channels; }
  int64_t channels() const noexcept { return g.output_channels; }

  /// [C, taps, k O] becomes [taps, k O, C].
  void pack(const float* weight, float* to) const noexcept {
    const int64_t columns = g.weight_shape().elements() / channels();
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t c = 0; c < channels(); ++c) *to++ = weight[c * columns + column];
  }

  void run_row(const float* x, const float* weight, int64_t row, int64_t begin, int64_t points,
               float* y) const noexcept {
    int64_t from = 0, tap = 0, stride = 1, tap_stride = 1;
    for (int i = g.rank - 1; i-- > 0;) {
      const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
      const int64_t position = row % axis.input;
      from += position / axis.kernel * stride;
      tap += position % axis.kernel * tap_stride;
      stride *= axis.output;
      tap_stride *= axis.kernel;
      row /= axis.input;
    }
    from += row * stride;
    const NarrowLine line{x + (from * last().output + begin) * channels(),
                          weight + tap * outputs() * channels()};
    loops->convolve(&line, 1, channels(), channels(), points, outputs(), channels(), y);
  }

  void run(const Call& call, const float* weight) const noexcept {
    const float* const x = call.in<float>(0);
    run_stretches(call, rows(&WindowAxis::input), last().output, outputs(), channels() * outputs(),
                  [&](int64_t row, int64_t begin, int64_t points, float* y) noexcept {
                    run_row(x, weight, row, begin, points, y);
                  });
  }
};

Status supports_conv(const NarrowConvLoops& loops, const ConvGeometry& g) {
  if (g.groups != 1 || g.output_channels > loops.most_outputs)
    return unsupported("not for ", g.output_channels, " output channels in ", g.groups, " groups");
  const WindowAxis& axis = g.axes[static_cast<size_t>(g.rank - 1)];
  if (axis.dilation != 1 && axis.kernel != 1) return unsupported("no dilation along the last axis");
  const int64_t lines = points_of(g, &WindowAxis::kernel, g.rank - 1);
  if (lines > kMostLines) return unsupported("windows of more than ", kMostLines, " lines");
  // Multiply-adds of vectors for a point: of lines, whose last vector may be mostly empty, and what the sum
  // of the lanes costs, against those of vectors along the channels of the result. From 1.4 times as many on,
  // it was faster than oneDNN, by up to 8 (one thread, 28 shapes; AVX-512). oneDNN has no fast loop for long
  // windows of one channel along one axis.
  const int64_t lanes = loops.lanes, length = axis.kernel * g.input_channels;
  const int64_t along_windows = g.output_channels * (lines * ((length + lanes - 1) / lanes) + kSumOfLanes),
                along_channels = lines * length * ((g.output_channels + lanes - 1) / lanes);
  if (length < lanes && lanes < 16) return unsupported("lines of less than a vector");  // loaded one by one
  const bool is_filter = g.rank == 1 && g.input_channels == 1 && length >= 32;
  if (!is_filter && 5 * along_channels < 7 * along_windows)
    return unsupported("not faster for windows of ", lines, " lines of ", length, " to ", g.output_channels,
                       " output channels");
  return {};
}

Status supports_upsampling(const NarrowConvLoops& loops, const ConvGeometry& g) {
  bool side_by_side = g.groups == 1;
  for (int i = 0; i < g.rank; ++i) {
    const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
    side_by_side = side_by_side && axis.kernel == axis.stride && axis.dilation == 1 && axis.pad_begin == 0 &&
                   axis.input == axis.output * axis.kernel;
  }
  if (!side_by_side) return unsupported("windows must lie side by side, in one group");
  const int64_t outputs = g.axes[static_cast<size_t>(g.rank - 1)].kernel * g.input_channels;
  // Faster than oneDNN by 1.1 (8 results from 64 channels) to 5.7 (4 from 64); slower with fewer channels.
  if (outputs > loops.most_outputs || g.output_channels < 8 * outputs)
    return unsupported("not for rows of ", outputs, " results from ", g.output_channels, " channels");
  return {};
}

}  // namespace

Status supports_narrow_conv(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry) {
  const auto& loops = device.simd().loops<NarrowConvLoops>();
  return kind == OpKind::ConvTranspose ? supports_upsampling(loops, geometry)
                                       : supports_conv(loops, geometry);
}

KernelPtr make_narrow_conv(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry,
                           const void* constant_weight, const Finish& finish, const EpilogueInputs& inputs) {
  const Narrow narrow{&device.simd().loops<NarrowConvLoops>(), geometry, finish, inputs};
  if (kind == OpKind::Conv)
    return make_kernel([conv = NarrowConv{narrow}](const Call& call) noexcept { conv.run(call); });
  Requirements requirements;
  const NarrowUpsampling upsampling{narrow};
  const PackedOperand weights(constant_weight,
                              static_cast<size_t>(geometry.weight_shape().elements()) * sizeof(float),
                              0x6e6172726f77ull, 1, requirements);
  auto body = [=](const Call& call) noexcept {
    upsampling.run(call,
                   weights.panels(call, [&](float* to) noexcept { upsampling.pack(call.in<float>(1), to); }));
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { upsampling.pack(static_cast<const float*>(constant_weight), to); },
      std::move(body), requirements);
}

}  // namespace librt::cpu
