// A task is a block of tiles: their patches are transformed to v [36][tile][C], multiplied with the weights
// u [36][C, O] to m [36][tile][O], and transformed to results. v and m of a block stay in L2. Along one axis
// there are 6 points, and [pieces, C] channels.
#include "backends/cpu/support/winograd_tiles.h"

#include <algorithm>

#include "backends/cpu/simd/winograd_tiles.h"
#include "backends/cpu/support/gemm.h"
#include "backends/cpu/support/packing_kernel.h"
#include "backends/cpu/support/winograd_tiling.h"

namespace librt::cpu {
namespace {

using Loops = WinogradTileLoops;
constexpr int64_t kPoints = Loops::kPoints, kTile = Loops::kTile;
/// Fewer tiles do not pay for reading four times as many weights.
constexpr int64_t kLeastTiles = 12;
/// With 16 the direct convolution is as fast.
constexpr int64_t kLeastChannels = 18;
/// Along one axis multiply-adds are halved, not quartered: with 32 the direct convolution is as fast.
constexpr int64_t kLeastLineChannels = 40;
/// Of as many pieces as make 36 points of a tile.
constexpr int64_t kMostTaps = 3 * Loops::kPoints / Loops::kLinePoints;
static_assert(kMostTaps == 18);
static_assert(kLeastChannels >= Loops::kChannels);
/// Tiles of a block, at most: rows of the GEMMs, which read all weights for each block.
constexpr int64_t kBlock = 28;

using Channels = float[Loops::kChannels];

/// G x of three taps, `step` apart: six points.
void weight_points(const Channels* x, int64_t step, Channels* y, int64_t y_step) noexcept {
  for (int64_t c = 0; c < Loops::kChannels; ++c) {
    const float x0 = x[0][c], x1 = x[step][c], x2 = x[2 * step][c];
    const float outer = (x0 + x2) * (-1.0f / 6), wide = (x0 + 4.0f * x2) * (1.0f / 24);
    y[0][c] = 0.25f * x0;
    y[y_step][c] = outer - x1 * (1.0f / 6);
    y[2 * y_step][c] = outer + x1 * (1.0f / 6);
    y[3 * y_step][c] = wide + x1 * (1.0f / 12);
    y[4 * y_step][c] = wide - x1 * (1.0f / 12);
    y[5 * y_step][c] = x2;
  }
}

/// A convolution along one axis in tiles of four results that are `step`, the dilation, apart. Windows of
/// more than three taps are in pieces, whose products are added in the points.
struct LineTiling {
  struct Place {
    int64_t sample, position;  ///< of a tile's first result
    int64_t count;             ///< of its results
  };
  int64_t length, step, each, count;  ///< each: tiles for each of the `step` first positions

  explicit LineTiling(const ConvGeometry& g) noexcept
      : length(g.axes[0].output),
        step(g.axes[0].dilation),
        each(((length + step - 1) / step + kTile - 1) / kTile),
        count(g.batch * step * each) {}
  Place place(int64_t i) const noexcept {
    const int64_t position = i / each % step + i % each * kTile * step;
    return {i / (each * step), position,
            std::clamp<int64_t>((length - position + step - 1) / step, 0, kTile)};
  }
};

struct Convolution {
  ConvGeometry g;
  bool line;       ///< along one axis
  int64_t points;  ///< of a tile
  int64_t pieces;  ///< of a window
  int64_t depth;   ///< of the GEMMs: channels of all pieces
  const Loops* loops;
  GemmBlocks blocks;  ///< of one point's product
  Finish finish;
  EpilogueInputs inputs;
  WinogradTiling tiling;
  LineTiling line_tiling;
  int64_t tiles;

  Convolution(const CpuDevice& device, const ConvGeometry& geometry, const Finish& last,
              const EpilogueInputs& operands)
      : g(geometry),
        line(geometry.rank == 1),
        points(line ? Loops::kLinePoints : kPoints),
        pieces(line ? (geometry.axes[0].kernel + 2) / 3 : 1),
        depth(pieces * geometry.input_channels),
        loops(&device.simd().loops<Loops>()),
        blocks(device.simd(), kBlock, geometry.output_channels, depth),
        finish(last),
        inputs(operands),
        tiling(geometry, kTile),
        line_tiling(geometry),
        tiles(line ? line_tiling.count : tiling.count) {}

