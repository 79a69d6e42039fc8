// As products, for each group:
//
//   y  [points of y, O]       = x  gathered [points of y, (tap, C)]  weight  [(tap, C), O]
//   dx [points of x, C]       = dy gathered [points of x, (tap, O)]  weight' [(tap, O), C]
//   dw [O, (tap, C)]          = dy'         [O, points of y]         x gathered [points of y, (tap, C)]
//
// What is gathered is 0 where a window has no point. So that 0 times infinity does not become NaN there, the
// other operand must be finite; where it is not, convolve_plainly() is called.
#include "backends/cpu/support/conv_gemm.h"

#include <algorithm>

#include "backends/cpu/support/conv_points.h"
#include "backends/cpu/support/gemm.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

/// Depthwise convolutions have the addresses of a point's taps on the stack.
constexpr int64_t kMostTaps = 256;
/// Channels of a depthwise weight gradient that a thread sums at a time.
constexpr int64_t kChannels = 64;
/// Elements of a depthwise result that get their epilogue at a time, from L1.
constexpr int64_t kFinished = 2048;

struct Convolution {
  const GemmLoops* loops;
  OpKind kind;
  ConvGeometry g;
  ConvPoints points;
  GemmBlocks blocks;
  Finish finish;
  EpilogueInputs inputs;
  bool padded;  ///< what is gathered has zeros
  /// Channels of the taps that lie next to each other in memory and are gathered at once: those along the
  /// last axis, or only one tap's.
  int64_t run = 0;

  Convolution(const CpuDevice& device, OpKind of, const ConvGeometry& geometry, const Finish& last,
              const EpilogueInputs& operands)
      : loops(&device.simd().loops<GemmLoops>()),
        kind(of),
        g(geometry),
        points(geometry, of == OpKind::ConvTranspose),
        finish(last),
        inputs(operands) {
    const int64_t c = g.input_channels_per_group(), o = g.output_channels_per_group();
    if (kind == OpKind::Conv)
      blocks = GemmBlocks(device.simd(), points.count(), o, points.taps() * c);
    else if (kind == OpKind::ConvTranspose)
      blocks = GemmBlocks(device.simd(), points.count(), c, points.taps() * o);
    else
      blocks = GemmBlocks(device.simd(), o, points.taps() * c, points.count(), true);
    padded = kind == OpKind::ConvTranspose || g.is_padded();
    const WindowAxis& axis = points.last();
    run = gathered_group();
    if (kind != OpKind::ConvTranspose && g.groups == 1 && axis.dilation == 1) run *= axis.kernel;
  }

  bool depthwise() const noexcept {
    return g.input_channels_per_group() == 1 && g.output_channels_per_group() == 1 &&
           points.taps() <= kMostTaps;
  }
  /// Channels per point of the gathered image, and of one group of it.
  int64_t gathered_channels() const noexcept {
    return kind == OpKind::ConvTranspose ? g.output_channels : g.input_channels;
  }
  int64_t gathered_group() const noexcept { return gathered_channels() / g.groups; }

