#include "runtime/graph/emitter.h"

#include <cstring>

#include "runtime/core/element.h"

namespace librt {

ValueId Emitter::scalar(double number, DType dtype) {
  std::byte bytes[8] = {};
  store_element(bytes, dtype, 0, number);
  return constant({.dtype = dtype, .shape = {}}, Blob::copy_of(bytes, size_of(dtype)));
}

ValueId Emitter::ints(std::span<const int64_t> numbers) {
  return constant({.dtype = DType::I64, .shape = {static_cast<int64_t>(numbers.size())}},
                  Blob::copy_of(numbers.data(), numbers.size_bytes()));
}

ValueId Emitter::reduce_sum(ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  op::ReduceSumAttributes attributes;
  attributes.axes = std::move(axes);
  attributes.keep_dims = keep_dims;
  return emit(std::move(attributes), {x});
}

ValueId Emitter::reduce_mean(ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  op::ReduceMeanAttributes attributes;
  attributes.axes = std::move(axes);
  attributes.keep_dims = keep_dims;
  return emit(std::move(attributes), {x});
}

ValueId Emitter::transpose(ValueId x, std::vector<int64_t> permutation) {
  op::TransposeAttributes attributes;
  attributes.permutation = std::move(permutation);
  return emit(std::move(attributes), {x});
}

ValueId Emitter::cast(ValueId x, DType to) {
  op::CastAttributes attributes;
  attributes.to = static_cast<uint8_t>(to);
  return emit(std::move(attributes), {x});
}

}  // namespace librt
