// Builder: appends nodes to a graph and infers what is known of every value while doing so.
//
// Knows: how to call the pages' shape rules, fold shape arithmetic, and tell static from symbolic dimensions.
// Must not know: ONNX, passes, files.
//
// Extents are expressions over the graph's symbols (tools/compiler/shape): a dimension is static, a symbol,
// or a symbol with a definition where it is derived from others; extents proven equal share one symbol. Shape
// operands are evaluated the same way, so Shape -> Gather -> Concat -> Reshape chains cost nothing. What
// cannot be expressed, or depends on data (the count of NonZero), becomes a new symbol, named after the node,
// that no input carries; later nodes treat it like any other symbol.
//
// In addition, every node is inferred with concrete extents, by its page's shape rule, under two assignments
// of the symbols, the probes. They check attributes and extents, refute wrong expressions, and serve as
// examples where a concrete value is needed (costs, reports); nothing is concluded from them.
//
// A model may be valid for some extents only (sides that are multiples of 32, two symbols that must be equal,
// batch 1). When a node cannot be inferred, the builder solves the node's constraints for a symbol, or tries
// other ways of choosing the probes, and infers all nodes again. Only when nothing fits does it fail, naming
// the node and its constraints.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/emitter.h"
#include "tools/compiler/shape/rules.h"
#include "tools/compiler/shape/unknown_extents.h"

namespace librt::compiler {

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
  /// After a failure rules still query kNoValue: a scalar of which nothing is known.
  const Value& value(ValueId id) const override {
    static const Value kNothing;
    return id < graph_.values.size() ? graph_.values[id] : kNothing;
  }
  const Status& status() const noexcept override { return status_; }
  void fail(Status status) override;
  /// Returns the failure and clears it: for an importer that collects all errors of a model. The graph holds
  /// what was emitted before the failure.
  Status take_failure() { return std::exchange(status_, Status()); }

  /// From now on input symbols may be replaced to meet a node's constraints; `fitted` gets a sentence for
  /// each.
  void fit_symbols(std::vector<std::string>& fitted) { fitted_ = &fitted; }
  /// Constraints from nodes that no symbol replacement could meet: "2*floor(h / 2) = h: node ..".
  const std::vector<std::string>& demands() const noexcept { return demand_texts_; }
  /// A graph input. dims may carry symbols added with graph().symbol().
  ValueId input(std::string name, DType dtype, std::vector<Dim> dims);
  ValueId state(std::string name, uint32_t state, const TensorInfo& info);
  void output(ValueId id) { graph_.outputs.push_back(id); }

  /// Name given to the nodes emitted from now on (the importer sets the ONNX node's name; a suffix keeps them
  /// apart).
  void set_scope(std::string name) { scope_ = std::move(name); }
  /// A node that owns bodies or whose name matters. outputs.size() is its number of results (their ids are
  /// ignored and new values made); if empty, as many as its page gives.
  std::vector<ValueId> emit_node(Node node);

  /// The value's bytes when they do not depend on the inputs.
  std::optional<ConstTensorView> known_value(ValueId id) const;
  /// The entries of a short integer vector, known where they are the same for all extents; empty for other
  /// values.
  Entries known_entries(ValueId id) const;
  /// What is proven of a value.
  const Known& known(ValueId id) const { return known_[id]; }
  ExtentTable& extents() noexcept { return extents_; }
  /// Whether both have the same type and provably the same dims.
  bool same_info(ValueId a, ValueId b) const;
  /// The extents as integers that compare equal where the extents are proven equal: a static extent is
  /// itself, any other gets its own integer from 2^31 on, the same for equal ones. Not for arithmetic.
  Shape comparable_shape(ValueId id) const;
  /// Whether both provably have the same number of elements.
  bool same_elements(ValueId a, ValueId b);
  /// An example, see above.
  const ProbeValue& probe(ValueId id, int probe) const { return probes_[id][static_cast<size_t>(probe)]; }
  Graph& graph() noexcept { return graph_; }
  /// Whether some extent depends on data.
  bool depends_on_data() const;
  /// Extent a symbol has under a probe.
  int64_t symbol_probe(int32_t symbol, int probe) const;

 private:
  using Probes = std::array<ProbeValue, kProbes>;

