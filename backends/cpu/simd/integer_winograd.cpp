#include "backends/cpu/simd/integer_winograd.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/simd/winograd_points.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

using Loops = IntegerWinogradLoops;
constexpr int64_t kPoints = Loops::kPoints;
using Words = Vector < int16_t, kVectorBytes<32 ? kVectorBytes : 32>;
constexpr int64_t kWords = sizeof(Words) / sizeof(int16_t);
using Sums = Vector<uint32_t>;
constexpr int64_t kSums = kLanes<uint32_t>;
static_assert(Loops::kChannels % kWords == 0 && Loops::kChannels % kSums == 0);

template <class T>
RT_INLINE Words widened(const T* x) {
  return __builtin_convertvector((load<Vector<T, static_cast<int>(kWords)> >(x)), Words);
}

// --- the 1-D transforms of four, three and four values

/// B' x
template <class V>
RT_INLINE void patch_to_points(const V* x, int64_t step, V* y, int64_t y_step) {
  const V x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step];
  y[0] = x0 - x2;
  y[y_step] = x1 + x2;
  y[2 * y_step] = x2 - x1;
  y[3 * y_step] = x1 - x3;
}
/// 2 G x
template <class V>
RT_INLINE void weights_to_points(const V* x, int64_t step, V* y, int64_t y_step) {
  const V outer = x[0] + x[2 * step];
  y[0] = x[0] + x[0];
  y[y_step] = outer + x[step];
  y[2 * y_step] = outer - x[step];
  y[3 * y_step] = x[2 * step] + x[2 * step];
}
/// A' x
template <class V>
RT_INLINE void points_to_results(const V* x, int64_t step, V* y, int64_t y_step) {
  y[0] = x[0] + x[step] + x[2 * step];
  y[y_step] = x[step] - x[2 * step] - x[3 * step];
}

template <class T>
void patch(const uint8_t* const* x, int64_t channels, int16_t* v, int64_t v_step) {
  for (int64_t c = 0; c < channels; c += kWords) {
    Words elements[kPoints], points[kPoints];
    for (int64_t i = 0; i < kPoints; ++i) elements[i] = widened(reinterpret_cast<const T*>(x[i]) + c);
    both_ways<4, 4, patch_to_points<Words> >(elements, points);
    for (int64_t p = 0; p < kPoints; ++p) store(v + p * v_step + c, points[p]);
  }
}

void weights(const int8_t* window, int64_t tap_step, int16_t* u, int64_t u_step) {
  for (int64_t c = 0; c < Loops::kChannels; c += kWords) {
    Words taps[9], points[kPoints];
    for (int64_t tap = 0; tap < 9; ++tap) taps[tap] = widened(window + tap * tap_step + c);
    both_ways<3, 4, weights_to_points<Words> >(taps, points);
    for (int64_t p = 0; p < kPoints; ++p) store(u + p * u_step + c, points[p]);
  }
}

void results(const int32_t* m, int64_t m_step, int64_t channels, int32_t* y) {
  for (int64_t c = 0; c < channels; c += kSums) {
    Sums points[kPoints], tile[Loops::kTile * Loops::kTile];
    for (int64_t p = 0; p < kPoints; ++p) points[p] = load<Sums>(m + p * m_step + c);
    both_ways<4, 2, points_to_results<Sums> >(points, tile);
    for (int64_t i = 0; i < Loops::kTile * Loops::kTile; ++i)
      store(y + i * channels + c, (Vector<int32_t>)tile[i] >> 2);
  }
}

constexpr IntegerWinogradLoops make_loops() {
  return {{&patch<int8_t>, &patch<uint8_t>}, &weights, &results};
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(IntegerWinogradLoops);
