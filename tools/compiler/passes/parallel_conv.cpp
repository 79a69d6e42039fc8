// parallel_conv: convolutions of one value whose results are added become one, as in networks that are
// trained with several branches (RepVGG, arXiv:2101.03697; MobileOne, arXiv:2206.04040).
//
//   Conv(x, V) + Conv(x, W) + y = y + Conv(x, V + W)
//
// Smaller windows are padded with zeros to the largest one, where all begin at the same place but for padding
// and that adds no multiplications. Reassociates: weights are added (in double, rounded once) instead of
// results. Weights under training are states, not constants, and stay as they are.
#include <algorithm>
#include <unordered_map>

#include "runtime/core/element.h"
#include "runtime/core/shape.h"
#include "tools/compiler/passes/affine.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

/// A Conv with a constant weight and a bias at most.
struct Branch {
  NodeId node = 0;
  ValueId x = kNoValue, weight = kNoValue, bias = kNoValue;
  Shape window;  ///< of the weight, [O,K..,C/groups]
  std::vector<int64_t> strides, dilations, pads;
  int64_t groups = 1;

  size_t axes() const { return static_cast<size_t>(window.rank() - 2); }
  /// Where the last tap lies, from a result's position in the input on.
  int64_t last(size_t axis) const {
    return (window[static_cast<int>(axis) + 1] - 1) * dilations[axis] - pads[axis];
  }
  /// How far windows may reach beyond the input's end, less where the last tap lies: the same for all
  /// convolutions with one stride and extent of the result.
  int64_t rest(size_t axis) const { return pads[axes() + axis] - last(axis); }
};

/// An attribute with an entry for each axis, which may be left to its default.
std::vector<int64_t> listed(const std::vector<int64_t>& attribute, size_t count, int64_t otherwise) {
  return attribute.empty() ? std::vector<int64_t>(count, otherwise) : attribute;
}

std::optional<Branch> branch_of(GraphEdit& edit, ValueId result) {
  if (edit.use_count(result) != 1) return std::nullopt;
  const Node* const node = edit.producer(result, OpKind::Conv);
  if (node == nullptr || !edit.is_constant(node->inputs[1])) return std::nullopt;
  const auto& attributes = node->as<op::ConvAttributes>();
  Branch branch{.node = edit.producer_id(result),
                .x = node->inputs[0],
                .weight = node->inputs[1],
                .window = edit.value(node->inputs[1]).info().shape,
                .groups = attributes.groups};
  const size_t axes = branch.axes();
  branch.strides = listed(attributes.strides, axes, 1);
  branch.dilations = listed(attributes.dilations, axes, 1);
  branch.pads = listed(attributes.pads, 2 * axes, 0);
  if (!has_plain_epilogue(attributes.epilogue.get())) return std::nullopt;
  if (attributes.epilogue != nullptr && attributes.epilogue->has_bias) branch.bias = node->inputs[2];
  if (!is_float(edit.value(branch.weight).dtype) || branch.window.elements() == 0) return std::nullopt;
  if (branch.bias != kNoValue && !numbers_per_channel(edit, branch.bias, branch.window[0]))
    return std::nullopt;
  return branch;
}

/// Both in one window, without more taps than they have together.
struct Union {
  std::vector<int64_t> pads;
  Shape window;
};

std::optional<Union> union_of(GraphEdit& edit, const Branch& a, const Branch& b) {
  if (a.x != b.x || a.window.rank() != b.window.rank() || a.window[0] != b.window[0] ||
      a.window.back() != b.window.back() || a.groups != b.groups || a.strides != b.strides ||
      a.dilations != b.dilations || edit.value(a.weight).dtype != edit.value(b.weight).dtype)
    return std::nullopt;
  Union both{.pads = std::vector<int64_t>(2 * a.axes()), .window = a.window};
  for (size_t axis = 0; axis < a.axes(); ++axis) {
    const int64_t dilation = a.dilations[axis];
    if (a.rest(axis) != b.rest(axis) || (a.pads[axis] - b.pads[axis]) % dilation != 0) return std::nullopt;
    const int64_t first = std::max(a.pads[axis], b.pads[axis]), last = std::max(a.last(axis), b.last(axis));
    both.pads[axis] = first;
    both.pads[a.axes() + axis] = last + a.rest(axis);
    both.window[static_cast<int>(axis) + 1] = (last + first) / dilation + 1;
  }
  if (both.window.elements() > a.window.elements() + b.window.elements()) return std::nullopt;
  return both;
}

/// Adds the weight's taps where they lie in the larger window.
void add_taps(const GraphEdit& edit, const Branch& branch, const Union& both, std::vector<double>& sum) {
  const Value& weight = edit.value(branch.weight);
  const Shape& from = branch.window;
  const int64_t taps = from.elements(1, from.rank() - 1), channels = from.back(),
                all_taps = both.window.elements(1, from.rank() - 1);
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t to = 0, rest = tap;
    for (int64_t axis = static_cast<int64_t>(branch.axes()), step = 1; axis-- > 0;) {
      const auto at = static_cast<size_t>(axis);
      const int extent = static_cast<int>(axis) + 1;
      to += (rest % from[extent] + (both.pads[at] - branch.pads[at]) / branch.dilations[at]) * step;
      rest /= from[extent];
      step *= both.window[extent];
    }
    for (int64_t o = 0; o < from[0]; ++o)
      for (int64_t c = 0; c < channels; ++c)
        sum[static_cast<size_t>((o * all_taps + to) * channels + c)] +=
            load_element(weight.data.data, weight.dtype, (o * taps + tap) * channels + c);
  }
}

