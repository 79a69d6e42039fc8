#include "backends/cpu/simd/winograd_tiles.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/simd/winograd_points.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

using V = Vector<float>;
using Loops = WinogradTileLoops;
constexpr int64_t kLane = kLanes<float>;
static_assert(Loops::kChannels % kLane == 0);

/// body(first channel of a vector); the last one begins earlier where the channels do not fill it.
template <class Body>
RT_INLINE void for_lanes(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLane <= channels; c += kLane) body(c);
  if (c < channels) body(channels - kLane);
}

void patch(const float* image, int64_t height, int64_t width, int64_t channels, int64_t row, int64_t column,
           float* v, int64_t v_step) {
  for_lanes(channels, [&](int64_t c) {
    V x[Loops::kPoints], points[Loops::kPoints];
    load_window<6>(image + c, height, width, channels, row, column, x);
    both_ways<6, 6, patch_points<V>>(x, points);
    for (int64_t p = 0; p < Loops::kPoints; ++p) store(v + p * v_step + c, points[p]);
  });
}

void results(const float* m, int64_t m_step, int64_t channels, float* y, int64_t row_step, int64_t rows,
             int64_t columns) {
  for_lanes(channels, [&](int64_t c) {
    V points[Loops::kPoints], tile[Loops::kTile * Loops::kTile];
    for (int64_t p = 0; p < Loops::kPoints; ++p) points[p] = load<V>(m + p * m_step + c);
    both_ways<6, 4, points_results<V>>(points, tile);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < columns; ++k)
        store(y + i * row_step + k * channels + c, tile[i * Loops::kTile + k]);
  });
}

void weights(const float* window, int64_t tap_step, float* u, int64_t u_step) {
  for (int64_t c = 0; c < Loops::kChannels; c += kLane) {
    V taps[9], points[Loops::kPoints];
    for (int64_t tap = 0; tap < 9; ++tap) taps[tap] = load<V>(window + tap * tap_step + c);
    both_ways<3, 6, weight_points<V>>(taps, points);
    for (int64_t p = 0; p < Loops::kPoints; ++p) store(u + p * u_step + c, points[p]);
  }
}

constexpr WinogradTileLoops make_loops() {
  return {&patch, &results, &weights};
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WinogradTileLoops);
