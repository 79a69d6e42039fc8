// Builder: appends nodes to a graph and infers what is known of every value while doing so.
//
// Knows: how to call the pages' shape rules, fold shape arithmetic, and tell static from symbolic dimensions.
// Must not know: ONNX, passes, files.
//
// Shape rules work on concrete integers only. To keep symbolic dimensions, the builder infers every node
// twice, under two probe assignments of the symbols. A dimension equal in both is static; one that equals a
// symbol's probe in both carries that symbol; any other stays unknown until a session sees concrete shapes.
// Shape operands are evaluated per probe with the pages' reference values, so Shape -> Gather -> Concat ->
// Reshape chains cost nothing.
//
// An extent that depends on data (the count of NonZero) becomes a symbol of its own, named after the node,
// that no input carries; so everything behind it goes on as with any other symbol.
//
// A model may be valid for some extents only (sides that are multiples of 32, two symbols that must be equal,
// batch 1). When a node cannot be inferred, the builder goes through other ways of choosing the probes and
// infers all nodes again. Where it may, it also gives symbols the extents that the node demands (a channel
// count that a weight tells). Only when nothing fits does it fail, naming the node.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/emitter.h"
#include "tools/compiler/unknown_extents.h"

namespace rt::compiler {

inline constexpr int kProbes = 2;

/// What is known of a value under one probe assignment.
struct ProbeValue {
  TensorInfo info;
  Blob value;  ///< host bytes, for constants and small values computed from shapes; empty when unknown
};

class Builder final : public Emitter {
 public:
  /// Works on `graph`, which may already hold nodes (all of them are inferred first; check status()). The
  /// graph must outlive the builder. states are needed to know the values with Role::State.
  explicit Builder(Graph& graph, const std::vector<State>* states = nullptr);

  // Emitter
  std::vector<ValueId> emit_many(OpAttributes op, std::span<const ValueId> inputs, size_t outputs) override;
  ValueId constant(const TensorInfo& info, Blob data) override;
  /// After a failure rules go on asking about kNoValue: that is a scalar of which nothing is known.
  const Value& value(ValueId id) const override {
    static const Value kNothing;
    return id < graph_.values.size() ? graph_.values[id] : kNothing;
  }
  const Status& status() const noexcept override { return status_; }
  void fail(Status status) override;
  /// Returns the failure and goes on as if it had not happened: for an importer that collects all that is
  /// wrong with a model. The graph holds what was emitted before the failure.
  Status take_failure() { return std::exchange(status_, Status()); }

  /// From now on inputs' symbols may become what a node demands; `fitted` gets a sentence for each.
  void fit_symbols(std::vector<std::string>& fitted) { fitted_ = &fitted; }
  /// A graph input. dims may carry symbols added with graph().symbol().
  ValueId input(std::string name, DType dtype, std::vector<Dim> dims);
  ValueId state(std::string name, uint32_t state, const TensorInfo& info);
  void output(ValueId id) { graph_.outputs.push_back(id); }

  /// Name given to the nodes emitted from now on (the importer sets the ONNX node's name; a suffix keeps them
  /// apart).
  void set_scope(std::string name) { scope_ = std::move(name); }
  /// A node that owns bodies or whose name matters. outputs.size() tells how many results it has (their ids
  /// are ignored and new values made); none: as many as its page says.
  std::vector<ValueId> emit_node(Node node);

  /// The value's bytes when they do not depend on the inputs (equal under all probes).
  std::optional<ConstTensorView> known_value(ValueId id) const;
  /// What is known of the entries of a short vector of integers, looking through what puts it together.
  Entries known_entries(ValueId id) const;
  const ProbeValue& probe(ValueId id, int probe) const { return probes_[id][static_cast<size_t>(probe)]; }
  Graph& graph() noexcept { return graph_; }
  /// Whether some extent is a symbol that no input carries.
  bool depends_on_data() const;
  /// Extent a symbol has under a probe.
  int64_t symbol_probe(int32_t symbol, int probe) const;

 private:
  using Probes = std::array<ProbeValue, kProbes>;

  Status infer(const Node& node, std::vector<Probes>& outputs) const;
  /// assumed: for each input, instead of what its probes are.
  Status infer_with(const Node& node, const std::vector<Probes>* assumed, std::vector<Probes>& outputs) const;
  Status infer_probe(const Node& node, int probe, const std::vector<Probes>* assumed,
                     std::vector<ProbeValue>& outputs) const;
  /// Whether a Slice of an open extent is empty only because the probes are short.
  bool is_emptied(const Node& node, std::span<const Probes> outputs) const;
  /// For a node whose shape rule refuses extents that depend on data (two that must be equal): what all ways
  /// of making them fit have in common.
  bool infer_assuming(const Node& node, std::vector<Probes>& outputs) const;
  /// A node with a shape operand that depends on data.
  Status infer_open(const NodeView& view, int probe, std::vector<TensorInfo>& infos) const;
  /// What is known of the entries of a shape operand, looking through what puts them together.
  Entries entries_of(ValueId id, int probe) const;
  /// Gives the unknown extents of a node's results their symbols.
  void name_extents(const Node& node, std::vector<Probes>& outputs);
  Dim name_extent(const Node& node, size_t output, int axis);
  std::string name_in_bodies(const Node& node, size_t output, int axis) const;
  /// Infers all nodes of the graph under the present way of choosing probes.
  Status infer_all();
  /// Infers `node`, changing the way of choosing probes if need be.
  Status infer_somehow(const Node& node, std::vector<Probes>& outputs);
  /// Gives symbols of the graph's inputs what the node's shape rule demands of them, if it does.
  bool change_symbols(const Node& node);
  void choose_symbol_probes();
  void add_symbol_probes();
  void set_source_probes(ValueId id);
  void annotate(ValueId id);
  std::string unique_name(std::string_view wanted);

  Graph& graph_;
  const std::vector<State>* states_;
  std::vector<Probes> probes_;  ///< by value
  std::vector<std::array<int64_t, kProbes>> symbol_probes_;
  std::vector<std::string>* fitted_ = nullptr;
  bool accept_empty_ = false;  ///< what is_emptied() finds is so at all extents
  int strategy_ = 0;           ///< how probes are chosen, see choose_symbol_probes()
  std::string scope_;
  std::map<std::string, int, std::less<>> names_;
  Status status_;
};

}  // namespace rt::compiler
