// What is known of every value of a graph: its extents as expressions of the graph's symbols, and small
// integer values element by element.
//
// Knows: how to call the pages' shape rules and the rules on expressions (rules.h), and how to fold shape
// arithmetic. Must not know: ONNX, passes, files, how nodes get names.
//
// A dimension is static, a symbol, or a symbol with a definition where it is derived from others; extents
// proven equal share one symbol. Shape operands are evaluated the same way, so Shape -> Gather -> Concat ->
// Reshape chains cost nothing. What cannot be expressed, or depends on data (the count of NonZero), becomes a
// new symbol, named after the node, that no input carries; later nodes treat it like any other symbol.
//
// In addition, every node is inferred with concrete extents, by its page's shape rule, under two assignments
// of the symbols, the probes. They check attributes and extents, refute wrong expressions, and serve as
// examples where a concrete value is needed (costs, reports); nothing is concluded from them.
//
// A model may be valid for some extents only (sides that are multiples of 32, two symbols that must be equal,
// batch 1). When a node cannot be inferred, its constraints are solved for a symbol, or other ways of
// choosing the probes are tried, and all nodes inferred again. Only when nothing fits does it fail, naming
// the node and its constraints.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/compiler/shape/probe.h"
#include "tools/compiler/shape/rules.h"
#include "tools/compiler/shape/symbol_index.h"
#include "tools/compiler/shape/symbol_sums.h"
#include "tools/compiler/shape/unknown_shape_operands.h"

namespace librt::compiler {

/// What is known of a node's result.
struct Inferred {
  Probes probes;
  Known known;
};

class ShapeInference {
 public:
  /// The graph must outlive it. states: to check the values with Role::State; may be null.
  ShapeInference(Graph& graph, const std::vector<State>* states)
      : graph_(graph), states_(states), names_(graph) {}

  // --- appending (shape_inference.cpp)
  /// Infers all values and nodes that the graph already has.
  Status infer_graph();
  /// The graph's newest value, a constant or state.
  void add_source(ValueId id) { set_source(id); }
  /// The graph's symbol with this name, added where it is new.
  int32_t symbol(std::string_view name);
  int32_t copy_symbol(const Graph& from, int32_t symbol);
  void within(ShapeInference& outer) {
    names_.within(outer.names_);
    outer_ = &outer;
  }
  /// The graph's newest value and input. May infer everything again, as it may carry a known symbol.
  Status add_input(ValueId id);
  /// Infers a node that is about to be appended; its outputs must be kNoValue. May replace symbols of the
  /// graph's inputs (fit_symbols) and infer everything again.
  Status infer(const Node& node, std::vector<Inferred>& results);
  /// The graph's newest value, a result of that node; sets its type and dims.
  void add_result(ValueId id, Inferred result);
  /// From now on input symbols may be replaced to meet a node's constraints; `fitted` gets a sentence for
  /// each.
  void fit_symbols(std::vector<std::string>& fitted) { fitted_ = &fitted; }

  // --- what is known; for the comments see builder.h
  const Known& known(ValueId id) const { return known_[id]; }
  std::optional<ConstTensorView> known_value(ValueId id) const;
  Entries known_entries(ValueId id) const;
  ExtentTable& extents() noexcept { return extents_; }
  bool same_info(ValueId a, ValueId b) const;
  bool may_have_same_info(ValueId a, ValueId b) const;
  bool same_elements(ValueId a, ValueId b);
  Shape comparable_shape(ValueId id) const;
  const std::vector<std::string>& demands() const noexcept { return demand_texts_; }

  // --- examples
  const ProbeValue& probe(ValueId id, int probe) const { return probes_[id][static_cast<size_t>(probe)]; }
  int64_t symbol_probe(int32_t symbol, int probe) const;
  bool depends_on_data() const noexcept { return data_symbols_ > 0; }
  /// Whether some of the extents at the probes are made up: they depend on data, here or in a graph around
  /// this one.
  bool has_made_up_extents() const noexcept {
    return depends_on_data() || (outer_ != nullptr && outer_->has_made_up_extents());
  }

