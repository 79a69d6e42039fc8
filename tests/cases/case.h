// Test cases of operators: graphs of one node with shapes, types and values, for every harness.
//
// One file per group of families; each defines cases_STEM(), and the build collects them.
// A case says what to compute, never what comes out: that is the page's business.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"

namespace rt::test {

struct CaseInput {
  TensorInfo info;
  bool constant = false;              ///< a constant of the graph, as weights and shape operands are
  std::vector<double> values;         ///< all elements; empty: distinct seeded numbers of [low, high]
  std::optional<ops::Domain> domain;  ///< instead of the page's
};

/// What is asked of kernels whose inputs hold NaN, infinities, denormals and numbers near the largest
/// (special.h).
enum class SpecialRule : uint8_t {
  Exact,    ///< NaN and infinities where the reference has them, and nowhere else
  Spreads,  ///< what is not finite in the reference is not finite; it may reach neighbours
  None,     ///< not tried
};
struct SpecialDomain {
  SpecialRule rule = SpecialRule::Exact;
  const char* reason = nullptr;  ///< why it is another rule than Exact
};

struct Case {
  std::string name;  ///< "conv_dilated": unique
  OpAttributes op;
  std::vector<std::optional<CaseInput>> inputs;  ///< nullopt: absent
  size_t outputs = 1;
  /// Compare the gradient with finite differences. Off where a value sits on a kink.
  bool gradient = true;
  std::optional<ops::Tolerance> tolerance;  ///< instead of the page's
  std::optional<SpecialDomain> special;     ///< instead of the operator's
};

/// All cases of all families.
const std::vector<Case>& all_cases();

// --- shorthands for writing cases
inline CaseInput tensor(DType dtype, Shape shape) {
  return {.info = {.dtype = dtype, .shape = shape}};
}
inline CaseInput f32(Shape shape) {
  return tensor(DType::F32, shape);
}
inline CaseInput weight(Shape shape) {
  return {.info = {.dtype = DType::F32, .shape = shape}, .constant = true};
}
inline CaseInput in_range(CaseInput input, double low, double high) {
  input.domain = ops::Domain{low, high};
  return input;
}
inline CaseInput with_values(CaseInput input, std::vector<double> values) {
  input.values = std::move(values);
  return input;
}
/// An i64 shape operand: a constant vector.
inline CaseInput ints(std::vector<double> values) {
  CaseInput input = tensor(DType::I64, {static_cast<int64_t>(values.size())});
  input.constant = true;
  input.values = std::move(values);
  return input;
}

template <class Attributes>
Case make_case(std::string name, Attributes attributes, std::vector<std::optional<CaseInput>> inputs) {
  return {.name = std::move(name), .op = make_op(std::move(attributes)), .inputs = std::move(inputs)};
}
inline Case no_gradient(Case test_case) {
  test_case.gradient = false;
  return test_case;
}
inline Case with_outputs(Case test_case, size_t outputs) {
  test_case.outputs = outputs;
  return test_case;
}
inline Case within(Case test_case, double relative, double absolute) {
  test_case.tolerance = ops::Tolerance{relative, absolute};
  return test_case;
}

/// The input tensors of a case, absent ones without data. The same for every call.
std::vector<std::optional<ops::HostTensor>> case_values(const Case& test_case);

}  // namespace rt::test
