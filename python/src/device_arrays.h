// Arrays in the memory of a device: what comes by __cuda_array_interface__, and librt.DeviceTensor.
//
// Knows: the protocol, and memory that sessions use in place (rt_memory). Must not know: how a session
// runs.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "rt/rt.hpp"

namespace rt::python {

struct Turns;

struct FreeMemory {
  void operator()(rt_memory* memory) const noexcept { rt_memory_free(memory); }
};
using MemoryPointer = std::unique_ptr<rt_memory, FreeMemory>;

/// A dense tensor in memory of a session's device, which librt made: a result that stays there.
class DeviceTensor {
 public:
  DeviceTensor(MemoryPointer memory, const rt_tensor& tensor, std::shared_ptr<Turns> turns,
               const std::string& backend);

  DeviceTensor(DeviceTensor&&) = default;
  ~DeviceTensor();

  const rt_tensor& handle() const noexcept { return tensor_; }
  /// With the dims of the run that wrote it.
  void set_dims(const rt_tensor& written) noexcept;
  const std::string& backend() const noexcept { return backend_; }
  /// A copy in the memory of the CPU.
  nanobind::object to_host() const;
  /// The protocol's dict; an AttributeError where the memory is not CUDA's.
  nanobind::dict cuda_array_interface() const;

 private:
  MemoryPointer memory_;
  rt_tensor tensor_;
  std::shared_ptr<Turns> turns_;  ///< of the session, one thread at a time
  std::string backend_;
  uint64_t forks_;
};

/// An input in the memory of a device, for one run.
class DeviceInput {
 public:
  /// False: the value is none, and is to be read as an array in the memory of the CPU. session: whose run it
  /// is for. name: for messages.
  bool take(nanobind::handle value, const std::string& name, rt_session* session);
  const rt_tensor& tensor() const noexcept { return tensor_; }
  void release() noexcept;

 private:
  void take_interface(nanobind::handle value, const std::string& name, rt_session* session);

  rt_tensor tensor_ = RT_TENSOR_INIT;
  nanobind::object owner_;
  MemoryPointer memory_;
};

void bind_device_arrays(nanobind::module_& module);

}  // namespace rt::python
