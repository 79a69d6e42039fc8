#include "tools/onnx/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/core/half.h"
#include "tools/onnx/onnx.pb.h"

static_assert(std::endian::native == std::endian::little,
              "raw_data is little endian and is used as it stands");

namespace librt::tools {

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
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kUint2 = 25,
  kInt2 = 26
};

// Indexed by OnnxType.
constexpr std::string_view kOnnxNames[] = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

struct Pair {
  int onnx;
  DType type;
};
constexpr Pair kPairs[] = {{kFloat, DType::F32},  {kFloat16, DType::F16}, {kBfloat16, DType::BF16},
                           {kDouble, DType::F64}, {kInt8, DType::I8},     {kUint8, DType::U8},
                           {kInt16, DType::I16},  {kUint16, DType::U16},  {kInt32, DType::I32},
                           {kUint32, DType::U32}, {kInt64, DType::I64},   {kUint64, DType::U64},
                           {kBool, DType::Bool}};

constexpr NarrowType kNarrow[] = {
    {.onnx = kFloat8E4M3FN, .held = DType::F16, .bits = 8, .mantissa = 3, .bias = 7},
    {.onnx = kFloat8E4M3FNUZ, .held = DType::F16, .bits = 8, .mantissa = 3, .bias = 8, .fnuz = true},
    {.onnx = kFloat8E5M2, .held = DType::F16, .bits = 8, .mantissa = 2, .bias = 15, .infinity = true},
    {.onnx = kFloat8E5M2FNUZ, .held = DType::F16, .bits = 8, .mantissa = 2, .bias = 16, .fnuz = true},
    {.onnx = kFloat4E2M1, .held = DType::F16, .bits = 4, .mantissa = 1, .bias = 1},
    {.onnx = kUint4, .held = DType::U8, .bits = 4},
    {.onnx = kInt4, .held = DType::I8, .bits = 4},
    {.onnx = kUint2, .held = DType::U8, .bits = 2},
    {.onnx = kInt2, .held = DType::I8, .bits = 2},
};

// The value of a float of type.bits bits.
double decoded(const NarrowType& type, unsigned code) {
  const unsigned magnitude = code & ((1u << (type.bits - 1)) - 1);
  const double sign = (code >> (type.bits - 1)) != 0 ? -1 : 1;
  if (type.fnuz && sign < 0 && magnitude == 0) return NAN;
  const int exponent = static_cast<int>(magnitude >> type.mantissa);
  const unsigned fraction = magnitude & ((1u << type.mantissa) - 1);
  const int most = (1 << (type.bits - 1 - type.mantissa)) - 1;
  if (type.infinity && exponent == most) return fraction == 0 ? sign * INFINITY : NAN;
  if (type.bits == 8 && !type.infinity && !type.fnuz && magnitude == 0x7fu) return NAN;
  const double whole = exponent == 0 ? fraction : fraction + (1u << type.mantissa);
  return sign * std::ldexp(whole, std::max(exponent, 1) - type.bias - type.mantissa);
}

// The typed field that holds elements of a type: the 8- and 16-bit types and bool share int32_data, one
// element per entry (float16 and bfloat16 as their bit patterns); u32 is in uint64_data.
template <class Visitor>
bool with_field(const rt_onnx::TensorProto& proto, DType type, Visitor&& visit) {
  switch (type) {
    case DType::F32: return visit(proto.float_data(), float{});
    case DType::F64: return visit(proto.double_data(), double{});
    case DType::I64: return visit(proto.int64_data(), int64_t{});
    case DType::U64: return visit(proto.uint64_data(), uint64_t{});
    case DType::U32: return visit(proto.uint64_data(), uint32_t{});
    case DType::I32: return visit(proto.int32_data(), int32_t{});
    case DType::I16: return visit(proto.int32_data(), int16_t{});
    case DType::U16:
    case DType::F16:
    case DType::BF16: return visit(proto.int32_data(), uint16_t{});
    case DType::I8: return visit(proto.int32_data(), int8_t{});
    case DType::U8:
    case DType::Bool: return visit(proto.int32_data(), uint8_t{});
  }
  return false;
}

/// What a field holds for one element as that element; nothing where another value would be taken instead.
/// Bits of a float may have been extended with their sign.
template <class Element, class Held>
std::optional<Element> element_of(Held held, bool is_bits, bool is_bool) noexcept {
  if constexpr (std::is_integral_v<Element>) {
    if (is_bool) return held != 0 ? Element{1} : Element{0};
    const bool fits =
        std::in_range<Element>(held) || (is_bits && std::in_range<std::make_signed_t<Element>>(held));
    if (!fits) return std::nullopt;
  }
  return static_cast<Element>(held);
}

// Any nonzero byte is true in files; librt's bool is 0 or 1.
void normalize_bools(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
}

}  // namespace

const NarrowType* narrow_type_of_onnx(int data_type) noexcept {
  for (const NarrowType& type : kNarrow)
    if (type.onnx == data_type) return &type;
  return nullptr;
}

