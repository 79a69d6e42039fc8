#include "tools/data/array.h"

#include <cmath>
#include <cstring>

namespace librt::tools {

std::string shape_text(std::span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out + "]";
}

std::optional<size_t> byte_count(DType type, std::span<const int64_t> dims) noexcept {
  constexpr uint64_t kLimit = uint64_t{1} << 60;
  uint64_t bytes = size_of(type);
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    const auto extent = static_cast<uint64_t>(dim);
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (bytes > kLimit / extent) return std::nullopt;
    bytes *= extent;
  }
  return empty ? 0 : static_cast<size_t>(bytes);
}

namespace {
/// A float is non-finite when all of its exponent bits are set. Scans block by block without a branch per
/// element.
template <class Bits>
std::optional<size_t> first_with_all(Bits exponent, const void* data, size_t count) noexcept {
  constexpr size_t kBlock = 256;
  Bits block[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t here = count - first < kBlock ? count - first : kBlock;
    std::memcpy(block, static_cast<const std::byte*>(data) + first * sizeof(Bits), here * sizeof(Bits));
    size_t found = 0;
    for (size_t i = 0; i < here; ++i) found += (block[i] & exponent) == exponent ? 1 : 0;
    if (found == 0) continue;
    for (size_t i = 0; i < here; ++i)
      if ((block[i] & exponent) == exponent) return first + i;
  }
  return std::nullopt;
}
}  // namespace

std::optional<size_t> first_nonfinite(DType type, const void* data, size_t count) noexcept {
  switch (type) {
    case DType::F32: return first_with_all<uint32_t>(0x7f800000u, data, count);
    case DType::F16: return first_with_all<uint16_t>(0x7c00u, data, count);
    case DType::BF16: return first_with_all<uint16_t>(0x7f80u, data, count);
    case DType::F64: break;
    default: return std::nullopt;
  }
  for (size_t i = 0; i < count; ++i) {
    double value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + i * sizeof value, sizeof value);
    if (!std::isfinite(static_cast<float>(value))) return i;
  }
  return std::nullopt;
}

}  // namespace librt::tools
