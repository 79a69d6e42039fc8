// GEMM y = a b from panels: what is packed when, the blocks that stay in caches, the split among threads.
//
// Knows: sizes, the tiles of simd/gemm.h. Must not know: where elements of a and b come from (matrices in
// support/matmul_gemm.h, windows of images in support/conv_gemm.h), operators.
//
// A task is a block of rows times a block of columns of one product. It goes through k in steps of kDepth:
// fills its panels of a (they stay in L2), and multiplies each panel of b (which stays in L1) with all of
// them. The sum of an element is over k in order, whatever the blocks are: results do not depend on threads.
#pragma once

#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/gemm.h"

namespace librt::cpu {

struct GemmBlocks {
  static constexpr int64_t kDepth = 384;    ///< a panel of b: 18 KB with NEON, 48 KB with AVX-512
  static constexpr int64_t kRowPanels = 8;  ///< at most, of a task
  static constexpr int64_t kColumnPanels = 32;

  const GemmLoops* loops = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool fills_b = false;  ///< b is filled for each task; otherwise it is packed before

  GemmBlocks() = default;
  GemmBlocks(const Simd& simd, int64_t rows, int64_t columns, int64_t depth, bool fill_b = false)
      : loops(&simd.loops<GemmLoops>()), m(rows), n(columns), k(depth), fills_b(fill_b) {}

  int64_t row_panels() const noexcept { return (m + loops->rows - 1) / loops->rows; }
  int64_t column_panels() const noexcept { return (n + loops->columns - 1) / loops->columns; }
  /// Floats of b packed: [panel][k][columns].
  int64_t packed() const noexcept { return column_panels() * loops->columns * k; }
  /// Floats that a thread fills panels into.
  int64_t workspace() const noexcept {
    const int64_t panels = kRowPanels * loops->rows + (fills_b ? loops->columns : 0);
    return (panels * std::min(k, kDepth) + 15) / 16 * 16;
  }
};

/// Rows of panels that lie outside of a matrix or an image.
inline constexpr float kZeroRow[GemmBlocks::kDepth] = {};

/// A panel from `count` rows of k floats, `stride` apart, and zeros up to the panel's width.
inline void gather_rows(const GemmLoops& loops, const float* x, int64_t stride, int64_t count, int64_t k,
                        float* to, int64_t width) noexcept {
  const float* rows[GemmLoops::kMostColumns];
  for (int64_t k0 = 0; k0 < k; k0 += GemmBlocks::kDepth) {
    for (int64_t j = 0; j < width; ++j) rows[j] = j < count ? x + j * stride + k0 : kZeroRow;
    loops.gather(rows, std::min(GemmBlocks::kDepth, k - k0), to + k0 * width, width);
  }
}

/// `count` products of the same sizes. fill_a(product, panel, first k, steps of k, to) writes a panel of a;
/// b_panel(product, panel, first k, steps of k, buffer) returns one of b, where fills_b filled into the
/// buffer; y(product) is the address of a result, whose rows are `stride` apart. workspaces:
/// blocks.workspace() floats for each of max_threads().
template <class FillA, class PanelB, class Result>
void multiply_panels(const GemmBlocks& blocks, int64_t count, const FillA& fill_a, const PanelB& b_panel,
                     const Result& y, int64_t stride, float* workspaces) noexcept {
  const GemmLoops& loops = *blocks.loops;
  const int64_t all_rows = blocks.row_panels(), all_columns = blocks.column_panels();
  // Smaller blocks where there would be too few tasks for the threads.
  const int64_t wanted = max_threads() == 1 ? 1 : int64_t{4} * max_threads();
  int64_t row_panels = std::min(all_rows, GemmBlocks::kRowPanels),
          column_panels = std::min(all_columns, GemmBlocks::kColumnPanels);
  const auto blocks_of = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  const auto tasks = [&] {
    return count * blocks_of(all_rows, row_panels) * blocks_of(all_columns, column_panels);
  };
  while (tasks() < wanted && (row_panels > 1 || column_panels > 1))
    (row_panels >= column_panels ? row_panels : column_panels) =
        (std::max(row_panels, column_panels) + 1) / 2;
  const int64_t row_blocks = blocks_of(all_rows, row_panels),
                column_blocks = blocks_of(all_columns, column_panels);
  const auto run_task = [&](int64_t task, float* workspace) noexcept {
    const int64_t product = task / (row_blocks * column_blocks);
    const int64_t rows = task / column_blocks % row_blocks * row_panels,
                  columns = task % column_blocks * column_panels;
    const int64_t rows_end = std::min(rows + row_panels, all_rows),
                  columns_end = std::min(columns + column_panels, all_columns);
    float* const result = y(product);
    for (int64_t k0 = 0; k0 < blocks.k; k0 += GemmBlocks::kDepth) {
      const int64_t steps = std::min(GemmBlocks::kDepth, blocks.k - k0);
      float* const panels = workspace;
      float* const buffer = workspace + row_panels * loops.rows * steps;
      for (int64_t i = rows; i < rows_end; ++i)
        fill_a(product, i, k0, steps, panels + (i - rows) * loops.rows * steps);
      for (int64_t j = columns; j < columns_end; ++j) {
        const float* const b = b_panel(product, j, k0, steps, buffer);
        const int64_t width = std::min(loops.columns, blocks.n - j * loops.columns);
        for (int64_t i = rows; i < rows_end; ++i)
          loops.tile(panels + (i - rows) * loops.rows * steps, b, steps,
                     result + i * loops.rows * stride + j * loops.columns, stride,
                     std::min(loops.rows, blocks.m - i * loops.rows), width, k0 > 0);
      }
    }
  };
  const int64_t work = row_panels * loops.rows * column_panels * loops.columns * blocks.k / 8;
  const int64_t workspace = blocks.workspace();
  parallel_for(tasks(), work, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t task = begin; task < end; ++task) run_task(task, workspaces + thread_index() * workspace);
  });
}

}  // namespace librt::cpu
