// As products, for each group: y [points, O] = x gathered [points, (tap, C)]  weight [(tap, C), O], where
// windows that reach outside of x find x's zero point there.
#include "backends/cpu/support/conv_integer_gemm.h"

#include <cstring>

#include "backends/cpu/support/conv_points.h"
#include "backends/cpu/support/conv_shape.h"
#include "backends/cpu/support/integer_gemm.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

/// Channels of a depthwise convolution at a time.
constexpr int64_t kChannels = 512;
/// Largest window of a requantized depthwise convolution; an even number.
constexpr int64_t kMostTaps = 64;

struct Convolution {
  IntegerConv conv;
  ConvPoints points;
  IntegerBlocks blocks;
  std::optional<BlockRequantizer> requantizer;

  Convolution(const CpuDevice& device, const IntegerConv& of)
      : conv(of),
        points(of.g, false),
        blocks(device.simd(), points.count(), of.g.output_channels_per_group(),
               points.taps() * of.g.input_channels_per_group(), of.x_signed, of.weight_signed) {
    if (!of.requantization) return;
    blocks.buffers_results = true;
    const int32_t shift = is_depthwise(of.g) ? 0 : blocks.a_shift();
    requantizer.emplace(device.simd(), *of.requantization,
                        sums_at_zero_point(device.simd(), of, of.known_x_zero - shift));
  }

  int32_t x_zero(const Call& call) const noexcept {
    if (requantizer) return conv.known_x_zero;
    if (!conv.has_x_zero) return 0;
    return conv.x_signed ? *call.in<int8_t>(2) : *call.in<uint8_t>(2);
  }
  int32_t weight_zero(const Call& call, int64_t channel) const noexcept {
    if (!conv.has_weight_zero) return 0;
    const int64_t at = conv.shared_weight_zero ? 0 : channel;
    return conv.weight_signed ? call.in<int8_t>(3)[at] : call.in<uint8_t>(3)[at];
  }

  void pack(const uint8_t* weight, uint8_t* to) const noexcept {
    for (int64_t group = 0; group < conv.g.groups; ++group, to += blocks.packed()) {
      const uint8_t* of_group = weight + group * blocks.n * blocks.k;
      blocks.pack(to, [&](int64_t channel, int64_t k0, int64_t steps, uint8_t* part) noexcept {
        std::memcpy(part, of_group + channel * blocks.k + k0, static_cast<size_t>(steps));
      });
    }
  }

  /// The window of a point, channels of one group.
  const uint8_t* window(const uint8_t* x, const ConvPoints::Point& at, int64_t group, int zero,
                        uint8_t* copied) const noexcept {
    const int64_t c = conv.g.input_channels_per_group();
    uint8_t* to = copied;
    if (conv.g.groups == 1 &&
        points.last().dilation == 1) {  // the taps of a line are next to each other in x
      const int64_t line_taps = points.last().kernel, extent = points.last().input, start = points.start(at);
      const int64_t before = std::clamp<int64_t>(-start, 0, line_taps);
      const int64_t inside = std::clamp<int64_t>(extent - start, before, line_taps) - before;
      for (int64_t tap = 0; tap < points.taps(); tap += line_taps, to += line_taps * c) {
        const int64_t line = points.line(at, tap);
        if (line < 0 || inside < line_taps) std::memset(to, zero, static_cast<size_t>(line_taps * c));
        if (line >= 0 && inside > 0)
          std::memcpy(to + before * c, x + (line + start + before) * c, static_cast<size_t>(inside * c));
      }
      return blocks.row(copied, copied);
    }
    for (int64_t tap = 0; tap < points.taps(); ++tap, to += c) {
      const int64_t other = points.other(at, tap);
      if (other < 0)
        std::memset(to, zero, static_cast<size_t>(c));
      else
        std::memcpy(to, x + other * conv.g.input_channels + group * c, static_cast<size_t>(c));
    }
    return blocks.row(copied, copied);
  }

