#include "backends/vulkan/device/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include "backends/vulkan/device/device.h"

namespace librt::vulkan {
namespace {

// A tail, so that an empty tensor at the end of the slab, or a vec4 across a tensor's end, is in bounds.
constexpr uint64_t kTail = 256;
constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

bool is_coherent(const MemoryTypeFacts& type) {
  return type.host_visible && type.host_coherent;
}

/// A type in which host memory can be imported for a buffer of these needs.
Result<uint32_t> host_memory_type(const VulkanDevice& device, const void* pointer, uint32_t allowed) {
  VkMemoryHostPointerPropertiesEXT properties{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  const VkResult result = device.api().vkGetMemoryHostPointerPropertiesEXT(
      device.handle(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, pointer, &properties);
  const auto& types = device.facts().memory;
  if (result == VK_SUCCESS)
    for (uint32_t i = 0; i < types.size(); ++i)
      if ((allowed & properties.memoryTypeBits & (1u << i)) != 0 && is_coherent(types[i])) return i;
  return unsupported("device '", device.info().name, "' cannot import this host memory (",
                     result_name(result), "); bind it as rt_tensor.data, which is copied");
}

}  // namespace

VulkanSlab::VulkanSlab(const VulkanDevice& device, size_t size, bool exchange)
    : owner_(device), api_(device.api()), device_(device.handle()), size_(size), exchange_(exchange) {}

Result<std::unique_ptr<VulkanSlab>> VulkanSlab::create(const VulkanDevice& device, size_t size,
                                                       uint32_t memory_type, Mapping map, bool exchange) {
  const DeviceApi& api = device.api();
  VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  create.size = ((size + 255) & ~uint64_t{255}) + kTail;
  create.usage = kUsage;
  const uint64_t most = device.facts().max_allocation;
  if (most != 0 && create.size > most)
    return Status::make(Code::OutOfMemory, "device '", device.info().name, "' allocates at most ",
                        bytes_text(most), " at once, ", bytes_text(size), " were requested");

  std::unique_ptr<VulkanSlab> slab(new VulkanSlab(device, size, exchange));
  if (const VkResult result = api.vkCreateBuffer(device.handle(), &create, nullptr, &slab->buffer_);
      result != VK_SUCCESS)
    return Status::make(device.note(result, Code::OutOfMemory), "device '", device.info().name,
                        "' cannot make a buffer of ", bytes_text(size), ": ", result_name(result));
  VkMemoryRequirements needs;
  api.vkGetBufferMemoryRequirements(device.handle(), slab->buffer_, &needs);
  if ((needs.memoryTypeBits & (1u << memory_type)) == 0)
    return Status::make(Code::Device, "device '", device.info().name,
                        "' does not allow buffers in memory type ", memory_type);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = memory_type;
  if (const VkResult result = api.vkAllocateMemory(device.handle(), &allocate, nullptr, &slab->memory_);
      result != VK_SUCCESS)
    return Status::make(device.note(result, Code::OutOfMemory), "device '", device.info().name, "' has no ",
                        bytes_text(size), " left: ", result_name(result));
  VkResult result = api.vkBindBufferMemory(device.handle(), slab->buffer_, slab->memory_, 0);
  slab->map_ = map;
  slab->coherent_ = device.facts().memory[memory_type].host_coherent;
  if (result == VK_SUCCESS && map != Mapping::None)
    result = api.vkMapMemory(device.handle(), slab->memory_, 0, VK_WHOLE_SIZE, 0, &slab->host_);
  if (result != VK_SUCCESS)
    return Status::make(device.note(result), "device '", device.info().name, "' cannot ",
                        map != Mapping::None ? "map" : "bind", " ", bytes_text(size), ": ",
                        result_name(result));
  return slab;
}

Result<std::unique_ptr<VulkanSlab>> VulkanSlab::create_shared(const VulkanDevice& device,
                                                              const MemoryRequest& request) {
  const DeviceApi& api = device.api();
  const bool host = request.kind == MemoryKind::Host;
  const uint64_t page = std::max<uint64_t>(device.facts().host_pointer_alignment, 1);
  const uint64_t beyond = reinterpret_cast<uintptr_t>(request.pointer) % page;
  if (host && (beyond != 0 || request.bytes % page != 0))
    return invalid_argument(
        "host memory for Vulkan: expected an address and a size that are multiples of ", page,
        " bytes, found ", request.bytes, " bytes that begin ", beyond,
        " after one; allocate whole pages, or bind it as rt_tensor.data, which is copied");
  VkExternalMemoryBufferCreateInfo shared{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  shared.handleTypes = host ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
                            : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &shared};
  create.size = request.bytes + (request.kind == MemoryKind::Device ? kTail : 0);
  create.usage = kUsage;
  std::unique_ptr<VulkanSlab> slab(new VulkanSlab(device, request.bytes, false));
  if (const VkResult result = api.vkCreateBuffer(device.handle(), &create, nullptr, &slab->buffer_);
      result != VK_SUCCESS)
    return Status::make(device.note(result, Code::OutOfMemory), "device '", device.info().name,
                        "' cannot make a shared buffer of ", bytes_text(request.bytes), ": ",
                        result_name(result));
  VkMemoryRequirements needs;
  api.vkGetBufferMemoryRequirements(device.handle(), slab->buffer_, &needs);
  RT_TRY(slab->allocate_shared(device, request, needs));
  return slab;
}

Status VulkanSlab::allocate_shared(const VulkanDevice& device, const MemoryRequest& request,
                                   const VkMemoryRequirements& needs) {
  const auto& types = device.facts().memory;
  VkExportMemoryAllocateInfo exported{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, nullptr,
                                      VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkImportMemoryFdInfoKHR of_fd{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, nullptr,
                                VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, -1};
  VkImportMemoryHostPointerInfoEXT of_host{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr,
                                           VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                                           request.pointer};
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  uint64_t offset = 0;
  if (request.kind == MemoryKind::Device) {
    allocate.pNext = &exported;
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = device.plan().tensor_memory;
  } else if (request.kind == MemoryKind::Host) {
    allocate.pNext = &of_host;
    allocate.allocationSize = request.bytes;
    RT_ASSIGN(allocate.memoryTypeIndex, host_memory_type(device, request.pointer, needs.memoryTypeBits));
  } else {
    allocate.pNext = &of_fd;
    allocate.allocationSize = request.allocation_bytes;
    allocate.memoryTypeIndex = request.memory_type;
    offset = request.offset;
  }
  if (allocate.memoryTypeIndex >= types.size() ||
      (needs.memoryTypeBits & (1u << allocate.memoryTypeIndex)) == 0)
    return invalid_argument("memory type ", allocate.memoryTypeIndex, ": device '", device.info().name,
                            "' allows buffers in the types of the mask ", needs.memoryTypeBits,
                            "; allocate it in one of these");
  if (offset % needs.alignment != 0 || offset > allocate.allocationSize ||
      needs.size > allocate.allocationSize - offset)
    return invalid_argument("shared memory: ", request.bytes, " bytes need ", needs.size,
                            " of an allocation at a multiple of ", needs.alignment, "; found ",
                            allocate.allocationSize, " with the offset ", offset);
  if (allocate.pNext == &of_fd) {
    of_fd.fd = fcntl(request.fd, F_DUPFD_CLOEXEC, 0);
    if (of_fd.fd < 0) return invalid_argument("file descriptor ", request.fd, ": it is not open");
  }
  VkResult result = api_.vkAllocateMemory(device_, &allocate, nullptr, &memory_);
  if (result != VK_SUCCESS) {
    if (of_fd.fd >= 0) close(of_fd.fd);  // it is the driver's only after a success
    return Status::make(
        device.note(result, Code::InvalidArgument), "device '", device.info().name, "' cannot ",
        allocate.pNext == &exported ? "allocate" : "import", " ", bytes_text(allocate.allocationSize), ": ",
        result_name(result),
        "; an import needs memory of the same driver and device, with its whole size and type");
  }
  result = api_.vkBindBufferMemory(device_, buffer_, memory_, offset);
  if (request.kind == MemoryKind::Host)
    host_ = request.pointer;
  else if (result == VK_SUCCESS && device.plan().mapped && is_coherent(types[allocate.memoryTypeIndex]))
    result = api_.vkMapMemory(device_, memory_, offset, request.bytes, 0, &host_);
  if (result != VK_SUCCESS)
    return Status::make(device.note(result), "device '", device.info().name,
                        "' cannot bind or map shared memory: ", result_name(result));
  if (request.kind == MemoryKind::Device)
    exported_ = {.allocation_bytes = allocate.allocationSize, .memory_type = allocate.memoryTypeIndex};
  return {};
}

Result<std::unique_ptr<VulkanSlab>> VulkanSlab::adopt(const VulkanDevice& device,
                                                      const MemoryRequest& request) {
  if (request.handle == 0) return invalid_argument("VkBuffer: it is null");
  std::unique_ptr<VulkanSlab> slab(new VulkanSlab(device, request.bytes, false));
  slab->owned_ = false;
  slab->buffer_ = reinterpret_cast<VkBuffer>(static_cast<uintptr_t>(request.handle));
  VkMemoryRequirements needs;
  device.api().vkGetBufferMemoryRequirements(device.handle(), slab->buffer_, &needs);
  if (request.bytes > needs.size)
    return invalid_argument("VkBuffer: expected one of ", request.bytes, " bytes, found one that takes ",
                            needs.size);
  return slab;
}

Status VulkanSlab::invalidate(uint64_t offset, uint64_t bytes) const {
  if (coherent_) return {};
  const VkMappedMemoryRange range{VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, nullptr, memory_, offset, bytes};
  const VkResult result = api_.vkInvalidateMappedMemoryRanges(device_, 1, &range);
  if (result == VK_SUCCESS) return {};
  return Status::make(owner_.note(result), "device '", owner_.info().name,
                      "' cannot make its memory visible: ", result_name(result));
}

Result<ExportedMemory> VulkanSlab::export_fd() const noexcept {
  if (exported_.allocation_bytes == 0)
    return invalid_argument("this memory was not made for export; set `exportable` when it is created");
  VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, nullptr, memory_,
                            VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  ExportedMemory out = exported_;
  if (const VkResult result = api_.vkGetMemoryFdKHR(device_, &info, &out.fd); result != VK_SUCCESS)
    return Status::make(code_of(result), "exporting memory failed with ", result_name(result));
  return out;
}

VulkanSlab::~VulkanSlab() {
  if (!owned_ || owner_.is_hung()) return;
  if (buffer_ != VK_NULL_HANDLE) api_.vkDestroyBuffer(device_, buffer_, nullptr);
  if (memory_ != VK_NULL_HANDLE) api_.vkFreeMemory(device_, memory_, nullptr);
}

}  // namespace librt::vulkan
