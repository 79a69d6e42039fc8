// Test cases of operators: graphs of one node with shapes, types and values, for every harness.
//
// One file per family, with the stem of its page; each defines cases_STEM(), and the build collects them.
// A case defines what to compute; the expected values come from the operator's page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"

namespace librt::test {

struct CaseInput {
  TensorInfo info;
  bool constant = false;              ///< a constant of the graph, like weights and shape operands
  std::vector<double> values;         ///< all elements; empty: distinct seeded values in [low, high]
  std::optional<ops::Domain> domain;  ///< overrides the page's
};

/// Requirement for kernels whose inputs contain NaN, infinities, denormals and values near the largest
/// (special.h).
enum class SpecialRule : uint8_t {
  Exact,    ///< NaN and infinities exactly where the reference has them
  Spreads,  ///< non-finite where the reference is non-finite; may spread to neighbours
  None,     ///< not tested
};
struct SpecialDomain {
  SpecialRule rule = SpecialRule::Exact;
  const char* reason = nullptr;  ///< why the rule is not Exact
};

struct Case {
  std::string name;  ///< "conv_dilated": unique
  OpAttributes op;
  std::vector<std::optional<CaseInput>> inputs;  ///< nullopt: absent
  size_t outputs = 1;
  /// Compare the gradient with finite differences. Off where a value sits on a kink.
  bool gradient = true;
  std::optional<ops::Tolerance> tolerance;  ///< overrides the page's
  std::optional<SpecialDomain> special;     ///< overrides the operator's
};

/// All cases of all families.
const std::vector<Case>& all_cases();

// --- shorthands for cases
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
inline CaseInput constant(CaseInput input) {
  input.constant = true;
  return input;
}
inline CaseInput number(DType dtype, double value) {
  return with_values(tensor(dtype, {}), {value});
}
/// 8-bit values of moderate size.
inline CaseInput quantized(DType dtype, Shape shape) {
  return is_signed_integer(dtype) ? in_range(tensor(dtype, shape), -32, 31.9)
                                  : in_range(tensor(dtype, shape), 0, 63.9);
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

/// The input tensors of a case; absent ones have no data. Deterministic.
std::vector<std::optional<ops::HostTensor>> case_values(const Case& test_case);

}  // namespace librt::test
