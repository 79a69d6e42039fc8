// Python objects as tensors: buffers, DLPack, and whatever NumPy can make an array of.
//
// Knows: the protocols by which arrays of other libraries are read. Must not know: sessions, models.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "python/src/dlpack.h"

namespace rt::python {

/// The element type of this name; an error that lists all otherwise.
rt_dtype dtype_named(const std::string& name);

/// A tensor in the memory of a Python object, which is kept alive, or in a copy where the object's memory is
/// not dense and row-major or not of this machine's byte order.
class Borrowed {
 public:
  Borrowed() = default;
  ~Borrowed() { release(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  /// name: for messages. wanted: the type that lists and Python's numbers are converted to; arrays are never
  /// converted.
  void take(nanobind::handle value, const char* name, std::optional<rt_dtype> wanted);
  const rt_tensor& tensor() const noexcept { return tensor_; }
  void release() noexcept;

 private:
  bool take_buffer(PyObject* value, const char* name);
  void take_dlpack(nanobind::handle value, const char* name);
  void take_slowly(nanobind::handle value, const char* name, std::optional<rt_dtype> wanted);
  /// Of dims with strides in bytes: the memory itself, or a dense copy.
  void set_data(const void* data, const int64_t* strides, const char* name);

  rt_tensor tensor_ = RT_TENSOR_INIT;
  Py_buffer view_{};
  bool has_view_ = false;
  nanobind::object owner_;
  Dlpack dlpack_;  ///< what came by DLPack
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace rt::python
