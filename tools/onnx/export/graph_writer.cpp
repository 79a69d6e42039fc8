#include "tools/onnx/export/graph_writer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/graph/node_view.h"
#include "runtime/ops/control.h"
#include "tools/onnx/export/node_writer.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

/// The version of ONNX's file format that an operator set came with.
int64_t ir_version_of(int64_t opset) {
  return opset <= 20 ? 9 : opset <= 22 ? 10 : opset <= 23 ? 11 : 12;
}

/// AttributeProto's numbers of types.
constexpr int kAttributeTypes[] = {2, 1, 3, 7, 6, 8, 4, 5};

struct SetAttribute {
  rt_onnx::AttributeProto& out;
  void operator()(int64_t value) const { out.set_i(value); }
  void operator()(float value) const { out.set_f(value); }
  void operator()(const std::string& value) const { out.set_s(value); }
  void operator()(const Longs& values) const {
    for (const int64_t value : values) out.add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    for (const float value : values) out.add_floats(value);
  }
  void operator()(const Names& values) const {
    for (const std::string& value : values) out.add_strings(value);
  }
  void operator()(rt_onnx::TensorProto* value) const { out.set_allocated_t(value); }
  void operator()(rt_onnx::GraphProto* value) const { out.set_allocated_g(value); }
};

/// An empty list or a null pointer: there is nothing to say.
struct IsAbsent {
  bool operator()(int64_t) const { return false; }
  bool operator()(float) const { return false; }
  bool operator()(const std::string&) const { return false; }
  bool operator()(const rt_onnx::TensorProto* value) const { return value == nullptr; }
  bool operator()(const rt_onnx::GraphProto* value) const { return value == nullptr; }
  template <class T>
  bool operator()(const std::vector<T>& values) const {
    return values.empty();
  }
};

/// with_extents: else only the type and the rank, which a body must know.
void describe_value(const Graph& graph, const Value& value, const std::string& name, bool with_extents,
                    rt_onnx::ValueInfoProto& info) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(tools::onnx_type_of(value.dtype));
  tensor.mutable_shape();
  for (const Dim& dim : value.dims) {
    auto& out = *tensor.mutable_shape()->add_dim();
    if (with_extents && dim.is_known())
      out.set_dim_value(dim.extent);
    else if (with_extents && dim.symbol >= 0)
      out.set_dim_param(graph.symbols[static_cast<size_t>(dim.symbol)].name);
  }
}

/// The elements in the order that a Transpose by `permutation` gives them.
Blob permuted(const Value& value, const Longs& permutation) {
  const size_t rank = value.dims.size(), size = size_of(value.dtype);
  Longs strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * value.dims[i].extent;
  std::vector<std::byte> bytes(value.data.size);
  Longs index(rank, 0);
  for (size_t at = 0; at < bytes.size(); at += size) {
    int64_t from = 0;
    for (size_t i = 0; i < rank; ++i) from += index[i] * strides[static_cast<size_t>(permutation[i])];
    std::memcpy(bytes.data() + at, value.data.data + static_cast<size_t>(from) * size, size);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < value.dims[static_cast<size_t>(permutation[i])].extent) break;
      index[i] = 0;
    }
  }
  return Blob::own(std::move(bytes));
}

}  // namespace

