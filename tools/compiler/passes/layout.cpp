// layout: moves Transposes downwards until they meet their inverses.
//
// Spatial operators are channels-last, so the importer of a channels-first model puts a Transpose before and
// after each of them. This pass moves a Transpose from an operator's inputs to its result,
//     op(T(x), T(y)) -> T(op(x, y))        with axes, pads and the like renamed,
// wherever that does not move more elements, and merges adjacent ones; a convolutional net keeps at most a
// Transpose at its borders. Exact: elements move, nothing is computed in another order (a reduction over
// several axes may add in another order).
//
// Write p for a permutation with A = Transpose(X, p): axis a of A is axis p[a] of X.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "runtime/ops/page.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/movement.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

using Permutation = std::vector<int64_t>;

/// How a Transpose moves through an operator. Elementwise operators have it from the page's form; the others
/// need a rule of their own (an axis, or an operand to permute), which is why they are listed in class_of().
enum class Class : uint8_t {
  Barrier,
  Elementwise,
  Concat,
  Axis,
  Reduction,
  ArgReduction,
  Slice,
  PerAxisOperand,
  Gather,
  Reshape,
  Quantization
};

Class class_of(OpKind kind) {
  switch (kind) {
    case OpKind::Concat: return Class::Concat;
    case OpKind::Softmax:
    case OpKind::LogSoftmax: return Class::Axis;
    case OpKind::ReduceSum:
    case OpKind::ReduceMean:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin:
    case OpKind::ReduceProd: return Class::Reduction;
    case OpKind::ArgMax:
    case OpKind::ArgMin: return Class::ArgReduction;
    case OpKind::Slice: return Class::Slice;
    case OpKind::Pad:
    case OpKind::Expand:
    case OpKind::Tile: return Class::PerAxisOperand;
    case OpKind::Gather: return Class::Gather;
    case OpKind::Reshape: return Class::Reshape;
    case OpKind::QuantizeLinear:
    case OpKind::DequantizeLinear: return Class::Quantization;
    case OpKind::FakeQuantize:
    case OpKind::Cast: return Class::Elementwise;  // another type, or an operand that does not broadcast
    default: return ops::form_of(kind) == ops::Form::Opaque ? Class::Barrier : Class::Elementwise;
  }
}

double elements(GraphEdit& edit, ValueId id) {
  return static_cast<double>(edit.builder().example_info(id).elements());
}

/// The cost that the pass minimizes: elements that Transposes move in each run.
double cost_of_transposes(GraphEdit& edit) {
  double cost = 0;
  for (NodeId id = 0; id < edit.node_count(); ++id)
    if (edit.is_alive(id, OpKind::Transpose) && !edit.is_constant(edit.node(id).inputs[0]))
      cost += elements(edit, edit.node(id).outputs[0]);
  return cost;
}

const Permutation* permutation_of(GraphEdit& edit, ValueId value) {
  const Node* transpose = edit.producer(value, OpKind::Transpose);
  return transpose == nullptr ? nullptr : &transpose->as<op::TransposeAttributes>().permutation;
}

/// Bounds the time for each Transpose.
constexpr size_t kMostReaders = 1024;

/// Elements that a Transpose of a value would move where it comes to rest: at a reader that lets none pass,
/// or nowhere if all readers are Transposes.
class Landing {
 public:
  explicit Landing(GraphEdit& edit) : edit_(edit) {}

  double cost(ValueId value, int depth = 6) {
    // Where paths meet again, as those of x sigmoid(x) do, one Transpose goes on.
    if (!seen_.insert(value).second) return 0;
    const size_t count = edit_.use_count(value);
    if (depth == 0 || edit_.is_output(value) || count == 0 || count > left_) return elements(edit_, value);
    left_ -= count;
    double sum = 0;
    for (const NodeId reader : edit_.users(value)) {
      const Node& node = edit_.node(reader);
      if (node.kind() == OpKind::Transpose || node.kind() == OpKind::Shape) continue;
      if (class_of(node.kind()) == Class::Barrier) return elements(edit_, value);
      // A quantized graph is looked through as far as the same one without quantization.
      sum += cost(node.outputs[0], class_of(node.kind()) == Class::Quantization ? depth : depth - 1);
    }
    return sum;
  }

 private:
  GraphEdit& edit_;
  size_t left_ = kMostReaders;  ///< readers that may still be looked at
  std::set<ValueId> seen_;
};

