#include "tools/rttrain/dataset.h"

#include <array>
#include <cstring>
#include <numeric>
#include <string_view>

#include "tools/common/npz.h"
#include "tools/common/random.h"

namespace rt::train {
namespace {

using tools::Array;
using tools::ElementType;

std::string shape_text(std::span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out + "]";
}

template <class T>
T element(const std::byte* data, size_t index) noexcept {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// The types data sets come in; half precision data is refused by number().
bool number(const Array& array, size_t i, double& value) noexcept {
  const std::byte* data = array.bytes.data();
  switch (array.type) {
    case ElementType::F32: value = static_cast<double>(element<float>(data, i)); return true;
    case ElementType::F64: value = element<double>(data, i); return true;
    case ElementType::I8: value = element<int8_t>(data, i); return true;
    case ElementType::U8:
    case ElementType::Bool: value = element<uint8_t>(data, i); return true;
    case ElementType::I16: value = element<int16_t>(data, i); return true;
    case ElementType::U16: value = element<uint16_t>(data, i); return true;
    case ElementType::I32: value = element<int32_t>(data, i); return true;
    case ElementType::U32: value = element<uint32_t>(data, i); return true;
    case ElementType::I64: value = static_cast<double>(element<int64_t>(data, i)); return true;
    case ElementType::U64: value = static_cast<double>(element<uint64_t>(data, i)); return true;
    default: return false;
  }
}

rt::Status convert(const Array& array, const rt::TensorSpec& input, double scale, Column& column) {
  const size_t count = array.bytes.size() / tools::element_size(array.type);
  const size_t width = rt::size_of(input.dtype);
  const bool to_float = input.dtype == rt::DType::F32;
  const bool scaled = to_float && scale != 1;
  if (static_cast<int>(array.type) == static_cast<int>(input.dtype) && !scaled) {
    column.bytes = array.bytes;
    return {};
  }
  if (!to_float && input.dtype != rt::DType::I64 && input.dtype != rt::DType::I32)
    return {rt::Code::Unsupported,
            "input '" + input.name + "' has type " + std::string(rt::name_of(input.dtype)) + ", array '" +
                array.name + "' " + std::string(tools::element_name(array.type)) + "; convert the data"};
  column.bytes.resize(count * width);
  for (size_t i = 0; i < count; ++i) {
    double value = 0;
    if (!number(array, i, value))
      return {rt::Code::Unsupported, "array '" + array.name + "' has type " +
                                         std::string(tools::element_name(array.type)) +
                                         "; convert it to float32"};
    std::byte* target = column.bytes.data() + i * width;
    if (to_float) {
      const float converted = static_cast<float>(value * scale);
      std::memcpy(target, &converted, sizeof converted);
    } else if (input.dtype == rt::DType::I64) {
      const auto converted = static_cast<int64_t>(value);
      std::memcpy(target, &converted, sizeof converted);
    } else {
      const auto converted = static_cast<int32_t>(value);
      std::memcpy(target, &converted, sizeof converted);
    }
  }
  return {};
}

const Array* find_array(const std::vector<Array>& arrays, const rt::TensorSpec& input, bool is_label) {
  for (const Array& array : arrays)
    if (array.name == input.name) return &array;
  static constexpr std::array<std::string_view, 6> kData = {"inputs", "input", "x",
                                                            "images", "data",  "features"};
  static constexpr std::array<std::string_view, 6> kLabels = {"labels",  "label",  "y",
                                                              "targets", "target", "classes"};
  for (std::string_view name : is_label ? kLabels : kData)
    for (const Array& array : arrays)
      if (array.name == name) return &array;
  return nullptr;
}

}  // namespace

rt::Result<Dataset> Dataset::load(const std::string& path, const std::vector<rt::TensorSpec>& inputs,
                                  double scale) {
  std::string error;
  const auto arrays = tools::read_npz(path, error);
  if (!arrays) return rt::Status(rt::Code::Io, error);
  Dataset dataset;
  for (const rt::TensorSpec& input : inputs) {
    const bool is_label = input.name == "labels" || input.name == "target";
    const Array* array = find_array(*arrays, input, is_label);
    if (array == nullptr) {
      std::string names;
      for (const Array& other : *arrays) names += (names.empty() ? "" : ", ") + other.name;
      return rt::Status(rt::Code::InvalidArgument, path + ": no array for input '" + input.name +
                                                       "'; name one '" + input.name +
                                                       "'; there are: " + names);
    }
    Column column{.input = input.name, .dtype = input.dtype};
    size_t sample_elements = 1;
    for (size_t axis = 1; axis < input.dims.size(); ++axis) {
      int64_t extent = input.dims[axis].extent;
      if (extent < 0 && axis < array->dims.size()) extent = array->dims[axis];
      column.sample_dims.push_back(extent);
      sample_elements *= static_cast<size_t>(extent < 0 ? 0 : extent);
    }
    if (array->dims.empty() || input.dims.empty())
      return rt::Status(rt::Code::InvalidArgument, path + ": input '" + input.name + "' and array '" +
                                                       array->name +
                                                       "' need a first axis that counts samples");
    const auto rows = static_cast<size_t>(array->dims[0]);
    const size_t elements = array->bytes.size() / tools::element_size(array->type);
    if (rows == 0 || elements != rows * sample_elements)
      return rt::Status(rt::Code::InvalidArgument,
                        path + ": array '" + array->name + "' is " + shape_text(array->dims) + ", input '" +
                            input.name + "' wants samples of " + shape_text(column.sample_dims));
    if (dataset.size_ != 0 && rows != dataset.size_)
      return rt::Status(rt::Code::InvalidArgument, path + ": array '" + array->name + "' has " +
                                                       std::to_string(rows) + " samples, the ones before " +
                                                       std::to_string(dataset.size_));
    dataset.size_ = rows;
    column.sample_bytes = sample_elements * rt::size_of(input.dtype);
    if (rt::Status status = convert(*array, input, scale, column); !status)
      return rt::Status(status.code(), path + ": " + status.message());
    dataset.columns_.push_back(std::move(column));
  }
  return dataset;
}

const Column* Dataset::column(const std::string& input) const noexcept {
  for (const Column& column : columns_)
    if (column.input == input) return &column;
  return nullptr;
}

rt::Tensor Dataset::batch(const Column& column, const std::vector<uint32_t>& order, size_t first,
                          size_t count) const {
  std::vector<int64_t> dims = {static_cast<int64_t>(count)};
  dims.insert(dims.end(), column.sample_dims.begin(), column.sample_dims.end());
  rt::Tensor tensor(column.dtype, dims);
  auto* target = static_cast<std::byte*>(tensor.data());
  for (size_t i = 0; i < count; ++i)
    std::memcpy(target + i * column.sample_bytes,
                column.bytes.data() + order[first + i] * column.sample_bytes, column.sample_bytes);
  return tensor;
}

std::vector<uint32_t> epoch_order(size_t size, uint64_t seed, uint64_t epoch, bool shuffle) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  if (!shuffle) return order;
  uint64_t state = seed * 0x9e3779b97f4a7c15u + epoch;
  for (size_t i = size; i > 1; --i) std::swap(order[i - 1], order[split_mix(state) % i]);  // Fisher-Yates
  return order;
}

}  // namespace rt::train