Longs to_second(int rank) {
  Longs order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (rank > 2) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

Longs to_last(int rank) {
  Longs order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (rank > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

std::string GraphWriter::fresh(const std::string& near) {
  std::string name = near;
  while (name.empty() || !taken_.insert(name).second)
    name = text(near.empty() ? "value" : near, "#", ++numbers_);
  return name;
}

std::string GraphWriter::initializer_name(Forms& forms, const char* suffix) {
  return std::exchange(forms.is_named, true) ? fresh(text(forms.name, suffix)) : forms.name;
}

std::string GraphWriter::dense(Forms& forms) {
  if (!forms.dense.empty()) return forms.dense;
  if (forms.constant != nullptr) {
    forms.dense = initializer_name(forms, "/dense");
    initializer(forms.dense, *forms.constant, {});
  } else {
    forms.dense = forms.name;
    add("Transpose", {forms.first}, {forms.dense}, {{"perm", to_last(forms.rank)}});
  }
  return forms.dense;
}

std::string GraphWriter::channels_first(Forms& forms) {
  if (forms.rank < 3) return dense(forms);
  if (!forms.first.empty()) return forms.first;
  if (forms.constant != nullptr) {
    forms.first = initializer_name(forms, "/channels_first");
    initializer(forms.first, *forms.constant, to_second(forms.rank));
  } else {
    forms.first = fresh(text(forms.name, "/channels_first"));
    add("Transpose", {forms.dense}, {forms.first}, {{"perm", to_second(forms.rank)}});
  }
  return forms.first;
}

rt_onnx::NodeProto& GraphWriter::add(const std::string& op, const Names& inputs, const Names& outputs,
                                     const Attributes& attributes) {
  rt_onnx::NodeProto& node = *out_->add_node();
  node.set_op_type(op);
  node.set_name(text(node_name_.empty() ? op : node_name_, "#", ++numbers_));
  size_t count = inputs.size();  // absent operands at the end are left out
  while (count > 0 && inputs[count - 1].empty()) --count;
  for (size_t i = 0; i < count; ++i) node.add_input(inputs[i]);
  for (const std::string& output : outputs) node.add_output(output);
  for (const Attribute& attribute : attributes) {
    if (std::visit(IsAbsent{}, attribute.value)) continue;
    rt_onnx::AttributeProto& out = *node.add_attribute();
    out.set_name(attribute.name);
    out.set_type(kAttributeTypes[attribute.value.index()]);
    std::visit(SetAttribute{out}, attribute.value);
  }
  return node;
}

void GraphWriter::declare(const Graph& graph, ValueId id, const std::string& name) {
  describe_value(graph, graph[id], name, true, *out_->add_value_info());
}

rt_onnx::TensorProto& GraphWriter::initializer(const std::string& name, int onnx_type, const Longs& dims) {
  rt_onnx::TensorProto& tensor = *out_->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx_type);
  for (const int64_t extent : dims) tensor.add_dims(extent);
  return tensor;
}

void GraphWriter::initializer(const std::string& name, const Value& value, const Longs& permutation) {
  Longs dims;
  for (size_t i = 0; i < value.dims.size(); ++i)
    dims.push_back(value.dims[permutation.empty() ? i : static_cast<size_t>(permutation[i])].extent);
  rt_onnx::TensorProto& tensor = initializer(name, tools::onnx_type_of(value.dtype), dims);
  const auto elements = [&value, permutation]() -> Result<Blob> {
    return permutation.empty() ? value.data : permuted(value, permutation);
  };
  pending_.push_back({&tensor, value.data.size, elements});
}

Scope GraphWriter::open(const Graph& graph) {
  Scope scope{graph, std::vector<std::shared_ptr<Forms>>(graph.values.size())};
  const auto make = [&](ValueId id) {
    if (scope.forms[id] != nullptr) return;
    const Value& value = graph[id];
    scope.forms[id] = std::make_shared<Forms>(Forms{
        .name = fresh(value.name), .dense = {}, .first = {}, .constant = nullptr, .rank = value.rank()});
    if (value.role == Role::Constant) scope.forms[id]->constant = &value;
  };
  for (const ValueId id : graph.inputs) make(id);  // these first: they keep their names
  for (const ValueId id : graph.outputs) make(id);
  for (ValueId id = 0; id < graph.values.size(); ++id) make(id);
  return scope;
}

Status GraphWriter::inlined(Scope& scope, const Node& node) {
  const Graph& graph = node.bodies[0];
  Scope inner = open(graph);
  size_t at = 0;
  for (const ValueId input : node.inputs)
    if (input != kNoValue) inner.forms[graph.inputs[at++]] = scope.forms[input];
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (graph[graph.outputs[i]].role == Role::Intermediate)
      inner.forms[graph.outputs[i]]->name = scope.forms[node.outputs[i]]->name;
  RT_TRY(write_nodes(inner));
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    scope.forms[node.outputs[i]] = inner.forms[graph.outputs[i]];
  return {};
}

Result<std::unique_ptr<rt_onnx::GraphProto>> GraphWriter::body(const Graph& graph, const Names& given) {
  if (!graph.refusal.empty()) return unsupported("a branch that must not be taken: ", graph.refusal);
  auto proto = std::make_unique<rt_onnx::GraphProto>();
  const std::string name = node_name_;
  rt_onnx::GraphProto* const outer = std::exchange(out_, proto.get());
  out_->set_name(fresh(text(name, "/body")));
  Scope scope = open(graph);
  std::vector<std::string> results;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    Forms& forms = *scope.forms[graph.inputs[i]];
    forms.dense = given[i].empty() ? forms.name : given[i];
    if (given[i].empty())
      describe_value(graph, graph[graph.inputs[i]], forms.name, false, *out_->add_input());
  }
  Status status = write_nodes(scope);
  node_name_ = name;
  for (const ValueId id : graph.outputs) {
    if (!status.ok()) break;
    // Under a name of the body's own, and each only once.
    const std::string result = fresh(text(name, "/result"));
    add("Identity", {dense(*scope.forms[id])}, {result}, {});
    describe_value(graph, graph[id], result, false, *out_->add_output());
  }
  out_ = outer;
  RT_TRY(std::move(status));
  return proto;
}

Status GraphWriter::write_node(Scope& scope, const Node& node) {
  for (const ValueId id : node.inputs)
    if (id != kNoValue && scope.graph[id].dtype == DType::BF16)
      require_opset(22);  // of many operators new there
  const ExportRow* row = export_row(node.kind());
  if (row != nullptr && row->reason != nullptr) return unsupported(row->reason);
  if (row != nullptr) {
    NodeWriter n(*this, scope, node);
    RT_ASSIGN(const bool written, row->write(n));
    if (written) return {};
  }
  if (node.bodies.empty() || ops::is_control(node.kind()))
    return unsupported("ONNX has no such operator, and it has no definition by others");
  return inlined(scope, node);
}

Status GraphWriter::write_nodes(Scope& scope) {
  std::string problems;
  for (const Node& node : scope.graph.nodes) {
    const std::string outer = node_name_;
    if (!node.name.empty()) node_name_ = node.name;
    const Status status = write_node(scope, node);
    if (!status.ok())
      append(problems, text(problems.empty() ? "" : "\n  ", describe(node), ": ", status.message()));
    node_name_ = outer;
    for (const ValueId id : node.outputs)  // for the nodes that follow, which report their own problems
      if (!status.ok() && id != kNoValue && scope.forms[id]->first.empty())
        scope.forms[id]->dense = scope.forms[id]->name;
  }
  return problems.empty() ? Status() : unsupported(problems);
}

void GraphWriter::write_outputs(Scope& scope) {
  std::set<std::string> listed;
  for (const ValueId id : scope.graph.outputs) {
    const std::string& wanted = scope.graph[id].name;
    const std::string found = dense(*scope.forms[id]);
    std::string name = wanted.empty() ? found : wanted;
    if (!listed.insert(name).second) listed.insert(name = fresh(name));  // twice the same value
    if (found != name) add("Identity", {found}, {name}, {});
    describe_value(scope.graph, scope.graph[id], name, true, *out_->add_output());
  }
}

Status GraphWriter::write(const Graph& graph, rt_onnx::ModelProto& model) {
  model.set_producer_name("librt");
  out_ = model.mutable_graph();
  out_->set_name(graph.name.empty() ? "infer" : graph.name);
  Scope scope = open(graph);
  for (const ValueId id : graph.inputs) {
    Forms& forms = *scope.forms[id];
    forms.dense = forms.name;
    describe_value(graph, graph[id], forms.name, true, *out_->add_input());
  }
  Status status = write_nodes(scope);
  if (!status.ok()) return unsupported("these nodes have no ONNX form:\n  ", status.message());
  node_name_.clear();
  write_outputs(scope);
  model.add_opset_import()->set_version(opset_);
  for (const std::string& domain : domains_) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(1);
  }
  model.set_ir_version(ir_version_of(opset_));
  return {};
}

Status write_graph(const Graph& graph, rt_onnx::ModelProto& model, std::vector<PendingElements>& pending) {
  return GraphWriter(pending).write(graph, model);
}

}  // namespace librt::onnx