/// The Conv that computes the sum of both; kNoValue where the edit failed.
ValueId joined(GraphEdit& edit, const Branch& a, const Branch& b, const Union& both) {
  const auto channels = static_cast<size_t>(a.window[0]);
  std::vector<double> sum(static_cast<size_t>(both.window.elements())), bias(channels);
  for (const Branch* branch : {&a, &b}) {
    add_taps(edit, *branch, both, sum);
    if (branch->bias == kNoValue) continue;
    const auto numbers = *numbers_per_channel(edit, branch->bias, a.window[0]);
    for (size_t i = 0; i < channels; ++i) bias[i] += numbers[i];
  }
  OpAttributes op = edit.node(a.node).op;
  auto& attributes = *static_cast<op::ConvAttributes*>(op.value);
  attributes.pads = both.pads;
  const DType dtype = edit.value(a.weight).dtype;
  const std::string name = edit.node(a.node).name;
  edit.name_after(a.node);
  std::vector<ValueId> inputs{
      a.x, constant_of(edit, {.dtype = dtype, .shape = both.window}, sum, name + ".weight")};
  if (a.bias != kNoValue || b.bias != kNoValue) {
    if (attributes.epilogue == nullptr) attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->has_bias = true;
    const ValueId given = a.bias != kNoValue ? a.bias : b.bias;
    const TensorInfo info{.dtype = edit.value(given).dtype, .shape = {a.window[0]}};
    inputs.push_back(constant_of(edit, info, bias, name + ".bias"));
  }
  return edit.builder().emit_many(std::move(op), inputs, 1)[0];
}

/// The Add of two values of one shape that gives this one; else null.
const Node* sum_of(GraphEdit& edit, ValueId result) {
  const Node* const add = edit.producer(result, OpKind::Add);
  const bool same =
      add != nullptr && edit.same_info(add->inputs[0], result) && edit.same_info(add->inputs[1], result);
  return same ? add : nullptr;
}

/// Whether the sum is an addend of a larger one, and nothing else.
bool goes_on(GraphEdit& edit, ValueId result) {
  if (edit.use_count(result) != 1 || edit.is_output(result)) return false;
  const Node& user = edit.node(edit.users(result)[0]);
  return user.kind() == OpKind::Add && sum_of(edit, user.outputs[0]) != nullptr;
}

/// The addends, in order; sums in between have no other reader.
std::vector<ValueId> addends_of(GraphEdit& edit, const Node& sum) {
  std::vector<ValueId> open(sum.inputs.rbegin(), sum.inputs.rend()), addends;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const Node* const part = edit.use_count(id) == 1 ? sum_of(edit, id) : nullptr;
    if (part == nullptr)
      addends.push_back(id);
    else
      open.insert(open.end(), part->inputs.rbegin(), part->inputs.rend());
  }
  return addends;
}

void join(GraphEdit& edit, ValueId sum) {
  /// With how many convolutions of the same value one is compared.
  constexpr size_t kMostTried = 16;
  std::vector<ValueId> others;
  std::unordered_map<ValueId, std::vector<Branch>> branches;  // by x
  std::vector<ValueId> order;                                 // of the keys
  bool any = false;
  for (const ValueId addend : addends_of(edit, *sum_of(edit, sum))) {
    std::optional<Branch> branch = branch_of(edit, addend);
    if (!branch) {
      others.push_back(addend);
      continue;
    }
    const auto [at, is_new] = branches.try_emplace(branch->x);
    if (is_new) order.push_back(branch->x);
    std::vector<Branch>& own = at->second;
    bool found = false;
    for (size_t i = 0; i < std::min(own.size(), kMostTried) && !found; ++i) {
      const auto both = union_of(edit, own[i], *branch);
      if (!both) continue;
      const ValueId result = joined(edit, own[i], *branch, *both);
      if (result == kNoValue) return;
      const Node& made = edit.node(edit.producer_id(result));
      own[i].node = edit.producer_id(result);
      own[i].weight = made.inputs[1];
      own[i].bias = made.inputs.size() > 2 ? made.inputs[2] : kNoValue;
      own[i].window = both->window;
      own[i].pads = both->pads;
      found = any = true;
    }
    if (!found) own.push_back(std::move(*branch));
  }
  if (!any) return;
  // The convolutions last, so that each may end with the sum before it.
  std::vector<ValueId> addends = std::move(others);
  for (const ValueId x : order)
    for (const Branch& branch : branches.at(x)) addends.push_back(edit.node(branch.node).outputs[0]);
  edit.name_after(edit.producer_id(sum));
  ValueId result = addends[0];
  for (size_t i = 1; i < addends.size() && result != kNoValue; ++i)
    result = edit.emit(op::AddAttributes{}, {result, addends[i]});
  if (result != kNoValue) edit.replace(sum, result);
}

}  // namespace

Status parallel_conv(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = 0, end = edit.node_count(); id < end && edit.status().ok(); ++id) {
    if (!edit.is_alive(id, OpKind::Add)) continue;
    const ValueId sum = edit.node(id).outputs[0];
    if (sum_of(edit, sum) != nullptr && !goes_on(edit, sum)) join(edit, sum);
  }
  return edit.finish();
}

}  // namespace librt::compiler