/// Whether the Transpose that produces `value` disappears once its readers no longer need it.
bool can_vanish(GraphEdit& edit, ValueId value) {
  if (edit.is_output(value) || edit.use_count(value) > kMostReaders) return false;
  const std::vector<NodeId> readers = edit.users(value);
  return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
    const OpKind kind = edit.node(reader).kind();
    return kind == OpKind::Transpose || kind == OpKind::Shape || class_of(kind) != Class::Barrier;
  });
}

/// One operator with its Transpose moved below: new attributes and operands, and the permutation of its
/// result.
struct Sunk {
  OpAttributes op;
  std::vector<ValueId> inputs;
  Permutation result;
};

Permutation inverse_twice(const Permutation& inverse_permutation) {
  Permutation both = inverse_permutation;
  for (int64_t axis : inverse_permutation)
    both.push_back(axis + static_cast<int64_t>(inverse_permutation.size()));
  return both;
}

/// The entries of a shape operand in another order: host arithmetic, or a constant after folding.
ValueId reordered(GraphEdit& edit, ValueId operand, const Permutation& order) {
  if (const auto known = edit.ints(operand)) {
    std::vector<int64_t> numbers;
    for (int64_t i : order) numbers.push_back((*known)[static_cast<size_t>(i)]);
    return edit.builder().ints(numbers);
  }
  return edit.emit(op::GatherAttributes{}, {operand, edit.builder().ints(order)});
}

/// x as it must be for a result that is transposed by p afterwards; kNoValue when that cannot be written.
ValueId before_transpose(GraphEdit& edit, ValueId x, const Permutation& p) {
  if (const Permutation* own = permutation_of(edit, x); own != nullptr && *own == p)
    return edit.producer(x)->inputs[0];
  const int rank = edit.value(x).rank();
  const auto wanted = static_cast<int>(p.size());
  if (rank == 0) return x;
  if (rank < wanted) {
    Value extended = edit.value(x);
    extended.dims.insert(extended.dims.begin(), static_cast<size_t>(wanted - rank), Dim{.extent = 1});
    const auto target = reshape_target(extended);
    if (!target) return kNoValue;
    x = edit.emit(op::ReshapeAttributes{}, {x, edit.builder().ints(*target)});
  }
  return edit.emit(transpose_by(inverse(p)), {x});
}

/// The permutation of the inputs that is worth moving, or null.
const Permutation* choose_permutation(GraphEdit& edit, const Node& node, size_t first, size_t last) {
  const ValueId y = node.outputs[0];
  const Permutation* best = nullptr;
  double best_gain = -1;
  int rank = 0;
  for (size_t i = first; i < last; ++i) rank = std::max(rank, edit.value(node.inputs[i]).rank());
  for (size_t i = first; i < last; ++i) {
    const Permutation* p = permutation_of(edit, node.inputs[i]);
    if (p == nullptr || static_cast<int>(p->size()) != rank) continue;
    double gain = 0;
    for (size_t k = first; k < last; ++k) {
      const ValueId input = node.inputs[k];
      const Permutation* other = permutation_of(edit, input);
      if (other != nullptr && *other == *p)
        gain += can_vanish(edit, input) ? elements(edit, input) : 0;
      else if (!edit.is_constant(input) && !keeps_order(edit.value(input), inverse(*p)))
        gain -= elements(edit, input);
    }
    // A little more at the result than at the operands (padding) is still fine.
    gain *= gain > 0 ? 1.25 : 1;
    gain -= Landing(edit).cost(y);
    if (gain > best_gain) {
      best = p;
      best_gain = gain;
    }
  }
  return best_gain >= 0 ? best : nullptr;
}

/// For operators that drop `dropped` axes of A: the permutation of what is left.
Permutation without_axes(const Permutation& p, const std::vector<int64_t>& dropped) {
  std::vector<int64_t> kept;
  for (size_t a = 0; a < p.size(); ++a)
    if (std::find(dropped.begin(), dropped.end(), static_cast<int64_t>(a)) == dropped.end())
      kept.push_back(p[a]);
  Permutation left;
  for (int64_t axis : kept)
    left.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t other) { return other < axis; }));
  return left;
}

