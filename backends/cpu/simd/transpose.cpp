// Matrix transpose in register tiles, for every element size, and copies with non-temporal stores.
//
// The matrix is walked in blocks of a cache line times a cache line, along the rows that are read: the
// hardware prefetches these streams, and every line is read and written once. A result much larger than the
// caches is written with non-temporal stores.
#include "backends/cpu/simd/transpose.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "runtime/core/in_build.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// a0 b0 a1 b1 .. of the lower and of the upper halves.
template <class V, int... kI>
RT_INLINE V interleave_low(V a, V b, std::integer_sequence<int, kI...>) {
  constexpr int n = sizeof...(kI);
  return __builtin_shufflevector(a, b, (kI % 2 == 0 ? kI / 2 : n + kI / 2)...);
}
template <class V, int... kI>
RT_INLINE V interleave_high(V a, V b, std::integer_sequence<int, kI...>) {
  constexpr int n = sizeof...(kI);
  return __builtin_shufflevector(a, b, (n / 2 + (kI % 2 == 0 ? kI / 2 : n + kI / 2))...);
}

/// n by n elements, n the lanes of a vector: log2 n rounds that interleave row i with row i + n / 2.
template <class T, int kBytes, bool kStream>
RT_INLINE void transpose_tile(const T* x, int64_t x_stride, T* y, int64_t y_stride) {
  constexpr int n = kLanes<T, kBytes>;
  using V = Vector<T, kBytes>;
  V r[n], t[n];
  for (int i = 0; i < n; ++i) r[i] = load<V>(x + i * x_stride);
  for (int round = 1; round < n; round *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      t[2 * i] = interleave_low(r[i], r[i + n / 2], Lanes<n>{});
      t[2 * i + 1] = interleave_high(r[i], r[i + n / 2], Lanes<n>{});
    }
    for (int i = 0; i < n; ++i) r[i] = t[i];
  }
  for (int i = 0; i < n; ++i) {
    if constexpr (kStream)
      stream(y + i * y_stride, r[i]);
    else
      store(y + i * y_stride, r[i]);
  }
}

/// Tiles of kBytes times kBytes; the remainder in smaller ones.
template <class T, int kBytes, bool kStream>
RT_INLINE void transpose_blocks(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows,
                                int64_t columns) {
  constexpr int64_t kTile = kLanes<T, kBytes>, kBlock = kLineBytes / static_cast<int64_t>(sizeof(T));
  const int64_t whole_rows = rows / kTile * kTile, whole_columns = columns / kTile * kTile;
  for (int64_t i0 = 0; i0 < whole_rows; i0 += kBlock)
    for (int64_t j0 = 0; j0 < whole_columns; j0 += kBlock)
      for (int64_t j = j0; j < j0 + kBlock && j < whole_columns; j += kTile)
        for (int64_t i = i0; i < i0 + kBlock && i < whole_rows; i += kTile)
          transpose_tile<T, kBytes, kStream>(x + i * x_stride + j, x_stride, y + j * y_stride + i, y_stride);
  const auto rest = [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
    if (row == row_end || column == column_end) return;
    const T* from = x + row * x_stride + column;
    T* to = y + column * y_stride + row;
    if constexpr (kBytes > 16) {
      transpose_blocks<T, kBytes / 2, false>(from, x_stride, to, y_stride, row_end - row,
                                             column_end - column);
    } else {
      constexpr int64_t kRun = 256;
      for (int64_t i0 = 0; i0 < row_end - row; i0 += kRun)
        for (int64_t j = 0; j < column_end - column; ++j)
          for (int64_t i = i0; i < i0 + kRun && i < row_end - row; ++i)
            to[j * y_stride + i] = from[i * x_stride + j];
    }
  };
  rest(whole_rows, rows, 0, whole_columns);
  rest(0, rows, whole_columns, columns);
}