  /// scratch: the weights' zero points [O], then the threads' workspaces.
  void run(const Call& call, const uint8_t* packed) const noexcept {
    const ConvGeometry& g = conv.g;
    auto* const zeros = call.scratch<int32_t>();
    for (int64_t o = 0; o < g.output_channels; ++o) zeros[o] = weight_zero(call, o) - blocks.b_shift();
    const bool shifted = conv.has_weight_zero || blocks.b_shift() != 0, same = points.same();
    const int32_t zx = x_zero(call), za = zx - blocks.a_shift();
    const auto* x = call.in<uint8_t>(0);
    multiply_integers(
        blocks, g.groups, shifted,
        [&](int64_t group, int64_t row, uint8_t* copied) noexcept {
          if (same)
            return blocks.row(x + row * g.input_channels + group * g.input_channels_per_group(), copied);
          return window(x, points.point(row), group, zx, copied);
        },
        [&](int64_t group) noexcept { return packed + group * blocks.packed(); },
        [&](int64_t group) noexcept { return call.out<int32_t>() + group * blocks.n; }, g.output_channels,
        [&](int64_t group, Range rows, Range columns, const int32_t* sums, const IntegerBlock& y) noexcept {
          if (requantizer) {
            const int64_t first = group * blocks.n;
            requantizer->run(y.at, rows.end - rows.begin, {first + columns.begin, first + columns.end},
                             result(call, rows.begin, first + columns.begin), g.output_channels);
            return;
          }
          if (!shifted && za == 0) return;
          const auto* weight_sums =
              reinterpret_cast<const int32_t*>(packed + group * blocks.packed() + blocks.sums_at());
          for (int64_t row = 0; row < rows.end - rows.begin; ++row)
            blocks.correct_row(y.at + row * y.stride, weight_sums + columns.begin,
                               zeros + group * blocks.n + columns.begin, za, shifted ? sums[row] : 0,
                               columns.end - columns.begin);
        },
        call.scratch<uint8_t>() + zeros_bytes());
  }
  std::byte* result(const Call& call, int64_t point, int64_t channel) const noexcept {
    const auto bytes = static_cast<int64_t>(size_of(conv.requantization->y_type));
    return call.out<std::byte>() + (point * conv.g.output_channels + channel) * bytes;
  }
  size_t zeros_bytes() const noexcept {
    return (static_cast<size_t>(conv.g.output_channels) * sizeof(int32_t) + 63) / 64 * 64;
  }

  // --- depthwise

  /// [C, taps] becomes [taps, C].
  void pack_depthwise(const uint8_t* weight, uint8_t* to) const noexcept {
    const int64_t taps = points.taps(), channels = conv.g.groups;
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t tap = 0; tap < taps; ++tap) to[tap * channels + channel] = weight[channel * taps + tap];
  }
  void run_depthwise(const Call& call, const uint8_t* weight) const noexcept {
    const int64_t channels = conv.g.groups, taps = points.taps();
    const auto multiply_add = blocks.loops->multiply_add[conv.x_signed ? 0 : 1][conv.weight_signed ? 0 : 1];
    auto* const zeros = call.scratch<int32_t>();
    for (int64_t c = 0; c < channels; ++c) zeros[c] = weight_zero(call, c);
    const int32_t zx = x_zero(call);
    const auto* x = call.in<uint8_t>(0);
    parallel_for(points.count(), channels * taps / 4 + taps, 1, [&](int64_t begin, int64_t end) noexcept {
      ConvPoints::Point at = points.point(begin);
      for (int64_t p = begin; p < end; ++p, points.next(at)) {
        int32_t* const y = call.out<int32_t>() + p * channels;
        std::fill(y, y + channels, 0);
        for (int64_t c = 0; c < channels; c += kChannels)
          for (int64_t tap = 0; tap < taps; ++tap)
            if (const int64_t other = points.other(at, tap); other >= 0)
              multiply_add(x + other * channels + c, weight + tap * channels + c, zx, zeros + c, y + c,
                           std::min(kChannels, channels - c));
      }
    });
  }

  // --- depthwise, requantized: weights [chunk of channels][pair of taps][channel][2]

  int64_t pairs() const noexcept { return (points.taps() + 1) / 2; }

  void pack_pairs(const int8_t* weight, int16_t* to) const noexcept {
    const int64_t taps = points.taps(), channels = conv.g.groups;
    for (int64_t first = 0; first < channels; first += kChannels) {
      const int64_t n = std::min(kChannels, channels - first);
      for (int64_t tap = 0; tap < 2 * pairs(); ++tap)
        for (int64_t c = 0; c < n; ++c)
          to[(tap / 2 * n + c) * 2 + tap % 2] = tap < taps ? weight[(first + c) * taps + tap] : int16_t{0};
      to += 2 * pairs() * n;
    }
  }
  /// Where each tap of a window finds its point, -1 outside of x.
  void find_taps(const ConvPoints::Point& at, int64_t* others) const noexcept {
    const WindowAxis& last = points.last();
    const int64_t start = points.start(at);
    for (int64_t tap = 0; tap < points.taps(); tap += last.kernel) {
      const int64_t line = points.line(at, tap);
      for (int64_t i = 0; i < last.kernel; ++i) {
        const int64_t position = start + i * last.dilation;
        others[tap + i] = line < 0 || position < 0 || position >= last.input ? -1 : line + position;
      }
    }
  }
  void run_pairs(const Call& call, const int16_t* weight) const noexcept {
    const int64_t channels = conv.g.groups, taps = points.taps();
    const auto sum_taps = blocks.loops->sum_taps[conv.x_signed ? 0 : 1];
    const auto* x = call.in<uint8_t>(0);
    const int64_t together = std::max<int64_t>(kChannels / channels, 1);
    const int64_t lines = (points.count() + together - 1) / together;
    parallel_for(lines, together * channels * taps / 8 + taps, 1, [&](int64_t begin, int64_t end) noexcept {
      uint8_t outside[kChannels];
      std::memset(outside, conv.known_x_zero, sizeof outside);
      int32_t sums[kChannels];
      ConvPoints::Point at = points.point(begin * together);
      for (int64_t line = begin; line < end; ++line) {
        const int64_t p = line * together, count = std::min(together, points.count() - p);
        for (int64_t i = 0; i < count; ++i, points.next(at)) {
          int64_t others[kMostTaps];
          find_taps(at, others);
          for (int64_t c = 0; c < channels; c += kChannels) {
            const int64_t n = std::min(kChannels, channels - c);
            const uint8_t* rows[kMostTaps];
            for (int64_t tap = 0; tap < 2 * pairs(); ++tap)
              rows[tap] = tap < taps && others[tap] >= 0 ? x + others[tap] * channels + c : outside;
            sum_taps(rows, weight + 2 * pairs() * c, pairs(), sums + i * n, n);
            if (together == 1) requantizer->run(sums, 1, {c, c + n}, result(call, p, c), channels);
          }
        }
        if (together > 1) requantizer->run(sums, count, {0, channels}, result(call, p, 0), channels);
      }
    });
  }
};

}  // namespace

