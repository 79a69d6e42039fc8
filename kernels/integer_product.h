// MatMulInteger, ConvInteger and their quantized forms: what the launchers take. Bytes less their zero
// points, products summed in i32 (which wraps), stored so or requantized at once.
#pragma once

#include "kernels/conv.h"
#include "kernels/quantize.h"

namespace rt::cuda {

/// A factor's bytes: i8, or u8.
struct IntegerFactor {
  const void* bytes = nullptr;
  bool is_signed = false;
  const void* zero_point = nullptr;  ///< of the same type; null: 0
  int64_t zero_stride = 0;           ///< from one row (column) to the next; 0: one for all
};

struct IntegerProductArguments {
  IntegerFactor first, second;
  Product product;  ///< no epilogue, no splits; Bias strides count channels
  Requantization requantization;
  ProductBatch zero_batch;  ///< strides of the zero points in First and Second, extents as in product.batch
};

/// first [M,K], second [K,N], dense.
cudaError_t matmul_integer(const IntegerProductArguments& arguments, cudaStream_t stream);
/// first x, second weight, one zero point for x; product as of conv_product(windows, ConvForm::Forward).
cudaError_t conv_integer(const IntegerProductArguments& arguments, const ConvWindows& windows,
                         cudaStream_t stream);

}  // namespace rt::cuda
