// The walk over a graph that is written as ONNX: names, initializers, bodies, and in which order of axes a
// value is there.
//
// Knows: ONNX's rules for graphs. Must not know: operators, which the files beside it write through
// node_writer.h.
//
// Convolutions, pools and the like are channels-last in librt and channels-first in ONNX. Every value has up
// to two forms, made when a node first asks for them: as it is in the graph, and with the last axis moved to
// the second place. Operators that work element by element, and some others, take whichever form is there,
// so that a network of convolutions gets Transposes at its ends only.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/onnx/model_file.h"

namespace rt_onnx {
class GraphProto;
class ModelProto;
class NodeProto;
class TensorProto;
}  // namespace rt_onnx

namespace librt::onnx {

using Longs = std::vector<int64_t>;
using Names = std::vector<std::string>;

/// An attribute of an ONNX node. A pointer to a tensor is taken over; null: the attribute is left out.
struct Attribute {
  const char* name;
  std::variant<int64_t, float, std::string, Longs, std::vector<float>, Names, rt_onnx::TensorProto*,
               rt_onnx::GraphProto*>
      value;
};
using Attributes = std::vector<Attribute>;

/// A value's names in the ONNX graph; empty: not written in this form yet.
struct Forms {
  std::string name;                 ///< to take
  std::string dense, first;         ///< as in the graph; channels first
  const Value* constant = nullptr;  ///< to write as an initializer
  int rank = 0;
  bool is_named = false;  ///< a constant: an initializer has the name
};

/// A graph that is being written: the model's, or a body.
struct Scope {
  const Graph& graph;
  std::vector<std::shared_ptr<Forms>> forms;  ///< by value
};

/// The permutation that moves the last axis to the second place, and its inverse.
Longs to_second(int rank);
Longs to_last(int rank);

class GraphWriter {
 public:
  explicit GraphWriter(std::vector<PendingElements>& pending) : pending_(pending) {}

  Status write(const Graph& graph, rt_onnx::ModelProto& model);

  // --- for node_writer.h
  std::string fresh(const std::string& near);
  /// For an initializer with a constant's elements, in whatever order: its own name the first time.
  std::string initializer_name(Forms& forms, const char* suffix);
  std::string dense(Forms& forms);
  std::string channels_first(Forms& forms);
  rt_onnx::NodeProto& add(const std::string& op, const Names& inputs, const Names& outputs,
                          const Attributes& attributes);
  /// An initializer without data.
  rt_onnx::TensorProto& initializer(const std::string& name, int onnx_type, const Longs& dims);
  /// A constant, with its axes permuted unless `permutation` is empty.
  void initializer(const std::string& name, const Value& value, const Longs& permutation);
  /// The graph of a control node's body: its inputs are `given`, by their names in the graphs around it, or
  /// inputs of the new graph where these are empty.
  Result<std::unique_ptr<rt_onnx::GraphProto>> body(const Graph& graph, const Names& given);
  /// The nodes of the node's body in its place.
  Status inlined(Scope& scope, const Node& node);
  void require_opset(int64_t opset) { opset_ = std::max(opset_, opset); }
  void require_domain(const std::string& domain) { domains_.insert(domain); }
  /// Type and shape of a result, which a runtime cannot infer.
  void declare(const Graph& graph, ValueId id, const std::string& name);
  const std::string& node_name() const noexcept { return node_name_; }

 private:
  Scope open(const Graph& graph);
  Status write_nodes(Scope& scope);
  Status write_node(Scope& scope, const Node& node);
  void write_outputs(Scope& scope);

  std::vector<PendingElements>& pending_;
  rt_onnx::GraphProto* out_ = nullptr;
  std::set<std::string> taken_;
  std::set<std::string> domains_;  ///< of the application's operators
  std::string node_name_;
  int64_t opset_ = 20;  // LayerNormalization, Gelu, and the axes of reductions as inputs
  int numbers_ = 0;
};

/// Fills `model`, except for the elements of constants, which read those of `graph`. Errors name every node
/// that cannot be written, and why.
Status write_graph(const Graph& graph, rt_onnx::ModelProto& model, std::vector<PendingElements>& pending);

}  // namespace librt::onnx
