/// @file
/// rt::Memory: inputs and outputs that stay on a device. Header-only, over rt.h.
///
///     auto memory = rt::Memory::create(*session, 4 * 1000);
///     session->bind_output(0, memory->tensor(rt::DType::F32, {1, 1000}));
///     other->bind_input(0, memory->tensor(rt::DType::F32, {1, 1000}));
#pragma once

#include "rt/rt.hpp"

namespace rt {
inline namespace v0 {

/// Memory that a session's device uses in place: see rt_memory_create.
class Memory {
 public:
  /// Made by librt on the session's device.
  static Result<Memory> create(const Session& session, size_t bytes) {
    rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
    options.bytes = bytes;
    return create(session, options);
  }
  /// A CUDA pointer of the caller, who keeps the memory.
  static Result<Memory> of_cuda(const Session& session, void* pointer, size_t bytes) {
    rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
    options.kind = RT_MEMORY_CUDA;
    options.pointer = pointer;
    options.bytes = bytes;
    return create(session, options);
  }
  /// Any kind.
  static Result<Memory> create(const Session& session, const rt_memory_options& options) {
    rt_memory* memory = nullptr;
    if (Status status = Status::take(rt_memory_create(session.handle(), &options, &memory)); !status)
      return status;
    return Memory(memory);
  }
  /// Takes ownership of a handle (rt_memory_from_dlpack).
  static Memory adopt(rt_memory* memory) { return Memory(memory); }
  /// The tensor at `offset`, which must not outlive this object.
  Tensor tensor(DType dtype, std::span<const int64_t> dims, uint64_t offset = 0) const {
    return Tensor::on_device(dtype, dims, handle(), offset);
  }
  /// The tensor at `offset`.
  Tensor tensor(DType dtype, std::initializer_list<int64_t> dims, uint64_t offset = 0) const {
    return tensor(dtype, std::span<const int64_t>(dims.begin(), dims.size()), offset);
  }
  /// Size in bytes.
  size_t bytes() const noexcept { return rt_memory_bytes(handle()); }
  /// The CUDA pointer, or the host address where there is one; else null.
  void* pointer() const noexcept { return rt_memory_pointer(handle()); }
  /// Copies from host memory.
  template <class T>
  Status write(std::span<const T> values, uint64_t offset = 0) {
    return Status::take(rt_memory_write(handle(), offset, values.data(), values.size_bytes()));
  }
  /// Copies to host memory.
  template <class T>
  Status read(std::span<T> values, uint64_t offset = 0) const {
    return Status::take(rt_memory_read(handle(), offset, values.data(), values.size_bytes()));
  }
  /// For functions of rt.h; owned by this object.
  rt_memory* handle() const noexcept { return handle_.get(); }

 private:
  explicit Memory(rt_memory* memory) : handle_(memory) {}
  std::unique_ptr<rt_memory, detail::Free<rt_memory, rt_memory_free>> handle_;
};

}  // namespace v0
}  // namespace rt
