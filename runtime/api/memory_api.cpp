// rt_memory_* of rt.h, and the order of a session's work and the application's on a device.
#include "runtime/api/handles.h"

namespace {

using librt::Status;
using librt::api::guarded;

Status check_range(const rt_memory& memory, uint64_t offset, const void* data, size_t bytes) {
  const size_t size = memory.memory->bytes();
  if (data == nullptr && bytes > 0) return librt::invalid_argument("memory: the data is null");
  if (offset > size || bytes > size - offset)
    return librt::invalid_argument("memory: expected a range within ", size, " bytes, found ", bytes, " at ",
                                   offset);
  return {};
}

librt::Interop* interop_of(const rt_session* session) {
  return session->session->devices().interop();
}

Status sync(rt_session* session, const rt_sync* given,
            Status (librt::Session::*function)(const librt::SyncPoint&)) {
  if (given == nullptr) return librt::invalid_argument("rt_sync: the pointer is null");
  rt_sync c;
  RT_TRY(librt::api::take_in(given, c, "rt_sync"));
  if (c.kind != RT_CUDA_EVENT && c.kind != RT_VULKAN_TIMELINE)
    return librt::invalid_argument("rt_sync: ", static_cast<int>(c.kind), " is no kind");
  return (session->session.get()->*function)({static_cast<librt::SyncKind>(c.kind), c.handle, c.value});
}

}  // namespace

extern "C" {

rt_status* rt_memory_create(rt_session* session, const rt_memory_options* options, rt_memory** memory) {
  if (memory != nullptr) *memory = nullptr;
  return guarded(session, [&]() -> Status {
    if (memory == nullptr || options == nullptr)
      return librt::invalid_argument("rt_memory_create: a pointer is null");
    rt_memory_options c;
    RT_TRY(librt::api::take_in(options, c, "rt_memory_options"));
    if (c.kind < RT_MEMORY_DEVICE || c.kind > RT_MEMORY_VULKAN_BUFFER)
      return librt::invalid_argument("rt_memory_options: ", static_cast<int>(c.kind),
                                     " is no kind of memory");
    auto made = std::make_unique<rt_memory>();
    made->in_use = session->in_use;
    RT_ASSIGN(made->memory,
              librt::DeviceMemory::create(session->session->shared_devices(),
                                          {.request = {.kind = static_cast<librt::MemoryKind>(c.kind),
                                                       .bytes = c.bytes,
                                                       .pointer = c.pointer,
                                                       .handle = c.vk_buffer,
                                                       .fd = c.fd,
                                                       .offset = c.offset,
                                                       .allocation_bytes = c.allocation_bytes,
                                                       .memory_type = c.memory_type,
                                                       .exportable = c.exportable != 0},
                                           .read_only = c.read_only != 0,
                                           .release = c.release,
                                           .user = c.user}));
    made->memory->note_handle(made.get());
    *memory = made.release();
    return {};
  });
}

void rt_memory_free(rt_memory* memory) {
  if (memory == nullptr) return;
  memory->memory->note_handle(nullptr);
  delete memory;
}

size_t rt_memory_bytes(const rt_memory* memory) {
  return memory != nullptr ? memory->memory->bytes() : 0;
}
void* rt_memory_pointer(const rt_memory* memory) {
  return memory != nullptr ? memory->memory->address() : nullptr;
}

rt_status* rt_memory_write(rt_memory* memory, uint64_t offset, const void* data, size_t bytes) {
  return guarded(memory, [&]() -> Status {
    RT_TRY(check_range(*memory, offset, data, bytes));
    if (memory->memory->read_only()) return librt::invalid_argument("memory: it is read-only");
    return memory->memory->block().upload(static_cast<size_t>(offset),
                                          {static_cast<const std::byte*>(data), bytes});
  });
}
rt_status* rt_memory_read(rt_memory* memory, uint64_t offset, void* data, size_t bytes) {
  return guarded(memory, [&]() -> Status {
    RT_TRY(check_range(*memory, offset, data, bytes));
    return memory->memory->block().download(static_cast<size_t>(offset),
                                            {static_cast<std::byte*>(data), bytes});
  });
}

rt_status* rt_memory_export_fd(rt_memory* memory, int* fd, uint64_t* allocation_bytes,
                               uint32_t* memory_type) {
  return guarded(memory, [&]() -> Status {
    if (fd == nullptr || allocation_bytes == nullptr || memory_type == nullptr)
      return librt::invalid_argument("rt_memory_export_fd: a pointer is null");
    librt::Interop* interop = memory->memory->devices()->interop();
    if (interop == nullptr)
      return librt::unsupported("memory of ", memory->memory->devices()->chosen().info().backend,
                                " has no file descriptor; share its address");
    RT_ASSIGN(const librt::ExportedMemory exported, interop->export_fd(memory->memory->block().slab()));
    *fd = exported.fd;
    *allocation_bytes = exported.allocation_bytes;
    *memory_type = exported.memory_type;
    return {};
  });
}

rt_status* rt_session_wait_for(rt_session* session, const rt_sync* point) {
  return guarded(session, [&] { return sync(session, point, &librt::Session::wait_for); });
}
rt_status* rt_session_signal(rt_session* session, const rt_sync* point) {
  return guarded(session, [&] { return sync(session, point, &librt::Session::signal); });
}

rt_status* rt_session_native(rt_session* session, rt_native_handles* handles) {
  return guarded(session, [&]() -> Status {
    librt::NativeHandles h;
    if (librt::Interop* interop = interop_of(session); interop != nullptr) h = interop->handles();
    const rt_native_handles out{
        sizeof(rt_native_handles), h.cuda_device, h.vk_queue_family, h.cuda_stream, h.vk_instance,
        h.vk_physical_device,      h.vk_device,   h.vk_queue};
    return librt::api::hand_out(out, handles, "rt_native_handles");
  });
}

}  // extern "C"