  /// A panel of weights as b, [(tap, channel)][columns].
  void pack_panel(const float* weight, int64_t group, int64_t panel, float* to) const noexcept {
    const int64_t c = g.input_channels_per_group(), o = g.output_channels_per_group(), taps = points.taps();
    const int64_t first = panel * loops->columns, count = std::min(loops->columns, blocks.n - first);
    const float* of_group = weight + group * o * taps * c;
    if (kind == OpKind::Conv)
      return gather_rows(*loops, of_group + first * taps * c, taps * c, count, taps * c, to, loops->columns);
    for (int64_t tap = 0; tap < taps; ++tap)
      loops->copy(of_group + tap * c + first, taps * c, count, o, to + tap * o * loops->columns,
                  loops->columns);
  }
  void pack(const float* weight, float* to) const noexcept {
    const int64_t panels = blocks.column_panels(), panel_floats = loops->columns * blocks.k;
    parallel_for(g.groups * panels, panel_floats, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) pack_panel(weight, i / panels, i % panels, to + i * panel_floats);
    });
  }

  /// Elements [from, from + count) of what a point's window reads in one run, whose line of the image begins
  /// at point `line` (-1: outside): their address where all are inside, otherwise that of `copied`, which
  /// gets them.
  const float* window(const float* image, const ConvPoints::Point& at, int64_t line, int64_t from,
                      int64_t count, float* copied) const noexcept {
    const int64_t inner = gathered_group(), taps = run / inner;
    const int64_t start = points.start(at), extent = points.last().input;
    if (line < 0 || start + taps <= 0 || start >= extent) return kZeroRow;
    const float* const address = image + (line + start) * inner + from;
    if (start >= 0 && start + taps <= extent) return address;
    const int64_t inside = std::clamp(-start * inner - from, int64_t{0}, count),
                  outside = std::clamp((extent - start) * inner - from, inside, count);
    std::fill(copied, copied + inside, 0.0f);
    std::copy(address + inside, address + outside, copied + inside);
    std::fill(copied + outside, copied + count, 0.0f);
    return copied;
  }
  /// The same where a run is one tap.
  const float* channels_of(const float* image, const ConvPoints::Point& at, int64_t group, int64_t tap,
                           int64_t from) const noexcept {
    const int64_t other = points.other(at, tap);
    return other < 0 ? kZeroRow : image + other * gathered_channels() + group * gathered_group() + from;
  }

  /// The address of the first of `rows` windows from a point on where each window is a row in memory that
  /// begins `stride` points after the one before, all inside of the image; else null.
  const float* windows_in_place(const float* image, int64_t first, int64_t rows) const noexcept {
    const WindowAxis& axis = points.last();
    if (g.rank != 1 || run != blocks.k) return nullptr;
    const ConvPoints::Point at = points.point(first);
    const int64_t start = points.start(at), end = start + (rows - 1) * axis.stride + axis.kernel;
    if (at.at[0] + rows > axis.output || start < 0 || end > axis.input) return nullptr;
    return image + (points.line(at, 0) + start) * g.input_channels;
  }

  /// A panel of the gathered image as a, steps of (tap, channel) from k0 on.
  void gather(const float* image, int64_t group, int64_t panel, int64_t k0, int64_t steps,
              float* to) const noexcept {
    const int64_t rows = loops->rows, first = panel * rows, count = std::min(rows, blocks.m - first);
    ConvPoints::Point at[GemmLoops::kMostRows];
    const float* from[GemmLoops::kMostRows];
    float copied[GemmLoops::kMostRows][GemmBlocks::kDepth];
    at[0] = points.point(first);
    for (int64_t j = 1; j < count; ++j) {
      at[j] = at[j - 1];
      points.next(at[j]);
    }
    for (int64_t j = count; j < rows; ++j) from[j] = kZeroRow;
    const int64_t taps = run / gathered_group();
    for (int64_t k = k0; k < k0 + steps;) {
      const int64_t line = k / run, begin = k % run, some = std::min(run - begin, k0 + steps - k);
      int64_t begins = -1;  // of the image's line; points in one row of the result share it
      for (int64_t j = 0; j < count; ++j) {
        if (taps == 1) {
          from[j] = channels_of(image, at[j], group, line, begin);
          continue;
        }
        if (j == 0 || points.begins_row(at[j])) begins = points.line(at[j], line * taps);
        from[j] = window(image, at[j], begins, begin, some, copied[j]);
      }
      loops->gather(from, some, to + (k - k0) * rows, rows);
      k += some;
    }
  }
  /// A panel of the gathered image as b, for the points from p0 on.
  void gather_columns(const float* image, int64_t group, int64_t panel, int64_t p0, int64_t steps,
                      float* to) const noexcept {
    const int64_t columns = loops->columns, first = panel * columns,
                  end = std::min(first + columns, blocks.n);
    const int64_t taps = run / gathered_group();
    ConvPoints::Point at = points.point(p0);
    for (int64_t p = 0; p < steps; ++p, to += columns, points.next(at)) {
      for (int64_t j = first; j < end;) {
        const int64_t line = j / run, begin = j % run, some = std::min(run - begin, end - j);
        float* const place = to + (j - first);
        const float* const from = taps == 1
                                      ? channels_of(image, at, group, line, begin)
                                      : window(image, at, points.line(at, line * taps), begin, some, place);
        if (from != place) std::copy(from, from + some, place);
        j += some;
      }
      std::fill(to + (end - first), to + columns, 0.0f);
    }
  }

  void run_forward(const Call& call, const float* panels, float* workspaces) const noexcept {
    const float* image = call.in<float>(0);
    const int64_t channels = blocks.n * g.groups, stride = gathered_channels();
    const int64_t apart = points.last().stride * stride;  // windows along one axis
    const bool in_place = points.same() && blocks.in_place(stride), windows = blocks.in_place(apart);
    multiply_panels(
        blocks, g.groups,
        [&](int64_t group, int64_t panel, int64_t k0, int64_t steps, float* to) noexcept -> PanelA {
          if (in_place && (panel + 1) * loops->rows <= blocks.m)
            return {image + panel * loops->rows * stride + group * gathered_group() + k0, stride};
          if (windows && (panel + 1) * loops->rows <= blocks.m)
            if (const float* const at = windows_in_place(image, panel * loops->rows, loops->rows))
              return {at + k0, apart};
          gather(image, group, panel, k0, steps, to);
          return {to};
        },
        [&](int64_t group, int64_t panel, int64_t k0, int64_t, float*) noexcept {
          return panels + group * blocks.packed() + (panel * blocks.k + k0) * loops->columns;
        },
        [&](int64_t group) noexcept { return call.out<float>() + group * blocks.n; }, channels,
        [&](int64_t group, Range rows, Range columns) noexcept {
          finish.run_block(call.out<float>(), bias(call), residual(call), 0, rows,
                           {group * blocks.n + columns.begin, group * blocks.n + columns.end}, channels);
        },
        workspaces);
  }
  void run_weight_gradient(const Call& call, float* workspaces) const noexcept {
    const float *x = call.in<float>(0), *dy = call.in<float>(1);
    multiply_panels(
        blocks, g.groups,
        [&](int64_t group, int64_t panel, int64_t p0, int64_t steps, float* to) noexcept -> PanelA {
          const int64_t first = panel * loops->rows;
          loops->copy(dy + p0 * g.output_channels + group * blocks.m + first, g.output_channels,
                      std::min(loops->rows, blocks.m - first), steps, to, loops->rows);
          return {to};
        },
        [&](int64_t group, int64_t panel, int64_t p0, int64_t steps, float* buffer) noexcept {
          gather_columns(x, group, panel, p0, steps, buffer);
          return static_cast<const float*>(buffer);
        },
        [&](int64_t group) noexcept { return call.out<float>() + group * blocks.m * blocks.n; }, blocks.n,
        [](int64_t, Range, Range) noexcept {}, workspaces);
  }

  // --- depthwise

  /// [C, taps] becomes [taps, C].
  void pack_depthwise(const float* weight, float* to) const noexcept {
    for (int64_t channel = 0; channel < g.groups; ++channel)
      for (int64_t tap = 0; tap < points.taps(); ++tap)
        to[tap * g.groups + channel] = weight[channel * points.taps() + tap];
  }
  void run_depthwise(const Call& call, const float* weight) const noexcept {
    const int64_t channels = g.groups, taps = points.taps();
    const float* image = call.in<float>(0);
    parallel_for(points.count(), channels * taps / 4 + taps, 1, [&](int64_t begin, int64_t end) noexcept {
      const float *from[kMostTaps], *of_tap[kMostTaps];
      ConvPoints::Point at = points.point(begin);
      int64_t finished = begin;
      for (int64_t p = begin; p < end; ++p, points.next(at)) {
        int64_t found = 0;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t other = points.other(at, tap);
          if (other < 0) continue;
          from[found] = image + other * channels;
          of_tap[found++] = weight + tap * channels;
        }
        loops->depthwise(from, of_tap, found, channels, call.out<float>() + p * channels);
        if ((p + 1 - finished) * channels < kFinished && p + 1 < end) continue;
        finish.run_part(call.out<float>(), bias(call), residual(call), finished * channels,
                        (p + 1) * channels);
        finished = p + 1;
      }
    });
  }
  /// sums: [taps][kChannels] for each thread.
  void run_depthwise_weight_gradient(const Call& call, float* all_sums) const noexcept {
    const int64_t channels = g.groups, taps = points.taps();
    const float *x = call.in<float>(0), *dy = call.in<float>(1);
    parallel_for((channels + kChannels - 1) / kChannels, points.count() * taps * kChannels / 4, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   float* const sums = all_sums + thread_index() * taps * kChannels;
                   for (int64_t block = begin; block < end; ++block) {
                     const int64_t first = block * kChannels, count = std::min(kChannels, channels - first);
                     std::fill(sums, sums + taps * kChannels, 0.0f);
                     ConvPoints::Point at = points.point(0);
                     for (int64_t p = 0; p < points.count(); ++p, points.next(at))
                       for (int64_t tap = 0; tap < taps; ++tap)
                         if (const int64_t other = points.other(at, tap); other >= 0)
                           loops->multiply_add(x + other * channels + first, dy + p * channels + first,
                                               sums + tap * kChannels, count);
                     for (int64_t channel = 0; channel < count; ++channel)
                       for (int64_t tap = 0; tap < taps; ++tap)
                         call.out<float>()[(first + channel) * taps + tap] = sums[tap * kChannels + channel];
                   }
                 });
  }

  const float* bias(const Call& call) const noexcept {
    return inputs.bias >= 0 ? call.in<float>(static_cast<size_t>(inputs.bias)) : nullptr;
  }
  const float* residual(const Call& call) const noexcept {
    return inputs.residual >= 0 ? call.in<float>(static_cast<size_t>(inputs.residual)) : nullptr;
  }
  void run_plainly(const Call& call) const noexcept {
    convolve_plainly(kind, g, call.in<float>(0), call.in<float>(1), call.out<float>());
    finish.run(call.out<float>(), bias(call), residual(call));
  }
};

