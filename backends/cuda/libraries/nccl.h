// Device-to-device collectives of the ranks: NCCL, if installed, on a stream of its own.
//
// Knows: the library's functions, the application's communicator. Must not know: nodes, buckets.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/include/rt/communicator.h"

namespace librt::cuda {

/// Operations start after the work queued on a stream, overlap with what follows there, and are waited for by
/// that stream, never by the host. A thread watches the other ranks; when they cannot go on, it aborts what
/// is running; status() then has the reason for whoever waits for the device. All ranks enqueue the same
/// operations in the same order, none of them into a graph: the library requires all ranks to capture the
/// same, and ranks with parts of unequal sizes capture at different steps.
class Nccl {
 public:
  virtual ~Nccl() = default;

  /// Called by all ranks with their devices activated. Every rank gets one, or none does: then `refusal`
  /// names the rank that has no library or failed to start it. Fails if the ranks cannot communicate.
  static Result<std::unique_ptr<Nccl>> open(const rt_communicator& ranks, Status& refusal);

  /// "2.28.9".
  virtual std::string version() const = 0;
  /// Ok, or why the ranks cannot go on. Callable from any thread.
  virtual Status status() const = 0;

  /// Starts to replace `count` values (f32 or f64) at `data` by their sums over all ranks.
  virtual cudaError_t all_reduce(void* data, size_t count, DType dtype, cudaStream_t after) noexcept = 0;
  /// data: ranks parts of `bytes` bytes, of which this rank's is filled. Starts to gather the others.
  virtual cudaError_t all_gather(void* data, size_t bytes, cudaStream_t after) noexcept = 0;
  /// Work enqueued on `stream` from now on starts after the operation on `data`, which is waited for once.
  virtual cudaError_t wait(const void* data, cudaStream_t stream) noexcept = 0;
};

}  // namespace librt::cuda
