// Operators of the application: Python functions as kernels of a session.
//
// Knows: what a kernel gets and returns. Must not know: sessions, models.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rt/custom.hpp"

namespace rt::python {

/// One function for each operator. Sessions refer to it, so it outlives them. Made and destroyed with the
/// interpreter's lock held.
class CustomOperators {
 public:
  /// Of a dict {"DOMAIN:OPERATOR": function}.
  explicit CustomOperators(nanobind::handle functions);
  /// Of the keyword custom_operators; null without it.
  static std::shared_ptr<CustomOperators> of(const nanobind::kwargs& keywords);

  std::vector<rt_custom_operator> handles() const;
  /// For the garbage collector: a function may refer to the session that calls it.
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

/// What the last function called by this thread raised, which is forgotten; null if nothing.
nanobind::object take_raised() noexcept;

}  // namespace rt::python
