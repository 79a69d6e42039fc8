// Matmul as dispatches of the gemm shader.
//
// Knows: register tiles and operand layouts. Must not know: axes, operators, where operands come from.
#pragma once

#include "backends/vulkan/steps/epilogue.h"
#include "backends/vulkan/steps/repack.h"

namespace librt::vulkan {

/// An operand [M,K] or [K,N], or transposed [K,M] or [N,K]. Its rows are whole vec4s, and along k it is
/// zero-padded to TiledGemm::k.
struct GemmOperand {
  Ref ref;
  bool transposed = false;
  int64_t row_stride = 0;                    ///< vec4
  std::vector<int64_t> batch_strides{0, 0};  ///< vec4
};

struct TiledGemm {
  DType dtype = DType::F32;  ///< f32, f16 or bf16, of all operands; accumulation is f32
  bool matrices = false;     ///< by cooperative matrices, see matrices_support()
  int64_t m = 0, n = 0;
  int64_t k = 0;  ///< a multiple of four, unless a is transposed and b is not
  GemmOperand a, b;
  std::vector<int64_t> batch{1, 1};
  int64_t bias_batch = 0, bias_row = 0, bias_column = 0;  ///< strides
  EpiloguePlan epilogue;
};

/// result [batch.., M, N] = epilogue(a b). If an operand is larger than the device binds at once, the matmul
/// is done in parts; parts along k accumulate into the stored result. A 16-bit result that is stored more
/// than once, or not in fours, is computed in f32 first. Declines if every variant of the shader is in
/// quarantine.
void add_gemm(Program& program, const VulkanDevice& device, const TiledGemm& gemm, const Ref& result);

/// Ok if cooperative matrices compute [m,k] [k,n] of this type: the device lists some that fit it, and
/// RT_VULKAN_MATRICES does not disable them.
Status matrices_support(const VulkanDevice& device, DType dtype, int64_t m, int64_t n);

/// How many of a workgroup's lanes run along the columns of a result of this many tiles.
uint32_t lanes_along_n(const DevicePlan& plan, int64_t row_tiles, int64_t column_tiles);

}  // namespace librt::vulkan
