#include "backends/cuda/device/interop.h"

#include <new>

#include "backends/cuda/device/device.h"
#include "backends/cuda/device/errors.h"

namespace librt::cuda {
namespace {

Result<SlabPtr> borrow(int ordinal, std::byte* address, size_t bytes) noexcept {
  auto* slab = new (std::nothrow) CudaSlab(ordinal, address, bytes, {.exchange = false, .owned = false});
  if (slab == nullptr) return Status(Code::OutOfMemory, "CUDA memory: no memory on the host");
  return SlabPtr(slab);
}

Result<cudaEvent_t> event_of(const SyncPoint& point) noexcept {
  if (point.kind != SyncKind::CudaEvent)
    return unsupported("the session runs on CUDA: expected a CUDA event, found a Vulkan semaphore");
  if (point.handle == 0) return invalid_argument("CUDA event: it is null");
  return reinterpret_cast<cudaEvent_t>(static_cast<uintptr_t>(point.handle));
}

}  // namespace

Result<SlabPtr> CudaInterop::make(const MemoryRequest& request) noexcept {
  if (request.kind == MemoryKind::Device)
    return unsupported("the CUDA backend exports no memory; give its address to cudaIpcGetMemHandle");
  if (request.kind == MemoryKind::Host)
    return unsupported("CUDA kernels do not use host memory: bind it as rt_tensor.data, which is copied");
  if (request.kind != MemoryKind::Cuda)
    return unsupported("the session runs on CUDA: expected memory of CUDA, found memory of Vulkan");
  RT_TRY(device_.activate());
  cudaPointerAttributes found{};
  RT_CUDA_TRY(cudaPointerGetAttributes(&found, request.pointer), "CUDA pointer");
  if (found.type != cudaMemoryTypeDevice && found.type != cudaMemoryTypeManaged)
    return invalid_argument(
        "CUDA pointer: expected memory of the device, of cudaMalloc or a framework, found ",
        found.type == cudaMemoryTypeHost ? "pinned memory of the host" : "memory that CUDA does not know",
        "; bind host memory as rt_tensor.data");
  if (found.type == cudaMemoryTypeDevice && found.device != device_.facts().ordinal)
    return invalid_argument("CUDA pointer: expected memory of device ", device_.facts().ordinal, " ('",
                            device_.info().name, "'), found memory of device ", found.device,
                            "; copy it, or create the session with that device");
  return borrow(device_.facts().ordinal, static_cast<std::byte*>(request.pointer), request.bytes);
}

Result<SlabPtr> CudaInterop::share(Slab& slab, const Device& owner) noexcept {
  const DeviceFacts& other = cast(owner).facts();
  if (other.ordinal != device_.facts().ordinal)
    return invalid_argument("expected memory of CUDA device ", device_.facts().ordinal,
                            ", found memory of device ", other.ordinal);
  return borrow(other.ordinal, static_cast<CudaSlab&>(slab).address(), slab.size());
}

void* CudaInterop::address(Slab& slab) const noexcept {
  return static_cast<CudaSlab&>(slab).address();
}

Result<ExportedMemory> CudaInterop::export_fd(Slab&) noexcept {
  return unsupported("memory of CUDA has no file descriptor here; share its address");
}

Status CudaInterop::use_stream(void* stream) noexcept {
  RT_TRY(device_.activate());
  return device_.use_stream(static_cast<cudaStream_t>(stream));
}

Status CudaInterop::wait_for(const SyncPoint& point) noexcept {
  RT_ASSIGN(const cudaEvent_t event, event_of(point));
  RT_TRY(device_.activate());
  return check(cudaStreamWaitEvent(device_.compute_stream(), event, 0), "waiting for a CUDA event on '",
               device_.info().name, "'");
}

Status CudaInterop::signal(const SyncPoint& point) noexcept {
  RT_ASSIGN(const cudaEvent_t event, event_of(point));
  RT_TRY(device_.activate());
  return check(cudaEventRecord(event, device_.compute_stream()), "recording a CUDA event on '",
               device_.info().name, "' (it must be an event of this device)");
}

NativeHandles CudaInterop::handles() const noexcept {
  NativeHandles handles;
  handles.cuda_device = device_.facts().ordinal;
  handles.cuda_stream = device_.compute_stream();
  return handles;
}

}  // namespace librt::cuda