/// Lane t of the result: element kCount t + kFirst of the kCount vectors v, one after the other.
template <int kCount, int kFirst, class V, int... kI>
RT_INLINE V every(const V* v, std::integer_sequence<int, kI...>) {
  constexpr int n = sizeof...(kI);
  V r = __builtin_shufflevector(v[0], v[1], ((kCount * kI + kFirst) % (2 * n))...);
  // Lanes that belong to later vectors are replaced.
  if constexpr (kCount > 2)
    r = __builtin_shufflevector(r, v[2],
                                ((kCount * kI + kFirst) / n == 2 ? n + (kCount * kI + kFirst) % n : kI)...);
  if constexpr (kCount > 3)
    r = __builtin_shufflevector(r, v[3],
                                ((kCount * kI + kFirst) / n == 3 ? n + (kCount * kI + kFirst) % n : kI)...);
  return r;
}
/// Lane t of the result: element (n kPart + t) / kCount of vector (n kPart + t) % kCount.
template <int kCount, int kPart, class V, int... kI>
RT_INLINE V mixed(const V* v, std::integer_sequence<int, kI...>) {
  constexpr int n = sizeof...(kI);
  V r = __builtin_shufflevector(v[0], v[1],
                                ((n * kPart + kI) / kCount + ((n * kPart + kI) % kCount == 1 ? n : 0))...);
  if constexpr (kCount > 2)
    r = __builtin_shufflevector(r, v[2],
                                ((n * kPart + kI) % kCount == 2 ? n + (n * kPart + kI) / kCount : kI)...);
  if constexpr (kCount > 3)
    r = __builtin_shufflevector(r, v[3],
                                ((n * kPart + kI) % kCount == 3 ? n + (n * kPart + kI) / kCount : kI)...);
  return r;
}

/// Rows of kCount elements, next to each other (complex numbers, colours), become kCount long rows.
template <class T, int kCount>
void split(const T* x, T* y, int64_t y_stride, int64_t rows) {
  using V = Vector<T>;
  constexpr int n = kLanes<T>;
  int64_t i = 0;
  for (; i + n <= rows; i += n) {
    V v[kCount];
    for (int k = 0; k < kCount; ++k) v[k] = load<V>(x + i * kCount + k * n);
    store(y + i, every<kCount, 0>(v, Lanes<n>{}));
    store(y + y_stride + i, every<kCount, 1>(v, Lanes<n>{}));
    if constexpr (kCount > 2) store(y + 2 * y_stride + i, every<kCount, 2>(v, Lanes<n>{}));
    if constexpr (kCount > 3) store(y + 3 * y_stride + i, every<kCount, 3>(v, Lanes<n>{}));
  }
  for (; i < rows; ++i)
    for (int k = 0; k < kCount; ++k) y[k * y_stride + i] = x[i * kCount + k];
}
/// The way back.
template <class T, int kCount>
void mix(const T* x, int64_t x_stride, T* y, int64_t columns) {
  using V = Vector<T>;
  constexpr int n = kLanes<T>;
  int64_t i = 0;
  for (; i + n <= columns; i += n) {
    V v[kCount];
    for (int k = 0; k < kCount; ++k) v[k] = load<V>(x + k * x_stride + i);
    T* const to = y + i * kCount;
    store(to, mixed<kCount, 0>(v, Lanes<n>{}));
    store(to + n, mixed<kCount, 1>(v, Lanes<n>{}));
    if constexpr (kCount > 2) store(to + 2 * n, mixed<kCount, 2>(v, Lanes<n>{}));
    if constexpr (kCount > 3) store(to + 3 * n, mixed<kCount, 3>(v, Lanes<n>{}));
  }
  for (; i < columns; ++i)
    for (int k = 0; k < kCount; ++k) y[i * kCount + k] = x[k * x_stride + i];
}
/// Whether the matrix was one of these.
template <class T>
bool transpose_few(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t columns) {
  if (columns == x_stride && rows >= kLanes<T>) {
    if (columns == 2) return split<T, 2>(x, y, y_stride, rows), true;
    if (columns == 3) return split<T, 3>(x, y, y_stride, rows), true;
    if (columns == 4) return split<T, 4>(x, y, y_stride, rows), true;
  }
  if (rows == y_stride && columns >= kLanes<T>) {
    if (rows == 2) return mix<T, 2>(x, x_stride, y, columns), true;
    if (rows == 3) return mix<T, 3>(x, x_stride, y, columns), true;
    if (rows == 4) return mix<T, 4>(x, x_stride, y, columns), true;
  }
  return false;
}

/// The lanes of a tile are at most 16, so that its rows stay in registers.
template <class T>
inline constexpr int kTileBytes = sizeof(T) >= 4 ? kVectorBytes : 16;

void stream_copy(const void* x, void* y, int64_t bytes) {
  stream_bytes(x, y, bytes);
}

