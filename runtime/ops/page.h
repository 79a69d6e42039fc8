// The page of an operator: its complete semantics, in one file per family (runtime/ops/*.cpp).
//
// Knows: attribute checks, shape rule, cost and, for operators of shape arithmetic, the reference
// implementation (Page, part of librt); all other reference implementations, gradients, bodies, test domains
// and tolerances (CompilerPage, which only the compiler library and the reference backend refer to, so that
// the linker drops it from librt). Must not know: how a backend computes, files, sessions.
//
// For every member X of the union in schema/ops.fbs the build refers to ops::page_X and ops::compiler_page_X;
// a missing page is a link error that names the operator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/graph/emitter.h"
#include "runtime/graph/node_view.h"

namespace librt::ops {

/// Work of one node at concrete shapes: floating point operations (a multiply-add is two) and bytes that must
/// move.
struct Cost {
  double flops = 0;
  double bytes = 0;
  double tables = 0;  ///< host bytes of tables that kernels build for these shapes, at most
};

/// Uniform test inputs are drawn from [low, high], where the operator is defined, smooth and well
/// conditioned.
struct Domain {
  double low = -2;
  double high = 2;
};

/// How far a backend may be from the reference: |got - want| <= absolute + relative |want|, f32.
struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
};

/// Inputs: the first `least` are always present when a page is called; each one after them may be absent.
struct Arity {
  uint8_t least = 1;
  uint8_t most = 1;  ///< kUnbounded: any number
};
inline constexpr uint8_t kUnbounded = 255;

/// The reference implementation of a node: plain loops in double (integers exactly). inputs[i].data is null
/// for an absent input; outputs point to memory of the inferred sizes.
using EvalFunction = Status (*)(const NodeView& node, std::span<const ConstTensorView> inputs,
                                std::span<const TensorView> outputs);

/// A data-dependent extent: known only after the operator has run.
inline constexpr int64_t kUnknownExtent = -1;

/// Allocates the results of an operator whose output shapes are data-dependent.
class ResultMaker {
 public:
  virtual ~ResultMaker() = default;
  /// Memory for result `output`. Called again with another leading extent, it keeps what was written.
  virtual Result<TensorView> make(size_t output, const TensorInfo& info) = 0;
  /// The operator is about to take so many bytes of host memory beside its results; an error if it may not.
  virtual Status hold(double) { return {}; }
};

/// How an operator is run in 16-bit floats; accumulation is in f32 everywhere.
enum class Arithmetic : uint8_t {
  Plain,               ///< about as accurate in 16 bits: data movement, comparisons, one rounding per element
  Matmul,              ///< faster in 16 bits: matmul, convolution, attention, recurrent layers
  PrecisionSensitive,  ///< exp, log, long sums, norms, losses, coordinates, updates: stays in f32
};

/// What passes may assume of every node of an operator.
enum class Form : uint8_t {
  Opaque,     ///< nothing
  Unary,      ///< one operand, one result of its shape and type: y[i] = f(x[i])
  Broadcast,  ///< one result, element by element from all operands, which broadcast as in NumPy
};

/// How the extents of a node's results follow from its operands', for graphs with dynamic dimensions. An
/// operator whose form is Unary or Broadcast need not state it.
enum class ExtentRule : uint8_t {
  Unknown,    ///< known only at run time, or not worth a rule
  LikeFirst,  ///< every result has the first operand's shape
  Broadcast,  ///< NumPy's broadcasting of all operands
  /// Every extent of a result is that of an operand or a constant; infer only requires some extents to be
  /// equal to others or to constants.
  Copied,
  Own,   ///< tools/compiler/shape/rules.cpp computes them
  Body,  ///< inferred from its bodies (control flow)
};

struct Page {
  OpKind kind;
  Arity inputs;
  Arity outputs = {1, 1};
  /// Bit i: input i is a shape operand; infer needs its value on the host.
  uint16_t shape_operands = 0;
  /// Checks attributes and operands; appends one TensorInfo per output. Errors say what was expected and
  /// found, without naming the node (the caller does). Shape operands are known when this is called for
  /// concrete shapes; a null value is then a bug of the caller and an error.
  Status (*infer)(const NodeView& node, std::vector<TensorInfo>& outputs);
  /// For operators that occur in shape arithmetic (elementwise, movement, reductions, Shape, Range, ...):
  /// librt evaluates them on the host during planning. All others, which only devices compute, have their
  /// `eval` in the CompilerPage, outside librt. Null in both for a composite: its body defines it.
  EvalFunction eval = nullptr;
  /// Instead of eval for operators with data-dependent output extents (NonZero): infer sets these to
  /// kUnknownExtent. They run on the host and split a session's run.
  Status (*run)(const NodeView& node, std::span<const ConstTensorView> inputs,
                ResultMaker& results) = nullptr;
  /// Null: no flops, and the bytes of all operands and results.
  Cost (*cost)(const NodeView& node) = nullptr;
  bool composite = false;
  /// The result depends on more than the inputs, or the node must not be merged with an equal one (CSE).
  bool impure = false;
  Arithmetic arithmetic = Arithmetic::Plain;
  Form form = Form::Opaque;
  ExtentRule extents = ExtentRule::Unknown;
  /// The result holds elements of the first operand, unchanged, in whatever order and number, and nothing
  /// else.
  bool moves = false;
};

