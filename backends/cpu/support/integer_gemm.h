// GEMM of 8-bit integers y = a b, exact modulo 2^32, from panels.
//
// Knows: sizes, the tiles of simd/integer_gemm.h, how integers are shifted for them. Must not know: where
// elements of a and b come from, operators.
//
// The tiles take signed b, and tiles of bytes one signedness of a: operands of the other one are shifted by
// 128, their zero points with them, and the caller corrects for zero points afterwards (correct_row).
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
  static constexpr int64_t kPanelBytes = 512 * 1024;            ///< of a task's rows of a, at least a panel

  const Simd* simd = nullptr;
  const IntegerGemmLoops* loops = nullptr;
  const IntegerTile* tile = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool a_signed = false, flips_a = false, flips_b = false;
  bool buffers_results = false;  ///< a block of a result is in the thread's workspace, for done() to read

  IntegerBlocks() = default;
  IntegerBlocks(const Simd& set, int64_t rows, int64_t columns, int64_t depth, bool signed_a, bool signed_b)
      : simd(&set),
        loops(&set.loops<IntegerGemmLoops>()),
        tile(set.dot_products && loops->dot.run != nullptr ? &loops->dot : &loops->pairs),
        m(rows),
        n(columns),
        k(depth),
        a_signed(signed_a),
        flips_a(!tile->wide_a && signed_a != tile->a_signed),
        flips_b(!signed_b) {}

  /// What the tiles' integers are less than the operands'.
  int32_t a_shift() const noexcept { return !flips_a ? 0 : tile->a_signed ? 128 : -128; }
  int32_t b_shift() const noexcept { return flips_b ? 128 : 0; }

  int64_t depth() const noexcept { return (k + 3) / 4 * 4; }  ///< steps of k in panels
  int64_t groups() const noexcept { return depth() / tile->group; }
  int64_t row_panels() const noexcept { return (m + tile->rows - 1) / tile->rows; }
  int64_t column_panels() const noexcept { return (n + tile->columns - 1) / tile->columns; }
  /// Bytes of b packed: [panel][groups][columns][group], then the columns' sums in 32 bits.
  int64_t sums_at() const noexcept { return column_panels() * tile->columns * depth(); }
  int64_t packed() const noexcept { return (sums_at() + n * 4 + 63) / 64 * 64; }
  /// Bytes between rows of i16, which must not map to the same set of L1.
  int64_t wide_stride() const noexcept { return 2 * (depth() + (depth() % 1024 == 0 ? 32 : 0)); }
  /// Of a's rows for a tile.
  int64_t panel_bytes() const noexcept { return tile->rows * (tile->wide_a ? wide_stride() : depth()); }
  int64_t most_row_panels() const noexcept {
    return std::clamp<int64_t>(kPanelBytes / std::max<int64_t>(panel_bytes(), 1), 1, kRowPanels);
  }
  // What a thread fills: panels of a, the rows of one, the sums of all rows, and a block.
  int64_t rows_at() const noexcept { return most_row_panels() * panel_bytes(); }
  int64_t sums_of_rows_at() const noexcept { return rows_at() + tile->rows * depth(); }
  int64_t block_at() const noexcept {
    return (sums_of_rows_at() + most_row_panels() * tile->rows * 4 + 63) / 64 * 64;
  }
  int64_t workspace() const noexcept {
    return block_at() +
           (buffers_results ? most_row_panels() * tile->rows * kColumnPanels * tile->columns * 4 : 0);
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
  /// A panel of `width` rows of 32-bit words next to each other, as a panel of floats has them.
  void interleave(const uint8_t* const* rows, int64_t words_of_row, uint8_t* to,
                  int64_t width) const noexcept {
    const float* words[IntegerGemmLoops::kMostColumns];
    for (int64_t j = 0; j < width; ++j) words[j] = reinterpret_cast<const float*>(rows[j]);
    simd->loops<GemmLoops>().gather(words, words_of_row, reinterpret_cast<float*>(to), width);
  }
  /// `count` rows in 16 bits, those next to each other at once.
  void widen(const uint8_t* const* rows, int64_t count, uint8_t* to) const noexcept {
    const bool adjacent = wide_stride() == 2 * depth();
    for (int64_t i = 0, next = 0; i < count; i = next) {
      for (next = i + 1; adjacent && next < count && rows[next] == rows[i] + (next - i) * depth();) ++next;
      loops->widen[a_signed ? 0 : 1](rows[i], reinterpret_cast<int16_t*>(to + i * wide_stride()),
                                     (next - i) * depth());
    }
  }
  int32_t sum_of_row(const uint8_t* row) const noexcept {
    return simd->loops<QuantizeLoops>().sum_row[a_signed != flips_a ? 0 : 1](row, k);
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
    parallel_for(column_panels(), tile->columns * k, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t panel = begin; panel < end; ++panel) pack_panel(to, panel, column);
    });
  }

 private:
  template <class Column>
  void pack_panel(uint8_t* to, int64_t panel, const Column& column) const noexcept {
    constexpr int64_t kSteps = 128;  // a multiple of four
    const int64_t width = tile->columns, first = panel * width, count = std::min(width, n - first);
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
      uint8_t* const at = to + panel * width * depth() + k0 * width;
      if (tile->group == 4)
        interleave(rows, whole / 4, at, width);
      else
        for (int64_t step = 0; step < whole; step += 2)
          for (int64_t j = 0; j < width; ++j) std::memcpy(at + step * width + 2 * j, rows[j] + step, 2);
    }
  }
};

