#include "tools/common/tensor_proto.h"

#include <bit>
#include <climits>
#include <cstring>

#include "tools/rtconvert/onnx/onnx.pb.h"

static_assert(std::endian::native == std::endian::little,
              "raw_data is little endian and is used as it stands");

namespace rt::tools {

namespace {

enum OnnxType {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16
};

// By OnnxType.
constexpr std::string_view kOnnxNames[] = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

struct Pair {
  int onnx;
  ElementType type;
};
constexpr Pair kPairs[] = {
    {kFloat, ElementType::F32},  {kFloat16, ElementType::F16}, {kBfloat16, ElementType::BF16},
    {kDouble, ElementType::F64}, {kInt8, ElementType::I8},     {kUint8, ElementType::U8},
    {kInt16, ElementType::I16},  {kUint16, ElementType::U16},  {kInt32, ElementType::I32},
    {kUint32, ElementType::U32}, {kInt64, ElementType::I64},   {kUint64, ElementType::U64},
    {kBool, ElementType::Bool}};

// The typed field that holds elements of a type: the 8- and 16-bit types and bool share int32_data, one
// element per entry (float16 and bfloat16 as their bit patterns); u32 lies in uint64_data.
template <class Visitor>
bool with_field(const rt_onnx::TensorProto& proto, ElementType type, Visitor&& visit) {
  switch (type) {
    case ElementType::F32: return visit(proto.float_data(), float{});
    case ElementType::F64: return visit(proto.double_data(), double{});
    case ElementType::I64: return visit(proto.int64_data(), int64_t{});
    case ElementType::U64: return visit(proto.uint64_data(), uint64_t{});
    case ElementType::U32: return visit(proto.uint64_data(), uint32_t{});
    case ElementType::I32: return visit(proto.int32_data(), int32_t{});
    case ElementType::I16: return visit(proto.int32_data(), int16_t{});
    case ElementType::U16:
    case ElementType::F16:
    case ElementType::BF16: return visit(proto.int32_data(), uint16_t{});
    case ElementType::I8: return visit(proto.int32_data(), int8_t{});
    case ElementType::U8:
    case ElementType::Bool: return visit(proto.int32_data(), uint8_t{});
  }
  return false;
}

// Any nonzero byte is true in files; librt's bool is 0 or 1.
void normalize_bools(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
}

}  // namespace

std::optional<ElementType> element_type_of_onnx(int data_type) noexcept {
  for (const Pair& pair : kPairs)
    if (pair.onnx == data_type) return pair.type;
  return std::nullopt;
}

int onnx_type_of(ElementType type) noexcept {
  for (const Pair& pair : kPairs)
    if (pair.type == type) return pair.onnx;
  return 0;
}

std::string onnx_type_name(int data_type) {
  if (data_type >= 0 && static_cast<size_t>(data_type) < std::size(kOnnxNames))
    return std::string(kOnnxNames[static_cast<size_t>(data_type)]);
  return "type " + std::to_string(data_type);
}

std::optional<TensorOutline> outline_of(const rt_onnx::TensorProto& proto, std::string& error) {
  const auto type = element_type_of_onnx(proto.data_type());
  if (!type) {
    error = "elements of type " + onnx_type_name(proto.data_type()) + " are not supported";
    return std::nullopt;
  }
  TensorOutline outline{.type = *type, .dims = {proto.dims().begin(), proto.dims().end()}, .bytes = 0};
  const auto bytes = byte_count(*type, outline.dims);
  if (!bytes) {
    error = "the extents are negative or too large";
    return std::nullopt;
  }
  if (proto.has_segment()) {
    error = "tensors cut into segments are not supported";
    return std::nullopt;
  }
  outline.bytes = *bytes;
  return outline;
}

bool has_elements(const rt_onnx::TensorProto& proto, const TensorOutline& outline, std::string& error) {
  const size_t size = element_size(outline.type);
  size_t held = 0;
  if (proto.has_raw_data()) {
    held = proto.raw_data().size();
  } else {
    with_field(proto, outline.type, [&](const auto& field, auto) {
      held = static_cast<size_t>(field.size()) * size;
      return true;
    });
  }
  if (held == outline.bytes) return true;
  error = "the extents ask for " + std::to_string(outline.bytes) + " bytes of data, the message holds " +
          std::to_string(held);
  return false;
}

bool copy_elements(const rt_onnx::TensorProto& proto, ElementType type, std::span<std::byte> bytes,
                   std::string& error) {
  const TensorOutline outline{.type = type, .dims = {}, .bytes = bytes.size()};
  if (!has_elements(proto, outline, error)) return false;
  if (bytes.empty()) return true;
  if (proto.has_raw_data()) {
    std::memcpy(bytes.data(), proto.raw_data().data(), bytes.size());
  } else {
    with_field(proto, type, [&](const auto& field, auto element) {
      for (int i = 0; i < field.size(); ++i) {
        element = static_cast<decltype(element)>(field.Get(i));
        std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof element, &element, sizeof element);
      }
      return true;
    });
  }
  if (type == ElementType::Bool) normalize_bools(bytes);
  return true;
}

std::optional<Array> parse_tensor_proto(std::span<const std::byte> bytes, std::string& error) {
  rt_onnx::TensorProto proto;
  if (bytes.size() > INT_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    error = "not a serialized TensorProto";
    return std::nullopt;
  }
  const auto outline = outline_of(proto, error);
  if (!outline) return std::nullopt;
  if (proto.data_location() != 0) {
    error = "the data lies in another file, which is not read here";
    return std::nullopt;
  }
  if (!has_elements(proto, *outline, error)) return std::nullopt;
  Array array{.name = proto.name(), .type = outline->type, .dims = outline->dims, .bytes = {}};
  array.bytes.resize(outline->bytes);
  if (!copy_elements(proto, array.type, array.bytes, error)) return std::nullopt;
  return array;
}

std::string format_tensor_proto(const Array& array) {
  rt_onnx::TensorProto proto;
  proto.set_name(array.name);
  proto.set_data_type(onnx_type_of(array.type));
  for (int64_t dim : array.dims) proto.add_dims(dim);
  proto.set_raw_data(array.bytes.data(), array.bytes.size());
  return proto.SerializeAsString();
}

}  // namespace rt::tools