std::vector<int32_t> sums_at_zero_point(const Simd& simd, const IntegerConv& of, int32_t x_zero) {
  const int64_t channels = of.g.output_channels, taps = of.g.weight_shape().elements() / channels;
  std::vector<int32_t> sums(static_cast<size_t>(channels));
  for (int64_t o = 0; o < channels; ++o) {
    const int32_t sum = simd.loops<QuantizeLoops>().sum_row[0](
        static_cast<const int8_t*>(of.constant_weight) + o * taps, taps);
    sums[static_cast<size_t>(o)] =
        static_cast<int32_t>(static_cast<uint32_t>(x_zero) * static_cast<uint32_t>(sum));
  }
  return sums;
}

Status supports_requantized(const ConvGeometry& g) {
  const int64_t taps = points_of(g, &WindowAxis::kernel);
  if (is_depthwise(g) && taps > kMostTaps)
    return unsupported("depthwise windows of more than ", kMostTaps, " elements, found ", taps);
  return {};
}

KernelPtr make_conv_integer_gemm(const CpuDevice& device, const IntegerConv& of) {
  const auto conv = std::make_shared<const Convolution>(device, of);
  enum class Form : uint8_t { Gemm, Depthwise, DepthwisePairs };
  const Form form = !is_depthwise(of.g) ? Form::Gemm
                    : of.requantization ? Form::DepthwisePairs
                                        : Form::Depthwise;
  Requirements requirements;
  requirements.scratch = conv->zeros_bytes();
  int64_t packed = of.g.weight_shape().elements();
  if (form == Form::DepthwisePairs) packed = 4 * conv->pairs() * of.g.groups;
  if (form == Form::Gemm) {
    packed = of.g.groups * conv->blocks.packed();
    requirements.scratch += static_cast<size_t>(device.info().threads * conv->blocks.workspace());
  }
  const uint64_t key = 0x6376693800ull + static_cast<uint64_t>(of.g.groups) * 8 +
                       static_cast<uint64_t>(form) * 2 + (of.weight_signed ? 1 : 0);
  const PackedOperand weights(of.constant_weight, static_cast<size_t>(packed), key, 1, requirements);
  const auto pack = [conv, form](const void* weight, void* to) noexcept {
    switch (form) {
      case Form::Gemm: return conv->pack(static_cast<const uint8_t*>(weight), static_cast<uint8_t*>(to));
      case Form::Depthwise:
        return conv->pack_depthwise(static_cast<const uint8_t*>(weight), static_cast<uint8_t*>(to));
      case Form::DepthwisePairs:
        return conv->pack_pairs(static_cast<const int8_t*>(weight), static_cast<int16_t*>(to));
    }
  };
  auto body = [=](const Call& call) noexcept {
    const float* const panels =
        weights.panels(call, [&](float* to) noexcept { pack(call.in<std::byte>(1), to); });
    switch (form) {
      case Form::Gemm: return conv->run(call, reinterpret_cast<const uint8_t*>(panels));
      case Form::Depthwise: return conv->run_depthwise(call, reinterpret_cast<const uint8_t*>(panels));
      case Form::DepthwisePairs: return conv->run_pairs(call, reinterpret_cast<const int16_t*>(panels));
    }
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { pack(of.constant_weight, to); }, std::move(body), requirements);
}

}  // namespace librt::cpu