  /// Floats between points, padded: powers of two would map to the same cache sets.
  int64_t v_step() const noexcept { return kBlock * depth + 16; }
  int64_t m_step() const noexcept { return kBlock * g.output_channels + 16; }
  int64_t packed_step() const noexcept { return blocks.packed(); }
  int64_t workspace() const noexcept {
    return points * (v_step() + m_step()) + blocks.loops->rows * depth + 16;
  }

  /// The points of kChannels channels from `first` on of one window, or of one of its pieces.
  void transform(const float* window, int64_t piece, int64_t first, Channels* to) const noexcept {
    const int64_t c = g.input_channels, taps = line ? 3 : 9;
    const int64_t given = line ? std::min(taps, g.axes[0].kernel - piece * 3) : taps;
    Channels x[9] = {};
    for (int64_t tap = 0; tap < given; ++tap)
      std::copy_n(window + (piece * 3 + tap) * c + first, Loops::kChannels, x[tap]);
    if (line) return weight_points(x, 1, to, 1);
    Channels half_way[18];
    for (int64_t i = 0; i < 3; ++i) weight_points(x + i, 3, half_way + i, 3);
    for (int64_t i = 0; i < 6; ++i) weight_points(half_way + i * 3, 1, to + i * 6, 1);
  }

  void pack(const float* weight, float* u) const noexcept {
    const int64_t width = blocks.loops->columns, c = g.input_channels, o = g.output_channels,
                  taps = line ? g.axes[0].kernel : 9;
    parallel_for(blocks.column_panels(), width * depth * points, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t panel = begin; panel < end; ++panel)
        for (int64_t piece = 0; piece < pieces; ++piece)
          for (int64_t step = 0; step < c; step += Loops::kChannels) {
            const int64_t first = std::min(step, c - Loops::kChannels);
            float values[kPoints][GemmLoops::kMostColumns * Loops::kChannels] = {};
            const int64_t count = std::min(width, o - panel * width);
            for (int64_t j = 0; j < count; ++j) {
              Channels of_window[kPoints];
              transform(weight + (panel * width + j) * taps * c, piece, first, of_window);
              for (int64_t p = 0; p < points; ++p)
                std::copy_n(of_window[p], Loops::kChannels, values[p] + j * Loops::kChannels);
            }
            for (int64_t p = 0; p < points; ++p)
              gather_rows(*blocks.loops, values[p], Loops::kChannels, count, Loops::kChannels,
                          u + p * packed_step() + (panel * depth + piece * c + first) * width, width);
          }
    });
  }

  /// m = v u of `count` tiles, for one point.
  void multiply(const float* v, const float* u, float* m, int64_t count, float* panel) const noexcept {
    const GemmLoops& gemm = *blocks.loops;
    const int64_t o = g.output_channels;
    const bool in_place = blocks.in_place(depth);
    for (int64_t row = 0; row < count; row += gemm.rows) {
      const int64_t rows = std::min(gemm.rows, count - row);
      const bool whole = in_place && rows == gemm.rows;
      if (!whole) gather_rows(gemm, v + row * depth, depth, rows, depth, panel, gemm.rows);
      for (int64_t k0 = 0; k0 < depth; k0 += GemmBlocks::kDepth) {
        const int64_t steps = std::min(GemmBlocks::kDepth, depth - k0);
        for (int64_t j = 0; j < blocks.column_panels(); ++j) {
          const int64_t first = j * gemm.columns, width = std::min(gemm.columns, o - first);
          const float* const b = u + (j * depth + k0) * gemm.columns;
          if (whole)
            gemm.rows_tile(v + row * depth + k0, depth, b, steps, m + row * o + first, o, width, k0 > 0);
          else
            gemm.tile(panel + k0 * gemm.rows, b, steps, m + row * o + first, o, rows, width, k0 > 0);
        }
      }
    }
  }

  void read_tile(const float* x, int64_t tile, float* v) const noexcept {
    const int64_t c = g.input_channels;
    const WindowAxis& first = g.axes[0];
    if (line) {
      const auto [sample, position, count] = line_tiling.place(tile);
      for (int64_t piece = 0; piece < pieces; ++piece)
        loops->line_patch(x + sample * first.input * c, first.input, c,
                          position - first.pad_begin + piece * 3 * first.dilation, first.dilation,
                          v + piece * c, v_step());
      return;
    }
    const WindowAxis& columns = g.axes[1];
    const auto [sample, row, column] = tiling.place(tile);
    loops->patch(x + sample * first.input * columns.input * c, first.input, columns.input, c,
                 row - first.pad_begin, column - columns.pad_begin, v, v_step());
  }

