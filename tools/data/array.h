// A tensor in host memory, as the tools exchange it with files.
//
// Knows: element types. Must not know: anything else of librt's internals, so that programs that use only the
// public headers can link it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"

namespace librt::tools {

struct Array {
  std::string name;
  DType type = DType::F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;  ///< dense, row-major, little endian
};

/// Of arrays in files.
inline constexpr size_t kMostAxes = 64;

/// Size in bytes of a dense tensor; nullopt when a dimension is negative or the size exceeds 2^60.
std::optional<size_t> byte_count(DType type, std::span<const int64_t> dims) noexcept;

/// "[1,28,28]"
std::string shape_text(std::span<const int64_t> dims);

/// Index of the first of `count` elements that is NaN or, as f32, infinite; nullopt if none is, and for
/// integers.
std::optional<size_t> first_nonfinite(DType type, const void* data, size_t count) noexcept;

}  // namespace librt::tools
