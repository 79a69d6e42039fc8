// CudaDevice: one CUDA device opened for work, implementing the backend contract.
//
// Knows: streams, slabs, transfers through pinned memory. Must not know: what kernels compute. CUDA's current
// device is a property of the calling thread, so every entry sets it first.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backends/cuda/device/device_choice.h"
#include "backends/cuda/device/interop.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/libraries/nccl.h"
#include "runtime/backend/kernel_table.h"

namespace librt::cuda {

class CudaSlab final : public Slab {
 public:
  struct Kind {
    bool exchange = false;
    bool owned = true;  ///< else the application's
  };
  CudaSlab(int ordinal, std::byte* address, size_t size, Kind kind)
      : ordinal_(ordinal), address_(address), size_(size), kind_(kind) {}
  CudaSlab(const CudaSlab&) = delete;
  CudaSlab& operator=(const CudaSlab&) = delete;
  ~CudaSlab() override;
  size_t size() const noexcept override { return size_; }
  void* host() noexcept override { return nullptr; }
  std::byte* address() const noexcept { return address_; }
  /// Its transfers do not wait for work queued before them.
  bool exchange() const noexcept { return kind_.exchange; }

 private:
  int ordinal_;
  std::byte* address_;
  size_t size_;
  Kind kind_;
};

/// Copies between the host's pageable memory and the device in parts through two pinned buffers, so that the
/// host fills or empties one while the other is in flight.
class Transfers {
 public:
  ~Transfers();
  Status open();
  Status upload(std::byte* to, std::span<const std::byte> bytes);
  Status download(std::span<std::byte> to, const std::byte* from);
  cudaStream_t upload_stream() const noexcept { return upload_; }
  cudaStream_t download_stream() const noexcept { return download_; }

 private:
  struct Part {
    void* memory = nullptr;
    cudaEvent_t done = nullptr;
  };
  cudaStream_t upload_ = nullptr, download_ = nullptr;
  Part parts_[2];
};

class CudaDevice final : public Device {
 public:
  static Result<DevicePtr> open(const DeviceOptions& options);
  ~CudaDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  const KernelTable& kernels() const noexcept override { return *kernels_; }
  Result<SlabPtr> allocate(size_t bytes) noexcept override { return allocate(bytes, false); }
  Result<SlabPtr> allocate_exchange(size_t bytes) noexcept override { return allocate(bytes, true); }
  Result<SlabPtr> wrap(void* bytes, size_t size) noexcept override;
  Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept override;
  Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept override;
  Result<CommandListPtr> begin(const RecordOptions& options) noexcept override;

  /// Makes this the calling thread's CUDA device.
  Status activate() const noexcept;
  /// The application's, or our own.
  cudaStream_t compute_stream() const noexcept { return given_ != nullptr ? given_ : own_; }
  /// Graphs are captured here: the application's stream may be one of those that cannot capture.
  cudaStream_t capture_stream() const noexcept { return own_; }
  /// Work is enqueued on the application's stream, which outlives the device.
  Status use_stream(cudaStream_t stream) noexcept;
  CudaInterop& interop() noexcept { return interop_; }
  const DeviceFacts& facts() const noexcept { return facts_; }
  bool deterministic() const noexcept { return deterministic_; }
  bool validation() const noexcept { return validation_; }
  /// Whether f32 matmuls and convolutions may round their operands.
  bool tf32() const noexcept { return tf32_; }
  /// cuBLASLt; null, with the reason, if it was not found.
  CublasLt* cublaslt() const noexcept { return cublaslt_.get(); }
  const Status& cublaslt_status() const noexcept { return cublaslt_status_; }
  /// cuDNN likewise.
  Cudnn* cudnn() const noexcept { return cudnn_.get(); }
  const Status& cudnn_status() const noexcept { return cudnn_status_; }
  /// Connects the ranks of a data-parallel training; null if there is one rank.
  const rt_communicator* communicator() const noexcept { return communicator_; }
  /// Null if there is one rank or, with the reason, if the ranks communicate through host memory.
  Nccl* nccl() const noexcept { return nccl_.get(); }
  const Status& nccl_status() const noexcept { return nccl_status_; }
  /// Ok, or why the results of a run are invalid: the other ranks could not go on.
  Status ranks_status() const { return nccl_ != nullptr ? nccl_->status() : Status(); }

 private:
  CudaDevice() = default;
  Status open_nccl(const DeviceOptions& options);
  Result<SlabPtr> allocate(size_t bytes, bool exchange) noexcept;
  /// Work enqueued on `later` from now on starts after the work already in `earlier`.
  Status order(cudaStream_t earlier, cudaStream_t later) noexcept;

  DeviceFacts facts_;
  DeviceInfo info_;
  bool deterministic_ = false, validation_ = false, tf32_ = false;
  cudaStream_t own_ = nullptr, given_ = nullptr;
  cudaEvent_t ordered_ = nullptr;
  Transfers transfers_;
  std::shared_ptr<CublasLt> cublaslt_;
  Status cublaslt_status_;
  std::shared_ptr<Cudnn> cudnn_;
  Status cudnn_status_;
  const rt_communicator* communicator_ = nullptr;
  std::unique_ptr<Nccl> nccl_;
  Status nccl_status_;
  std::unique_ptr<KernelTable> kernels_;
  CudaInterop interop_{*this};
};

/// The device passed to a kernel's factory or predicate is always ours.
inline CudaDevice& cast(Device& device) noexcept {
  return static_cast<CudaDevice&>(device);
}
inline const CudaDevice& cast(const Device& device) noexcept {
  return static_cast<const CudaDevice&>(device);
}

}  // namespace librt::cuda
