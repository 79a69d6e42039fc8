#include "tools/onnx/constant_input.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "runtime/core/element.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

namespace {

std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> entries;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string_view entry = list.substr(begin, end - begin);
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    entries.push_back(entry);
    begin = end + 1;
  }
  return entries;
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Parses and stores a value; false if it is malformed or an integer out of range.
bool store(std::string_view text, DType dtype, void* data, int64_t at) {
  if (dtype == DType::Bool && (text == "true" || text == "false")) text = text == "true" ? "1" : "0";
  if (is_float(dtype)) {
    double number = 0;
    if (!parse(text, number)) return false;
    store_element(data, dtype, at, number);
    return true;
  }
  if (dtype == DType::U64) {
    uint64_t number = 0;
    if (!parse(text, number)) return false;
    store_integer(data, dtype, at, static_cast<int64_t>(number));
    return true;
  }
  int64_t number = 0;
  if (!parse(text, number)) return false;
  store_integer(data, dtype, at, number);
  return load_integer(data, dtype, at) == number;
}

/// The shape of a list of values: the declared one, with its one dynamic dimension inferred.
Result<Shape> shape_of_list(const rt_onnx::TypeProto::Tensor& declared, int64_t count,
                            const std::map<std::string, int64_t>& dims) {
  Shape shape;
  if (!declared.has_shape()) {
    if (count != 1) shape.push_back(count);
    return shape;
  }
  if (declared.shape().dim_size() > kMaxRank)
    return unsupported("it has ", declared.shape().dim_size(), " dimensions; at most ", kMaxRank,
                       " are supported");
  int open = -1;
  int64_t product = 1;
  for (int axis = 0; axis < declared.shape().dim_size(); ++axis) {
    const auto& dim = declared.shape().dim(axis);
    const auto bound = dims.find(dim.dim_param());
    const bool known = dim.has_dim_value() && dim.dim_value() >= 0;
    if (!known && bound == dims.end()) {
      if (open >= 0) return invalid_argument("its shape has more than one dynamic dimension; give a file");
      open = axis;
      shape.push_back(1);
    } else {
      shape.push_back(known ? dim.dim_value() : bound->second);
      product *= std::clamp<int64_t>(shape[axis], 0, count + 1);
    }
    if (product > count + 1) break;
  }
  if (open >= 0 && product > 0 && count % product == 0) {
    Shape filled;
    for (int axis = 0; axis < shape.rank(); ++axis)
      filled.push_back(axis == open ? count / product : shape[axis]);
    return filled;
  }
  if (open >= 0 || product != count)
    return invalid_argument("expected ", open >= 0 ? "a multiple of " : "", product,
                            product == 1 ? " number, found " : " numbers, found ", count);
  return shape;
}

Result<ConstantInput> from_text(const rt_onnx::TypeProto::Tensor& declared, DType dtype,
                                const std::string& list, const std::map<std::string, int64_t>& dims) {
  const std::vector<std::string_view> entries = entries_of(list);
  const auto count = static_cast<int64_t>(entries.size());
  RT_ASSIGN(const Shape shape, shape_of_list(declared, count, dims));
  std::vector<std::byte> bytes(entries.size() * size_of(dtype));
  for (int64_t i = 0; i < count; ++i)
    if (const std::string_view entry = entries[static_cast<size_t>(i)]; !store(entry, dtype, bytes.data(), i))
      return invalid_argument("'", entry, "' is no number that ", name_of(dtype), " has");
  return ConstantInput{
      .info = {.dtype = dtype, .shape = shape}, .data = Blob::own(std::move(bytes)), .numbers = {}};
}

std::string declared_text(const rt_onnx::TypeProto::Tensor& declared, DType dtype) {
  std::string shown(name_of(dtype));
  shown += '[';
  for (int axis = 0; axis < declared.shape().dim_size(); ++axis) {
    const auto& dim = declared.shape().dim(axis);
    append(shown, axis > 0 ? "," : "");
    append(shown, dim.has_dim_value()       ? std::to_string(dim.dim_value())
                  : dim.dim_param().empty() ? "?"
                                            : dim.dim_param());
  }
  return shown + "]";
}

}  // namespace

Result<ConstantInput> constant_for(const rt_onnx::ValueInfoProto& input, const ConstantInput& given,
                                   std::map<std::string, int64_t>& dims) {
  const auto& declared = input.type().tensor_type();
  const auto type = tools::element_type_of_onnx(declared.elem_type());
  if (!input.type().has_tensor_type() || !type)
    return unsupported("input '", input.name(), "': only a numeric tensor can become a constant");
  const auto dtype = static_cast<DType>(*type);
  ConstantInput constant = given;
  if (!given.numbers.empty()) {
    auto read = from_text(declared, dtype, given.numbers, dims);
    if (!read.ok())
      return invalid_argument("input '", input.name(), "' (", declared_text(declared, dtype),
                              "): ", read.status().message());
    constant = *std::move(read);
  }
  const Shape& shape = constant.info.shape;
  bool fits = constant.info.dtype == dtype;
  fits = fits && (!declared.has_shape() || declared.shape().dim_size() == shape.rank());
  for (int axis = 0; fits && declared.has_shape() && axis < shape.rank(); ++axis) {
    const auto& dim = declared.shape().dim(axis);
    fits = !dim.has_dim_value() || dim.dim_value() < 0 || dim.dim_value() == shape[axis];
    if (!fits || dim.dim_param().empty()) continue;
    const auto [bound, fresh] = dims.emplace(dim.dim_param(), shape[axis]);
    if (!fresh && bound->second != shape[axis])
      return invalid_argument("input '", input.name(), "': the value given makes dimension '",
                              dim.dim_param(), "' ", shape[axis], ", elsewhere it is ", bound->second);
  }
  if (!fits)
    return invalid_argument("input '", input.name(), "': expected ", declared_text(declared, dtype),
                            ", the value given is ", constant.info);
  return constant;
}

}  // namespace librt::onnx
