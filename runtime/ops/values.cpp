#include "runtime/ops/values.h"
#include "runtime/core/exception.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace librt::ops {

template <>
std::vector<double> load_all<double>(const ConstTensorView& view) {
  std::vector<double> values(static_cast<size_t>(view.info.elements()));
  if (view.info.dtype == DType::F32) {
    const float* data = view.as<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(data[i]);
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = load_element(view.data, view.info.dtype, static_cast<int64_t>(i));
  return values;
}

template <>
std::vector<uint64_t> load_all<uint64_t>(const ConstTensorView& view) {
  std::vector<uint64_t> values(static_cast<size_t>(view.info.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint64_t>(load_integer(view.data, view.info.dtype, static_cast<int64_t>(i)));
  return values;
}

template <>
void store_all<double>(const TensorView& view, std::span<const double> values) {
  for (size_t i = 0; i < values.size(); ++i)
    store_element(view.data, view.info.dtype, static_cast<int64_t>(i), values[i]);
}

template <>
void store_all<uint64_t>(const TensorView& view, std::span<const uint64_t> values) {
  for (size_t i = 0; i < values.size(); ++i)
    store_integer(view.data, view.info.dtype, static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
}

std::span<const int64_t> ints_of(const ConstTensorView& view) noexcept {
  return {view.as<int64_t>(), view.data == nullptr ? 0 : static_cast<size_t>(view.info.elements())};
}

Status add_output(std::vector<TensorInfo>& outputs, const TensorInfo& info) noexcept {
  RT_ATTEMPT {
    outputs.push_back(info);
    return {};
  }
  RT_CAUGHT {
    return Status(Code::OutOfMemory, "no memory for the shapes of a node's results");
  }
}

Status add_output(std::vector<TensorInfo>& outputs, DType dtype, const Shape& shape) noexcept {
  if (!shape.checked_elements())
    return invalid_argument(
        "expected extents of 0 or more and less than " RT_MOST_ELEMENTS " elements, found ", shape);
  return add_output(outputs, {dtype, shape});
}

namespace {

/// T is an unsigned integer of the element's size: the bytes matter, not the value.
template <class T>
void copy_mapped_as(const TensorView& output, const void* source,
                    std::span<const std::vector<int64_t>> offsets, const void* fill) {
  T filler = 0;
  if (fill != nullptr) std::memcpy(&filler, fill, sizeof(T));
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(output.data);
  const Shape& shape = output.info.shape;
  const int rank = shape.rank();
  const int64_t row = shape.back();
  const std::vector<int64_t>& last = offsets[static_cast<size_t>(rank - 1)];
  std::array<int64_t, kMaxRank> at{};
  for (int64_t rows = shape.elements(0, rank - 1); rows > 0; --rows, to += row) {
    int64_t base = 0;
    for (int i = 0; i + 1 < rank && base != kFill; ++i) {
      const int64_t step = offsets[static_cast<size_t>(i)][static_cast<size_t>(at[static_cast<size_t>(i)])];
      base = step == kFill ? kFill : base + step;
    }
    if (base == kFill)
      std::fill_n(to, row, filler);
    else
      for (int64_t j = 0; j < row; ++j) {
        const int64_t step = last[static_cast<size_t>(j)];
        to[j] = step == kFill ? filler : from[base + step];
      }
    for (int i = rank - 2; i >= 0 && ++at[static_cast<size_t>(i)] == shape[i]; --i)
      at[static_cast<size_t>(i)] = 0;
  }
}

}  // namespace

void copy_mapped(const TensorView& output, const void* source, std::span<const std::vector<int64_t>> offsets,
                 const void* fill) {
  if (output.info.elements() == 0) return;
  const size_t size = size_of(output.info.dtype);
  if (output.info.shape.rank() == 0) {
    std::memcpy(output.data, source, size);
    return;
  }
  switch (size) {
    case 1: return copy_mapped_as<uint8_t>(output, source, offsets, fill);
    case 2: return copy_mapped_as<uint16_t>(output, source, offsets, fill);
    case 4: return copy_mapped_as<uint32_t>(output, source, offsets, fill);
    default: return copy_mapped_as<uint64_t>(output, source, offsets, fill);
  }
}

}  // namespace librt::ops
