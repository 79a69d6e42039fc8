#include "runtime/core/dtype.h"

namespace librt {
namespace {
constexpr std::string_view kNames[kDTypeCount] = {"f32", "f16", "bf16", "f64", "i8",  "u8",  "i16",
                                                  "u16", "i32", "u32",  "i64", "u64", "bool"};
constexpr std::string_view kLongNames[kDTypeCount] = {"float32", "float16", "bfloat16", "float64", "int8",
                                                      "uint8",   "int16",   "uint16",   "int32",   "uint32",
                                                      "int64",   "uint64",  "boolean"};
}  // namespace

std::string_view name_of(DType dtype) noexcept {
  return valid(dtype) ? kNames[static_cast<int>(dtype)] : std::string_view("invalid");
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == kNames[i] || name == kLongNames[i]) return static_cast<DType>(i);
  if (name == "fp32") return DType::F32;
  if (name == "fp16") return DType::F16;
  return std::nullopt;
}

}  // namespace librt