/// Runs that fill whole vectors of kSize bytes; the last one may overlap the one before it.
template <int kSize>
void copy_vectors(const uint8_t* x, RunStrides from, uint8_t* y, RunStrides to, int64_t bytes, int64_t count,
                  int64_t rows) {
  using V = Vector<uint8_t, kSize>;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* source = x + r * from.row;
    uint8_t* target = y + r * to.row;
    for (int64_t k = 0; k < count; ++k, source += from.run, target += to.run) {
      int64_t i = 0;
      for (; i + kSize <= bytes; i += kSize) store(target + i, load<V>(source + i));
      if (i < bytes) store(target + bytes - kSize, load<V>(source + bytes - kSize));
    }
  }
}
/// Runs are often of a few channels: a call of memcpy for each takes longer than the copy. And often few: a
/// Tile of 3 rows of 64 floats took 36 ns instead of 20 with a call for each three.
void copy_runs(const void* from, RunStrides from_strides, void* to, RunStrides to_strides, int64_t bytes,
               int64_t count, int64_t rows) {
  const auto* x = static_cast<const uint8_t*>(from);
  auto* y = static_cast<uint8_t*>(to);
  constexpr int64_t kLong = 2048;
  if (bytes >= kLong) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < count; ++k)
        __builtin_memcpy(y + r * to_strides.row + k * to_strides.run,
                         x + r * from_strides.row + k * from_strides.run, static_cast<size_t>(bytes));
    return;
  }
  const auto copy = [&](auto vectors) { vectors(x, from_strides, y, to_strides, bytes, count, rows); };
  if (bytes >= kVectorBytes) return copy(copy_vectors<kVectorBytes>);
  if (bytes >= 16) return copy(copy_vectors<16>);
  if (bytes >= 4) return copy(copy_vectors<4>);
  copy(copy_vectors<1>);
}

/// Where a tile's rows are not cache lines of the result, they are assembled in a buffer first.
template <class T>
void transpose_past_caches(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows,
                           int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  if (kTileBytes<T> == kLineBytes &&
      (reinterpret_cast<uintptr_t>(y) | static_cast<uintptr_t>(y_stride * kSize)) % kLineBytes == 0) {
    transpose_blocks<T, kTileBytes<T>, true>(x, x_stride, y, y_stride, rows, columns);
    return finish_streams();
  }
  constexpr int64_t kRows = 4 * kLineBytes / kSize, kColumns = 64;
  alignas(kLineBytes) T buffer[kRows * kColumns];
  for (int64_t i = 0; i < rows; i += kRows)
    for (int64_t j = 0; j < columns; j += kColumns) {
      const int64_t m = rows - i < kRows ? rows - i : kRows,
                    n = columns - j < kColumns ? columns - j : kColumns;
      transpose_blocks<T, kTileBytes<T>, false>(x + i * x_stride + j, x_stride, buffer, kRows, m, n);
      for (int64_t k = 0; k < n; ++k) stream_bytes(buffer + k * kRows, y + (j + k) * y_stride + i, m * kSize);
    }
  finish_streams();
}

template <class T>
void transpose_elements(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows,
                        int64_t columns, bool past_caches) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  if constexpr (sizeof(T) >= 4)
    if (!past_caches && transpose_few(from, x_stride, to, y_stride, rows, columns)) return;
  if (past_caches && rows * static_cast<int64_t>(sizeof(T)) >= 4 * kLineBytes)
    transpose_past_caches(from, x_stride, to, y_stride, rows, columns);
  else
    transpose_blocks<T, kTileBytes<T>, false>(from, x_stride, to, y_stride, rows, columns);
}

constexpr TransposeLoops make_loops() {
  TransposeLoops table{};
  if constexpr (size_in_build(1)) table.transpose[0] = &transpose_elements<uint8_t>;
  if constexpr (size_in_build(2)) table.transpose[1] = &transpose_elements<uint16_t>;
  table.transpose[2] = &transpose_elements<uint32_t>;
  if constexpr (size_in_build(8)) table.transpose[3] = &transpose_elements<uint64_t>;
  table.copy_runs = &copy_runs;
  table.stream_copy = &stream_copy;
  table.finish_streams = [] { finish_streams(); };
  return table;
}

}  // namespace

void transpose(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t columns) {
  transpose_blocks<float, kVectorBytes, false>(x, x_stride, y, y_stride, rows, columns);
}

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(TransposeLoops);
