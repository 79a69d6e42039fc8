/// @file
/// DLPack for C++20: tensors from and for other libraries without copies. Header-only, over dlpack.h, whose
/// rules hold.
///
///     auto exported = rt::to_dlpack(memory->tensor(rt::DType::F32, {1, 1000}));
///     consume(exported->release());  // a DLManagedTensorVersioned*
///     auto imported = rt::from_dlpack(*session, rt::Dlpack(produce()));
///     session->bind_input(0, imported->tensor);
#pragma once

#include "rt/dlpack.h"
#include "rt/memory.hpp"

namespace rt {
inline namespace v0 {

/// @cond
namespace detail {
struct DeleteDlpack {
  void operator()(DLManagedTensorVersioned* tensor) const noexcept {
    const auto* managed = reinterpret_cast<const rt_dlpack*>(tensor);
    if (managed->deleter != nullptr) managed->deleter(tensor);
  }
};
}  // namespace detail
/// @endcond

/// Owns a DLPack tensor; release() gives it to a consumer.
using Dlpack = std::unique_ptr<DLManagedTensorVersioned, detail::DeleteDlpack>;

/// The tensor in the host memory of `from`, which must outlive it: see rt_dlpack_view.
inline Result<Tensor> view_of_dlpack(const Dlpack& from) {
  rt_tensor c = RT_TENSOR_INIT;
  if (Status status = Status::take(rt_dlpack_view(from.get(), &c, nullptr)); !status) return status;
  return Tensor::borrow(c);
}

/// A tensor that was imported, and its memory, which must outlive it.
struct Imported {
  Memory memory;  ///< deletes the DLPack tensor when nothing uses it any more
  Tensor tensor;  ///< for Session::bind_input() and bind_output()
};

/// Memory of the session's device, without a copy: see rt_memory_from_dlpack. On an error `from` is deleted.
inline Result<Imported> from_dlpack(const Session& session, Dlpack from) {
  rt_memory* memory = nullptr;
  rt_tensor c = RT_TENSOR_INIT;
  if (Status status = Status::take(rt_memory_from_dlpack(session.handle(), from.get(), &memory, &c)); !status)
    return status;
  static_cast<void>(from.release());
  return Imported{Memory::adopt(memory), Tensor::borrow(c)};
}

/// Exports a tensor: see rt_tensor_to_dlpack. What the tensor owns lives until the consumer is done, and so
/// does memory of a device; what it borrows stays the caller's to keep.
inline Result<Dlpack> to_dlpack(Tensor tensor, bool read_only = false) {
  auto kept = std::make_unique<Tensor>(std::move(tensor));
  DLManagedTensorVersioned* made = nullptr;
  rt_status* const status = rt_tensor_to_dlpack(
      &kept->handle(), read_only ? 1 : 0, [](void* user) { delete static_cast<Tensor*>(user); }, kept.get(),
      &made);
  if (status != nullptr) return Status::take(status);
  static_cast<void>(kept.release());
  return Dlpack(made);
}

}  // namespace v0
}  // namespace rt
