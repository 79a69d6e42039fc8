// As products, for each group: y [points, O] = x gathered [points, (tap, C)]  weight [(tap, C), O], where
// windows that reach outside of x find x's zero point there.
#include "backends/cpu/support/conv_integer_gemm.h"

#include "backends/cpu/support/conv_points.h"
#include "backends/cpu/support/integer_gemm.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

/// Channels of a depthwise convolution at a time.
constexpr int64_t kChannels = 512;

struct Convolution {
  IntegerConv conv;
  ConvPoints points;
  IntegerBlocks blocks;

  Convolution(const CpuDevice& device, const IntegerConv& of)
      : conv(of),
        points(of.g, false),
        blocks(device.simd(), points.count(), of.g.output_channels_per_group(),
               points.taps() * of.g.input_channels_per_group(), of.x_signed, of.weight_signed) {}

  int32_t x_zero(const Call& call) const noexcept {
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
        [&](int64_t group, int64_t row, Range columns, int32_t sum) noexcept {
          if (!shifted && za == 0) return;
          const int64_t first = group * blocks.n + columns.begin;
          const auto* sums =
              reinterpret_cast<const int32_t*>(packed + group * blocks.packed() + blocks.sums_at());
          blocks.correct_row(call.out<int32_t>() + row * g.output_channels + first, sums + columns.begin,
                             zeros + first, za, sum, columns.end - columns.begin);
        },
        call.scratch<uint8_t>() + zeros_bytes());
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
};

}  // namespace

bool is_depthwise(const ConvGeometry& g) noexcept {
  return g.groups > 1 && g.input_channels_per_group() == 1 && g.output_channels_per_group() == 1;
}

KernelPtr make_conv_integer_gemm(const CpuDevice& device, const IntegerConv& of) {
  const auto conv = std::make_shared<const Convolution>(device, of);
  const bool depthwise = is_depthwise(of.g);
  Requirements requirements;
  requirements.scratch = conv->zeros_bytes();
  if (!depthwise)
    requirements.scratch += static_cast<size_t>(device.info().threads * conv->blocks.workspace());
  const int64_t packed = depthwise ? of.g.weight_shape().elements() : of.g.groups * conv->blocks.packed();
  const uint64_t key = 0x6376693800ull + static_cast<uint64_t>(of.g.groups) * 4 + (depthwise ? 2 : 0) +
                       (of.weight_signed ? 1 : 0);
  const PackedOperand weights(of.constant_weight, static_cast<size_t>(packed), key, 1, requirements);
  const auto pack = [conv, depthwise](const void* weight, void* to) noexcept {
    const auto* from = static_cast<const uint8_t*>(weight);
    auto* const bytes = static_cast<uint8_t*>(to);
    if (depthwise)
      conv->pack_depthwise(from, bytes);
    else
      conv->pack(from, bytes);
  };
  auto body = [=](const Call& call) noexcept {
    const auto* const packed_weights = reinterpret_cast<const uint8_t*>(
        weights.panels(call, [&](float* to) noexcept { pack(call.in<std::byte>(1), to); }));
    if (depthwise)
      conv->run_depthwise(call, packed_weights);
    else
      conv->run(call, packed_weights);
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { pack(of.constant_weight, to); }, std::move(body), requirements);
}

}  // namespace librt::cpu
