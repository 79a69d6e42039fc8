#include "runtime/session/memory/device_memory.h"

namespace librt {
namespace {

std::atomic<uint64_t> newest_memory{0};

Result<BlockPtr> make_block(DeviceSet& devices, const MemoryRequest& request) {
  Device& device = devices.chosen();
  const DeviceInfo& info = device.info();
  if (request.bytes == 0) return invalid_argument("memory: expected at least one byte, found 0");
  const bool of_pointer = request.kind == MemoryKind::Host || request.kind == MemoryKind::Cuda;
  if (of_pointer && request.pointer == nullptr) return invalid_argument("memory: the pointer is null");
  if (request.kind == MemoryKind::Device && !request.exportable)
    return Block::allocate(device, request.bytes);
  if (devices.interop() != nullptr) {
    RT_ASSIGN(SlabPtr slab, devices.interop()->make(request));
    return std::make_unique<Block>(device, std::move(slab));
  }
  if (!info.host_memory || request.kind != MemoryKind::Host)
    return unsupported("memory: the session runs on ", info.backend, ", which ",
                       info.host_memory ? "uses memory that it makes (RT_MEMORY_DEVICE) and host memory "
                                          "(RT_MEMORY_HOST) only"
                                        : "uses no memory but its own (RT_MEMORY_DEVICE)",
                       request.exportable ? ", and exports none" : "");
  if (!is_aligned(request.pointer, devices.alignment()))
    return invalid_argument("memory: expected host memory aligned to ", devices.alignment(),
                            " bytes; bind other memory as rt_tensor.data, which is copied");
  return Block::wrap(device, request.pointer, request.bytes);
}

}  // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<DeviceSet> devices, const Options& options)
    : devices_(std::move(devices)),
      options_(options),
      bytes_(options.request.bytes),
      id_(newest_memory.fetch_add(1, std::memory_order_relaxed) + 1) {}

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::create(std::shared_ptr<DeviceSet> devices,
                                                           const Options& options) {
  Options rounded = options;
  // Kernels may read and write whole vectors.
  if (options.request.kind == MemoryKind::Device)
    rounded.request.bytes = static_cast<size_t>(round_up(options.request.bytes, kHostAlignment));  // may wrap
  if (rounded.request.bytes < options.request.bytes)
    return Status::make(Code::OutOfMemory, "memory of ", options.request.bytes, " bytes");
  std::shared_ptr<DeviceMemory> memory(new DeviceMemory(std::move(devices), rounded));
  RT_ASSIGN(memory->block_, make_block(*memory->devices_, rounded.request));
  memory->made_ = true;
  return memory;
}

DeviceMemory::~DeviceMemory() {
  block_.reset();
  if (made_ && options_.release != nullptr) options_.release(options_.user);
}

std::byte* DeviceMemory::address() const noexcept {
  if (Interop* interop = devices_->interop(); interop != nullptr)
    return static_cast<std::byte*>(interop->address(block_->slab()));
  return block_->host();
}

}  // namespace librt