std::optional<Sunk> sink_operands(GraphEdit& edit, NodeId id, size_t first, size_t last,
                                  const std::function<void(OpAttributes&, const Permutation&)>& rename) {
  const Permutation* chosen = choose_permutation(edit, edit.node(id), first, last);
  if (chosen == nullptr) return std::nullopt;
  const Permutation p = *chosen;
  Sunk sunk{.op = edit.node(id).op, .inputs = edit.node(id).inputs, .result = p};
  for (size_t i = first; i < last; ++i) {
    sunk.inputs[i] = before_transpose(edit, sunk.inputs[i], p);
    if (sunk.inputs[i] == kNoValue) return std::nullopt;
  }
  if (rename) rename(sunk.op, p);
  return sunk;
}

int64_t renamed(int64_t axis, const Permutation& p) {
  const auto normalized = normalized_axis(axis, static_cast<int>(p.size()));
  return normalized ? p[static_cast<size_t>(*normalized)] : axis;
}

std::vector<int64_t> normalized(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) result.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  return result;
}

/// The five reductions have the same attributes under different types.
template <class Attributes>
std::optional<Sunk> sink_reduction(GraphEdit& edit, NodeId id) {
  const bool keep = edit.node(id).as<Attributes>().keep_dims;
  const std::vector<int64_t> axes = edit.node(id).as<Attributes>().axes;
  auto sunk = sink_operands(edit, id, 0, 1, [&](OpAttributes& op, const Permutation& p) {
    auto& list = static_cast<Attributes*>(op.value)->axes;
    for (int64_t& axis : list) axis = renamed(axis, p);
    std::sort(list.begin(), list.end());
  });
  if (!sunk || keep) return sunk;
  const size_t rank = sunk->result.size();
  std::vector<int64_t> dropped = normalized(axes, rank);
  if (axes.empty()) {
    dropped.resize(rank);
    std::iota(dropped.begin(), dropped.end(), 0);
  }
  sunk->result = without_axes(sunk->result, dropped);
  return sunk;
}

template <class Attributes>
std::optional<Sunk> sink_arg_reduction(GraphEdit& edit, NodeId id) {
  const auto attributes = edit.node(id).as<Attributes>();
  auto sunk = sink_operands(edit, id, 0, 1, [](OpAttributes& op, const Permutation& p) {
    auto* renamed_attributes = static_cast<Attributes*>(op.value);
    renamed_attributes->axis = renamed(renamed_attributes->axis, p);
  });
  if (sunk && !attributes.keep_dims)
    sunk->result = without_axes(sunk->result, normalized({attributes.axis}, sunk->result.size()));
  return sunk;
}

template <class Attributes>
void rename_axis(OpAttributes& op, const Permutation& p) {
  auto* attributes = static_cast<Attributes*>(op.value);
  attributes->axis = renamed(attributes->axis, p);
}

std::optional<Sunk> sink_slice(GraphEdit& edit, NodeId id) {
  const Value& starts = edit.value(edit.node(id).inputs[1]);
  const int64_t count = starts.rank() == 1 ? starts.dims[0].extent : -1;
  if (count < 0) return std::nullopt;
  return sink_operands(edit, id, 0, 1, [&](OpAttributes& op, const Permutation& p) {
    auto& axes = static_cast<op::SliceAttributes*>(op.value)->axes;
    if (axes.empty()) {
      axes.resize(static_cast<size_t>(count));
      std::iota(axes.begin(), axes.end(), 0);
    }
    for (int64_t& axis : axes) axis = renamed(axis, p);
  });
}

/// Pad, Expand, Tile: operand 1 has an entry (Pad: two) for each axis.
std::optional<Sunk> sink_per_axis(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  const int rank = edit.value(node.inputs[0]).rank();
  const int64_t entries = node.kind() == OpKind::Pad ? 2 * rank : rank;
  const Value& operand = edit.value(node.inputs[1]);
  if (operand.rank() != 1 || operand.dims[0].extent != entries) return std::nullopt;
  auto sunk = sink_operands(edit, id, 0, 1, {});
  if (!sunk) return sunk;
  const Permutation back = inverse(sunk->result);
  sunk->inputs[1] = reordered(edit, sunk->inputs[1], entries == rank ? back : inverse_twice(back));
  return sunk;
}

