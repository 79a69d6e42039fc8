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
  static constexpr int64_t kRowPanels = 8;  ///< at most, of a task that is one of several
  /// As many rows are one task's where b does not stay in L2: it is then read once. A matmul of 128 x 768 x
  /// 3072 takes 0.84 of the time with AVX2 (22 panels of a, 196 KB). Not with NEON, whose CPUs have a small
  /// L2.
  static constexpr int64_t kWholeRows = 144, kLargeB = int64_t{1} << 18;  ///< floats
  static constexpr int64_t kMostRowPanels = 36;                           ///< of any task
  static constexpr int64_t kColumnPanels = 32;

  const GemmLoops* loops = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool fills_b = false;  ///< b is filled for each task; otherwise it is packed before

  GemmBlocks() = default;
  GemmBlocks(const Simd& simd, int64_t rows, int64_t columns, int64_t depth, bool fill_b = false)
      : loops(&simd.loops<GemmLoops>()), m(rows), n(columns), k(depth), fills_b(fill_b) {}

  /// Whether a panel's rows, `stride` floats apart, are better read in place than packed: where few panels of
  /// b would share the packed one, or where the rows do not fall into the same set of L1 (rows
  /// of a multiple of 4 KB do) and are not so short that a tile's first loads are most of its time. On a Zen
  /// 4, packing takes 1.42 of the time for 12544 x 32 x 16 and 1.14 for 3136 x 256 x 64, and saves a third
  /// for 128 x 3072 x 768.
  bool in_place(int64_t stride) const noexcept {
    return loops->rows_tile != nullptr && (column_panels() <= 4 || (stride % 1024 != 0 && stride >= 24));
  }

  int64_t row_panels() const noexcept { return (m + loops->rows - 1) / loops->rows; }
  int64_t column_panels() const noexcept { return (n + loops->columns - 1) / loops->columns; }
  int64_t most_row_panels() const noexcept {
    const bool whole =
        loops->rows_tile != nullptr && n * k > kLargeB && row_panels() * loops->rows <= kWholeRows;
    return whole ? row_panels() : kRowPanels;
  }
  /// Floats of b packed: [panel][k][columns].
  int64_t packed() const noexcept { return column_panels() * loops->columns * k; }
  /// Floats that a thread fills panels into.
  int64_t workspace() const noexcept {
    const int64_t panels = most_row_panels() * loops->rows + (fills_b ? loops->columns : 0);
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

/// A panel of a: packed, or a whole tile's rows where they are, `stride` floats apart.
struct PanelA {
  const float* at = nullptr;
  int64_t stride = 0;  ///< 0: packed
};

/// The blocks of a result that the tasks compute: panels of rows times panels of columns, of `count`
/// products.
class GemmTasks {
 public:
  struct Block {
    int64_t product;
    Range rows, columns;  ///< panels
  };

  /// The most panels of a block are halved where there would be too few tasks for the threads.
  GemmTasks(int64_t count, int64_t all_rows, int64_t all_columns, int64_t most_rows, int64_t most_columns)
      : count_(count),
        all_rows_(all_rows),
        all_columns_(all_columns),
        rows_(std::min(all_rows, most_rows)),
        columns_(std::min(all_columns, most_columns)) {
    const int64_t wanted = max_threads() == 1 ? 1 : int64_t{4} * max_threads();
    while (size() < wanted && (rows_ > 1 || columns_ > 1)) {
      int64_t& longer = rows_ >= columns_ ? rows_ : columns_;
      longer = (longer + 1) / 2;
    }
  }
  int64_t size() const noexcept { return count_ * row_blocks() * column_blocks(); }
  int64_t row_panels() const noexcept { return rows_; }  ///< at most, of a block
  int64_t column_panels() const noexcept { return columns_; }
  Block operator[](int64_t task) const noexcept {
    const int64_t rows = task / column_blocks() % row_blocks() * rows_,
                  columns = task % column_blocks() * columns_;
    return {task / (row_blocks() * column_blocks()),
            {rows, std::min(rows + rows_, all_rows_)},
            {columns, std::min(columns + columns_, all_columns_)}};
  }

 private:
  int64_t row_blocks() const noexcept { return (all_rows_ + rows_ - 1) / rows_; }
  int64_t column_blocks() const noexcept { return (all_columns_ + columns_ - 1) / columns_; }

  int64_t count_, all_rows_, all_columns_, rows_, columns_;
};

/// `count` products of the same sizes. a_panel(product, panel, first k, steps of k, buffer) returns a panel
/// of a, in the buffer where it is packed; b_panel(product, panel, first k, steps of k, buffer) returns one
/// of b, where fills_b filled into the buffer; y(product) is the address of a result, whose rows are `stride`
/// apart. done(product, rows, columns) is called for each block of a result, by the thread that computed it.
/// workspaces: blocks.workspace() floats for each of max_threads().
template <class PanelOfA, class PanelOfB, class Result, class Done>
void multiply_panels(const GemmBlocks& blocks, int64_t count, const PanelOfA& a_panel,
                     const PanelOfB& b_panel, const Result& y, int64_t stride, const Done& done,
                     float* workspaces) noexcept {
  const GemmLoops& loops = *blocks.loops;
  const GemmTasks tasks(count, blocks.row_panels(), blocks.column_panels(), blocks.most_row_panels(),
                        GemmBlocks::kColumnPanels);
  const auto run_task = [&](int64_t task, float* workspace) noexcept {
    const auto [product, rows, columns] = tasks[task];
    float* const result = y(product);
    for (int64_t k0 = 0; k0 < blocks.k; k0 += GemmBlocks::kDepth) {
      const int64_t steps = std::min(GemmBlocks::kDepth, blocks.k - k0);
      float* const panels = workspace;
      float* const buffer = workspace + tasks.row_panels() * loops.rows * steps;
      PanelA a[GemmBlocks::kMostRowPanels];
      for (int64_t i = rows.begin; i < rows.end; ++i)
        a[i - rows.begin] = a_panel(product, i, k0, steps, panels + (i - rows.begin) * loops.rows * steps);
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const float* const b = b_panel(product, j, k0, steps, buffer);
        const int64_t width = std::min(loops.columns, blocks.n - j * loops.columns);
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          const PanelA& panel = a[i - rows.begin];
          float* const to = result + i * loops.rows * stride + j * loops.columns;
          if (panel.stride != 0)
            loops.rows_tile(panel.at, panel.stride, b, steps, to, stride, width, k0 > 0);
          else
            loops.tile(panel.at, b, steps, to, stride, std::min(loops.rows, blocks.m - i * loops.rows), width,
                       k0 > 0);
        }
      }
    }
    done(product, Range{rows.begin * loops.rows, std::min(rows.end * loops.rows, blocks.m)},
         Range{columns.begin * loops.columns, std::min(columns.end * loops.columns, blocks.n)});
  };
  const int64_t work = tasks.row_panels() * loops.rows * tasks.column_panels() * loops.columns * blocks.k / 8;
  const int64_t workspace = blocks.workspace();
  parallel_for(tasks.size(), work, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t task = begin; task < end; ++task) run_task(task, workspaces + thread_index() * workspace);
  });
}

}  // namespace librt::cpu
