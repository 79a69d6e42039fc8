#include "tools/onnx/graph_export.h"

#include <climits>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "runtime/core/atomic_file.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

constexpr int64_t kOpset = 20;     // Gelu is new in it
constexpr int64_t kIrVersion = 9;  // the one that belongs to it

using Longs = std::vector<int64_t>;

/// Operators with the same name, operands and meaning, and no attributes.
constexpr OpKind kSame[] = {OpKind::Relu, OpKind::Add,     OpKind::Sub,   OpKind::Mul,  OpKind::Div,
                            OpKind::Pow,  OpKind::Greater, OpKind::Where, OpKind::Range};

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph), uses_(use_counts(graph)) {}

  Result<rt_onnx::ModelProto> write() {
    name_values();
    rt_onnx::ModelProto model;
    model.set_ir_version(kIrVersion);
    model.set_producer_name("librt");
    model.add_opset_import()->set_version(kOpset);
    out_ = model.mutable_graph();
    out_->set_name(graph_.name);
    for (const ValueId id : graph_.inputs) describe(*out_->add_input(), id);
    for (const ValueId id : graph_.outputs) describe(*out_->add_output(), id);
    std::string problems;
    for (const Node& node : graph_.nodes)
      if (!write(node))
        append(problems, text("\n  node '", node.name, "': ", librt::name_of(node.kind()),
                              " as it is used here is not exported"));
    if (!problems.empty()) return unsupported(graph_.name, ": ", problems);
    for (ValueId id = 0; id < graph_.values.size(); ++id)
      if (graph_[id].role == Role::Constant && uses_[id] > 0 && !written_.contains(id))
        initializer(names_[id], graph_[id], {});
    return model;
  }

 private:
  void name_values() {
    std::set<std::string> taken;
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      std::string name = graph_[id].name;
      if (name.empty() || taken.contains(name)) name = text(name, "#", id);
      taken.insert(name);
      names_.push_back(std::move(name));
    }
  }

  std::string fresh(const std::string& name, const char* what) {
    return text(name, "/", what, "#", ++fresh_);
  }

  void describe(rt_onnx::ValueInfoProto& info, ValueId id) const {
    info.set_name(names_[id]);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(tools::onnx_type_of(graph_[id].dtype));
    for (const Dim& dim : graph_[id].dims) {
      auto& out = *tensor.mutable_shape()->add_dim();
      if (dim.is_known())
        out.set_dim_value(dim.extent);
      else if (dim.symbol >= 0)
        out.set_dim_param(graph_.symbols[static_cast<size_t>(dim.symbol)].name);
    }
    if (graph_[id].dims.empty()) tensor.mutable_shape();
  }

  /// The constant with its axes permuted; permutation empty: as it is.
  void initializer(const std::string& name, const Value& value, const Longs& permutation) {
    auto& tensor = *out_->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(tools::onnx_type_of(value.dtype));
    const size_t rank = value.dims.size(), size = size_of(value.dtype);
    Longs order = permutation;
    if (order.empty()) {
      order.resize(rank);
      std::iota(order.begin(), order.end(), 0);
    }
    Longs strides(rank, 1);
    for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * value.dims[i].extent;
    for (const int64_t axis : order) tensor.add_dims(value.dims[static_cast<size_t>(axis)].extent);
    if (permutation.empty()) {
      tensor.set_raw_data(value.data.data, value.data.size);
      return;
    }
    std::string bytes;
    bytes.reserve(value.data.size);
    Longs index(rank, 0);
    for (size_t done = 0; done < value.data.size; done += size) {
      int64_t from = 0;
      for (size_t i = 0; i < rank; ++i) from += index[i] * strides[static_cast<size_t>(order[i])];
      bytes.append(reinterpret_cast<const char*>(value.data.data) + static_cast<size_t>(from) * size, size);
      for (size_t i = rank; i-- > 0;) {
        if (++index[i] < tensor.dims(static_cast<int>(i))) break;
        index[i] = 0;
      }
    }
    tensor.set_raw_data(std::move(bytes));
  }

  template <class T>
  std::string constant(const std::string& near, const std::vector<T>& values, bool scalar = false) {
    auto& tensor = *out_->add_initializer();
    tensor.set_name(fresh(near, "constant"));
    tensor.set_data_type(tools::onnx_type_of(std::is_same_v<T, float> ? DType::F32 : DType::I64));
    if (!scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
    tensor.set_raw_data(values.data(), values.size() * sizeof(T));
    return tensor.name();
  }

  rt_onnx::NodeProto& add(const std::string& op, const std::string& name,
                          const std::vector<std::string>& inputs, const std::string& output) {
    auto& node = *out_->add_node();
    node.set_op_type(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  static rt_onnx::AttributeProto& attribute(rt_onnx::NodeProto& node, const char* name, int type) {
    auto& out = *node.add_attribute();
    out.set_name(name);
    out.set_type(type);
    return out;
  }
  static void set(rt_onnx::NodeProto& node, const char* name, int64_t value) {
    attribute(node, name, 2).set_i(value);
  }
  static void set(rt_onnx::NodeProto& node, const char* name, float value) {
    attribute(node, name, 1).set_f(value);
  }
  static void set(rt_onnx::NodeProto& node, const char* name, const Longs& values) {
    if (values.empty()) return;
    auto& out = attribute(node, name, 7);
    for (const int64_t value : values) out.add_ints(value);
  }

  std::string transposed(const std::string& value, const std::string& node, const Longs& permutation) {
    std::string result = fresh(value, "transposed");
    set(add("Transpose", fresh(node, "transpose"), {value}, result), "perm", permutation);
    return result;
  }
  /// Channels from the last axis to the second, and back.
  static Longs to_second(size_t rank) {
    Longs order = {0, static_cast<int64_t>(rank) - 1};
    for (size_t i = 1; i + 1 < rank; ++i) order.push_back(static_cast<int64_t>(i));
    return order;
  }
  static Longs to_last(size_t rank) {
    Longs order = {0};
    for (size_t i = 2; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
    order.push_back(1);
    return order;
  }
  /// A node of ONNX on channels-first data, between Transposes.
  rt_onnx::NodeProto& channels_first(const std::string& op, const Node& node,
                                     std::vector<std::string> inputs) {
    const size_t rank = graph_[node.inputs[0]].dims.size();
    inputs[0] = transposed(inputs[0], node.name, to_second(rank));
    const std::string output = names_[node.outputs[0]], inner = fresh(output, "channels_first");
    const int at = out_->node_size();
    add(op, node.name, inputs, inner);
    set(add("Transpose", fresh(node.name, "transpose"), {inner}, output), "perm", to_last(rank));
    return *out_->mutable_node(at);
  }

  /// Conv's weight [O,K..,C] as ONNX's [O,C,K..].
  std::string conv_weight(const Node& node) {
    const ValueId id = node.inputs[1];
    const Longs order = to_second(graph_[id].dims.size());
    if (graph_[id].role != Role::Constant || uses_[id] != 1) return transposed(names_[id], node.name, order);
    initializer(names_[id], graph_[id], order);
    written_.insert(id);
    return names_[id];
  }

  std::string matmul_operand(const Node& node, size_t index, bool transpose) {
    const ValueId id = node.inputs[index];
    if (!transpose) return names_[id];
    Longs order(graph_[id].dims.size());
    std::iota(order.begin(), order.end(), 0);
    if (order.size() > 1) std::swap(order[order.size() - 1], order[order.size() - 2]);
    return transposed(names_[id], node.name, order);
  }

  /// False if ONNX has no counterpart, or none is written here.
  bool write(const Node& node) {
    if (!node.bodies.empty() || node.outputs.size() != 1) return false;
    std::vector<std::string> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id == kNoValue ? "" : names_[id]);
    const std::string& output = names_[node.outputs[0]];
    const std::string name(librt::name_of(node.kind()));
    if (std::find(std::begin(kSame), std::end(kSame), node.kind()) != std::end(kSame)) {
      add(name, node.name, inputs, output);
      return true;
    }
    switch (node.kind()) {
      case OpKind::Reshape: set(add(name, node.name, inputs, output), "allowzero", int64_t{1}); return true;
      case OpKind::Transpose:
        set(add(name, node.name, inputs, output), "perm", node.as<op::TransposeAttributes>().permutation);
        return true;
      case OpKind::Concat:
        set(add(name, node.name, inputs, output), "axis", node.as<op::ConcatAttributes>().axis);
        return true;
      case OpKind::Gather:
        set(add(name, node.name, inputs, output), "axis", node.as<op::GatherAttributes>().axis);
        return true;
      case OpKind::Softmax:
        set(add(name, node.name, inputs, output), "axis", node.as<op::SoftmaxAttributes>().axis);
        return true;
      case OpKind::LayerNorm: {
        const auto& norm = node.as<op::LayerNormAttributes>();
        auto& out = add("LayerNormalization", node.name, inputs, output);
        set(out, "axis", norm.axis);
        set(out, "epsilon", norm.epsilon);
        return inputs.size() > 1 && !inputs[1].empty();
      }
      case OpKind::Gelu:
        attribute(add(name, node.name, inputs, output), "approximate", 3)
            .set_s(node.as<op::GeluAttributes>().tanh_approximation ? "tanh" : "none");
        return true;
      case OpKind::Shape: {
        const auto& shape = node.as<op::ShapeAttributes>();
        auto& out = add(name, node.name, inputs, output);
        set(out, "start", shape.start);
        if (shape.end != std::numeric_limits<int64_t>::max()) set(out, "end", shape.end);
        return true;
      }
      case OpKind::Slice: {
        const auto& slice = node.as<op::SliceAttributes>();
        inputs.push_back(constant(output, slice.axes));
        inputs.push_back(constant(output, slice.steps));
        add(name, node.name, inputs, output);
        return true;
      }
      case OpKind::Clip: {
        const auto& clip = node.as<op::ClipAttributes>();
        inputs.push_back(constant(output, std::vector<float>{clip.minimum}, true));
        inputs.push_back(constant(output, std::vector<float>{clip.maximum}, true));
        add(name, node.name, inputs, output);
        return graph_[node.inputs[0]].dtype == DType::F32;
      }
      case OpKind::ReduceMean: return write_reduction<op::ReduceMeanAttributes>(node, inputs);
      case OpKind::ReduceMax: return write_reduction<op::ReduceMaxAttributes>(node, inputs);
      case OpKind::MatMul: {
        const auto& matmul = node.as<op::MatMulAttributes>();
        if (matmul.epilogue != nullptr || inputs.size() != 2) return false;
        add(name, node.name,
            {matmul_operand(node, 0, matmul.transpose_a), matmul_operand(node, 1, matmul.transpose_b)},
            output);
        return true;
      }
      case OpKind::Conv: {
        const auto& conv = node.as<op::ConvAttributes>();
        if (conv.epilogue != nullptr || inputs.size() > 2) return false;
        auto& out = channels_first(name, node, {inputs[0], conv_weight(node)});
        set(out, "strides", conv.strides);
        set(out, "pads", conv.pads);
        set(out, "dilations", conv.dilations);
        set(out, "group", conv.groups);
        return true;
      }
      case OpKind::MaxPool: {
        const auto& pool = node.as<op::MaxPoolAttributes>();
        auto& out = channels_first(name, node, inputs);
        set(out, "kernel_shape", pool.kernel);
        set(out, "strides", pool.strides);
        set(out, "pads", pool.pads);
        set(out, "dilations", pool.dilations);
        set(out, "ceil_mode", static_cast<int64_t>(pool.ceil_mode));
        return true;
      }
      case OpKind::BatchNorm:
        set(channels_first("BatchNormalization", node, inputs), "epsilon",
            node.as<op::BatchNormAttributes>().epsilon);
        return true;
      default: return false;
    }
  }

  template <class Attributes>
  bool write_reduction(const Node& node, std::vector<std::string> inputs) {
    const auto& reduction = node.as<Attributes>();
    const std::string& output = names_[node.outputs[0]];
    if (!reduction.axes.empty()) inputs.push_back(constant(output, reduction.axes));
    set(add(std::string(librt::name_of(node.kind())), node.name, inputs, output), "keepdims",
        static_cast<int64_t>(reduction.keep_dims));
    return true;
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;
  std::vector<std::string> names_;  ///< by value
  std::set<ValueId> written_;       ///< constants that are initializers already
  rt_onnx::GraphProto* out_ = nullptr;
  int fresh_ = 0;
};

}  // namespace

Result<size_t> write_onnx(const ModelGraph& model, const std::string& target) {
  const Graph* graph = model.entry("infer");
  if (graph == nullptr || !model.states.empty())
    return unsupported(target, ": expected a model with an entry 'infer' and without states");
  Writer writer(*graph);
  RT_ASSIGN(const rt_onnx::ModelProto proto, writer.write());
  if (proto.ByteSizeLong() > INT_MAX)
    return unsupported(target, ": the model has ", bytes_text(proto.ByteSizeLong()),
                       ", Protocol Buffers hold 2 GiB");
  const std::string out = proto.SerializeAsString();
  AtomicFile file(target);
  RT_TRY(file.open());
  RT_TRY(file.write(out.data(), out.size()));
  RT_TRY(file.commit());
  return static_cast<size_t>(proto.graph().node_size());
}

}  // namespace librt::onnx
