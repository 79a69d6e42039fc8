#include "python/src/errors.h"

namespace nb = nanobind;

namespace rt::python {

void check(rt_status* status) {
  if (status != nullptr) check(Status::take(status));
}

void check(const Status& status) {
  if (!status) throw Failure{status.code(), status.message()};
}

void fail(Code code, std::string message) {
  throw Failure{code, std::move(message)};
}

nb::object error_of(const Failure& failure) {
  // Names of files and tensors may be invalid UTF-8.
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      failure.message.data(), static_cast<Py_ssize_t>(failure.message.size()), "replace"));
  nb::object error =
      nb::module_::import_("librt.errors").attr("of_code")(static_cast<int>(failure.code), text);
  if (failure.cause.is_valid()) PyException_SetCause(error.ptr(), nb::object(failure.cause).release().ptr());
  return error;
}

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const nb::object error = error_of(failure);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    }
  });
}

}  // namespace rt::python