  Status infer(const Node& node, std::vector<Probes>& outputs) const;
  /// assumed: if not null, replaces the probes of the inputs.
  Status infer_with(const Node& node, const std::vector<Probes>* assumed, std::vector<Probes>& outputs) const;
  Status infer_probe(const Node& node, int probe, const std::vector<Probes>* assumed,
                     std::vector<ProbeValue>& outputs) const;
  /// Whether a Slice of a dynamic extent is empty only because the probes are short.
  bool is_emptied(const Node& node, std::span<const Probes> outputs) const;
  /// For a node whose shape rule refuses data-dependent extents (two that must be equal): what all
  /// assignments that make them fit have in common.
  bool infer_assuming(const Node& node, std::vector<Probes>& outputs) const;
  /// A node with a shape operand that depends on data.
  Status infer_open(const NodeView& view, int probe, std::vector<TensorInfo>& infos) const;
  /// What is known of the entries of a shape operand, under a probe.
  Entries entries_of(ValueId id, int probe) const;

  // builder_extents.cpp: what is proven
  Extent extent_of(const Dim& dim);
  Dim dim_of(Extent extent);
  Extent symbol_extent(int32_t symbol);
  Known known_source(ValueId id);
  /// What is proven of a node's results, whose probes are known; unproven extents get symbols.
  std::vector<Known> conclude(const Node& node, std::vector<Probes>& outputs, std::vector<Demand>& demands);
  void conclude_extents(const Node& node, const std::vector<Probes>& outputs,
                        std::vector<std::vector<Extent>>& dims, std::vector<Demand>& demands);
  void conclude_copied(const Node& node, std::vector<std::vector<Extent>>& dims,
                       std::vector<Demand>& demands);
  void conclude_from_bodies(const Node& node, std::vector<std::vector<Extent>>& dims);
  Extent from_body(const Graph& body, const Dim& dim);
  void conclude_values(const Node& node, const std::vector<Probes>& outputs, std::vector<Known>& results);
  bool refutes(Extent extent, const Probes& output, int axis) const;
  std::vector<const Known*> known_inputs(const Node& node) const;
  Dim name_extent(const Node& node, size_t output, int axis, const Probes& probes);
  /// Applies the node's constraints; true when a symbol was replaced and everything was inferred again.
  bool meet_demands(const Node& node, const std::vector<Demand>& demands);
  std::vector<Demand> demands_of(const Node& node);
  bool replace_by_solution(const Node& node, int32_t symbol, Extent solution);
  /// After symbols were replaced.
  void infer_again();

  /// Infers all nodes of the graph with the current way of choosing probes.
  Status infer_all();
  /// The same, changing the way of choosing probes if need be.
  Status infer_under_any_probes();
  /// Infers `node`, changing the way of choosing probes if need be.
  Status infer_somehow(const Node& node, std::vector<Probes>& outputs);
  /// Replaces symbols of the graph's inputs as the node's shape rule requires; false if none was replaced.
  bool change_symbols(const Node& node);
  void choose_symbol_probes();
  void add_symbol_probes();
  /// Symbols whose names denote sums of others ("past + length") get that sum as their definition.
  bool define_sums();
  void set_source(ValueId id);
  void annotate(ValueId id, Known known);
  std::string unique_name(std::string_view wanted);

  Graph& graph_;
  const std::vector<State>* states_;
  std::vector<Probes> probes_;  ///< by value
  std::vector<Known> known_;    ///< by value
  ExtentTable extents_;
  std::vector<std::optional<Extent>> symbol_extents_;  ///< by symbol, filled on demand
  std::map<int32_t, int32_t> derived_;                 ///< symbol by index of its polynomial
  std::vector<bool> from_data_;                        ///< by symbol
  std::vector<std::string> demand_texts_;
  std::array<std::vector<int64_t>, kProbes> symbol_probes_;  ///< by symbol
  std::vector<std::string>* fitted_ = nullptr;
  bool accept_empty_ = false;  ///< results that is_emptied() finds are accepted as empty
  int strategy_ = 0;           ///< how probes are chosen, see choose_symbol_probes()
  std::string scope_;
  std::map<std::string, int, std::less<>> names_;
  Status status_;
};

}  // namespace librt::compiler
