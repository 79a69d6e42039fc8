#include "backends/cpu/support/narrow_transpose.h"

#include <algorithm>

#include "backends/cpu/support/narrow_rows.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

/// y [N,S k..,O] from x [N,S..,C], windows k.. side by side: of a row of x and a tap along the axes before
/// the last, y has a row of k O floats for each point, each the dot product with a row of weights.
struct SideBySideWindows : NarrowRows {  // the input of g is y
  uint64_t key() const noexcept { return 0x6e61727200ull; }
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

/// How many rows of x a row of y meets, on average.
int64_t rows_met(const ConvGeometry& g) noexcept {
  return std::max<int64_t>(
      1, points_of(g, &WindowAxis::kernel, g.rank - 1) / points_of(g, &WindowAxis::stride, g.rank - 1));
}

/// y [N,S'..,O] from x [N,S..,C] with any windows. Along the last axis with stride s, the positions i of y
/// with one remainder r of (i + pad) / s meet the taps r, r + s, ..: those of a convolution with stride 1
/// whose weights are in reverse order, of which a line is contiguous in x.
struct WindowsByRemainder : NarrowRows {  // the input of g is y
  uint64_t key() const noexcept { return 0x6e61727201ull + static_cast<uint64_t>(last().stride); }
  int64_t channels() const noexcept { return g.output_channels; }
  /// Taps of a remainder, and of all remainders below it.
  int64_t taps(int64_t remainder) const noexcept {
    return (last().kernel - remainder + last().stride - 1) / last().stride;
  }
  int64_t taps_below(int64_t remainder) const noexcept {
    return last().kernel / last().stride * remainder + std::min(remainder, last().kernel % last().stride);
  }
  /// Remainders that have a tap.
  int64_t remainders() const noexcept { return std::min(last().stride, last().kernel); }

  /// [C, lines, k, O] becomes, for each line and remainder, [O, taps in reverse, C].
  void pack(const float* weight, float* to) const noexcept {
    const int64_t columns = g.weight_shape().elements() / channels(), outputs = g.input_channels;
    for (int64_t line = 0; line < lines(); ++line)
      for (int64_t r = 0; r < remainders(); ++r)
        for (int64_t o = 0; o < outputs; ++o)
          for (int64_t tap = taps(r); tap-- > 0;) {
            const float* from = weight + (line * last().kernel + r + tap * last().stride) * outputs + o;
            for (int64_t c = 0; c < channels(); ++c) *to++ = from[c * columns];
          }
  }

  /// y[k O + o] for `points` positions with remainder r, k from 0 on, of which the first is `begin`.
  void run_remainder(const NarrowLine* lines, int64_t count, int64_t r, int64_t begin, int64_t points,
                     float* y) const noexcept {
    const int64_t outputs = g.input_channels, most = taps(r), weights = taps_below(r) * outputs * channels();
    // Position k meets the points of x from first_x + k on.
    const int64_t first_x = (begin + last().pad_begin) / last().stride - most + 1;
    NarrowLine part[kMostLines];
    const auto run = [&](int64_t point, int64_t some) noexcept {
      const int64_t start = first_x + point, from = std::clamp<int64_t>(-start, 0, most),
                    to = std::clamp(last().output - start, from, most);
      if (from == to || count == 0) {
        std::fill_n(y + point * outputs, some * outputs, 0.0f);
        return;
      }
      for (int64_t i = 0; i < count; ++i)
        part[i] = {lines[i].x + (start + from) * channels(), lines[i].weight + weights + from * channels()};
      loops->convolve(part, count, (to - from) * channels(), channels(), some, outputs, most * channels(),
                      y + point * outputs);
    };
    const int64_t first = std::clamp<int64_t>(-first_x, 0, points),
                  after = std::clamp(last().output - most - first_x + 1, first, points);
    for (int64_t point = 0; point < first; ++point) run(point, 1);
    if (after > first) run(first, after - first);
    for (int64_t point = after; point < points; ++point) run(point, 1);
  }

