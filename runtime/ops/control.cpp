// If and Loop: see control.h.
#include "runtime/ops/control.h"

#include <algorithm>
#include <cstring>

#include "runtime/graph/symbol_extents.h"
#include "runtime/ops/page_support.h"

namespace librt::ops {
namespace {

/// The declared type and shape of a body's value, with kUnknownExtent for dynamic dimensions.
TensorInfo declared(const Value& value) {
  TensorInfo info{value.dtype, {}};
  for (const Dim& dim : value.dims) info.shape.push_back(dim.is_known() ? dim.extent : kUnknownExtent);
  return info;
}

/// Merges both: extents that differ become kUnknownExtent. An error when type or rank differ.
Result<TensorInfo> common(const TensorInfo& a, const TensorInfo& b, Label what) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank())
    return invalid_argument("expected one type and rank for ", what, ", found ", a, " and ", b);
  TensorInfo both = a;
  for (int axis = 0; axis < a.shape.rank(); ++axis)
    if (a.shape[axis] != b.shape[axis]) both.shape[axis] = kUnknownExtent;
  return both;
}

Status copy_result(const ConstTensorView& from, size_t output, ResultMaker& results) {
  RT_ASSIGN(const TensorView to, results.make(output, from.info));
  if (from.info.bytes() != 0) std::memcpy(to.data, from.data, from.info.bytes());
  return {};
}

bool truth(const ConstTensorView& condition) {
  return load_integer(condition.data, DType::Bool, 0) != 0;
}

Status expect_one(const NodeView& node, size_t i, Label what, DTypeSet allowed) {
  RT_TRY(expect_dtype(node, i, what, allowed));
  if (node.input(i).elements() == 1) return {};
  return invalid_argument("expected ", what, " to have one element, found ", node.input(i));
}

/// The node's operands from `first` on have the types and ranks of the body's inputs from `inner` on.
Status check_body_inputs(const NodeView& node, size_t first, const Graph& body, size_t inner) {
  if (body.inputs.size() - inner != node.input_count() - first)
    return invalid_argument("expected a body with ", node.input_count() - first + inner, " inputs, found ",
                            body.inputs.size());
  for (size_t i = first; i < node.input_count(); ++i) {
    const TensorInfo wanted = declared(body[body.inputs[i - first + inner]]);
    if (!node.has(i)) return invalid_argument("expected input ", i, " to be present, found none");
    RT_TRY(common(node.input(i), wanted, text("input ", i, " and the body's")).status());
  }
  return {};
}

// --- If
// -------------------------------------------------------------------------------------------------------

Status infer_if(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_one(node, 0, "the condition", DTypeSet{DType::Bool}));
  const std::vector<Graph>& branches = node.node.bodies;
  if (branches.size() != 2 || branches[0].outputs.size() != branches[1].outputs.size())
    return invalid_argument("expected two branches with as many outputs");
  for (const Graph& branch : branches) RT_TRY(check_body_inputs(node, 1, branch, 0));
  for (size_t i = 0; i < branches[0].outputs.size(); ++i) {
    RT_ASSIGN(const TensorInfo info,
              common(declared(branches[0][branches[0].outputs[i]]),
                     declared(branches[1][branches[1].outputs[i]]), text("output ", i, " of the branches")));
    outputs.push_back(info);
  }
  return {};
}

Status run_if(const NodeView& node, std::span<const ConstTensorView> inputs, const RunBody& run_body,
              ResultMaker& results) {
  const size_t taken = truth(inputs[0]) ? 0 : 1;
  if (const std::string& refusal = node.node.bodies[taken].refusal; !refusal.empty())
    return invalid_argument("its ", taken == 0 ? "then" : "else",
                            " branch does not fit the model's shapes: ", refusal);
  RT_ASSIGN(const auto outputs, run_body(taken, inputs.subspan(1)));
  for (size_t i = 0; i < outputs.size(); ++i) RT_TRY(copy_result(outputs[i], i, results));
  return {};
}

// --- Loop
// -----------------------------------------------------------------------------------------------------

size_t carried_of(const NodeView& node) {
  return static_cast<size_t>(node.as<op::LoopAttributes>().carried);
}

