// Builder: appends nodes to a graph and infers what is known of every value while doing so.
//
// Knows: names of nodes and values, sources of a graph. Must not know: how shapes are inferred (that is
// tools/compiler/shape/shape_inference.h), ONNX, passes, files.
//
// Every node is inferred when it is appended, so that its results' dims are known at once: numbers, symbols
// of the graph, or symbols that are defined by others. The first failure stays, and makes later calls do
// nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/graph/emitter.h"
#include "runtime/ops/page.h"
#include "tools/compiler/shape/known.h"
#include "tools/compiler/shape/unknown_shape_operands.h"

namespace librt::compiler {

class ShapeInference;

/// What a builder inferred of a graph, for the next builder of the same graph if nothing changes in between.
class InferenceCache {
 public:
  InferenceCache();
  ~InferenceCache();
  bool is_filled() const noexcept { return inference_ != nullptr; }
  /// How many builders have given back what they inferred.
  size_t given() const noexcept { return given_; }
  void clear();

 private:
  friend class Builder;
  std::unique_ptr<ShapeInference> inference_;
  size_t given_ = 0;
};

class Builder final : public Emitter {
 public:
  /// Works on `graph`, which may already hold nodes (all of them are inferred first; check status()). The
  /// graph must outlive the builder. states are needed to know the values with Role::State.
  /// cache: may be null; what it holds is taken, and must be of this graph as it is.
  explicit Builder(Graph& graph, const std::vector<State>* states = nullptr, InferenceCache* cache = nullptr);
  ~Builder() override;

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
  void fit_symbols(std::vector<std::string>& fitted);
  /// Constraints from nodes that no symbol replacement could meet: "2*floor(h / 2) = h: node ..".
  const std::vector<std::string>& demands() const noexcept;
  /// The graph's symbol with this name, added where it is new.
  int32_t symbol(std::string_view name);
  /// The graph is a body of a node of outer's graph: a name is one symbol in both. outer must outlive it.
  void within(Builder& outer);
  /// The symbol with the name, bound and definition of one of the graph around this one.
  int32_t copy_symbol(const Graph& outer, int32_t symbol);
  /// A graph input. dims may carry symbols of the graph.
  ValueId input(std::string name, DType dtype, std::vector<Dim> dims);
  ValueId state(std::string name, uint32_t state, const TensorInfo& info);
  void output(ValueId id) { graph_.outputs.push_back(id); }

  /// Name given to the nodes emitted from now on (the importer sets the ONNX node's name; a suffix keeps them
  /// apart).
  void set_scope(std::string name) { scope_ = std::move(name); }
  const std::string& scope() const noexcept { return scope_; }
  /// A node that owns bodies or whose name matters. outputs.size() is its number of results (their ids are
  /// ignored and new values made); if empty, as many as its page gives.
  std::vector<ValueId> emit_node(Node node);

  /// The first constant with this name, type and bytes that was emitted before; kNoValue: none. Constants
  /// must have got their names by the first call after them.
  ValueId find_constant(const std::string& name, const TensorInfo& info, const Blob& data);
  /// The value's bytes when they do not depend on the inputs.
  std::optional<ConstTensorView> known_value(ValueId id) const;
  /// The entries of a short integer vector, known where they are the same for all extents; empty for other
  /// values.
  Entries known_entries(ValueId id) const;
  /// What is proven of a value.
  const Known& known(ValueId id) const;
  ExtentTable& extents() noexcept;
  /// Whether both have the same type and provably the same dims.
  bool same_info(ValueId a, ValueId b) const;
  /// The extents as integers that compare equal where the extents are proven equal: a static extent is
  /// itself, any other gets its own integer from 2^31 on, the same for equal ones. Not for arithmetic.
  Shape comparable_shape(ValueId id) const;
  /// Whether both provably have the same number of elements.
  bool same_elements(ValueId a, ValueId b);
  /// False where both differ at some example extents, so that they cannot be the same; true proves nothing.
  bool may_have_same_info(ValueId a, ValueId b) const;
  Graph& graph() noexcept { return graph_; }
  /// Whether some extent depends on data.
  bool depends_on_data() const;
  /// Ends the use of this builder; the graph is as it was at its start.
  void give_back(InferenceCache& cache);

  // --- at example extents of the symbols, at which all nodes are valid; exact in a static graph. For costs,
  // heuristics and messages: nothing may be concluded from them.
  int64_t example_extent(int32_t symbol) const;
  const TensorInfo& example_info(ValueId id) const;
  /// A small value that follows from extents; nullopt where it differs between the examples, or depends on
  /// data.
  std::optional<ConstTensorView> example_value(ValueId id) const;
  ops::Cost example_cost(const Node& node) const;

 private:
  std::string unique_name(std::string_view wanted);

  Graph& graph_;
  std::unique_ptr<ShapeInference> inference_;
  std::string scope_;
  std::unordered_map<std::string, int> names_;  ///< of nodes, from the first one emitted on
  bool has_names_ = false;
  std::unordered_map<std::string, std::vector<ValueId>> constants_;  ///< of find_constant(), by name
  size_t indexed_ = 0;                                               ///< values that these cover
  Status status_;
};

}  // namespace librt::compiler
