// CUDA memory, streams and events of the application.
//
// Knows: pointers, streams and events as the CUDA runtime checks them. Must not know: what is computed.
#pragma once

#include "runtime/backend/interop.h"

namespace librt::cuda {

class CudaDevice;

class CudaInterop final : public Interop {
 public:
  explicit CudaInterop(CudaDevice& device) : device_(device) {}
  Result<SlabPtr> make(const MemoryRequest& request) noexcept override;
  Result<SlabPtr> share(Slab& slab, const Device& owner) noexcept override;
  void* address(Slab& slab) const noexcept override;
  Result<ExportedMemory> export_fd(Slab& slab) noexcept override;
  Status use_stream(void* stream) noexcept override;
  Status wait_for(const SyncPoint& point) noexcept override;
  Status signal(const SyncPoint& point) noexcept override;
  NativeHandles handles() const noexcept override;

 private:
  CudaDevice& device_;
};

}  // namespace librt::cuda
