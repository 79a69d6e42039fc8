#include "tools/compiler/train/lora.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/core/convert_floats.h"
#include "runtime/core/element.h"
#include "runtime/core/philox.h"
#include "runtime/graph/node_view.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/name_pattern.h"
#include "tools/compiler/train/training_graph.h"

namespace librt::compiler {
namespace {

constexpr std::string_view kDown = ".lora_a", kUp = ".lora_b";

/// A constant that MatMuls or Convs multiply by.
struct Weight {
  ValueId root = kNoValue;
  std::string name;
  std::vector<NodeId> users;  ///< the MatMuls or Convs
  bool is_conv = false;
  bool in_is_rows = false;  ///< MatMul: the constant is [in,out]
  Shape shape;              ///< as the node sees it
  int64_t groups = 1;
  int64_t in = 0, out = 0;  ///< of the matrix; Conv: per group, taps times channels
  std::string problem;      ///< why it can have no adapter

  int64_t rank(const LoraOptions& options) const { return std::min({options.rank, in, out / groups}); }
};

/// Whether the node may be on the path from a constant to a MatMul's or Conv's weight operand: what exporters
/// put there.
bool is_on_the_way(const Node& node) {
  switch (node.kind()) {
    case OpKind::Identity:
    case OpKind::Cast:
    case OpKind::Reshape:
    case OpKind::DequantizeLinear: return true;
    case OpKind::Transpose:
      return node.as<op::TransposeAttributes>().permutation == std::vector<int64_t>{1, 0};
    default: return false;
  }
}

class WeightFinder {
 public:
  explicit WeightFinder(const Graph& graph) : graph_(graph), producers_(producers(graph)) {}

  std::vector<Weight> run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.kind() == OpKind::MatMul || node.kind() == OpKind::Conv) visit(id, node);
    }
    return std::move(weights_);
  }

 private:
  void visit(NodeId id, const Node& node) {
    bool transposed = false;
    const ValueId root = root_of(node.inputs[1], transposed);
    if (root == kNoValue || graph_[root].name.empty() || !graph_[node.inputs[1]].is_static()) return;
    Weight found = describe_use(node, graph_[node.inputs[1]].info().shape, transposed);
    found.root = root;
    found.name = graph_[root].name;
    for (Weight& other : weights_) {
      if (other.name != found.name) continue;
      if (other.root != root || other.in_is_rows != found.in_is_rows || other.groups != found.groups ||
          other.in != found.in || other.is_conv != found.is_conv)
        other.problem = "its uses differ in orientation, shape or groups";
      other.users.push_back(id);
      return;
    }
    found.users = {id};
    weights_.push_back(std::move(found));
  }

  /// A Reshape may precede a Transpose but not follow one: the constant holds the matrix or its transpose.
  ValueId root_of(ValueId id, bool& transposed) const {
    bool reshaped = false;
    while (graph_[id].role != Role::Constant) {
      if (!producers_[id] || !is_on_the_way(graph_.nodes[*producers_[id]])) return kNoValue;
      const Node& node = graph_.nodes[*producers_[id]];
      if (node.kind() == OpKind::Transpose && reshaped) return kNoValue;
      reshaped |= node.kind() == OpKind::Reshape;
      transposed ^= node.kind() == OpKind::Transpose;
      id = node.inputs[0];
    }
    return id;
  }

  static const op::EpilogueAttributes* epilogue_of(const Node& node) {
    return node.kind() == OpKind::Conv ? node.as<op::ConvAttributes>().epilogue.get()
                                       : node.as<op::MatMulAttributes>().epilogue.get();
  }

  static Weight describe_use(const Node& node, const Shape& shape, bool transposed) {
    Weight use;
    use.shape = shape;
    use.is_conv = node.kind() == OpKind::Conv;
    const op::EpilogueAttributes* epilogue = epilogue_of(node);
    if (epilogue != nullptr && epilogue->activation != op::Activation::None)
      use.problem = "the activation is fused into its node; give the model's source";
    if (use.is_conv) {
      use.groups = node.as<op::ConvAttributes>().groups;
      use.out = shape[0];
      use.in = shape[0] == 0 ? 0 : shape.elements() / shape[0];
    } else if (shape.rank() != 2) {
      use.problem = text("expected a matrix, found ", shape);
    } else {
      const bool transposes = node.as<op::MatMulAttributes>().transpose_b;
      use.in_is_rows = transposes == transposed;
      use.in = shape[transposes ? 1 : 0];
      use.out = shape[transposes ? 0 : 1];
    }
    if (use.problem.empty() && (use.in == 0 || use.out == 0)) use.problem = "it is empty";
    return use;
  }

  const Graph& graph_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<Weight> weights_;
};