/// Marks a page as precision-sensitive: the operator stays in f32.
constexpr Page precision_sensitive(Page page) noexcept {
  page.arithmetic = Arithmetic::PrecisionSensitive;
  return page;
}

/// The page of an operator; null for an operator this build does not know.
const Page* page_of(OpKind kind) noexcept;

/// The operator's form; Opaque for an operator this build does not know.
Form form_of(OpKind kind) noexcept;

/// By the page; of Elementwise, that of its most sensitive step. The operator must be one that this build
/// knows.
Arithmetic arithmetic_of(const Node& node) noexcept;

/// See Page::moves.
bool moves_elements(OpKind kind) noexcept;

/// By the page's form, or its `extents`.
ExtentRule extent_rule(OpKind kind) noexcept;

/// Cost by the page, or the default.
Cost cost_of(const NodeView& node);

// --- the compiler's part
// ------------------------------------------------------------------------------------

/// The arguments of a gradient rule. grad(i) is the gradient of output i (kNoValue when nothing depends on
/// it).
struct GradContext {
  Emitter& emit;
  const Node& node;
  std::span<const ValueId> grad_outputs;
  std::span<const bool> needed;    ///< which inputs need a gradient
  std::span<ValueId> grad_inputs;  ///< the rule's result; kNoValue where it leaves one out
  bool is_nonnegative = false;     ///< input 0 is at least 0 by construction, so that 0 is its minimum

  ValueId input(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }
  ValueId output(size_t i = 0) const { return node.outputs[i]; }
  ValueId grad(size_t i = 0) const { return grad_outputs[i]; }
  bool needs(size_t i) const { return i < needed.size() && needed[i]; }
  /// Where the operator broadcasts, a gradient of the output's shape is fine: autodiff sums it to the
  /// input's.
  void set(size_t i, ValueId gradient) const { grad_inputs[i] = gradient; }
};

struct CompilerPage {
  /// See Page::eval.
  EvalFunction eval = nullptr;
  /// Emits the gradients of the needed inputs. Null: see no_gradient.
  void (*gradient)(GradContext& context) = nullptr;
  /// Why there is no gradient ("integer output"). Null with a null gradient: a composite, differentiated
  /// through its body.
  const char* no_gradient = nullptr;
  /// Bit i: output i depends only on operands without gradients (labels), so that none flows through it.
  uint16_t constant_outputs = 0;
  /// For composites: writes the body; inputs are the node's inputs (kNoValue for absent), the result its
  /// outputs.
  std::vector<ValueId> (*body)(Emitter& emit, const Node& node, std::span<const ValueId> inputs) = nullptr;
  /// For tests.
  Domain domain = {};
  Tolerance tolerance = {};
};

const CompilerPage* compiler_page_of(OpKind kind) noexcept;

// --- where the evaluator (evaluate.h) finds reference implementations

/// Null where there is none.
using EvalLookup = EvalFunction (*)(OpKind kind) noexcept;

/// Those in librt: Page::eval.
EvalFunction host_value(OpKind kind) noexcept;

/// Those of all operators, from both pages. Not part of librt.
EvalFunction reference_value(OpKind kind) noexcept;

}  // namespace librt::ops

/// At the top of a page: RT_PAGE(Relu) = {.kind = ..., .infer = ...};
#define RT_PAGE(Name)                          \
  extern const ::librt::ops::Page page_##Name; \
  const ::librt::ops::Page page_##Name
#define RT_COMPILER_PAGE(Name)                                  \
  extern const ::librt::ops::CompilerPage compiler_page_##Name; \
  const ::librt::ops::CompilerPage compiler_page_##Name
/// RT_NO_GRADIENT(ArgMax, "integer output");
#define RT_NO_GRADIENT(Name, reason) RT_COMPILER_PAGE(Name) = {.no_gradient = reason}
