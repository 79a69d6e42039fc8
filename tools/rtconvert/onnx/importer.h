// The walk over an ONNX model: names and scopes, functions and branches, and what went wrong.
//
// Knows: ONNX's graph rules. Must not know: what the operators mean (onnx/ops). Private to the importer's
// folder; users include import.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/builder.h"
#include "tools/rtconvert/onnx/import.h"
#include "tools/rtconvert/onnx/initializer.h"
#include "tools/rtconvert/onnx/node.h"
#include "tools/rtconvert/onnx/onnx.pb.h"
#include "tools/rtconvert/onnx/sort.h"

namespace rt::onnx {

class Importer {
 public:
  Importer(Graph& graph, const ImportOptions& options, ImportReport& report)
      : builder_(graph), options_(options), report_(report), initializers_(options.external_folder) {}

  /// Takes the weights out of the message.
  Status run(rt_onnx::ModelProto& model);

 private:
  using Opsets = std::map<std::string, int64_t, std::less<>>;
  using Attributes = std::map<std::string, const rt_onnx::AttributeProto*, std::less<>>;

  /// Names visible at a place. A name bound to kNoValue belongs to something that could not be imported; what
  /// reads it is skipped, since the reason is reported already.
  struct Scope {
    const Scope* parent = nullptr;
    const Opsets* opsets = nullptr;
    const Attributes* attributes = nullptr;  ///< of the call, inside a function
    int depth = 0;
    std::string prefix;  ///< of node names inside functions and branches
    std::unordered_map<std::string, ValueId> names = {};
    std::set<std::string> absent = {};  ///< inputs of a function that the call leaves out

    bool is_absent(const std::string& name) const;
    const ValueId* find(const std::string& name) const;
  };

  Status read_header(const rt_onnx::ModelProto& model);
  void add_initializers(rt_onnx::GraphProto& graph, Scope& scope);
  void add_inputs(const rt_onnx::GraphProto& graph, Scope& scope);
  void add_input(const rt_onnx::ValueInfoProto& input, Scope& scope);
  std::vector<Dim> input_dims(const std::string& name, const rt_onnx::TensorShapeProto& shape);
  void check_options(const rt_onnx::GraphProto& graph);
  void add_outputs(const rt_onnx::GraphProto& graph, Scope& scope);
  void check_declared(const rt_onnx::ValueInfoProto& output, ValueId id);

  void add_nodes(const NodeList& nodes, Scope& scope);
  void add_node(const rt_onnx::NodeProto& node, int index, Scope& scope);
  void add_operator(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  void add_call(const rt_onnx::FunctionProto& function, const rt_onnx::NodeProto& node,
                const std::string& name, Scope& scope);
  void add_if(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  /// The node's inputs; false when one is missing (a problem) or could not be imported (reported already).
  bool resolve_inputs(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                      std::vector<ValueId>& inputs);
  void bind(Scope& scope, const std::string& name, ValueId id);
  void bind_outputs(const rt_onnx::NodeProto& node, Scope& scope, std::span<const ValueId> values,
                    size_t first_new);
  void bind_nothing(const rt_onnx::NodeProto& node, Scope& scope) { bind_outputs(node, scope, {}, 0); }

  void problem(std::string text);
  void report_unsupported(const rt_onnx::NodeProto& node, const std::string& name, int64_t opset,
                          std::span<const ValueId> inputs, const std::string& message);
  Status summary() const;

  compiler::Builder builder_;
  const ImportOptions& options_;
  ImportReport& report_;
  InitializerReader initializers_;
  Opsets opsets_;
  std::map<std::string, const rt_onnx::FunctionProto*> functions_;
  std::vector<std::string> problems_;
  size_t problem_count_ = 0;
  size_t nodes_ = 0;
  std::vector<std::string> symbols_seen_;
};

}  // namespace rt::onnx
