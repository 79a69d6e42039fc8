// A task is a block of tiles: their patches are transformed to v [36][tile][C], multiplied with the weights
// u [36][C, O] to m [36][tile][O], and transformed to results. v and m of a block stay in L2.
#include "backends/cpu/support/winograd_tiles.h"

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
static_assert(kLeastChannels >= Loops::kChannels);
/// Tiles of a block, at most: rows of the GEMMs, which read all weights for each block.
constexpr int64_t kBlock = 28;

struct Convolution {
  ConvGeometry g;
  const Loops* loops;
  GemmBlocks blocks;  ///< of one point's product
  Finish finish;
  EpilogueInputs inputs;
  WinogradTiling tiling;
  int64_t tiles;

  Convolution(const CpuDevice& device, const ConvGeometry& geometry, const Finish& last,
              const EpilogueInputs& operands)
      : g(geometry),
        loops(&device.simd().loops<Loops>()),
        blocks(device.simd(), kBlock, geometry.output_channels, geometry.input_channels),
        finish(last),
        inputs(operands),
        tiling(geometry, kTile),
        tiles(tiling.count) {}

  /// Floats between points, padded: powers of two would map to the same cache sets.
  int64_t v_step() const noexcept { return kBlock * g.input_channels + 16; }
  int64_t m_step() const noexcept { return kBlock * g.output_channels + 16; }
  int64_t packed_step() const noexcept { return blocks.packed(); }
  int64_t workspace() const noexcept {
    return kPoints * (v_step() + m_step()) + blocks.loops->rows * g.input_channels + 16;
  }

  void pack(const float* weight, float* u) const noexcept {
    const int64_t width = blocks.loops->columns, c = g.input_channels, o = g.output_channels;
    parallel_for(blocks.column_panels(), width * c * kPoints, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t panel = begin; panel < end; ++panel)
        for (int64_t step = 0; step < c; step += Loops::kChannels) {
          const int64_t first = std::min(step, c - Loops::kChannels);
          float points[kPoints][GemmLoops::kMostColumns * Loops::kChannels] = {};
          const int64_t count = std::min(width, o - panel * width);
          for (int64_t j = 0; j < count; ++j)
            loops->weights(weight + (panel * width + j) * 9 * c + first, c,
                           &points[0][0] + j * Loops::kChannels, std::size(points[0]));
          for (int64_t p = 0; p < kPoints; ++p)
            gather_rows(*blocks.loops, points[p], Loops::kChannels, count, Loops::kChannels,
                        u + p * packed_step() + (panel * c + first) * width, width);
        }
    });
  }

  /// m = v u of `count` tiles, for one point.
  void multiply(const float* v, const float* u, float* m, int64_t count, float* panel) const noexcept {
    const GemmLoops& gemm = *blocks.loops;
    const int64_t c = g.input_channels, o = g.output_channels;
    const bool in_place = blocks.in_place(c);
    for (int64_t row = 0; row < count; row += gemm.rows) {
      const int64_t rows = std::min(gemm.rows, count - row);
      const bool whole = in_place && rows == gemm.rows;
      if (!whole) gather_rows(gemm, v + row * c, c, rows, c, panel, gemm.rows);
      for (int64_t k0 = 0; k0 < c; k0 += GemmBlocks::kDepth) {
        const int64_t steps = std::min(GemmBlocks::kDepth, c - k0);
        for (int64_t j = 0; j < blocks.column_panels(); ++j) {
          const int64_t first = j * gemm.columns, width = std::min(gemm.columns, o - first);
          const float* const b = u + (j * c + k0) * gemm.columns;
          if (whole)
            gemm.rows_tile(v + row * c + k0, c, b, steps, m + row * o + first, o, width, k0 > 0);
          else
            gemm.tile(panel + k0 * gemm.rows, b, steps, m + row * o + first, o, rows, width, k0 > 0);
        }
      }
    }
  }

  /// Tiles [begin, end), at most kBlock.
  void run_block(const Call& call, const float* u, int64_t begin, int64_t end, float* v) const noexcept {
    const WindowAxis &rows = g.axes[0], &columns = g.axes[1];
    const int64_t c = g.input_channels, o = g.output_channels;
    float* const m = v + kPoints * v_step();
    float* const panel = m + kPoints * m_step();
    for (int64_t tile = begin; tile < end; ++tile) {
      const auto [sample, row, column] = tiling.place(tile);
      loops->patch(call.in<float>(0) + sample * rows.input * columns.input * c, rows.input, columns.input, c,
                   row - rows.pad_begin, column - columns.pad_begin, v + (tile - begin) * c, v_step());
    }
    for (int64_t p = 0; p < kPoints; ++p)
      multiply(v + p * v_step(), u + p * packed_step(), m + p * m_step(), end - begin, panel);
    const float* const bias = inputs.bias >= 0 ? call.in<float>(static_cast<size_t>(inputs.bias)) : nullptr;
    const float* const residual =
        inputs.residual >= 0 ? call.in<float>(static_cast<size_t>(inputs.residual)) : nullptr;
    for (int64_t tile = begin; tile < end; ++tile) {
      const auto [sample, row, column] = tiling.place(tile);
      const int64_t height = std::min(kTile, rows.output - row),
                    width = std::min(kTile, columns.output - column), line = columns.output * o;
      const int64_t at = (sample * rows.output + row) * line + column * o;
      loops->results(m + (tile - begin) * o, m_step(), o, call.out<float>() + at, line, height, width);
      for (int64_t i = 0; i < height; ++i)
        finish.run_part(call.out<float>(), bias, residual, at + i * line, at + i * line + width * o);
    }
  }

  void run(const Call& call, const float* u, float* workspaces) const noexcept {
    const int64_t parts = max_threads();
    const int64_t least = (tiles + kBlock - 1) / kBlock;
    const int64_t count = std::min(tiles, (least + parts - 1) / parts * parts);
    parallel_for(count, kPoints * kBlock * g.input_channels * g.output_channels / 8, 1,
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
  RT_TRY(supports_winograd_windows(g));
  if (g.input_channels < kLeastChannels || g.output_channels < kLeastChannels)
    return unsupported("channels must be ", kLeastChannels, " or more, not ", g.input_channels, " and ",
                       g.output_channels);
  const int64_t tiles = WinogradTiling(g, kTile).count;
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
  const PackedOperand weights(weight, static_cast<size_t>(kPoints * conv->packed_step()) * sizeof(float),
                              0x77696e6f00ull, 1, requirements);
  auto body = [=](const Call& call) noexcept {
    conv->run(call, call.packed<float>(), call.scratch<float>());
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { conv->pack(weight, to); }, std::move(body), requirements);
}

}  // namespace librt::cpu
