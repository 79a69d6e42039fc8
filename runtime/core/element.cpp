#include "runtime/core/element.h"

namespace librt {

using detail::load_as;
using detail::store_as;
using detail::to_integer;

double load_element(const void* data, DType dtype, int64_t index) noexcept {
  switch (dtype) {
    case DType::F32: return static_cast<double>(load_as<float>(data, index));
    case DType::F64: return load_as<double>(data, index);
    case DType::F16: return static_cast<double>(half_to_float(load_as<uint16_t>(data, index)));
    case DType::BF16: return static_cast<double>(bf16_to_float(load_as<uint16_t>(data, index)));
    case DType::U64: return static_cast<double>(load_as<uint64_t>(data, index));
    default: return static_cast<double>(load_integer(data, dtype, index));
  }
}

void store_element(void* data, DType dtype, int64_t index, double value) noexcept {
  switch (dtype) {
    case DType::F32: return store_as(data, index, static_cast<float>(value));
    case DType::F64: return store_as(data, index, value);
    case DType::F16: return store_as(data, index, float_to_half(static_cast<float>(value)));
    case DType::BF16: return store_as(data, index, float_to_bf16(static_cast<float>(value)));
    case DType::I8: return store_as(data, index, to_integer<int8_t>(value));
    case DType::U8: return store_as(data, index, to_integer<uint8_t>(value));
    case DType::I16: return store_as(data, index, to_integer<int16_t>(value));
    case DType::U16: return store_as(data, index, to_integer<uint16_t>(value));
    case DType::I32: return store_as(data, index, to_integer<int32_t>(value));
    case DType::U32: return store_as(data, index, to_integer<uint32_t>(value));
    case DType::I64: return store_as(data, index, to_integer<int64_t>(value));
    case DType::U64: return store_as(data, index, to_integer<uint64_t>(value));
    case DType::Bool: return store_as(data, index, static_cast<uint8_t>(value != 0));
  }
}

int64_t load_integer(const void* data, DType dtype, int64_t index) noexcept {
  switch (dtype) {
    case DType::I8: return load_as<int8_t>(data, index);
    case DType::U8: return load_as<uint8_t>(data, index);
    case DType::I16: return load_as<int16_t>(data, index);
    case DType::U16: return load_as<uint16_t>(data, index);
    case DType::I32: return load_as<int32_t>(data, index);
    case DType::U32: return load_as<uint32_t>(data, index);
    case DType::I64: return load_as<int64_t>(data, index);
    case DType::U64: return static_cast<int64_t>(load_as<uint64_t>(data, index));
    case DType::Bool: return load_as<uint8_t>(data, index) != 0;
    default: return to_integer<int64_t>(load_element(data, dtype, index));
  }
}

void store_integer(void* data, DType dtype, int64_t index, int64_t value) noexcept {
  switch (dtype) {
    case DType::I8: return store_as(data, index, static_cast<int8_t>(value));
    case DType::U8: return store_as(data, index, static_cast<uint8_t>(value));
    case DType::I16: return store_as(data, index, static_cast<int16_t>(value));
    case DType::U16: return store_as(data, index, static_cast<uint16_t>(value));
    case DType::I32: return store_as(data, index, static_cast<int32_t>(value));
    case DType::U32: return store_as(data, index, static_cast<uint32_t>(value));
    case DType::I64: return store_as(data, index, value);
    case DType::U64: return store_as(data, index, static_cast<uint64_t>(value));
    case DType::Bool: return store_as(data, index, static_cast<uint8_t>(value != 0));
    default: return store_element(data, dtype, index, static_cast<double>(value));
  }
}

}  // namespace librt
