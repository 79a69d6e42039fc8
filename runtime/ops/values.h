// Whole operands as vectors, and strided copies: the helpers of the pages' loops.
//
// Knows: element types and how to move elements. Must not know: any operator.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "runtime/core/element.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace librt::ops {

/// All elements of a tensor; T is double (floats) or uint64_t (integers, whose sums and products then wrap as
/// the stored type's do).
template <class T>
std::vector<T> load_all(const ConstTensorView& view);
template <class T>
void store_all(const TensorView& view, std::span<const T> values);

/// Calls loop.operator()<double>() for a float dtype and loop.operator()<uint64_t>() for others.
template <class Loop>
void with_values(DType dtype, Loop&& loop) {
  if (is_float(dtype))
    loop.template operator()<double>();
  else
    loop.template operator()<uint64_t>();
}

/// The entries of an i64 vector among evaluation's inputs; none for an absent one.
std::span<const int64_t> ints_of(const ConstTensorView& view) noexcept;

/// Appends an output. Throws nothing, so that a shape rule that ends with it needs no unwinding code.
Status add_output(std::vector<TensorInfo>& outputs, const TensorInfo& info) noexcept;
/// The same, with an error if the output's size overflows.
Status add_output(std::vector<TensorInfo>& outputs, DType dtype, const Shape& shape) noexcept;

/// Marks a position that copy_mapped() fills instead of copying.
inline constexpr int64_t kFill = -1;
/// output[i0, i1, ..] = source[offsets[0][i0] + offsets[1][i1] + ..], in elements; where one of them is
/// kFill, `fill` (one element; null: zero bytes). One list per output axis.
void copy_mapped(const TensorView& output, const void* source, std::span<const std::vector<int64_t>> offsets,
                 const void* fill = nullptr);

}  // namespace librt::ops