std::optional<Sunk> sink_gather(GraphEdit& edit, NodeId id) {
  const int64_t axis = edit.node(id).as<op::GatherAttributes>().axis;
  const int indices_rank = edit.value(edit.node(id).inputs[1]).rank();
  if (indices_rank > 1) return std::nullopt;
  auto sunk = sink_operands(edit, id, 0, 1, rename_axis<op::GatherAttributes>);
  if (sunk && indices_rank == 0)
    sunk->result = without_axes(sunk->result, normalized({axis}, sunk->result.size()));
  return sunk;
}

/// A scale of x's rank has one value for each block of x; any other is along the attribute `axis`.
template <class Attributes>
std::optional<Sunk> sink_quantization(GraphEdit& edit, NodeId id) {
  const std::vector<ValueId>& inputs = edit.node(id).inputs;
  size_t last = 1;
  if (edit.node(id).as<Attributes>().block_size != 0)
    while (last < inputs.size() && inputs[last] != kNoValue) ++last;
  return sink_operands(edit, id, 0, last, [&](OpAttributes& op, const Permutation& p) {
    auto* attributes = static_cast<Attributes*>(op.value);
    // Without blocks and with a scalar scale, the axis is unused and need not exist.
    if (normalized_axis(attributes->axis, static_cast<int>(p.size()))) rename_axis<Attributes>(op, p);
  });
}

/// Runs of axes of A and of B with the same number of elements: [a_first, a_last) -> [b_first, b_last).
struct Run {
  int a_first, a_last, b_first, b_last;
};

std::vector<Run> matching_runs(GraphEdit& edit, ValueId a, ValueId b) {
  ExtentTable& table = edit.builder().extents();
  const std::vector<Extent>&x = edit.builder().known(a).dims, &y = edit.builder().known(b).dims;
  // Which side is shorter so far is a guess; that both are equal in the end is proven.
  const Shape &x_guess = edit.builder().example_info(a).shape,
              &y_guess = edit.builder().example_info(b).shape;
  const auto x_rank = static_cast<int>(x.size()), y_rank = static_cast<int>(y.size());
  std::vector<Run> runs;
  int i = 0, j = 0;
  while (i < x_rank || j < y_rank) {
    Run run{.a_first = i, .a_last = i, .b_first = j, .b_last = j};
    Extent left = number(1), right = number(1);
    int64_t left_guess = 1, right_guess = 1;
    const auto equal = [&] { return !left.is_unknown() && left == right; };
    do {
      // Take from the shorter side; both have one at the start.
      const bool take_a = i < x_rank && (left_guess <= right_guess || j == y_rank) &&
                          !(run.a_last > run.a_first && run.b_last == run.b_first);
      if (take_a) {
        left = table.multiply(left, x[static_cast<size_t>(i)]);
        left_guess *= x_guess[i];
        run.a_last = ++i;
      } else if (j < y_rank) {
        right = table.multiply(right, y[static_cast<size_t>(j)]);
        right_guess *= y_guess[j];
        run.b_last = ++j;
      } else {
        break;
      }
    } while (!equal() || (run.a_last == run.a_first) || (run.b_last == run.b_first));
    if (!equal()) return {};
    // Trailing extents of 1 belong to the last run.
    const bool a_rest = i == x_rank, b_rest = j == y_rank;
    while (b_rest && i < x_rank && x[static_cast<size_t>(i)].is_constant(1)) run.a_last = ++i;
    while (a_rest && j < y_rank && y[static_cast<size_t>(j)].is_constant(1)) run.b_last = ++j;
    runs.push_back(run);
  }
  return runs;
}

