// Ways to go along one axis of [outer, extent, inner] with whole vectors.
//
// Columns of 16 and more elements fill vectors where they lie. Where fewer elements follow the axis, or it is
// short itself, they are transposed into a buffer that stays in L1 or L2: softmax over 196 elements, each
// with 4 neighbours, took 4.5 ns an element down columns of 4, and takes 0.5 in rows; rows of 16 elements
// took 17 ns each, one after the other through the latencies of their own maximum and sum, and take 11 in
// columns.
#pragma once

#include <algorithm>
#include <array>

#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/transpose.h"
#include "runtime/core/shape.h"

namespace librt::cpu {

struct AxisWalk {
  enum class Way : uint8_t {
    Rows,               ///< as they lie: inner is 1
    Columns,            ///< Simd::kColumns at a time, as they lie
    TransposedRows,     ///< [extent, inner] becomes [inner, extent]
    TransposedColumns,  ///< [slices, extent, inner] becomes [extent, inner, slices]
  };
  static constexpr int64_t kShort = 64, kFew = 16;
  static constexpr int64_t kMostBuffered = int64_t{1} << 16;  ///< floats

  int64_t outer = 1, extent = 1, inner = 1;
  Way way = Way::Rows;
  int64_t slices = 1;  ///< of [extent, inner], for a unit of work

  AxisWalk(const Shape& x, int axis) noexcept
      : outer(x.elements(0, axis)), extent(x[axis]), inner(x.elements(axis + 1, x.rank())) {
    const bool is_short = extent < kShort;
    const bool buffered = extent * inner <= kMostBuffered;
    if (inner >= kFew || !buffered || (is_short && outer * inner < kFew))
      way = inner == 1 ? Way::Rows : Way::Columns;
    else if (is_short)
      way = Way::TransposedColumns;
    else
      way = inner == 1 ? Way::Rows : Way::TransposedRows;
    if (way == Way::TransposedColumns) slices = Simd::kColumns / inner;
  }

  bool transposes() const noexcept { return way == Way::TransposedRows || way == Way::TransposedColumns; }
  /// Units of work that threads share.
  int64_t units() const noexcept {
    return way == Way::Columns ? outer * blocks() : (outer + slices - 1) / slices;
  }
  int64_t unit_elements() const noexcept {
    return way == Way::Columns ? extent * std::min(inner, Simd::kColumns) : slices * extent * inner;
  }
  /// The floats of a transposed unit; 0 where nothing is transposed.
  int64_t buffer() const noexcept { return transposes() ? slices * extent * inner : 0; }

  /// The lines of a unit: how many, the first of them in [outer, inner], and the first element.
  int64_t lines(int64_t unit) const noexcept {
    return way == Way::Columns ? std::min(Simd::kColumns, inner - column(unit)) : count(unit) * inner;
  }
  int64_t first_line(int64_t unit) const noexcept { return slice(unit) * inner + column(unit); }
  int64_t first_element(int64_t unit) const noexcept { return slice(unit) * extent * inner + column(unit); }

  /// The elements of a transposed unit to the buffer.
  void gather(const Simd& simd, int64_t unit, const float* x, float* buffer) const noexcept {
    transpose(simd, x + first_element(unit), buffer, matrix_rows(unit), matrix_columns());
  }

  /// A unit of a kernel whose result has the shape of its inputs: calls row(inputs, result), or
  /// columns(inputs, result, stride, n) for n neighbouring columns whose elements are `stride` apart. The
  /// result may lie where the last input does. buffers: of one transposed unit of each input.
  template <size_t kInputs, class Row, class Columns>
  void run(const Simd& simd, int64_t unit, std::array<const float*, kInputs> x, float* y, float* buffers,
           const Row& row, const Columns& columns) const noexcept {
    const auto move = [&](int64_t elements) noexcept {
      for (const float*& input : x) input += elements;
      y += elements;
    };
    if (!transposes()) {
      move(first_element(unit));
      return way == Way::Rows ? row(x, y) : columns(x, y, inner, lines(unit));
    }
    float* const result = y + first_element(unit);
    for (size_t k = 0; k < kInputs; ++k) {
      y = buffers + static_cast<int64_t>(k) * buffer();
      gather(simd, unit, x[k], y);
      x[k] = y;
    }
    float* const transposed = y;
    if (way == Way::TransposedColumns) columns(x, y, lines(unit), lines(unit));
    for (int64_t k = 0; way == Way::TransposedRows && k < inner; ++k, move(extent)) row(x, y);
    transpose(simd, transposed, result, matrix_columns(), matrix_rows(unit));
  }

 private:
  int64_t blocks() const noexcept { return (inner + Simd::kColumns - 1) / Simd::kColumns; }
  int64_t count(int64_t unit) const noexcept { return std::min(slices, outer - unit * slices); }
  int64_t slice(int64_t unit) const noexcept { return way == Way::Columns ? unit / blocks() : unit * slices; }
  int64_t column(int64_t unit) const noexcept {
    return way == Way::Columns ? unit % blocks() * Simd::kColumns : 0;
  }
  /// Of the matrix that a unit is, to be transposed.
  int64_t matrix_rows(int64_t unit) const noexcept {
    return way == Way::TransposedRows ? extent : count(unit);
  }
  int64_t matrix_columns() const noexcept { return way == Way::TransposedRows ? inner : extent * inner; }
  static void transpose(const Simd& simd, const float* x, float* y, int64_t rows, int64_t columns) noexcept {
    simd.loops<TransposeLoops>().transpose[2](x, columns, y, rows, rows, columns, false);
  }
};

}  // namespace librt::cpu
