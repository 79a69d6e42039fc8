// Operators of the application: Python functions as kernels of a session.
//
// Knows: what a kernel gets and returns. Must not know: sessions, models.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <string>
#include <vector>

#include "rt/custom.hpp"

namespace rt::python {

/// One function for each operator. An object of Python's, so that the garbage collector counts each session
/// that refers to it once: a function may refer to the session that calls it. Made and destroyed with the
/// interpreter's lock held.
class CustomOperators {
 public:
  /// Of a dict {"DOMAIN:OPERATOR": function}.
  explicit CustomOperators(nanobind::handle functions);
  CustomOperators(const CustomOperators&) = delete;
  CustomOperators& operator=(const CustomOperators&) = delete;
  /// Of the keyword custom_operators; None without it.
  static nanobind::object of(const nanobind::kwargs& keywords);

  /// Of what of() returned, which must outlive the sessions that get them.
  static std::vector<rt_custom_operator> handles(nanobind::handle operators);
  int traverse(visitproc visit, void* argument) const;
  void clear();

 private:
  struct Function {
    std::string label;  ///< "DOMAIN:OPERATOR"
    nanobind::object call;
  };
  std::deque<Function> functions_;
  std::deque<CustomOperator> operators_;
};

void bind_custom_operators(nanobind::module_& module);

/// What the last function called by this thread raised, which is forgotten; null if nothing.
nanobind::object take_raised() noexcept;

}  // namespace rt::python
