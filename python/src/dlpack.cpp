#include "python/src/dlpack.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "python/src/errors.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

constexpr const char *kVersioned = "dltensor_versioned", *kUnversioned = "dltensor";
/// Of capsules whose tensor has an owner: the consumer.
constexpr const char *kUsedVersioned = "used_dltensor_versioned", *kUsedUnversioned = "used_dltensor";

/// The consumer may be done on any thread, and after the interpreter.
void drop(void* owner) {
  if (!nb::is_alive()) return;
  const nb::gil_scoped_acquire acquired;
  Py_DECREF(static_cast<PyObject*>(owner));
}

/// Deletes the tensor of a capsule that no consumer has taken.
void destroy(PyObject* capsule) {
  taken_from(capsule).reset();
}

/// An argument that is a pair of numbers.
std::pair<int, int> pair_of(nb::handle value, const std::string& name) {
  std::pair<int, int> pair;
  if (!nb::try_cast(value, pair))
    throw nb::type_error(("__dlpack__(): expected two integers as " + name).c_str());
  return pair;
}

nb::object capsule(void* tensor, const char* name) {
  PyObject* const made = PyCapsule_New(tensor, name, destroy);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

}  // namespace

Dlpack taken_from(nb::handle capsule) {
  PyObject* const from = capsule.ptr();
  if (PyCapsule_IsValid(from, kVersioned) != 0) {
    Dlpack tensor(static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(from, kVersioned)));
    PyCapsule_SetName(from, kUsedVersioned);
    return tensor;
  }
  if (PyCapsule_IsValid(from, kUnversioned) == 0) return nullptr;
  DLManagedTensorVersioned* wrapped = nullptr;
  check(rt_dlpack_from_unversioned(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(from, kUnversioned)),
                                   &wrapped));
  PyCapsule_SetName(from, kUsedUnversioned);
  return Dlpack(wrapped);
}

nb::object capsule_of(nb::handle owner, const rt_tensor& tensor, const nb::dict& options) {
  bool versioned = false;
  for (auto [key, value] : options) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "max_version") {
      if (!value.is_none()) versioned = pair_of(value, name).first >= 1;
    } else if (name == "dl_device") {
      if (!value.is_none() && pair_of(value, name) != std::pair<int, int>(RT_DLPACK_CPU, 0))
        throw nb::buffer_error("librt.Tensor is in memory of the CPU; expected dl_device (1, 0)");
    } else if (name != "stream") {  // of no meaning on the CPU
      throw nb::type_error(("__dlpack__() got an unexpected keyword argument '" + name + "'").c_str());
    }
  }
  DLManagedTensorVersioned* made = nullptr;
  check(rt_tensor_to_dlpack(&tensor, 0, drop, owner.ptr(), &made));
  owner.inc_ref();
  Dlpack exported(made);
  if (versioned) {
    nb::object result = capsule(exported.get(), kVersioned);
    static_cast<void>(exported.release());
    return result;
  }
  DLManagedTensor* older = nullptr;
  check(rt_dlpack_to_unversioned(exported.get(), &older));
  static_cast<void>(exported.release());
  return capsule(older, kUnversioned);
}

}  // namespace rt::python
