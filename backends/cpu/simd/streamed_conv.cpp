// A direct convolution at few positions, as an indirect GEMM (Dukhan 2019): rows of the left operand are
// addresses in x, one for each tap and position, so that x is not copied. Weights are read once, as one
// sequential stream, and each vector of them is used for all positions:
//
//   for each run of input channels, for each tap:         a panel of kRun x 32 weights, in L1
//     for each block of at most 10 positions:             20 accumulators in registers
//       sums[position] += x[position at this tap] panel
//
// Every block also prefetches its share of the next panel, so that memory delivers weights at an even rate
// while all blocks compute.
#include "backends/cpu/simd/streamed_conv.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
#if defined(__AVX512F__)
namespace {

using V = Vector<float>;
constexpr int64_t kLane = kLanes<float>, kOut = StreamedConv::kOut, kRun = StreamedConv::kRun,
                  kMostRows = StreamedConv::kMostRows;
static_assert(kOut == 2 * kLane);

/// sums [kRows][kOut] += rows [kRows][channels] times weight [channels][kOut]. Every 16 channels, `lines`
/// cache lines from `ahead` on are prefetched.
template <int kRows>
void multiply(const float* const* rows, int64_t channels, int64_t step, const float* weight, float* sums,
              const char* ahead, int64_t lines) {
  constexpr int64_t kUnroll = 4;
  V total[kRows][2];
  const float* from[kRows];
  for (int r = 0; r < kRows; ++r) {
    from[r] = rows[r];
    total[r][0] = load<V>(sums + r * kOut);
    total[r][1] = load<V>(sums + r * kOut + kLane);
  }
  for (int64_t c = 0, at = 0; c < channels; c += kLane, at += step) {
    for (int64_t i = 0; i < lines; ++i, ahead += kLineBytes) __builtin_prefetch(ahead, 0, 2);
    for (int64_t k = at; k < at + kLane; k += kUnroll)
      for (int64_t u = 0; u < kUnroll; ++u, weight += kOut) {
        const V w0 = load<V>(weight), w1 = load<V>(weight + kLane);
        for (int r = 0; r < kRows; ++r) {
          const float factor = from[r][k + u];
          total[r][0] += factor * w0;
          total[r][1] += factor * w1;
        }
      }
  }
  for (int r = 0; r < kRows; ++r) {
    store(sums + r * kOut, total[r][0]);
    store(sums + r * kOut + kLane, total[r][1]);
  }
}

using Multiply = void (*)(const float* const*, int64_t, int64_t, const float*, float*, const char*, int64_t);
constexpr Multiply kMultiply[kMostRows] = {multiply<1>, multiply<2>, multiply<3>, multiply<4>, multiply<5>,
                                           multiply<6>, multiply<7>, multiply<8>, multiply<9>, multiply<10>};

void convolve(const StreamedConv& conv) {
  for (int64_t i = 0; i < conv.positions * kOut; i += kLane) store(conv.sums + i, V{});
  const int64_t blocks = conv.blocks(), rows = conv.rows();
  const float* weight = conv.weight;
  for (int64_t first = 0; first < conv.channels; first += kRun) {
    const int64_t channels = conv.channels - first < kRun ? conv.channels - first : kRun;
    // A panel has two lines for each channel.
    const int64_t lines = (2 * kLane + blocks - 1) / blocks;
    for (int64_t tap = 0; tap < conv.taps; ++tap, weight += channels * kOut) {
      const char* ahead = reinterpret_cast<const char*>(weight + channels * kOut);
      for (int64_t block = 0; block < conv.positions; block += rows) {
        const int64_t count = conv.positions - block < rows ? conv.positions - block : rows;
        const float* from[kMostRows];
        for (int64_t r = 0; r < count; ++r) {
          const int64_t offset = conv.offsets[tap * conv.positions + block + r];
          from[r] = offset < 0 ? conv.zeros : conv.x + offset + first / kLane * conv.x_step;
        }
        kMultiply[count - 1](from, channels, conv.x_step, weight, conv.sums + block * kOut, ahead, lines);
        ahead += channels / kLane * lines * kLineBytes;
      }
    }
  }
}

void add(const StreamedConv& conv, const float* bias, const float* residual) {
  const V zero{};
  const V b0 = bias == nullptr ? zero : load<V>(bias), b1 = bias == nullptr ? zero : load<V>(bias + kLane);
  for (int64_t p = 0; p < conv.positions; ++p) {
    float* sums = conv.sums + p * kOut;
    V y0 = load<V>(sums) + b0, y1 = load<V>(sums + kLane) + b1;
    if (residual != nullptr) {
      y0 += load<V>(residual + conv.results[p]);
      y1 += load<V>(residual + conv.results[p] + conv.y_step);
    }
    store(sums, y0);
    store(sums + kLane, y1);
  }
}

void put(const StreamedConv& conv, float* y) {
  for (int64_t p = 0; p < conv.positions; ++p) {
    store(y + conv.results[p], load<V>(conv.sums + p * kOut));
    store(y + conv.results[p] + conv.y_step, load<V>(conv.sums + p * kOut + kLane));
  }
}

constexpr StreamedConvLoops make_loops() {
  return {&convolve, &add, &put};
}

}  // namespace
#else
namespace {

constexpr StreamedConvLoops make_loops() {
  return {};  // too few registers
}

}  // namespace
#endif

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(StreamedConvLoops);
