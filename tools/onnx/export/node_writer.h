// What a function that writes one operator as ONNX sees: the node, names of its operands, and ways to add
// ONNX nodes.
//
// Knows: one node. Must not know: the walk over the graph. A function asks for all that it needs to know
// before it adds the first node; it may return false for a composite, whose body is then written instead.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/onnx/export/graph_writer.h"

namespace librt::onnx {

class NodeWriter {
 public:
  NodeWriter(GraphWriter& graph_writer, Scope& in, const Node& to_write)
      : writer(graph_writer), scope(in), node(to_write) {}

  template <class A>
  const A& as() const {
    return node.as<A>();
  }
  bool has(size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  const Value& input(size_t i) const { return scope.graph[node.inputs[i]]; }
  const Value& output(size_t i = 0) const { return scope.graph[node.outputs[i]]; }
  DType dtype(size_t i = 0) const { return input(i).dtype; }
  int rank(size_t i = 0) const { return input(i).rank(); }
  Forms& forms(size_t i) const { return *scope.forms[node.inputs[i]]; }

  /// The operand as it is in the graph; empty if absent.
  std::string in(size_t i);
  Names ins();
  /// Channels first.
  std::string in_first(size_t i);
  /// Whether the operand is there channels first only, so that reading it dense takes a Transpose.
  bool prefers_first(size_t i) const;
  std::string out(size_t i = 0);
  std::string out_first(size_t i = 0);
  Names outs();

  /// Node of ONNX with given outputs, or with a new one, whose name is returned.
  void add(const std::string& op, const Names& inputs, const Names& outputs,
           const Attributes& attributes = {});
  std::string emit(const std::string& op, const Names& inputs, const Attributes& attributes = {});
  /// By the name of librt's operator.
  std::string name() const;

  std::string longs(const Longs& values);
  std::string number(double value, DType type, bool scalar = true);
  /// The values of an i64 constant.
  std::optional<Longs> known_longs(size_t i) const;
  static int onnx_type(DType type);
  std::string cast(const std::string& x, DType to);
  std::string transposed(const std::string& x, const Longs& permutation);
  std::string reshaped(const std::string& x, const Longs& shape);

  GraphWriter& writer;
  Scope& scope;
  const Node& node;
};

/// Writes a node; false: it has no counterpart in this form, and its body is to be written.
using WriteNode = Result<bool> (*)(NodeWriter& n);
struct ExportRow {
  OpKind kind;
  WriteNode write;
  /// With a null `write`: why no ONNX file has the operator.
  const char* reason = nullptr;
};
/// Null for an operator without a row, which is written by its body.
const ExportRow* export_row(OpKind kind);

/// The present operands of a node that works element by element, in one order of axes: channels first where
/// one of them is there in no other and the others can be brought into it.
Names operands_in_one_order(NodeWriter& n, bool& first);

/// result = activation(x) of an epilogue, whose `activation` is not None.
void write_epilogue(NodeWriter& n, const op::EpilogueAttributes* epilogue, std::string x, DType type,
                    const std::string& result);

}  // namespace librt::onnx