void widen_elements(const NarrowType& type, std::span<const std::byte> stored, std::span<std::byte> bytes) {
  const size_t per_byte = 8 / static_cast<size_t>(type.bits), size = size_of(type.held);
  const unsigned mask = (1u << type.bits) - 1;
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    const unsigned code =
        std::to_integer<unsigned>(stored[i / per_byte]) >> (i % per_byte * static_cast<size_t>(type.bits)) &
        mask;
    if (type.held == DType::F16) {
      const uint16_t half = float_to_half(static_cast<float>(decoded(type, code)));
      std::memcpy(bytes.data() + i * size, &half, size);
    } else {
      const bool negative = type.held == DType::I8 && code >> (type.bits - 1) != 0;
      bytes[i] = static_cast<std::byte>(negative ? code | ~mask : code);
    }
  }
}

std::optional<DType> element_type_of_onnx(int data_type) noexcept {
  if (const NarrowType* narrow = narrow_type_of_onnx(data_type)) return narrow->held;
  for (const Pair& pair : kPairs)
    if (pair.onnx == data_type) return pair.type;
  return std::nullopt;
}

int onnx_type_of(DType type) noexcept {
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
  TensorOutline outline{.type = *type,
                        .dims = {proto.dims().begin(), proto.dims().end()},
                        .narrow = narrow_type_of_onnx(proto.data_type())};
  const auto bytes = byte_count(*type, outline.dims);
  if (!bytes) {
    error = "the extents are negative or too large";
    return std::nullopt;
  }
  if (proto.has_segment()) {
    error = "tensors cut into segments are not supported";
    return std::nullopt;
  }
  outline.bytes = outline.stored_bytes = *bytes;
  if (outline.narrow != nullptr)
    outline.stored_bytes = (*bytes / size_of(*type) * static_cast<size_t>(outline.narrow->bits) + 7) / 8;
  return outline;
}

bool has_elements(const rt_onnx::TensorProto& proto, const TensorOutline& outline, std::string& error) {
  // Narrow types share int32_data as bytes.
  const DType field_type = outline.narrow != nullptr ? DType::U8 : outline.type;
  const size_t size = size_of(field_type);
  size_t held = 0;
  if (proto.has_raw_data()) {
    held = proto.raw_data().size();
  } else {
    with_field(proto, field_type, [&](const auto& field, auto) {
      held = static_cast<size_t>(field.size()) * size;
      return true;
    });
  }
  if (held == outline.stored_bytes) return true;
  error = "the extents ask for " + std::to_string(outline.stored_bytes) +
          " bytes of data, the message holds " + std::to_string(held);
  return false;
}

bool copy_elements(const rt_onnx::TensorProto& proto, const TensorOutline& outline,
                   std::span<std::byte> bytes, std::string& error) {
  if (!has_elements(proto, outline, error)) return false;
  if (bytes.empty()) return true;
  std::vector<std::byte> packed(outline.narrow != nullptr ? outline.stored_bytes : 0);
  const std::span<std::byte> stored = outline.narrow != nullptr ? std::span(packed) : bytes;
  if (proto.has_raw_data()) {
    std::memcpy(stored.data(), proto.raw_data().data(), stored.size());
  } else {
    const DType field_type = outline.narrow != nullptr ? DType::U8 : outline.type;
    const bool is_bits = outline.narrow != nullptr || is_float(outline.type);
    const bool fits = with_field(proto, field_type, [&](const auto& field, auto element) {
      for (int i = 0; i < field.size(); ++i) {
        const auto held = element_of<decltype(element)>(field.Get(i), is_bits, outline.type == DType::Bool);
        if (!held) {
          error = "element " + std::to_string(i) + ": expected a value of " +
                  std::string(name_of(outline.type)) + ", found " + std::to_string(field.Get(i));
          return false;
        }
        element = *held;
        std::memcpy(stored.data() + static_cast<size_t>(i) * sizeof element, &element, sizeof element);
      }
      return true;
    });
    if (!fits) return false;
  }
  if (outline.narrow != nullptr) widen_elements(*outline.narrow, stored, bytes);
  if (outline.type == DType::Bool) normalize_bools(bytes);
  return true;
}

void clear_elements(rt_onnx::TensorProto& proto) {
  proto.clear_raw_data();
  proto.clear_float_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_double_data();
  proto.clear_uint64_data();
  proto.clear_external_data();
  proto.clear_data_location();
}

std::optional<Array> parse_tensor_proto(std::span<const std::byte> bytes, std::string& error) {
  rt_onnx::TensorProto proto;
  if (bytes.size() > INT_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    error = "not a serialized TensorProto";
    return std::nullopt;
  }
  if (proto.data_type() == 0) {  // of what is no TensorProto, too
    error = "not a serialized TensorProto: it has no element type";
    return std::nullopt;
  }
  if (static_cast<size_t>(proto.dims_size()) > kMostAxes) {
    error = "expected at most " + std::to_string(kMostAxes) + " extents, found " +
            std::to_string(proto.dims_size());
    return std::nullopt;
  }
  const auto outline = outline_of(proto, error);
  if (!outline) return std::nullopt;
  if (proto.data_location() != 0) {
    error = "the data is stored in another file, which is not read here";
    return std::nullopt;
  }
  if (!has_elements(proto, *outline, error)) return std::nullopt;
  Array array{.name = proto.name(), .type = outline->type, .dims = outline->dims, .bytes = {}};
  array.bytes.resize(outline->bytes);
  if (!copy_elements(proto, *outline, array.bytes, error)) return std::nullopt;
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

}  // namespace librt::tools
