// CumSum and CumProd along one axis: data as [outer, extent, inner].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

struct ScanArguments {
  const void* data = nullptr;
  void* result = nullptr;  ///< may be data
  ElementType type = ElementType::F32;
  bool product = false, exclusive = false, reverse = false;
  int64_t outer = 1, extent = 0, inner = 1;
};

/// Bytes of scratch for scan(); 0 unless few long lines are split into chunks.
size_t scan_scratch_bytes(const ScanArguments& scan);
cudaError_t scan(const ScanArguments& arguments, void* scratch, cudaStream_t stream);

}  // namespace librt::cuda
