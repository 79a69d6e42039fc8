// librt.Tensor: results, in memory of their own.
//
// Knows: how memory leaves for other libraries: the buffer protocol and DLPack. Must not know: sessions.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <new>

#include "rt/rt.hpp"

namespace rt::python {

/// A dense tensor that owns its memory. Exports keep the Python object alive, so that memory lives as long as
/// its last user.
class Tensor {
 public:
  /// Memory for `tensor`'s type and dims, not initialized.
  explicit Tensor(const rt_tensor& tensor);
  /// A copy of the elements, too.
  static Tensor copy(const rt_tensor& tensor);

  const rt_tensor& handle() const noexcept { return tensor_; }
  rt_tensor& handle() noexcept { return tensor_; }
  size_t elements() const noexcept;

 private:
  struct Free {
    size_t capacity;
    void operator()(std::byte* bytes) const noexcept;
  };
  rt_tensor tensor_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// Gives back the memory of large results that nothing refers to any more, which is kept for the next ones.
void free_kept_results() noexcept;

/// Bytes of the dims that the tensor has.
size_t bytes_of(const rt_tensor& tensor) noexcept;
/// The shape as a tuple.
nanobind::tuple shape_of(const rt_tensor& tensor);

void bind_tensor(nanobind::module_& module);

}  // namespace rt::python