  void write_tile(const float* m, int64_t tile, float* y, const float* bias,
                  const float* residual) const noexcept {
    const int64_t o = g.output_channels;
    if (line) {
      const auto [sample, position, count] = line_tiling.place(tile);
      const int64_t at = (sample * line_tiling.length + position) * o, step = line_tiling.step * o;
      loops->line_results(m, m_step(), o, y + at, line_tiling.step, count);
      if (step == o) return finish.run_part(y, bias, residual, at, at + count * o);
      for (int64_t i = 0; i < count; ++i)
        finish.run_part(y, bias, residual, at + i * step, at + i * step + o);
      return;
    }
    const WindowAxis &rows = g.axes[0], &columns = g.axes[1];
    const auto [sample, row, column] = tiling.place(tile);
    const int64_t height = std::min(kTile, rows.output - row),
                  width = std::min(kTile, columns.output - column), along = columns.output * o;
    const int64_t at = (sample * rows.output + row) * along + column * o;
    loops->results(m, m_step(), o, y + at, along, height, width);
    for (int64_t i = 0; i < height; ++i)
      finish.run_part(y, bias, residual, at + i * along, at + i * along + width * o);
  }

  /// Tiles [begin, end), at most kBlock.
  void run_block(const Call& call, const float* u, int64_t begin, int64_t end, float* v) const noexcept {
    float* const m = v + points * v_step();
    float* const panel = m + points * m_step();
    for (int64_t tile = begin; tile < end; ++tile)
      read_tile(call.in<float>(0), tile, v + (tile - begin) * depth);
    for (int64_t p = 0; p < points; ++p)
      multiply(v + p * v_step(), u + p * packed_step(), m + p * m_step(), end - begin, panel);
    const float* const bias = inputs.bias >= 0 ? call.in<float>(static_cast<size_t>(inputs.bias)) : nullptr;
    const float* const residual =
        inputs.residual >= 0 ? call.in<float>(static_cast<size_t>(inputs.residual)) : nullptr;
    for (int64_t tile = begin; tile < end; ++tile)
      write_tile(m + (tile - begin) * g.output_channels, tile, call.out<float>(), bias, residual);
  }

  void run(const Call& call, const float* u, float* workspaces) const noexcept {
    const int64_t parts = max_threads();
    const int64_t least = (tiles + kBlock - 1) / kBlock;
    const int64_t count = std::min(tiles, (least + parts - 1) / parts * parts);
    parallel_for(count, points * kBlock * depth * g.output_channels / 8, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   float* const workspace = workspaces + thread_index() * this->workspace();
                   for (int64_t block = begin; block < end; ++block) {
                     const Range range = part_of(tiles, block, count);
                     run_block(call, u, range.begin, range.end, workspace);
                   }
                 });
  }
};

}  // namespace

Status supports_winograd_tiles(const ConvGeometry& g) {
  if (g.rank == 1) {
    const WindowAxis& axis = g.axes[0];
    if (g.groups != 1 || axis.kernel < 3 || axis.kernel > kMostTaps || axis.stride != 1)
      return unsupported("Winograd needs one group, 3 to 18 taps and stride 1");
  } else {
    RT_TRY(supports_winograd_windows(g));
  }
  const int64_t least = g.rank == 1 ? kLeastLineChannels : kLeastChannels;
  if (g.input_channels < least || g.output_channels < least)
    return unsupported("channels must be ", least, " or more, not ", g.input_channels, " and ",
                       g.output_channels);
  const int64_t tiles = g.rank == 1 ? LineTiling(g).count : WinogradTiling(g, kTile).count;
  if (tiles < kLeastTiles) return unsupported("Winograd is not faster for ", tiles, " tiles of 4x4 results");
  return {};
}

Result<KernelPtr> make_winograd_tiles(const CpuDevice& device, const ConvGeometry& geometry,
                                      const float* weight, const Finish& finish,
                                      const EpilogueInputs& inputs) {
  if (!all_finite(DType::F32, reinterpret_cast<const std::byte*>(weight), geometry.weight_shape().elements()))
    return unsupported("a weight is not finite");
  const auto conv = std::make_shared<const Convolution>(device, geometry, finish, inputs);
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(device.info().threads * conv->workspace()) * sizeof(float);
  const PackedOperand weights(weight, static_cast<size_t>(conv->points * conv->packed_step()) * sizeof(float),
                              0x77696e6f00ull, 1, requirements);
  auto body = [=](const Call& call) noexcept {
    conv->run(call, call.packed<float>(), call.scratch<float>());
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { conv->pack(weight, to); }, std::move(body), requirements);
}

}  // namespace librt::cpu
