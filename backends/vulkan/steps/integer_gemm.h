// GEMM of 8-bit integers as dispatches of the gemm_integer shader.
//
// Knows: packed operands, register tiles, zero points. Must not know: operators, axes of batches.
#pragma once

#include "backends/vulkan/steps/conv.h"
#include "backends/vulkan/steps/requantize.h"

namespace librt::vulkan {

/// Bytes along k that shaders load at once.
inline constexpr int64_t kIntegerBlock = 16;

/// Absent, per tensor, or one for each row of a or column of b.
enum class ZeroPoint : uint8_t { None, One, Each };

/// result [batch.., M, N] = requantize((a - zero_a)(b - zero_b)).
struct IntegerGemm {
  int64_t m = 0, n = 0, k = 0;
  std::vector<int64_t> batch{1, 1};
  /// [M][K/16][16] u8 or i8, or the image of `windows`.
  Ref a;
  bool a_signed = false;
  int64_t a_row = 0;  ///< stride of rows or pixels, in blocks
  /// packed_columns() of u8 or i8.
  Ref b;
  bool b_signed = true;
  std::vector<int64_t> a_batch{0, 0}, b_batch{0, 0};  ///< strides in blocks
  std::vector<int64_t> c_batch{0, 0};                 ///< strides in elements
  int64_t c_row = 0;
  int64_t batch_channels = 0;  ///< from one inner matrix's channels to the next one's
  ZeroPoint zero_a = ZeroPoint::None, zero_b = ZeroPoint::None;
  Ref a_zero{}, b_zero{};
  /// Not null: a convolution whose groups are the inner batch axis; rows are its output pixels. Two spatial
  /// axes, whole blocks of input channels in each group.
  const ConvSides* windows = nullptr;
  RequantizePlan requantize{};
};

/// Declines if every variant of the shader is in quarantine.
void add_integer_gemm(Program& program, const VulkanDevice& device, const IntegerGemm& gemm,
                      const Ref& result);

/// Byte matrices [K,N] with any layout in memory, strides in elements.
struct ByteColumns {
  int64_t matrices = 1, k = 0, n = 0;
  int64_t matrix_stride = 0, k_stride = 0, n_stride = 0;
  bool is_signed = true;

  int64_t blocks() const { return ceil_div(k, kIntegerBlock); }
  uint64_t packed_bytes() const { return static_cast<uint64_t>(matrices * blocks() * n * kIntegerBlock); }
};
/// As [matrices][K/16][N][16] of i8, u8 less 128, zero-padded along K; on the host if `constant` is given,
/// else in every run.
Ref packed_columns(Program& program, const VulkanDevice& device, const Ref& source,
                   const ByteColumns& columns, const uint8_t* constant);

/// im2col: the windows of a convolution as rows [groups][pixels][K/16][16]; has_zero: padding taps are
/// `zero`, otherwise 0.
Ref packed_rows(Program& program, const VulkanDevice& device, const Ref& source, const ConvSides& sides,
                bool is_signed, const Ref* zero);
inline uint64_t packed_rows_bytes(const ConvSides& sides) {
  return static_cast<uint64_t>(sides.groups * sides.out_pixels() *
                               ceil_div(sides.taps() * sides.group_in(), kIntegerBlock) * kIntegerBlock);
}

}  // namespace librt::vulkan
