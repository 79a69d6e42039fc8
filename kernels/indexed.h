// GatherElements, GatherND, ScatterElements, ScatterND, TensorScatter: the positions that indices of several
// kinds refer to.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace librt::cuda {

inline constexpr int kMaxIndexedAxes = 8;

/// Entry p of the indices, at coordinates c, refers to the data element at c with the coordinate of `axis`
/// replaced.
struct ElementPositions {
  const void* indices = nullptr;
  bool wide_indices = true;
  int rank = 1, axis = 0;
  int64_t count = 0;
  int64_t index_extents[kMaxIndexedAxes] = {}, data_extents[kMaxIndexedAxes] = {};
};
cudaError_t element_positions(const ElementPositions& arguments, uint32_t* positions, cudaStream_t stream);

/// Tuple p refers to a row of the axes after those it indexes: in batch p / in_batch, at its `length`
/// indices.
struct TuplePositions {
  const void* indices = nullptr;
  bool wide_indices = true;
  int length = 0;
  int64_t count = 0, in_batch = 1;
  int64_t extents[kMaxIndexedAxes] = {};
};
cudaError_t tuple_positions(const TuplePositions& arguments, uint32_t* positions, cudaStream_t stream);

/// Rows of `inner` units of 1, 2, 4, 8 or 16 bytes.
struct IndexedRows {
  const void* from = nullptr;
  void* to = nullptr;
  const uint32_t* positions = nullptr;
  int unit = 4;
  int64_t count = 0, inner = 1;
};
/// to[k] = from[positions[k]]
cudaError_t gather_rows(const IndexedRows& arguments, cudaStream_t stream);
/// to[positions[k]] = from[k]; of equal positions the last one wins. `winners` has a u32 for every row of
/// `to`.
cudaError_t scatter_rows(const IndexedRows& arguments, uint32_t* winners, int64_t rows, cudaStream_t stream);

/// A cache [batch, middle, positions, inner] takes an update with `written` positions, starting at
/// write_indices[b] (0 without them): positions outside are dropped, or wrap around if circular.
struct TensorScatterArguments {
  const void* update = nullptr;
  void* cache = nullptr;
  const void* write_indices = nullptr;
  bool wide_indices = true, circular = false;
  int unit = 4;
  int64_t batch = 1, middle = 1, positions = 1, written = 0, inner = 1;
};
cudaError_t tensor_scatter(const TensorScatterArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