/// Where a block of a result is, its rows `stride` apart.
struct IntegerBlock {
  int32_t* at;
  int64_t stride;
};

/// `count` products of the same sizes. a_row(product, row, buffer) returns a row of a as IntegerBlocks::row()
/// does; b(product) is where pack() wrote one; y(product) is the address of a result, whose rows are `stride`
/// apart, unless blocks.buffers_results. done(product, rows, columns, sums, block) is called for each block
/// of a result, with the sums of its rows of a where `sums` is true. workspaces: blocks.workspace() bytes for
/// each of max_threads().
template <class RowOfA, class B, class Result, class Done>
void multiply_integers(const IntegerBlocks& blocks, int64_t count, bool sums, const RowOfA& a_row, const B& b,
                       const Result& y, int64_t stride, const Done& done, uint8_t* workspaces) noexcept {
  const IntegerTile& tile = *blocks.tile;
  const GemmTasks tasks(count, blocks.row_panels(), blocks.column_panels(), blocks.most_row_panels(),
                        IntegerBlocks::kColumnPanels);
  const int64_t depth = blocks.depth(), panel_bytes = blocks.panel_bytes();
  const auto run_task = [&](int64_t task, uint8_t* workspace) noexcept {
    const auto [product, rows, columns] = tasks[task];
    uint8_t* const copied = workspace + blocks.rows_at();
    auto* const row_sums = reinterpret_cast<int32_t*>(workspace + blocks.sums_of_rows_at());
    const Range of_rows{rows.begin * tile.rows, std::min(rows.end * tile.rows, blocks.m)};
    const Range of_columns{columns.begin * tile.columns, std::min(columns.end * tile.columns, blocks.n)};
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const uint8_t* from[IntegerGemmLoops::kMostRows];
      const int64_t first = i * tile.rows, count_of_rows = std::min(tile.rows, blocks.m - first);
      for (int64_t r = 0; r < count_of_rows; ++r) {
        from[r] = a_row(product, first + r, copied + r * depth);
        if (sums) row_sums[first + r - of_rows.begin] = blocks.sum_of_row(from[r]);
      }
      uint8_t* const panel = workspace + (i - rows.begin) * panel_bytes;
      if (tile.wide_a) {
        blocks.widen(from, count_of_rows, panel);
        continue;
      }
      std::fill(from + count_of_rows, from + tile.rows, from[0]);
      blocks.interleave(from, depth / 4, panel, tile.rows);
    }
    const uint8_t* const packed = b(product);
    IntegerBlock block{nullptr, stride};
    if (blocks.buffers_results)
      block = {reinterpret_cast<int32_t*>(workspace + blocks.block_at()), of_columns.end - of_columns.begin};
    else
      block.at = y(product) + of_rows.begin * stride + of_columns.begin;
    for (int64_t j = columns.begin; j < columns.end; ++j)
      for (int64_t i = rows.begin; i < rows.end; ++i)
        tile.run(workspace + (i - rows.begin) * panel_bytes, blocks.wide_stride(),
                 packed + j * tile.columns * depth, blocks.groups(),
                 block.at + (i - rows.begin) * tile.rows * block.stride + (j - columns.begin) * tile.columns,
                 block.stride, std::min(tile.rows, blocks.m - i * tile.rows),
                 std::min(tile.columns, blocks.n - j * tile.columns));
    done(product, of_rows, of_columns, row_sums, block);
  };
  const int64_t work = tasks.row_panels() * tile.rows * tasks.column_panels() * tile.columns * blocks.k / 32;
  const int64_t workspace = blocks.workspace();
  parallel_for(tasks.size(), work, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t task = begin; task < end; ++task) run_task(task, workspaces + thread_index() * workspace);
  });
}

}  // namespace librt::cpu
