// What fails in librt, as Python exceptions.
//
// Knows: the classes of librt/errors.py. Must not know: models, sessions.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "rt/rt.hpp"

namespace rt::python {

/// Becomes the exception of librt.errors for its code.
struct Failure {
  Code code;
  std::string message;
  nanobind::object cause = {};  ///< the exception's __cause__, if there is one
};

/// The exception that it becomes.
nanobind::object error_of(const Failure& failure);

/// Throws the failure that the status is, and frees it; NULL is success.
void check(rt_status* status);
void check(const Status& status);
[[noreturn]] void fail(Code code, std::string message);

/// Call once, from the module's initialization.
void translate_failures();

}  // namespace rt::python