/// The trip count if the operands' values and the body determine it, else kUnknownExtent.
int64_t known_trips(const NodeView& node, const Graph& body) {
  const auto known = [&](size_t i) { return !node.has(i) || node.inputs[i].value != nullptr; };
  if (!known(0) || !known(1)) return kUnknownExtent;
  if (node.has(1) && !truth({node.inputs[1].value, node.input(1)})) return 0;
  if (!node.has(0) || !never_breaks(body)) return kUnknownExtent;
  return std::max<int64_t>(0, load_integer(node.inputs[0].value, node.dtype(0), 0));
}

Status check_loop(const NodeView& node) {
  const int64_t carried = node.as<op::LoopAttributes>().carried;
  if (node.node.bodies.size() != 1) return invalid_argument("expected one body");
  const Graph& body = node.node.bodies[0];
  const auto least = static_cast<int64_t>(std::min(node.input_count() - kLoopHead, body.outputs.size() - 1));
  if (carried < 0 || node.input_count() < kLoopHead || body.outputs.empty() || carried > least)
    return invalid_argument("expected ", carried, " carried values among ", node.input_count(),
                            " inputs and ", body.outputs.size(), " outputs of the body");
  if (node.has(0)) RT_TRY(expect_one(node, 0, "the trip count", DTypeSet{DType::I64, DType::I32}));
  if (node.has(1)) RT_TRY(expect_one(node, 1, "the condition", DTypeSet{DType::Bool}));
  RT_TRY(check_body_inputs(node, kLoopHead, body, kLoopHead));
  const Value& iteration = body[body.inputs[0]];
  const Value& condition = body[body.inputs[1]];
  if (iteration.dtype != DType::I64 || iteration.rank() > 1 || condition.dtype != DType::Bool ||
      condition.rank() > 1 || body[body.outputs[0]].dtype != DType::Bool)
    return invalid_argument(
        "expected a body that takes an iteration (i64) and a condition (bool), and gives one");
  return {};
}

Status infer_loop(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_loop(node));
  const Graph& body = node.node.bodies[0];
  const size_t carried = carried_of(node);
  for (size_t i = 0; i < carried; ++i) {
    RT_ASSIGN(const TensorInfo info, common(node.input(kLoopHead + i), declared(body[body.outputs[1 + i]]),
                                            text("carried value ", i)));
    outputs.push_back(info);
  }
  for (size_t i = 1 + carried; i < body.outputs.size(); ++i) {
    TensorInfo info = declared(body[body.outputs[i]]);
    if (info.shape.rank() >= kMaxRank)
      return unsupported("scanned output ", i - 1, " of rank ", kMaxRank, " needs one axis more");
    info.shape.insert(0, known_trips(node, body));
    outputs.push_back(info);
  }
  return {};
}

/// Stacks the slices of all iterations along a new first axis.
class Scanned {
 public:
  Scanned(size_t output, ResultMaker& results) : output_(output), results_(results) {}

  /// expected: an upper bound on the remaining iterations, to allocate for them at once.
  Status append(const ConstTensorView& slice, uint64_t expected) {
    if (count_ == 0) {
      slice_ = slice.info;
      if (slice_.shape.rank() >= kMaxRank)
        return unsupported("scanned output ", output_, " of rank ", kMaxRank, " needs one axis more");
    } else if (!(slice.info == slice_)) {
      return invalid_argument("scanned output ", output_, ": expected ", slice_,
                              " from every iteration, found ", slice.info, " from iteration ", count_);
    }
    if (count_ == capacity_) {
      constexpr uint64_t kMostAtOnce = 1 << 12;
      const auto wanted = static_cast<int64_t>(std::min(expected, kMostAtOnce));
      RT_TRY(make(std::max({wanted, 2 * capacity_, int64_t{4}})));
    }
    const size_t bytes = slice_.bytes();
    if (bytes != 0)
      std::memcpy(view_.as<std::byte>() + static_cast<size_t>(count_) * bytes, slice.data, bytes);
    ++count_;
    return {};
  }
  /// declared_slice: the slice's declared type and shape, for a loop without iterations.
  Status finish(const TensorInfo& declared_slice) {
    if (count_ == 0) slice_ = declared_slice;
    return make(count_);
  }

 private:
  Status make(int64_t capacity) {
    TensorInfo info = slice_;
    info.shape.insert(0, capacity);
    if (!info.shape.checked_elements())
      return invalid_argument("scanned output ", output_, " is too large" RT_FEW_ELEMENTS);
    RT_ASSIGN(view_, results_.make(output_, info));
    capacity_ = capacity;
    return {};
  }

