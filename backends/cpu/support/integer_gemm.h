// GEMM of 8-bit integers y = a b, exact modulo 2^32, from panels, for CPUs with dot products of 8-bit
// integers.
//
// Knows: sizes, the tiles of simd/integer_gemm.h, how integers are shifted for them. Must not know: where
// elements of a and b come from, operators.
//
// The tiles take one signedness of a, and signed b: operands of the other one are shifted by 128, their zero
// points with them, and the caller corrects for zero points afterwards (correct_row).
#pragma once

#include <algorithm>
#include <cstring>

#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/integer_gemm.h"
#include "backends/cpu/simd/quantize.h"
#include "backends/cpu/support/gemm.h"

namespace librt::cpu {

struct IntegerBlocks {
  static constexpr int64_t kRowPanels = 8, kColumnPanels = 32;  ///< at most, of a task

  const Simd* simd = nullptr;
  const IntegerGemmLoops* loops = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool flips_a = false, flips_b = false;

  IntegerBlocks() = default;
  IntegerBlocks(const Simd& set, int64_t rows, int64_t columns, int64_t depth, bool a_signed, bool b_signed)
      : simd(&set),
        loops(&set.loops<IntegerGemmLoops>()),
        m(rows),
        n(columns),
        k(depth),
        flips_a(a_signed != loops->a_signed),
        flips_b(!b_signed) {}

  static bool usable(const Simd& simd) noexcept {
    return simd.dot_products && simd.loops<IntegerGemmLoops>().tile != nullptr;
  }
  /// What the tiles' integers are less than the operands'.
  int32_t a_shift() const noexcept { return !flips_a ? 0 : loops->a_signed ? 128 : -128; }
  int32_t b_shift() const noexcept { return flips_b ? 128 : 0; }

  int64_t quads() const noexcept { return (k + 3) / 4; }
  int64_t depth() const noexcept { return 4 * quads(); }  ///< bytes of a row in panels
  int64_t row_panels() const noexcept { return (m + loops->rows - 1) / loops->rows; }
  int64_t column_panels() const noexcept { return (n + loops->columns - 1) / loops->columns; }
  /// Bytes of b packed: [panel][quads][columns][4], then the columns' sums in 32 bits.
  int64_t sums_at() const noexcept { return column_panels() * loops->columns * depth(); }
  int64_t packed() const noexcept { return (sums_at() + n * 4 + 63) / 64 * 64; }
  /// Bytes that a thread fills: panels and rows of a, and the rows' sums.
  int64_t workspace() const noexcept {
    return ((kRowPanels + 1) * loops->rows * depth() + kRowPanels * loops->rows * 4 + 63) / 64 * 64;
  }

  /// A row of a as the tiles take it: `from` itself, or a copy in `copied` (depth() bytes), where it may be.
  const uint8_t* row(const uint8_t* from, uint8_t* copied) const noexcept {
    if (!flips_a && k == depth()) return from;
    if (flips_a)
      loops->flip(from, copied, k);
    else if (from != copied)
      std::memcpy(copied, from, static_cast<size_t>(k));
    std::memset(copied + k, 0, static_cast<size_t>(depth() - k));
    return copied;
  }
  /// A panel of `width` rows, quads next to each other: 32-bit words, as a panel of floats has them.
  void interleave(const uint8_t* const* rows, int64_t words_of_row, uint8_t* to,
                  int64_t width) const noexcept {
    const float* words[IntegerGemmLoops::kMostColumns];
    for (int64_t j = 0; j < width; ++j) words[j] = reinterpret_cast<const float*>(rows[j]);
    simd->loops<GemmLoops>().gather(words, words_of_row, reinterpret_cast<float*>(to), width);
  }
  int32_t sum_of_row(const uint8_t* row) const noexcept {
    return simd->loops<QuantizeLoops>().sum_row[loops->a_signed ? 0 : 1](row, k);
  }
  /// y -= za sum(b) + zb (sum(a) - k za) for columns of a row, with shifted zero points.
  void correct_row(int32_t* y, const int32_t* b_sums, const int32_t* b_zeros, int32_t za, int32_t a_sum,
                   int64_t columns) const noexcept {
    const uint32_t less = static_cast<uint32_t>(k) * static_cast<uint32_t>(za) - static_cast<uint32_t>(a_sum);
    simd->loops<QuantizeLoops>().combine_integers(y, b_sums,
                                                  static_cast<int32_t>(0u - static_cast<uint32_t>(za)),
                                                  b_zeros, static_cast<int32_t>(less), columns);
  }

