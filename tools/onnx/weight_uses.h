// Which nodes read an initializer and in which role, looking through nodes that only reshape it.
//
// Knows: which operators have operands that are parameters, how exporters write the module that a node
// belongs to. Must not know: what the results are used for. Private to the importer's folder.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

/// The role of an operand in the node that reads it.
struct WeightRole {
  std::string kind;  ///< "MatMul", "Conv", "bias", ..: uses of one kind may be of several equal parameters
  std::string slot;  ///< distinguishes operands of one node
  std::string leaf;  ///< its name in PyTorch: "weight", "bias", "running_mean"; empty: not known
  bool is_layer = false;      ///< always a parameter; else it may be a constant of a formula
  bool is_statistic = false;  ///< a running statistic, which every node updates
  /// Ones or zeros for an operand that the node must have: PyTorch's newer exporter writes a GroupNorm as an
  /// InstanceNormalization without a scale and a bias of its own, a Mul and an Add.
  bool is_neutral = false;
};

struct WeightUse {
  rt_onnx::NodeProto* node = nullptr;
  int input = 0;
  WeightRole role;
  std::vector<rt_onnx::NodeProto*> path;  ///< nodes from the initializer on that pass it through
  std::string alias;                      ///< the name that an Identity at the start of the path gives it
  std::optional<std::string> module;      ///< of the node: "layers.0.linear1"; "" is the whole net
  std::string parameter;  ///< the operand's name in PyTorch, where the file shows it; else empty
};

/// Whether only Identity nodes are between the initializer and the node that reads it.
bool is_direct(const WeightUse& use);

/// Whether the tensor has a type of weights that are trained: f32, f16 or bf16.
bool has_weight_type(const rt_onnx::TensorProto& tensor);
/// Such a tensor of one element.
bool is_single_float(const rt_onnx::TensorProto& tensor);

/// A tensor of such a type in the main graph: an initializer, or what a Constant node holds.
struct FloatTensor {
  std::string name;
  rt_onnx::TensorProto* tensor = nullptr;
  bool is_node = false;
};
/// The tensors stay where they are while others are added to the graph.
std::vector<FloatTensor> float_tensors(rt_onnx::GraphProto& graph);

/// The parameters and buffers of a net that PyTorch's newer exporter wrote, by its names in the metadata
/// ("p_fc_weight" is "fc.weight"); empty for other files.
std::map<std::string, std::string> signature_of(const rt_onnx::GraphProto& graph);
/// The names of these in PyTorch.
std::set<std::string> listed_names(const rt_onnx::GraphProto& graph);

void remove_initializers(rt_onnx::GraphProto& graph, const std::set<std::string>& names);

/// How PyTorch's older exporter names the second operand of a MatMul that it computed.
inline constexpr std::string_view kFoldedMatMul = "onnx::MatMul_";

/// PyTorch's newer exporter names a value that it folded after the function that gave it: "index_select" for
/// "index_select_3".
std::string_view function_of(std::string_view name);

class WeightUses {
 public:
  explicit WeightUses(rt_onnx::GraphProto& graph);
  /// In the order of the nodes of the main graph, then of bodies.
  std::vector<WeightUse> of(const std::string& name) const;
  /// Whether metadata names the PyTorch call that the node belongs to.
  bool has_call(const rt_onnx::NodeProto& node) const;
  /// Whether it is a call of the function, such as "aten.linear.".
  bool is_call_of(const rt_onnx::NodeProto& node, std::string_view function) const;
  /// The parameters and buffers that this call reads.
  std::vector<std::string> parameters_of(const rt_onnx::NodeProto& node) const;
  bool is_taken(const std::string& name) const { return names_.contains(name); }
  bool is_output(const std::string& name) const { return outputs_.contains(name); }
  void take(const std::string& name) { names_.insert(name); }

 private:
  struct Read {
    rt_onnx::NodeProto* node;
    int input;
    bool in_body;
  };
  void add_graph(rt_onnx::GraphProto& graph, int depth);
  void collect(const std::string& name, const WeightUse& so_far, std::vector<WeightUse>& found) const;
  bool passes_on(const Read& read) const;
  WeightRole role_of(const rt_onnx::NodeProto& node, int input) const;
  std::string parameter_of(const rt_onnx::NodeProto& node, const WeightRole& role) const;
  /// The parameter that is this argument of the call that the node belongs to; empty: none.
  std::string parameter_at(const rt_onnx::NodeProto& node, int argument) const;
  std::string linear_weight_of(const std::string& name, const WeightUse& use) const;

  /// The nodes of a module itself, in the main graph.
  struct Module {
    int matmuls = 0;
    bool has_others = false;  ///< other than Add
    std::string bias;         ///< "layer.bias", which an Add reads
  };

  std::map<std::string, std::vector<Read>> reads_;
  std::map<std::string, Module> modules_;
  std::map<std::string, std::string> makers_;  ///< the operator that produces a value
  std::set<std::string> outputs_, names_;
  std::map<std::string, std::string> signature_;
};

}  // namespace librt::onnx