  void run_row(const float* x, const float* weight, int64_t row, int64_t begin, int64_t points,
               float* y) const noexcept {
    const int64_t stride = last().stride, outputs = g.input_channels;
    NarrowLine lines[kMostLines];
    const auto meets = [](const WindowAxis& axis, int64_t position, int64_t tap) {
      const int64_t reach = position + axis.pad_begin - tap * axis.dilation;
      return reach % axis.stride == 0 ? reach / axis.stride : -1;
    };
    const int64_t count =
        lines_of(row, &WindowAxis::input, &WindowAxis::output, x, last().output * channels(), weight,
                 last().kernel * outputs * channels(), meets, lines);
    if (stride == 1) return run_remainder(lines, count, 0, begin, points, y);
    if (stride > last().kernel) std::fill_n(y, points * outputs, 0.0f);
    float results[kFinished];
    for (int64_t r = 0; r < remainders(); ++r) {
      // The first position with this remainder, as a distance from `begin`, and how many there are.
      const int64_t first = (r + stride - (begin + last().pad_begin) % stride) % stride;
      if (first >= points) continue;
      const int64_t some = (points - first + stride - 1) / stride;
      run_remainder(lines, count, r, begin + first, some, results);
      for (int64_t k = 0; k < some; ++k)
        for (int64_t o = 0; o < outputs; ++o)
          y[(first + k * stride) * outputs + o] = results[k * outputs + o];
    }
  }

  void run(const Call& call, const float* weight) const noexcept {
    const float* const x = call.in<float>(0);
    run_stretches(call, rows(&WindowAxis::input), last().input, g.input_channels,
                  rows_met(g) * taps(0) * channels() * g.input_channels,
                  [&](int64_t row, int64_t begin, int64_t points, float* y) noexcept {
                    run_row(x, weight, row, begin, points, y);
                  });
  }
};

Status supports_side_by_side(const NarrowConvLoops& loops, const ConvGeometry& g) {
  bool side_by_side = g.groups == 1;
  for (int i = 0; i < g.rank; ++i) {
    const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
    side_by_side = side_by_side && axis.kernel == axis.stride && axis.dilation == 1 && axis.pad_begin == 0 &&
                   axis.input == axis.output * axis.kernel;
  }
  if (!side_by_side) return unsupported("windows do not lie side by side, in one group");
  const int64_t outputs = g.axes[static_cast<size_t>(g.rank - 1)].kernel * g.input_channels;
  // Faster than oneDNN by 1.1 (8 results from 64 channels) to 5.7 (4 from 64); slower with fewer channels.
  if (outputs > loops.most_outputs || g.output_channels < 8 * outputs)
    return unsupported("not for rows of ", outputs, " results from ", g.output_channels, " channels");
  return {};
}

template <class Windows>
KernelPtr make(const CpuDevice& device, const NarrowRows& rows, const void* constant_weight) {
  Requirements requirements;
  const Windows windows{rows};
  const PackedOperand weights(constant_weight,
                              static_cast<size_t>(rows.g.weight_shape().elements()) * sizeof(float),
                              windows.key(), 1, requirements);
  auto body = [=](const Call& call) noexcept {
    windows.run(call, weights.panels(call, [&](float* to) noexcept { windows.pack(call.in<float>(1), to); }));
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { windows.pack(static_cast<const float*>(constant_weight), to); },
      std::move(body), requirements);
}

}  // namespace

Status supports_narrow_transpose(const CpuDevice& device, const ConvGeometry& g) {
  const auto& loops = device.simd().loops<NarrowConvLoops>();
  if (supports_side_by_side(loops, g).ok()) return {};
  const WindowAxis& axis = g.axes[static_cast<size_t>(g.rank - 1)];
  const int64_t length = (axis.kernel + axis.stride - 1) / axis.stride * g.output_channels;
  return supports_lines(loops, g, g.input_channels, rows_met(g), length);
}

KernelPtr make_narrow_transpose(const CpuDevice& device, const ConvGeometry& geometry,
                                const void* constant_weight, const Finish& finish,
                                const EpilogueInputs& inputs) {
  const NarrowRows rows{&device.simd().loops<NarrowConvLoops>(), geometry, finish, inputs};
  const bool side_by_side = supports_side_by_side(*rows.loops, geometry).ok();
  return (side_by_side ? make<SideBySideWindows> : make<WindowsByRemainder>)(device, rows, constant_weight);
}

}  // namespace librt::cpu
