// MatMulInteger, ConvInteger and their quantized forms: launcher arguments. Bytes minus their zero points,
// accumulated in i32 (which wraps), stored as i32 or requantized in the epilogue.
#pragma once

#include "kernels/conv.h"
#include "kernels/quantize.h"

namespace librt::cuda {

/// An operand's bytes: i8 or u8.
struct IntegerOperand {
  const void* bytes = nullptr;
  bool is_signed = false;
  const void* zero_point = nullptr;  ///< of the same type; null: 0
  int64_t zero_stride = 0;           ///< from one row (column) to the next; 0: one for all rows (columns)
};

struct IntegerMatmulArguments {
  IntegerOperand first, second;
  Gemm gemm;  ///< no epilogue, no splits; Bias strides count channels
  Requantization requantization;
  GemmBatch zero_batch;  ///< strides of the zero points in First and Second, extents as in gemm.batch
};

/// first [M,K], second [K,N], dense.
cudaError_t matmul_integer(const IntegerMatmulArguments& arguments, cudaStream_t stream);
/// first x, second weight, one zero point for x; gemm as returned by conv_gemm(windows,
/// ConvForm::Forward).
cudaError_t conv_integer(const IntegerMatmulArguments& arguments, const ConvWindows& windows,
                         cudaStream_t stream);

/// Unsigned bytes minus 128, as signed bytes.
cudaError_t less_128(const void* bytes, void* result, int64_t count, cudaStream_t stream);

/// The epilogue where another library has computed the GEMM of signed bytes: `sums` [M,N] are the
/// accumulators of `first` (minus 128 where it is unsigned) times `second`, which has zero point 0 and column
/// sums `column_sums` [N]. Applies the zero points of `first` and requantizes into gemm.result, which may
/// be `sums`.
cudaError_t finish_integer_matmul(const IntegerMatmulArguments& arguments, const int32_t* sums,
                                  const int32_t* column_sums, cudaStream_t stream);

}  // namespace librt::cuda
