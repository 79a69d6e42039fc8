// Element types of tensors.
//
// Knows: names, sizes, kinds. Must not know: arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/include/rt/dtype.h"

namespace librt {

/// The element types of the C ABI, whose values are part of the file format (schema/model.fbs): append only.
enum class DType : uint8_t {
  F32 = RT_F32,
  F16 = RT_F16,
  BF16 = RT_BF16,
  F64 = RT_F64,
  I8 = RT_I8,
  U8 = RT_U8,
  I16 = RT_I16,
  U16 = RT_U16,
  I32 = RT_I32,
  U32 = RT_U32,
  I64 = RT_I64,
  U64 = RT_U64,
  Bool = RT_BOOL,  ///< one byte, 0 or 1
};
inline constexpr int kDTypeCount = 13;

constexpr bool valid(DType dtype) noexcept {
  return static_cast<int>(dtype) < kDTypeCount;
}

/// Bytes of one element.
constexpr size_t size_of(DType dtype) noexcept {
  constexpr uint8_t kSizes[kDTypeCount] = {4, 2, 2, 8, 1, 1, 2, 2, 4, 4, 8, 8, 1};
  return valid(dtype) ? kSizes[static_cast<int>(dtype)] : 0;
}

constexpr bool is_float(DType dtype) noexcept {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F64;
}
constexpr bool is_signed_integer(DType dtype) noexcept {
  return dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
}
constexpr bool is_unsigned_integer(DType dtype) noexcept {
  return dtype == DType::U8 || dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64;
}
constexpr bool is_integer(DType dtype) noexcept {
  return is_signed_integer(dtype) || is_unsigned_integer(dtype);
}

/// "f32", "i64", "bool", ...
std::string_view name_of(DType dtype) noexcept;
/// The inverse of name_of; also accepts "float32", "int64" and the like.
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// A set of element types, for kernel tables: DTypeSet{DType::F32, DType::F16}.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  template <class... T>
  constexpr explicit DTypeSet(DType first, T... rest)
      : bits_(static_cast<uint16_t>((bit(first) | ... | bit(rest)))) {}
  constexpr bool contains(DType dtype) const noexcept { return (bits_ & bit(dtype)) != 0; }
  constexpr DTypeSet operator|(DTypeSet other) const noexcept {
    DTypeSet both;
    both.bits_ = static_cast<uint16_t>(bits_ | other.bits_);
    return both;
  }

 private:
  static constexpr unsigned bit(DType dtype) noexcept { return 1u << static_cast<int>(dtype); }
  uint16_t bits_ = 0;
};

inline constexpr DTypeSet kFloats{DType::F32, DType::F16, DType::BF16, DType::F64};
inline constexpr DTypeSet kIntegers{DType::I8,  DType::U8,  DType::I16, DType::U16,
                                    DType::I32, DType::U32, DType::I64, DType::U64};
inline constexpr DTypeSet kNumericTypes = kFloats | kIntegers;
inline constexpr DTypeSet kAnyDType = kNumericTypes | DTypeSet{DType::Bool};

}  // namespace librt
