// The ranks' collectives from device to device: NCCL, where it is found, on a stream of its own.
//
// Knows: the library's functions, the application's communicator. Must not know: nodes, buckets.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/include/rt/communicator.h"

namespace rt::cuda {

/// Operations are begun behind what a stream holds, run beside what follows there, and are waited for there:
/// never by the host. A thread watches the other ranks; when they cannot go on, it ends what is running, so
/// that who waits for the device learns why from status(). All ranks queue the same operations in the same
/// order, none of them into a graph: the library wants all ranks to capture the same, and ranks with parts of
/// unequal sizes capture at different steps.
class Nccl {
 public:
  virtual ~Nccl() = default;

  /// Called by all ranks with their devices activated. Every rank gets one, or none does: then `refusal` says
  /// which rank has no library or failed to start it. Fails when the ranks cannot talk to each other.
  static Result<std::unique_ptr<Nccl>> open(const rt_communicator& ranks, Status& refusal);

  /// "2.28.9".
  virtual std::string version() const = 0;
  /// Ok, or why the ranks cannot go on. By any thread.
  virtual Status status() const = 0;

  /// Begins to replace `count` numbers (f32 or f64) at `data` by their sums over all ranks.
  virtual cudaError_t all_reduce(void* data, size_t count, DType dtype, cudaStream_t after) noexcept = 0;
  /// data: ranks parts of `bytes` bytes, the own one is there. Begins to fill in those of the others.
  virtual cudaError_t all_gather(void* data, size_t bytes, cudaStream_t after) noexcept = 0;
  /// What `stream` is given from now on starts after the operation on `data`, which is waited for once.
  virtual cudaError_t wait(const void* data, cudaStream_t stream) noexcept = 0;
};

}  // namespace rt::cuda
