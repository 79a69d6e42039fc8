// Where a result has few channels, vectors along them would be mostly empty: a heatmap or a mask has one, and
// takes a sixteenth of the multiply-adds that the instructions could. Here vectors run along the window, of
// which a line (taps along the last axis times channels) is contiguous in x as in the weights:
//
//   for each line:  total[point][result] += x[point's line] weight[result's line], a vector at a time
//   y[point][result] = the sum of the lanes of total[point][result]
//
// The vectors of some points are summed together, four at a time.
#include "backends/cpu/simd/narrow_conv.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

using V = Vector<float>;
using Four = Vector<float, 16>;
constexpr int64_t kLane = kLanes<float>;

/// Points at a time for so many results: accumulators, a vector of each result's weights and one of x are in
/// registers.
#if defined(__AVX512F__)
constexpr int kPointsFor[] = {8, 8, 8, 6, 4, 4, 3, 3};
#else
constexpr int kPointsFor[] = {8, 6, 3, 2};
#endif
constexpr int kMostOutputs = sizeof kPointsFor / sizeof kPointsFor[0];

/// The sums of the lanes of four vectors.
RT_INLINE Four lane_sums(V a, V b, V c, V d) {
  const Four r0 = folded(a), r1 = folded(b), r2 = folded(c), r3 = folded(d);
  const Four low = __builtin_shufflevector(r0, r1, 0, 4, 1, 5) + __builtin_shufflevector(r0, r1, 2, 6, 3, 7),
             high = __builtin_shufflevector(r2, r3, 0, 4, 1, 5) + __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  // low: two partial sums of r0 and of r1, [r0 r1 r0 r1].
  return __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

template <int kPoints, int kOutputs>
void multiply(const NarrowLine* lines, int64_t count, int64_t first, int64_t length, int64_t step,
              int64_t weight_stride, float* y) {
  constexpr int kTotals = kPoints * kOutputs, kSums = (kTotals + 3) / 4 * 4;
  // Unrolled early, so that the totals are in registers from the first line to the last.
  V total[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) total[i] = V{};
  const auto add = [&](const float* x, const float* weight, const auto& load_some)
      __attribute__((always_inline)) {
    V w[kOutputs];
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) w[o] = load_some(weight + o * weight_stride);
#pragma GCC unroll 8
    for (int p = 0; p < kPoints; ++p) {
      const V some = load_some(x + p * step);
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) total[p * kOutputs + o] += some * w[o];
    }
  };
  for (int64_t line = 0; line < count; ++line) {
    const float *x = lines[line].x + first * step, *weight = lines[line].weight;
    int64_t rest = length;
#if !defined(__AVX512F__)  // where a masked load costs no more than another
    for (; rest >= kLane; rest -= kLane, x += kLane, weight += kLane)
      add(x, weight, [](const float* from) { return load<V>(from); });
#endif
#if defined(__AVX2__)
    for (; rest > 0; rest -= kLane, x += kLane, weight += kLane)
      add(x, weight, [&](const float* from) { return load_first(from, rest < kLane ? rest : kLane); });
#endif
  }
  V stored[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) stored[i] = total[i];
  float sums[kSums];
#pragma GCC unroll 1
  for (int i = 0; i < kTotals; i += 4)
    store(sums + i, lane_sums(stored[i], stored[i + 1], stored[i + 2], stored[i + 3]));
#if !defined(__AVX2__)  // without masked loads, the ends of lines one by one
  for (int64_t line = 0; line < count; ++line)
    for (int64_t i = length / kLane * kLane; i < length; ++i)
#pragma GCC unroll 1
      for (int t = 0; t < kTotals; ++t)
        sums[t] += lines[line].x[(first + t / kOutputs) * step + i] *
                   lines[line].weight[t % kOutputs * weight_stride + i];
#endif
  for (int i = 0; i < kTotals; ++i) y[first * kOutputs + i] = sums[i];
}

template <int kOutputs>
void convolve_to(const NarrowLine* lines, int64_t count, int64_t length, int64_t step, int64_t points,
                 int64_t weight_stride, float* y) {
  constexpr int kPoints = kPointsFor[kOutputs - 1];
  int64_t first = 0;
  for (; first + kPoints <= points; first += kPoints)
    multiply<kPoints, kOutputs>(lines, count, first, length, step, weight_stride, y);
  // A block that computes some points again takes as long as two or three single ones.
  if (first > 0 && first < points)
    return multiply<kPoints, kOutputs>(lines, count, points - kPoints, length, step, weight_stride, y);
  for (; first < points; ++first) multiply<1, kOutputs>(lines, count, first, length, step, weight_stride, y);
}

using Convolve = void (*)(const NarrowLine*, int64_t, int64_t, int64_t, int64_t, int64_t, float*);
struct Table {
  Convolve of[kMostOutputs];
};
template <int... kIndex>
constexpr Table table_of(std::integer_sequence<int, kIndex...>) {
  return {{convolve_to<kIndex + 1>...}};
}

void convolve(const NarrowLine* lines, int64_t count, int64_t length, int64_t step, int64_t points,
              int64_t outputs, int64_t weight_stride, float* y) {
  constexpr Table kTable = table_of(Lanes<kMostOutputs>{});
  kTable.of[outputs - 1](lines, count, length, step, points, weight_stride, y);
}

constexpr NarrowConvLoops make_loops() {
  return {kLane, kMostOutputs, &convolve};
}

}  // namespace
}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(NarrowConvLoops);