 private:
  // shape_inference.cpp
  /// Infers all nodes of the graph with the current way of choosing probes.
  Status infer_all();
  /// After symbols were replaced.
  void infer_again();
  /// Whatever refers to symbols by index: each replaced one shifts those after it.
  void forget_extents();
  void fail(Status status);
  void set_source(ValueId id);
  void annotate(ValueId id, Known known);

  // infer_at_probes.cpp: inference with concrete extents
  void choose_symbol_probes();
  void add_symbol_probes();
  /// infer_all(), changing the way of choosing probes if need be.
  Status infer_under_any_probes();
  /// Infers `node`, changing the way of choosing probes if need be.
  Status infer_somehow(const Node& node, std::vector<Probes>& outputs);
  Status infer_checked(const Node& node, std::vector<Probes>& outputs) const;
  /// assumed: if not null, replaces the probes of the inputs.
  Status infer_with(const Node& node, const std::vector<Probes>* assumed, std::vector<Probes>& outputs) const;
  Status infer_probe(const Node& node, int probe, const std::vector<Probes>* assumed,
                     std::vector<ProbeValue>& outputs) const;
  /// Whether a Slice of a dynamic extent is empty only because the probes are short.
  bool is_emptied(const Node& node, std::span<const Probes> outputs) const;
  /// For a node whose shape rule refuses data-dependent extents (two that must be equal): what all
  /// assignments that make them fit have in common.
  bool infer_assuming(const Node& node, std::vector<Probes>& outputs) const;
  /// An Identity that requires a shape which only a run can compare: probes are chosen independently.
  bool requires_shape(const Node& node) const;
  /// A node with a shape operand that depends on data.
  Status infer_open(const NodeView& view, int probe, std::vector<TensorInfo>& infos) const;
  /// What is known of the entries of a shape operand, under a probe.
  Entries entries_of(ValueId id, int probe) const;
  /// The message for a node that is valid at no extents that were found.
  Status refused(const Node& node, const std::vector<Demand>& demands, Status first);

  // infer_as_expressions.cpp: what is proven
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

  // solve_demands.cpp: constraints on symbols
  /// Applies the node's constraints; true when a symbol was replaced and everything was inferred again.
  bool meet_demands(const Node& node, const std::vector<Demand>& demands);
  std::vector<Demand> demands_of(const Node& node);
  bool replace_by_solution(const Node& node, int32_t symbol, Extent solution);
  bool has_named_extents(const Node& node);
  bool broadcasts_where_empty(const Node& node);
  /// Replaces symbols of the graph's inputs as the node's shape rule requires; false if none was replaced.
  bool change_symbols(const Node& node);
  /// The symbols that may be replaced, and what by: extents of the node's operands.
  struct Candidates {
    std::vector<int32_t> symbols;
    std::vector<Dim> dims;
  };
  Candidates candidates_of(const Node& node) const;
  bool fits(const Node& node, std::span<const std::pair<int32_t, Dim>> changes) const;
  void apply(const Node& node, const std::vector<std::pair<int32_t, Dim>>& changes);

  Graph& graph_;
  const std::vector<State>* states_;
  std::vector<Probes> probes_;  ///< by value
  std::vector<Known> known_;    ///< by value
  ExtentTable extents_;
  mutable SymbolIndex names_;
  SymbolSums sums_;
  std::vector<std::optional<Extent>> symbol_extents_;  ///< by symbol, filled on demand
  std::map<int32_t, int32_t> derived_;                 ///< symbol by index of its polynomial
  size_t registered_ = 0;                              ///< symbols whose definitions derived_ has
  std::vector<bool> from_data_;                        ///< by symbol
  size_t data_symbols_ = 0;                            ///< how many of these are true
  const ShapeInference* outer_ = nullptr;              ///< of the graph that this one is a body in
  std::vector<std::string> demand_texts_;
  std::array<std::vector<int64_t>, kProbes> symbol_probes_;  ///< by symbol
  std::vector<std::string>* fitted_ = nullptr;
  bool accept_empty_ = false;  ///< results that is_emptied() finds are accepted as empty
  int strategy_ = 0;           ///< how probes are chosen, a ProbeStrategy
  size_t refused_work_ = 0;    ///< nodes inferred again for nodes that were refused in the end
  size_t repeated_work_ = 0;   ///< nodes inferred again after symbols were replaced
  Status failure_;             ///< of infer_again(), within one call from outside
};

}  // namespace librt::compiler
