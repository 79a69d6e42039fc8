// Rows of contiguous elements, each processed by a warp or a block in accesses of 16 bytes where its length
// allows, and kept in registers where it fits: it is then read once, however many passes follow.
#pragma once

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {

inline constexpr int kRowThreads = 256;

/// A row of T over kLanes threads, a warp or a block of kRowThreads. Thread l has the groups l, l + kLanes,
/// .. of kWidth elements; at most kGroups of them, kept in registers; with kGroups 0 any number, reread in
/// every pass.
template <class T, int kLanes, int kWidth, int kGroups>
class Row {
 public:
  using Value = Wide<T>;
  static constexpr int kLanesPerRow = kLanes, kElements = kWidth;
  static constexpr bool kKept = kGroups > 0;

  /// The row of this thread in [rows,columns]; `columns` is a multiple of kWidth. Past the last row: an empty
  /// one, so that every thread takes part in combined().
  RT_DEVICE Row(const T* x, int64_t rows, int64_t columns) {
    const int64_t row = global_index() / kLanes;
    first_ = static_cast<int>(threadIdx.x) % kLanes * kWidth;
    columns_ = row < rows ? columns : 0;
    offset_ = row < rows ? row * columns : 0;
    from_ = x + offset_;
    if constexpr (kKept) {
      Packed<T, kWidth> loaded[kGroups];
      RT_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        loaded[g] = {};
        if (column_of(g) < columns_) loaded[g] = load_packed<kWidth>(from_ + column_of(g));
      }
      RT_UNROLL
      for (int g = 0; g < kGroups; ++g) widen_group(unpacked<T, kWidth>(loaded[g]), values_[g]);
    }
  }

  /// f(value) for this thread's elements; changes made by f persist where rows are kept in registers.
  template <class F>
  RT_DEVICE void each(F f) {
    each_group([&](int64_t, Value(&values)[kWidth]) {
      RT_UNROLL
      for (int i = 0; i < kWidth; ++i) f(values[i]);
    });
  }

  /// f(column, values), then the values as changed by f are stored at the same positions of y.
  template <class F>
  RT_DEVICE void store(T* y, F f) {
    each_group([&](int64_t column, Value(&values)[kWidth]) {
      f(column, values);
      Vector<T, kWidth> result;
      RT_UNROLL
      for (int i = 0; i < kWidth; ++i) result[i] = narrow<T>(values[i]);
      store_vector(y + offset_ + column, result);
    });
  }

  /// f(column, values) for the groups of kElements values of this thread.
  template <class F>
  RT_DEVICE void each_group(F f) {
    if constexpr (kKept) {
      RT_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        if (column_of(g) >= columns_) break;
        f(column_of(g), values_[g]);
      }
    } else {
      for (int64_t at = first_; at < columns_; at += kLanes * kWidth) {
        Value values[kWidth];
        widen_group(load_vector<kWidth>(from_ + at), values);
        f(at, values);
      }
    }
  }

  /// Of the row's first element.
  RT_DEVICE int64_t offset() const { return offset_; }
  /// The first element; 0 if there is none.
  RT_DEVICE Value first() const { return columns_ > 0 ? widen(*from_) : Value{}; }

  /// Reduces over all threads of the row; `storage`: shared memory for 32 values.
  template <class Operation, class U>
  static RT_DEVICE U combined(U value, Operation operation, U* storage) {
    if constexpr (kLanes == kWarpSize)
      return warp_reduce(value, operation);
    else
      return block_reduce(value, operation, storage);
  }

 private:
  RT_DEVICE int64_t column_of(int64_t group) const { return first_ + group * (kLanes * kWidth); }
  static RT_DEVICE void widen_group(const Vector<T, kWidth>& from, Value (&to)[kWidth]) {
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i) to[i] = widen(from[i]);
  }
  const T* from_;
  int64_t columns_, offset_;
  int first_;
  Value values_[kKept ? kGroups : 1][kWidth];
};

/// launcher(TypeTag<Row<T, ..>>{}, config) for rows of this many elements: one warp for up to 1024, else one
/// block. Rows of up to 8192 are kept in registers, except doubles and rows that are not a multiple of 16
/// bytes.
template <class T, class Launcher>
cudaError_t launch_rows(int64_t rows, int64_t columns, cudaStream_t stream, Launcher launcher) {
  constexpr int kWidth = kVectorWidth<T>, kValues = 32;
  constexpr int kGroups = sizeof(Wide<T>) == 8 ? 0 : kValues / kWidth;
  const auto run = [&](auto row) {
    const int64_t threads = columns == 0 ? 0 : rows * decltype(row)::type::kLanesPerRow;
    return launcher(row, launch_each(threads, stream, kRowThreads));
  };
  const bool whole = columns % kWidth == 0;
  if (columns <= kWarpSize * kValues)
    return whole ? run(TypeTag<Row<T, kWarpSize, kWidth, kGroups>>{})
                 : run(TypeTag<Row<T, kWarpSize, 1, 0>>{});
  if (!whole) return run(TypeTag<Row<T, kRowThreads, 1, 0>>{});
  return columns <= kRowThreads * kValues ? run(TypeTag<Row<T, kRowThreads, kWidth, kGroups>>{})
                                          : run(TypeTag<Row<T, kRowThreads, kWidth, 0>>{});
}

}  // namespace librt::cuda
