#include "backends/cpu/support/strided_copy.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/support/element_types.h"
#include "runtime/geometry/merge_axes.h"

namespace librt::cpu {

void StridedCopy::add_axis(int64_t extent, int64_t to_stride, int64_t from_stride) noexcept {
  if (extent == 0) empty_ = true;
  const auto i = static_cast<size_t>(rank_++);
  extents_[i] = extent;
  to_[i] = to_stride;
  from_[i] = from_stride;
}

void StridedCopy::prepare(size_t element_size, const Simd& simd) noexcept {
  element_size_ = element_size;
  simd_ = &simd;
  int64_t* const strides[] = {to_.data(), from_.data()};
  rank_ = merge_axes(std::span(extents_).first(static_cast<size_t>(rank_)), strides);
  if (rank_ == 0) add_axis(1, 1, 1);
  auto bytes = static_cast<int64_t>(element_size);
  for (int i = 0; i < rank_; ++i) bytes *= extents_[static_cast<size_t>(i)];
  past_caches_ = bytes >= kPastCaches;
  // Writes are sequential along the innermost axis. Where reads are not, the axis of sequential reads becomes
  // the second innermost, and the two are copied as a matrix transpose.
  const Axis inner = axis(rank_ - 1);
  outer_ = rank_ - 1;
  if (inner.to == 1 && inner.from == 1) {
    mode_ = Mode::Bytes;
  } else if (inner.to == 1 && inner.from == 0) {
    mode_ = Mode::Fill;
  } else {
    mode_ = Mode::Strided;
    for (int i = rank_ - 2; i >= 0 && inner.to == 1; --i)
      if (axis(i).from == 1) {
        for (auto* values : {&extents_, &to_, &from_})
          std::swap((*values)[static_cast<size_t>(i)], (*values)[static_cast<size_t>(rank_ - 2)]);
        mode_ = Mode::Transpose;
        outer_ = rank_ - 2;
        break;
      }
  }
}

template <class T>
void StridedCopy::run_inner(const T* from, T* to) const noexcept {
  const Axis inner = axis(rank_ - 1);
  switch (mode_) {
    case Mode::Bytes: {
      const int64_t bytes = inner.extent * static_cast<int64_t>(sizeof(T));
      if (streams(bytes))
        simd_->loops<TransposeLoops>().stream_copy(from, to, bytes);
      else
        std::memcpy(to, from, static_cast<size_t>(bytes));
      return;
    }
    case Mode::Fill: {
      const T value = *from;
      for (int64_t i = 0; i < inner.extent; ++i) to[i] = value;
      return;
    }
    case Mode::Strided:
      for (int64_t i = 0; i < inner.extent; ++i) to[i * inner.to] = from[i * inner.from];
      return;
    case Mode::Transpose: break;
  }
  const Axis columns = axis(rank_ - 2);  // from.stride 1
  simd_->loops<TransposeLoops>().transpose[std::countr_zero(sizeof(T))](
      from, inner.from, to, columns.to, inner.extent, columns.extent, past_caches_);
}

template <class T>
void StridedCopy::run_as(const T* from, T* to) const noexcept {
  // Where there are no outer axes, the first axis is split among threads, else the product of the outer axes.
  if (outer_ == 0) {
    const Axis first = axis(0);
    int64_t inner = 1;
    for (int i = 1; i < rank_; ++i) inner *= axis(i).extent;
    parallel_for(first.extent, inner, 64, [&](int64_t begin, int64_t end) noexcept {
      StridedCopy part = *this;
      part.extents_[0] = end - begin;
      part.run_inner(from + begin * first.from, to + begin * first.to);
      if (past_caches_) simd_->loops<TransposeLoops>().finish_streams();
    });
    return;
  }
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < rank_; ++i) (i < outer_ ? outer : inner) *= axis(i).extent;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const int64_t run_bytes = inner * kSize;
  const bool copies_runs = mode_ == Mode::Bytes && !streams(run_bytes);
  const Axis last = axis(outer_ - 1), before_last = outer_ > 1 ? axis(outer_ - 2) : Axis{};
  parallel_for(outer, inner, 1, [&](int64_t begin, int64_t end) noexcept {
    std::array<int64_t, kMaxBoxRank> index{};
    const T* x = from;
    T* y = to;
    int64_t rest = begin;
    for (int i = outer_ - 1; i >= 0; --i) {
      const Axis outer_axis = axis(i);
      int64_t& coordinate = index[static_cast<size_t>(i)];
      coordinate = rest % outer_axis.extent;
      rest /= outer_axis.extent;
      x += coordinate * outer_axis.from;
      y += coordinate * outer_axis.to;
    }
    for (int64_t at = begin; at < end;) {
      // Along the last outer axis, or the last two, runs are copied together: `steps` of axis `moved`.
      int64_t steps = 1;
      int moved = outer_ - 1;
      if (copies_runs) {
        const int64_t column = index[static_cast<size_t>(moved)];
        const int64_t runs = std::min(end - at, last.extent - column);
        int64_t rows = 1;
        const int64_t whole = (end - at) / last.extent;
        if (column == 0 && moved > 0 && whole > 0) {
          --moved;
          rows = std::min(whole, before_last.extent - index[static_cast<size_t>(moved)]);
        }
        steps = moved == outer_ - 1 ? runs : rows;
        simd_->loops<TransposeLoops>().copy_runs(x, {last.from * kSize, before_last.from * kSize}, y,
                                                 {last.to * kSize, before_last.to * kSize}, run_bytes, runs,
                                                 rows);
        at += runs * rows;
      } else {
        run_inner(x, y);
        ++at;
      }
      for (int i = moved; i >= 0; --i, steps = 1) {
        const Axis outer_axis = axis(i);
        int64_t& coordinate = index[static_cast<size_t>(i)];
        x += steps * outer_axis.from;
        y += steps * outer_axis.to;
        if ((coordinate += steps) < outer_axis.extent) break;
        x -= outer_axis.extent * outer_axis.from;
        y -= outer_axis.extent * outer_axis.to;
        coordinate = 0;
      }
    }
    if (past_caches_) simd_->loops<TransposeLoops>().finish_streams();
  });
}

void StridedCopy::run(const std::byte* from, std::byte* to) const noexcept {
  if (empty_) return;
  with_size(element_size_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    run_as(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to));
  });
}

}  // namespace librt::cpu
