// A tensor in host memory, as the tools exchange it with files.
//
// Knows: element types by their rt_dtype values, sizes, names. Must not know: librt's internals, so that
// programs that use only the public headers can link it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rt::tools {

/// The values are those of rt_dtype (and rt::DType).
enum class ElementType : uint8_t {
  F32 = 0,
  F16 = 1,
  BF16 = 2,
  F64 = 3,
  I8 = 4,
  U8 = 5,
  I16 = 6,
  U16 = 7,
  I32 = 8,
  U32 = 9,
  I64 = 10,
  U64 = 11,
  Bool = 12,
};

struct Array {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;  ///< dense, row-major, little endian
};

size_t element_size(ElementType type) noexcept;
/// "f32", "bool", ...
std::string_view element_name(ElementType type) noexcept;
/// Size in bytes of a dense tensor; nullopt when a dimension is negative or the size exceeds 2^60.
std::optional<size_t> byte_count(ElementType type, std::span<const int64_t> dims) noexcept;

bool is_float(ElementType type) noexcept;
/// Index of the first of `count` elements that is NaN or, as f32, infinite; nullopt if none is, and for
/// integers.
std::optional<size_t> first_nonfinite(ElementType type, const void* data, size_t count) noexcept;

/// The whole file; nullopt with a message.
std::optional<std::vector<std::byte>> read_file(const std::string& path, std::string& error);

/// An array from a .npy file or a serialized TensorProto, distinguished by the file's first bytes.
std::optional<Array> read_array(const std::string& path, std::string& error);

}  // namespace rt::tools