size_t floats(int64_t count) noexcept {
  return static_cast<size_t>(count) * sizeof(float);
}
bool finite(const void* values, const Shape& shape) noexcept {
  return all_finite(DType::F32, static_cast<const std::byte*>(values), shape.elements());
}

KernelPtr make_weight_gradient(const std::shared_ptr<const Convolution>& conv, int threads) {
  const bool depthwise = conv->depthwise();
  Requirements requirements;
  requirements.scratch =
      floats(threads * (depthwise ? conv->points.taps() * kChannels : conv->blocks.workspace()));
  return make_kernel(
      [=](const Call& call) noexcept {
        if (depthwise)
          conv->run_depthwise_weight_gradient(call, call.scratch<float>());
        else if (conv->padded && !finite(call.in<float>(1), conv->g.output_shape()))
          convolve_plainly(conv->kind, conv->g, call.in<float>(0), call.in<float>(1), call.out<float>());
        else
          conv->run_weight_gradient(call, call.scratch<float>());
      },
      requirements);
}

}  // namespace

KernelPtr make_conv_gemm(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry,
                         const void* constant_weight, const Finish& finish, const EpilogueInputs& inputs) {
  const auto conv = std::make_shared<const Convolution>(device, kind, geometry, finish, inputs);
  const int threads = device.info().threads;
  if (kind == OpKind::ConvWeightGrad) return make_weight_gradient(conv, threads);

  const bool depthwise = conv->depthwise();
  Requirements requirements;
  const bool plain = constant_weight != nullptr && !depthwise && conv->padded &&
                     !finite(constant_weight, geometry.weight_shape());
  if (plain) return make_kernel([conv](const Call& call) noexcept { conv->run_plainly(call); });
  if (!depthwise) requirements.scratch = floats(threads * conv->blocks.workspace());
  const int64_t packed =
      depthwise ? geometry.weight_shape().elements() : geometry.groups * conv->blocks.packed();
  const uint64_t key = 0x636f6e7600ull + static_cast<uint64_t>(geometry.groups) * 4 + (depthwise ? 2 : 0) +
                       (kind == OpKind::ConvTranspose ? 1 : 0);
  const PackedOperand weights(constant_weight, floats(packed), key, 1, requirements);
  const auto pack = [conv, depthwise](const float* weight, float* to) noexcept {
    if (depthwise)
      conv->pack_depthwise(weight, to);
    else
      conv->pack(weight, to);
  };
  auto body = [=](const Call& call) noexcept {
    if (weights.constant == nullptr && !depthwise && conv->padded &&
        !finite(call.in<float>(1), conv->g.weight_shape()))
      return conv->run_plainly(call);
    const float* const panels =
        weights.panels(call, [&](float* to) noexcept { pack(call.in<float>(1), to); });
    if (depthwise)
      conv->run_depthwise(call, panels);
    else
      conv->run_forward(call, panels, call.scratch<float>());
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { pack(static_cast<const float*>(constant_weight), to); },
      std::move(body), requirements);
}

}  // namespace librt::cpu
