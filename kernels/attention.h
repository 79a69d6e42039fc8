// Attention: launcher arguments.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace librt::cuda {

enum class AttentionAlgorithm : uint8_t {
  Plain,   ///< FMAs on CUDA cores; f32, f16 and bf16, any widths
  Tensor,  ///< tensor cores; f16 and bf16 (sm_80), d and e multiples of 8 of at most 128
};

/// query [batch,heads,queries,d], key [batch,groups,keys,d], value [batch,groups,keys,e] -> y
/// [batch,heads,queries,e]. The query heads of one group are stacked: heads / groups * queries rows of one
/// matrix.
struct AttentionArguments {
  ElementType type = ElementType::F32;
  AttentionAlgorithm algorithm = AttentionAlgorithm::Plain;
  const void *query = nullptr, *key = nullptr, *value = nullptr;
  const void* mask = nullptr;                                     ///< null: none
  ElementType mask_type = ElementType::F32;                       ///< Bool, F32, or `type`
  int64_t mask_strides[4] = {};                                   ///< 0 where it broadcasts
  const int64_t *kv_length = nullptr, *query_position = nullptr;  ///< null: absent
  bool one_position = false;  ///< query_position has one entry shared by all batches
  void* y = nullptr;
  float* partial = nullptr;  ///< with splits > 1: attention_partial_bytes()
  int batch = 0, heads = 0, groups = 0, queries = 0, keys = 0, d = 0, e = 0;
  int splits = 1;  ///< the keys are split into this many parts, merged in order
  float scale = 1, softcap = 0;
  int64_t left = -1, right = -1;  ///< windows; -1: none. Causal is right = 0
};
cudaError_t attention(const AttentionArguments& arguments, cudaStream_t stream);
/// The number of key splits that fills the device.
int attention_splits(const AttentionArguments& arguments, int multiprocessors);
size_t attention_partial_bytes(const AttentionArguments& arguments);

}  // namespace librt::cuda