  /// Panels and sums of b from its columns: column(j, first k, steps of k, to) writes a part of one.
  template <class Column>
  void pack(uint8_t* to, const Column& column) const noexcept {
    parallel_for(column_panels(), loops->columns * k, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t panel = begin; panel < end; ++panel) pack_panel(to, panel, column);
    });
  }

 private:
  template <class Column>
  void pack_panel(uint8_t* to, int64_t panel, const Column& column) const noexcept {
    constexpr int64_t kSteps = 128;  // a multiple of four
    const int64_t width = loops->columns, first = panel * width, count = std::min(width, n - first);
    auto* const sums = reinterpret_cast<int32_t*>(to + sums_at()) + first;
    std::fill(sums, sums + count, 0);
    alignas(4) uint8_t parts[IntegerGemmLoops::kMostColumns][kSteps] = {};
    const uint8_t* rows[IntegerGemmLoops::kMostColumns];
    for (int64_t j = 0; j < width; ++j) rows[j] = parts[j];
    for (int64_t k0 = 0; k0 < k; k0 += kSteps) {
      const int64_t steps = std::min(kSteps, k - k0), whole = (steps + 3) / 4 * 4;
      for (int64_t j = 0; j < count; ++j) {
        column(first + j, k0, steps, parts[j]);
        if (flips_b) loops->flip(parts[j], parts[j], steps);
        std::memset(parts[j] + steps, 0, static_cast<size_t>(whole - steps));
        sums[j] += simd->loops<QuantizeLoops>().sum_row[0](parts[j], steps);
      }
      interleave(rows, whole / 4, to + panel * width * depth() + k0 * width, width);
    }
  }
};

/// `count` products of the same sizes. a_row(product, row, buffer) returns a row of a as IntegerBlocks::row()
/// does; b(product) is where pack() wrote one; y(product) is the address of a result, whose rows are `stride`
/// apart. done(product, row, columns, sum) is called for each row of each block of a result, with the sum of
/// the row of a where sums is true. workspaces: blocks.workspace() bytes for each of max_threads().
template <class RowOfA, class B, class Result, class Done>
void multiply_integers(const IntegerBlocks& blocks, int64_t count, bool sums, const RowOfA& a_row, const B& b,
                       const Result& y, int64_t stride, const Done& done, uint8_t* workspaces) noexcept {
  const IntegerGemmLoops& loops = *blocks.loops;
  const GemmTasks tasks(count, blocks.row_panels(), blocks.column_panels(), IntegerBlocks::kRowPanels,
                        IntegerBlocks::kColumnPanels);
  const int64_t depth = blocks.depth(), panel_bytes = loops.rows * depth;
  const auto run_task = [&](int64_t task, uint8_t* workspace) noexcept {
    const auto [product, rows, columns] = tasks[task];
    uint8_t* const copied = workspace + IntegerBlocks::kRowPanels * panel_bytes;
    auto* const row_sums = reinterpret_cast<int32_t*>(copied + panel_bytes);
    const int64_t first_row = rows.begin * loops.rows, end_row = std::min(rows.end * loops.rows, blocks.m);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const uint8_t* from[IntegerGemmLoops::kMostRows];
      for (int64_t r = 0; r < loops.rows; ++r) {
        const int64_t row = i * loops.rows + r;
        from[r] = row < blocks.m ? a_row(product, row, copied + r * depth) : from[0];
        if (sums && row < blocks.m) row_sums[row - first_row] = blocks.sum_of_row(from[r]);
      }
      blocks.interleave(from, blocks.quads(), workspace + (i - rows.begin) * panel_bytes, loops.rows);
    }
    const uint8_t* const packed = b(product);
    int32_t* const result = y(product);
    for (int64_t j = columns.begin; j < columns.end; ++j)
      for (int64_t i = rows.begin; i < rows.end; ++i)
        loops.tile(workspace + (i - rows.begin) * panel_bytes, packed + j * loops.columns * depth,
                   blocks.quads(), result + i * loops.rows * stride + j * loops.columns, stride,
                   std::min(loops.rows, blocks.m - i * loops.rows),
                   std::min(loops.columns, blocks.n - j * loops.columns));
    const Range of_columns{columns.begin * loops.columns, std::min(columns.end * loops.columns, blocks.n)};
    for (int64_t row = first_row; row < end_row; ++row)
      done(product, row, of_columns, sums ? row_sums[row - first_row] : 0);
  };
  const int64_t work =
      tasks.row_panels() * loops.rows * tasks.column_panels() * loops.columns * blocks.k / 32;
  const int64_t workspace = blocks.workspace();
  parallel_for(tasks.size(), work, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t task = begin; task < end; ++task) run_task(task, workspaces + thread_index() * workspace);
  });
}

}  // namespace librt::cpu