// The shapes of A and B.
Shape down_shape(const Weight& weight, int64_t rank) {
  if (!weight.is_conv) return {rank, weight.in};
  Shape shape = weight.shape;
  shape[0] = weight.groups * rank;
  return shape;
}
Shape up_shape(const Weight& weight, int64_t rank) {
  if (!weight.is_conv) return {weight.out, rank};
  Shape shape = weight.shape;
  for (int i = 1; i < shape.rank(); ++i) shape[i] = 1;
  shape[shape.rank() - 1] = rank;
  return shape;
}

Blob random_rows(const Shape& shape, uint64_t seed, uint64_t stream) {
  const float limit = std::sqrt(static_cast<float>(shape[0]) / static_cast<float>(shape.elements()));
  std::vector<float> numbers(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = limit * (2 * uniform24(philox(seed, stream, i / 4)[i % 4]) - 1);
  return Blob::copy_of(numbers.data(), numbers.size() * sizeof(float));
}

class AdapterWriter {
 public:
  AdapterWriter(ModelGraph& model, const LoraOptions& options, LoraReport& report)
      : options_(options),
        report_(report),
        infer_(model.entries[0].graph),
        states_(model.states),
        builder_(graph_, &model.states) {}

  Status run() {
    RT_TRY(choose());
    make_states();
    std::vector<ValueId> map;
    NodeId next = 0;
    RT_TRY(copy_graph(infer_, builder_, map, [&](const Node& node) -> std::vector<ValueId> {
      const auto found = by_node_.find(next++);
      if (found == by_node_.end()) return {};
      return {with_adapter(node, adapters_[found->second])};
    }));
    for (ValueId id : infer_.outputs) builder_.output(map[id]);
    RT_TRY(Status(builder_.status()));
    infer_ = std::move(graph_);
    return {};
  }

 private:
  struct Adapter {
    Weight weight;
    ValueId down = kNoValue, up = kNoValue;
  };

  bool is_target(const Weight& weight) const {
    if (options_.targets.empty()) return true;
    return matches_any(options_.targets, weight.name) ||
           std::any_of(weight.users.begin(), weight.users.end(),
                       [&](NodeId id) { return matches_any(options_.targets, infer_.nodes[id].name); });
  }

  Status choose() {
    std::string names;
    for (Weight& weight : WeightFinder(infer_).run()) {
      append(names, text(names.empty() ? "" : ", ", weight.name));
      if (!is_target(weight)) continue;
      if (!weight.problem.empty()) {
        report_.skipped.emplace_back(weight.name, weight.problem);
        continue;
      }
      for (NodeId id : weight.users) by_node_[id] = adapters_.size();
      adapters_.push_back({.weight = std::move(weight)});
    }
    if (!adapters_.empty()) return {};
    std::string reasons;
    for (const auto& [name, reason] : report_.skipped) append(reasons, text("; '", name, "': ", reason));
    return invalid_argument("lora: no weight can be adapted by these targets", reasons,
                            "; the weights of MatMul and Conv are ", names.empty() ? "none" : names);
  }

  ValueId state(const std::string& name, const Shape& shape, StateKind kind, Blob initial) {
    const TensorInfo info{.dtype = DType::F32, .shape = shape};
    return builder_.state(name, states_.make(name, info, kind, std::move(initial)), info);
  }

  void make_states() {
    const float scale = options_.alpha / static_cast<float>(options_.rank);
    scale_ = state(kLoraScaleState, {}, StateKind::Statistic, Blob::copy_of(&scale, sizeof scale));
    for (size_t i = 0; i < adapters_.size(); ++i) {
      Adapter& adapter = adapters_[i];
      const int64_t rank = adapter.weight.rank(options_);
      const Shape down = down_shape(adapter.weight, rank), up = up_shape(adapter.weight, rank);
      adapter.down = state(adapter.weight.name + std::string(kDown), down, StateKind::Parameter,
                           random_rows(down, options_.seed, i));
      adapter.up = state(adapter.weight.name + std::string(kUp), up, StateKind::Parameter, {});
      report_.adapted.push_back(adapter.weight.name);
      report_.elements += down.elements() + up.elements();
    }
  }

  ValueId cast(ValueId x, DType to) { return builder_.value(x).dtype == to ? x : builder_.cast(x, to); }

  /// The node's result plus the adapter's, in the node's type; the adapter computes in f32.
  ValueId with_adapter(const Node& node, const Adapter& adapter) {
    const ValueId y = builder_.emit_node(node)[0];
    builder_.set_scope(node.name + ".lora");
    const ValueId x = cast(node.inputs[0], DType::F32);
    const ValueId small = builder_.mul(multiply(node, x, adapter.down, true), scale_);
    const ValueId change = multiply(node, small, adapter.up, false);
    const DType dtype = builder_.value(y).dtype;
    return cast(builder_.add(cast(y, DType::F32), change), dtype);
  }

  /// is_first: with the node's own strides and transposes of x.
  ValueId multiply(const Node& node, ValueId x, ValueId matrix, bool is_first) {
    if (node.kind() == OpKind::MatMul) {
      op::MatMulAttributes attributes;
      attributes.transpose_a = is_first && node.as<op::MatMulAttributes>().transpose_a;
      attributes.transpose_b = true;
      return builder_.emit(std::move(attributes), {x, matrix});
    }
    const auto& base = node.as<op::ConvAttributes>();
    op::ConvAttributes attributes;
    attributes.groups = base.groups;
    if (is_first) {
      attributes.strides = base.strides;
      attributes.pads = base.pads;
      attributes.dilations = base.dilations;
    }
    return builder_.emit(std::move(attributes), {x, matrix});
  }

  const LoraOptions& options_;
  LoraReport& report_;
  Graph& infer_;
  StateTable states_;
  Graph graph_;
  Builder builder_;
  ValueId scale_ = kNoValue;
  std::vector<Adapter> adapters_;
  std::map<NodeId, size_t> by_node_;
};

// --- merging

class Merger {
 public:
  Merger(Graph& graph, const std::vector<State>& states, const std::vector<State>& adapter)
      : edit_(graph, states), graph_(graph), weights_(WeightFinder(graph).run()), adapter_(adapter) {}

  Result<std::vector<MergedWeight>> run() {
    for (const State& tensor : adapter_) place(tensor);
    if (!problems_.empty()) return invalid_argument("the adapter does not belong to this model", problems_);
    if (merged_.empty()) return invalid_argument("the file holds no adapter");
    RT_TRY(edit_.finish());
    return std::move(merged_);
  }

 private:
  const State* find(const std::string& name) const {
    for (const State& tensor : adapter_)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  void problem(const std::string& name, const std::string& what) {
    append(problems_, text("\n  '", name, "': ", what));
  }

  void place(const State& tensor) {
    const bool is_weight = tensor.kind == StateKind::Parameter || tensor.kind == StateKind::Statistic;
    if (!is_weight || tensor.name == kLoraScaleState || tensor.name.ends_with(kUp)) return;
    if (!tensor.name.ends_with(kDown)) return replace(tensor);
    const std::string name = tensor.name.substr(0, tensor.name.size() - kDown.size());
    const auto weight =
        std::find_if(weights_.begin(), weights_.end(), [&](const Weight& each) { return each.name == name; });
    if (weight == weights_.end())
      return problem(name, "no MatMul or Conv of the model has a weight of this name");
    if (!weight->problem.empty()) return problem(name, weight->problem);
    const Value& constant = graph_[weight->root];
    if (!is_float(constant.dtype))
      return problem(name,
                     text("is stored as ", name_of(constant.dtype), ", which an adapter cannot be added to"));
    const State* up = find(name + std::string(kUp));
    const State* scale = find(kLoraScaleState);
    if (up == nullptr || scale == nullptr)
      return problem(name,
                     text("the adapter has no ", up == nullptr ? name + std::string(kUp) : kLoraScaleState));
    const int64_t rank = tensor.info.shape.rank() == 0 ? 0 : tensor.info.shape[0] / weight->groups;
    if (tensor.info.shape != down_shape(*weight, rank) || up->info.shape != up_shape(*weight, rank))
      return problem(name, text("the weight is ", weight->shape, ", the adapter ", tensor.info.shape, " and ",
                                up->info.shape));
    merge(*weight, tensor, *up, load_element(scale->initial.data, scale->info.dtype, 0), rank);
  }

  /// A fully trained weight, in f32 even where the model has 16 bits.
  void replace(const State& tensor) {
    for (Value& value : graph_.values) {
      if (value.role != Role::Constant || value.name != tensor.name) continue;
      if (value.info().shape != tensor.info.shape || !is_exchangeable(value.dtype) ||
          !is_exchangeable(tensor.info.dtype))
        return problem(tensor.name, text("the adapter's is ", tensor.info, ", the model's ", value.info()));
      State weight = tensor;
      weight.info = value.info();
      if (weight.info.dtype != tensor.info.dtype) {
        std::vector<std::byte> bytes(weight.info.bytes());
        convert_floats(tensor.initial.data, tensor.info.dtype, bytes.data(), value.dtype,
                       weight.info.elements());
        weight.initial = Blob::own(std::move(bytes));
      }
      value.data = weight.initial;
      merged_.push_back({.weight = std::move(weight)});
      return;
    }
    problem(tensor.name, "the model has no weight of this name");
  }

  void merge(const Weight& weight, const State& down, const State& up, double scale, int64_t rank) {
    const TensorInfo info = graph_[weight.root].info();
    std::vector<std::byte> bytes(graph_[weight.root].data.data, graph_[weight.root].data.data + info.bytes());
    for (int64_t o = 0; o < weight.out; ++o) {
      const int64_t first_row = o / (weight.out / weight.groups) * rank;
      for (int64_t i = 0; i < weight.in; ++i) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r)
          sum += load_element(up.initial.data, up.info.dtype, o * rank + r) *
                 load_element(down.initial.data, down.info.dtype, (first_row + r) * weight.in + i);
        const int64_t at = weight.in_is_rows ? i * weight.out + o : o * weight.in + i;
        store_element(bytes.data(), info.dtype, at, load_element(bytes.data(), info.dtype, at) + scale * sum);
      }
    }
    MergedWeight merged{
        .weight = {.name = weight.name, .info = info, .initial = Blob::own(std::move(bytes))}};
    merged.is_shared = has_other_readers(weight.root, weight);
    if (merged.is_shared)
      give_copy(weight, merged.weight);
    else
      graph_.values[weight.root].data = merged.weight.initial;
    merged_.push_back(std::move(merged));
  }

  bool has_other_readers(ValueId root, const Weight& weight) {
    const std::set<NodeId> users(weight.users.begin(), weight.users.end());
    for (std::vector<ValueId> values{root}; !values.empty();) {
      const ValueId value = values.back();
      values.pop_back();
      if (edit_.is_output(value)) return true;
      for (NodeId id : edit_.users(value)) {
        const Node& node = edit_.node(id);
        const bool multiplies =
            users.contains(id) && std::count(node.inputs.begin(), node.inputs.end(), value) == 1;
        if (multiplies) continue;
        if (!is_on_the_way(node)) return true;
        values.push_back(node.outputs[0]);
      }
    }
    return false;
  }

  /// The weight's users read a new constant, through a copy of the nodes that led to the old one.
  void give_copy(const Weight& weight, const State& merged) {
    const ValueId copy = edit_.builder().constant(merged.info, merged.initial);
    if (copy == kNoValue) return;
    graph_.values[copy].name = weight.name + ".merged";
    for (NodeId user : weight.users) edit_.set_input(user, 1, way_from(copy, edit_.node(user).inputs[1]));
  }
  ValueId way_from(ValueId root, ValueId operand) {
    std::vector<Node> way;
    for (const Node* node = edit_.producer(operand); node != nullptr; node = edit_.producer(node->inputs[0]))
      way.push_back(*node);
    for (; !way.empty(); way.pop_back()) {
      way.back().inputs[0] = root;
      root = edit_.builder().emit_node(std::move(way.back()))[0];
    }
    return root;
  }

  GraphEdit edit_;
  Graph& graph_;
  std::vector<Weight> weights_;
  const std::vector<State>& adapter_;
  std::vector<MergedWeight> merged_;
  std::string problems_;
};