  size_t output_;
  ResultMaker& results_;
  TensorInfo slice_;
  TensorView view_;
  int64_t count_ = 0, capacity_ = 0;
};

Status run_loop(const NodeView& node, std::span<const ConstTensorView> inputs, StopSignal& stop,
                const RunBody& run_body, ResultMaker& results) {
  const Graph& body = node.node.bodies[0];
  const size_t carried = carried_of(node);
  const int64_t given = node.has(0) ? load_integer(inputs[0].data, node.dtype(0), 0) : INT64_MAX;
  const auto trips = static_cast<uint64_t>(std::max<int64_t>(given, 0));
  alignas(64) int64_t iteration = 0;
  alignas(64) bool condition = !node.has(1) || truth(inputs[1]);
  const auto scalar = [&](size_t i) { return body[body.inputs[i]].rank() == 0 ? Shape{} : Shape{1}; };
  std::vector<ConstTensorView> operands = {{&iteration, {DType::I64, scalar(0)}},
                                           {&condition, {DType::Bool, scalar(1)}}};
  operands.insert(operands.end(), inputs.begin() + kLoopHead, inputs.end());
  std::vector<Scanned> scanned;
  for (size_t i = carried; i + 1 < body.outputs.size(); ++i) scanned.emplace_back(i, results);
  for (uint64_t i = 0; i < trips && condition; ++i) {
    RT_TRY(stop.next_iteration());
    iteration = static_cast<int64_t>(i);
    RT_ASSIGN(const auto outputs, run_body(0, operands));
    if (outputs[0].info.dtype != DType::Bool || outputs[0].info.elements() != 1)
      return invalid_argument("expected one bool as the condition of the next iteration, found ",
                              outputs[0].info);
    condition = truth(outputs[0]);
    std::copy_n(outputs.begin() + 1, carried, operands.begin() + kLoopHead);
    for (size_t k = 0; k < scanned.size(); ++k)
      RT_TRY(scanned[k].append(outputs[1 + carried + k], trips - i));
  }
  for (size_t i = 0; i < carried; ++i) RT_TRY(copy_result(operands[kLoopHead + i], i, results));
  // Without iterations the slices have the shapes that the body declares, for these operands.
  SymbolExtents extents(body);
  for (size_t i = 0; i < operands.size(); ++i) extents.bind(body[body.inputs[i]], operands[i].info.shape);
  for (size_t k = 0; k < scanned.size(); ++k) {
    const Value& slice = body[body.outputs[1 + carried + k]];
    TensorInfo info{slice.dtype, {}};
    for (const Dim& dim : slice.dims)
      info.shape.push_back(std::max<int64_t>(extents.extent_of(dim).value_or(0), 0));
    RT_TRY(scanned[k].finish(info));
  }
  return {};
}

}  // namespace

bool never_breaks(const Graph& body) noexcept {
  const std::vector<std::optional<NodeId>> made_by = producers(body);
  ValueId condition = body.outputs[0];
  while (made_by[condition] && body.nodes[*made_by[condition]].kind() == OpKind::Identity)
    condition = body.nodes[*made_by[condition]].inputs[0];
  const Value& value = body[condition];
  return condition == body.inputs[1] ||
         (value.role == Role::Constant && value.data.size > 0 && value.data.data[0] != std::byte{0});
}

Status run_control(const NodeView& node, std::span<const ConstTensorView> inputs, StopSignal& stop,
                   const RunBody& run_body, ResultMaker& results) {
  return node.kind() == OpKind::If ? run_if(node, inputs, run_body, results)
                                   : run_loop(node, inputs, stop, run_body, results);
}

RT_PAGE(If) = {.kind = OpKind::If,
               .inputs = {1, kUnbounded},
               .outputs = {1, kUnbounded},
               .infer = infer_if,
               .extents = ExtentRule::Body};
RT_NO_GRADIENT(
    If, "its branch is chosen at run time; it has a gradient if the condition does not depend on data");
RT_PAGE(Loop) = {.kind = OpKind::Loop,
                 .inputs = {0, kUnbounded},
                 .outputs = {1, kUnbounded},
                 .infer = infer_loop,
                 .extents = ExtentRule::Body};
RT_NO_GRADIENT(
    Loop,
    "the values of its iterations are not kept; it has a gradient if it can be unrolled: how often "
    "it runs does not depend on data, and it unrolls to no more than 10,000 nodes; fix the "
    "dimensions that determine the count (rtconvert --dim)");

}  // namespace librt::ops
