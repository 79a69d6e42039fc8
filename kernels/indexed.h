// GatherElements, GatherND, ScatterElements, ScatterND, TensorScatter: the positions that indices of several
// kinds refer to.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace rt::cuda {

inline constexpr int kMostAxes = 8;

/// Entry p of the indices, at coordinates c, refers to the data element at c with the coordinate of `axis`
/// replaced.
struct ElementPlaces {
  const void* indices = nullptr;
  bool wide_indices = true;
  int rank = 1, axis = 0;
  int64_t count = 0;
  int64_t index_extents[kMostAxes] = {}, data_extents[kMostAxes] = {};
};
cudaError_t element_places(const ElementPlaces& arguments, uint32_t* places, cudaStream_t stream);

/// Tuple p refers to a row of the axes after those it indexes: in batch p / in_batch, at its `length`
/// indices.
struct TuplePlaces {
  const void* indices = nullptr;
  bool wide_indices = true;
  int length = 0;
  int64_t count = 0, in_batch = 1;
  int64_t extents[kMostAxes] = {};
};
cudaError_t tuple_places(const TuplePlaces& arguments, uint32_t* places, cudaStream_t stream);

/// Rows of `inner` units of 1, 2, 4, 8 or 16 bytes.
struct PlacedRows {
  const void* from = nullptr;
  void* to = nullptr;
  const uint32_t* places = nullptr;
  int unit = 4;
  int64_t count = 0, inner = 1;
};
/// to[k] = from[places[k]]
cudaError_t read_places(const PlacedRows& arguments, cudaStream_t stream);
/// to[places[k]] = from[k]; of equal positions the last one wins. `winners` has a u32 for every row of `to`.
cudaError_t write_places(const PlacedRows& arguments, uint32_t* winners, int64_t rows, cudaStream_t stream);

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

}  // namespace rt::cuda
