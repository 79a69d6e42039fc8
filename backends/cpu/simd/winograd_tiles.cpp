#include "backends/cpu/simd/winograd_tiles.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/simd/winograd_points.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

using V = Vector<float>;
using Loops = WinogradTileLoops;
constexpr int64_t kLane = kLanes<float>;
static_assert(Loops::kChannels >= kLane);

/// body(first channel of a vector); the last one begins earlier where the channels do not fill it.
template <class Body>
RT_INLINE void for_lanes(int64_t channels, const Body& body) {
  for (int64_t c = 0; c < channels; c += kLane) body(c + kLane <= channels ? c : channels - kLane);
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

void line_patch(const float* line, int64_t length, int64_t channels, int64_t position, int64_t step, float* v,
                int64_t v_step) {
  for_lanes(channels, [&](int64_t c) {
    V x[Loops::kLinePoints], points[Loops::kLinePoints];
    for (int64_t i = 0; i < Loops::kLinePoints; ++i) {
      const int64_t at = position + i * step;
      x[i] = at >= 0 && at < length ? load<V>(line + at * channels + c) : V{};
    }
    patch_points(x, 1, points, 1);
    for (int64_t p = 0; p < Loops::kLinePoints; ++p) store(v + p * v_step + c, points[p]);
  });
}

void line_results(const float* m, int64_t m_step, int64_t channels, float* y, int64_t step, int64_t count) {
  for_lanes(channels, [&](int64_t c) {
    V points[Loops::kLinePoints], results[Loops::kTile];
    for (int64_t p = 0; p < Loops::kLinePoints; ++p) points[p] = load<V>(m + p * m_step + c);
    points_results(points, 1, results, 1);
    for (int64_t i = 0; i < count; ++i) store(y + i * step * channels + c, results[i]);
  });
}

constexpr WinogradTileLoops make_loops() {
  return {&patch, &results, &line_patch, &line_results};
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WinogradTileLoops);