Status check_entries(const ModelGraph& model) {
  if (model.entries.size() != 1 || model.entries[0].name != "infer")
    return invalid_argument("lora: expected a model with the one entry 'infer', found ", model.entries.size(),
                            "; give the model's source");
  return {};
}

}  // namespace

Status add_adapters(ModelGraph& model, const LoraOptions& options, LoraReport* report) {
  RT_TRY(check_entries(model));
  ModelGraph changed = model;
  LoraReport local;
  RT_TRY(AdapterWriter(changed, options, local).run());
  model = std::move(changed);
  if (report != nullptr) *report = std::move(local);
  return {};
}

bool reads_adapter_input(const Graph& graph, const Node& node) {
  if (node.kind() != OpKind::MatMul && node.kind() != OpKind::Conv) return false;
  const Value& matrix = graph[node.inputs[1]];
  return matrix.role == Role::State && matrix.name.ends_with(kDown);
}

Result<std::vector<MergedWeight>> merge_adapter(ModelGraph& model, const std::vector<State>& adapter) {
  RT_TRY(check_entries(model));
  ModelGraph changed = model;
  RT_ASSIGN(std::vector<MergedWeight> merged,
            Merger(changed.entries[0].graph, changed.states, adapter).run());
  model = std::move(changed);
  return merged;
}

}  // namespace librt::compiler