/// Reshape(Transpose(X, p)) where the runs of axes that the Reshape merges or splits are adjacent in X too.
std::optional<Sunk> sink_reshape(GraphEdit& edit, NodeId id) {
  const ValueId source = edit.node(id).inputs[0], y = edit.node(id).outputs[0];
  const Permutation* own = permutation_of(edit, source);
  if (own == nullptr || !can_vanish(edit, source)) return std::nullopt;
  const Permutation p = *own;
  const std::vector<Run> runs = matching_runs(edit, source, y);
  if (runs.empty()) return std::nullopt;
  for (const Run& run : runs)
    for (int i = run.a_first + 1; i < run.a_last; ++i)
      if (p[static_cast<size_t>(i)] != p[static_cast<size_t>(i - 1)] + 1) return std::nullopt;
  // The runs in the order of their axes in X.
  std::vector<size_t> sorted(runs.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](size_t l, size_t r) {
    return p[static_cast<size_t>(runs[l].a_first)] < p[static_cast<size_t>(runs[r].a_first)];
  });
  Value moved = edit.value(y);
  moved.dims.clear();
  Permutation result(edit.value(y).dims.size());
  for (size_t at : sorted)
    for (int j = runs[at].b_first; j < runs[at].b_last; ++j) {
      result[static_cast<size_t>(j)] = static_cast<int64_t>(moved.dims.size());
      moved.dims.push_back(edit.value(y).dims[static_cast<size_t>(j)]);
    }
  Sunk sunk{.op = edit.node(id).op, .inputs = {edit.producer(source)->inputs[0], kNoValue}, .result = result};
  if (const auto target = reshape_target(moved))
    sunk.inputs[1] = edit.builder().ints(*target);
  else if (const Value& shape = edit.value(edit.node(id).inputs[1]); shape.rank() == 1)
    sunk.inputs[1] = reordered(edit, edit.node(id).inputs[1], inverse(result));
  return sunk;
}

/// Transpose(Reshape(Transpose(X, p))), where the Reshape merges axes that are not adjacent in X, so that
/// sink_reshape() cannot move p: Reshape(Transpose(X)), as in space-to-depth. For Transposes that have come
/// to rest: others may still meet their inverses.
void join_across_merge(GraphEdit& edit, NodeId id) {
  const ValueId merged = edit.node(id).inputs[0], y = edit.node(id).outputs[0];
  const Node* reshape = edit.producer(merged, OpKind::Reshape);
  if (reshape == nullptr || edit.use_count(merged) != 1 || edit.is_output(merged)) return;
  const ValueId source = reshape->inputs[0], shape = reshape->inputs[1];
  const Permutation* own = permutation_of(edit, source);
  if (own == nullptr || edit.use_count(source) != 1 || edit.is_output(source)) return;
  const Permutation p = *own, last = permutation_of(edit, edit.node(id));
  const ValueId x = edit.producer(source)->inputs[0];
  const std::vector<Run> runs = matching_runs(edit, source, merged);
  Permutation all;
  for (const int64_t axis : last)
    for (const Run& run : runs) {
      if (run.b_last != run.b_first + 1) return;
      if (run.b_first == axis)
        for (int i = run.a_first; i < run.a_last; ++i) all.push_back(p[static_cast<size_t>(i)]);
    }
  if (all.size() != p.size()) return;
  ValueId target = kNoValue;
  if (const auto known = reshape_target(edit.value(y)))
    target = edit.builder().ints(*known);
  else if (edit.value(shape).rank() == 1)
    target = reordered(edit, shape, last);
  const ValueId moved = target == kNoValue ? kNoValue : edit.emit(transpose_by(all), {x});
  if (moved == kNoValue) return;
  edit.rewrite(id, op::ReshapeAttributes{}, {moved, target});
}

std::optional<Sunk> sink(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  if (node.outputs.size() != 1) return std::nullopt;
  const auto rename_concat = rename_axis<op::ConcatAttributes>;
  switch (class_of(node.kind())) {
    case Class::Barrier: return std::nullopt;
    case Class::Elementwise: {
      // Only a Transpose of the result's rank gives the permutation of its axes.
      const int rank = edit.value(node.outputs[0]).rank();
      for (ValueId input : node.inputs)
        if (const Permutation* p = permutation_of(edit, input);
            p != nullptr && static_cast<int>(p->size()) != rank)
          return std::nullopt;
      return sink_operands(edit, id, 0, node.inputs.size(), {});
    }
    case Class::Concat: return sink_operands(edit, id, 0, node.inputs.size(), rename_concat);
    case Class::Axis:
      return sink_operands(edit, id, 0, 1,
                           node.kind() == OpKind::Softmax ? rename_axis<op::SoftmaxAttributes>
                                                          : rename_axis<op::LogSoftmaxAttributes>);
    case Class::Reduction:
      switch (node.kind()) {
        case OpKind::ReduceSum: return sink_reduction<op::ReduceSumAttributes>(edit, id);
        case OpKind::ReduceMean: return sink_reduction<op::ReduceMeanAttributes>(edit, id);
        case OpKind::ReduceMax: return sink_reduction<op::ReduceMaxAttributes>(edit, id);
        case OpKind::ReduceMin: return sink_reduction<op::ReduceMinAttributes>(edit, id);
        default: return sink_reduction<op::ReduceProdAttributes>(edit, id);
      }
    case Class::ArgReduction:
      return node.kind() == OpKind::ArgMax ? sink_arg_reduction<op::ArgMaxAttributes>(edit, id)
                                           : sink_arg_reduction<op::ArgMinAttributes>(edit, id);
    case Class::Slice: return sink_slice(edit, id);
    case Class::Quantization:
      return node.kind() == OpKind::QuantizeLinear
                 ? sink_quantization<op::QuantizeLinearAttributes>(edit, id)
                 : sink_quantization<op::DequantizeLinearAttributes>(edit, id);
    case Class::PerAxisOperand: return sink_per_axis(edit, id);
    case Class::Gather: return sink_gather(edit, id);
    case Class::Reshape: return sink_reshape(edit, id);
  }
  return std::nullopt;
}

