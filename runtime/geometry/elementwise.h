// Chains of element-wise operators in one node: the steps of op::ElementwiseAttributes, decoded and encoded.
//
// Knows: which operators can be a step, and how schema/ops.fbs packs them. Must not know: kernels, why a pass
// forms a chain.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/core/binary_function.h"
#include "runtime/core/function.h"
#include "runtime/core/status.h"
#include "runtime/graph/node_view.h"

namespace librt {

inline constexpr int kMostElementwiseInputs = 6;
inline constexpr int kMostElementwiseSteps = 8;
/// Of each step in the attributes' `steps` and `parameters`.
inline constexpr size_t kNumbersPerStep = 4, kParametersPerStep = 2;

/// One operator on floats; booleans are 0 and 1. The result is rounded to the node's type.
struct ElementwiseStep {
  enum class Form : uint8_t {
    Unary,    ///< y = Function(a)
    Binary,   ///< y = BinaryFunction(a, b)
    Compare,  ///< y = CompareFunction(a, b) ? 1 : 0
    Select,   ///< y = a != 0 ? b : c
  };
  Form form = Form::Unary;
  uint8_t function = 0;  ///< the value of the form's enumeration
  float alpha = 0, beta = 0;
  /// k < inputs: input k; else the result of step k - inputs. Those that the form does not have are 0.
  std::array<uint8_t, 3> operands{};

  /// Whether the result is a boolean: of a comparison, And, Or and Not.
  bool gives_bool() const noexcept;
  /// Whether operand k is one: of And, Or, Not and Cast, and Select's condition.
  bool takes_bool(int k) const noexcept;

  /// For kernels that compute booleans as 0 and 1 in floats: Minimum and Maximum for And and Or, else
  /// `function`.
  uint8_t float_function() const noexcept;

  int operand_count() const noexcept { return form == Form::Unary ? 1 : form == Form::Select ? 3 : 2; }
};

struct ElementwiseProgram {
  int inputs = 0;
  int count = 0;
  std::array<ElementwiseStep, kMostElementwiseSteps> steps;

  std::span<const ElementwiseStep> all() const noexcept { return {steps.data(), static_cast<size_t>(count)}; }
  /// By step: the last one that reads its result; 0 for the last step's.
  std::array<size_t, kMostElementwiseSteps> last_readers() const noexcept;
};

/// The step that computes what the node does, without operands; nullopt for operators that cannot be one.
std::optional<ElementwiseStep> elementwise_step(const Node& node) noexcept;

/// nullopt where the attributes are not as the schema says.
std::optional<ElementwiseProgram> elementwise_program(const op::ElementwiseAttributes& attributes,
                                                      size_t inputs) noexcept;

/// The program of a node at concrete shapes, whose steps get operands of the types that they need; else an
/// error.
Result<ElementwiseProgram> elementwise_program(const NodeView& node);

/// Appends the node's operator to the attributes, whose encoding of operands is that of `steps` in the
/// schema. The node must be one that elementwise_step() knows.
void append_step(op::ElementwiseAttributes& attributes, const Node& node,
                 const std::array<int64_t, 3>& operands);

}  // namespace librt