void apply(GraphEdit& edit, NodeId id, Sunk sunk) {
  const ValueId old = edit.node(id).outputs[0];
  const Names names = names_of(edit, id);
  const ValueId moved = edit.builder().emit_many(std::move(sunk.op), sunk.inputs, 1)[0];
  if (moved == kNoValue) return;
  if (is_identity(sunk.result)) return edit.replace(old, moved);
  const ValueId result = edit.emit(transpose_by(sunk.result), {moved});
  if (result == kNoValue) return;
  edit.replace(old, result);
  keep_names(edit, names, moved, result);
}

/// Shape(Transpose(x)) must not keep the Transpose alive.
void read_shape_above(GraphEdit& edit, NodeId id) {
  const ValueId x = edit.node(id).inputs[0];
  const Permutation* own = permutation_of(edit, x);
  if (own == nullptr) return;
  const Permutation p = *own;
  const auto attributes = edit.node(id).as<op::ShapeAttributes>();
  const auto rank = static_cast<int64_t>(p.size());
  const auto at = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + rank : position, 0, rank);
  };
  const int64_t first = at(attributes.start), last = std::max(at(attributes.end), first);
  if (first == last) return;
  const ValueId shape = edit.emit(op::ShapeAttributes{}, {edit.producer(x)->inputs[0]});
  edit.rewrite(id, op::GatherAttributes{},
               {shape, edit.builder().ints(std::span(p).subspan(static_cast<size_t>(first),
                                                                static_cast<size_t>(last - first)))});
}

void step(GraphEdit& edit, NodeId id) {
  if (!edit.is_alive(id)) return;
  switch (edit.node(id).kind()) {
    case OpKind::Transpose: return simplify_transpose(edit, id);
    case OpKind::Shape: return read_shape_above(edit, id);
    default: break;
  }
  edit.name_after(id);
  if (auto sunk = sink(edit, id)) apply(edit, id, std::move(*sunk));
  if (edit.is_alive(id, OpKind::Reshape)) simplify_reshape(edit, id);
}

}  // namespace

Status layout(Graph& graph, const PassContext& context) {
  Graph before = graph;  // constants are shared, so this is cheap
  GraphEdit edit(graph, context.states, context.inferred);
  RT_TRY(Status(edit.status()));
  const double cost = cost_of_transposes(edit);
  // A Transpose moves down by one operator at a time, so the graph's length bounds the rounds. Moves that
  // gain nothing can go in circles (a value and its gradient each requiring the other's order), so the nodes
  // are counted too.
  const size_t rounds = graph.nodes.size() + 8;
  const size_t most_nodes = 16 * rounds;
  const auto goes_on = [&] { return edit.status().ok() && edit.node_count() < most_nodes; };
  for (size_t round = 0; round < rounds && goes_on(); ++round) {
    const size_t changes = edit.changes();
    for (NodeId id = 0; id < edit.node_count() && goes_on(); ++id) step(edit, id);
    if (edit.changes() == changes) break;
  }
  for (NodeId id = 0; id < edit.node_count() && goes_on(); ++id)
    if (edit.is_alive(id, OpKind::Transpose)) join_across_merge(edit, id);
  RT_TRY(Status(edit.status()));
  if (cost_of_transposes(edit) > cost) {
    graph = std::move(before);
    return {};
  }
  return edit.finish();
}

}  // namespace librt::compiler
