// The one graph type: the compiler edits it, the file stores it, the runtime reads it.
//
// Knows: values, nodes, ids. Must not know: what an operator means, devices, files. Ids are indices; there
// are no pointers between nodes and values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/graph/extent.h"
#include "runtime/graph/op.h"

namespace librt {

using ValueId = uint32_t;
using NodeId = uint32_t;
/// An absent optional input.
inline constexpr ValueId kNoValue = 0xffffffffu;
inline constexpr uint32_t kNoState = 0xffffffffu;

/// Immutable bytes with shared ownership: a mapped file's range or a vector. Cheap to copy.
struct Blob {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  size_t size = 0;

  static Blob copy_of(const void* bytes, size_t size);
  static Blob own(std::vector<std::byte> bytes);
};

/// A dimension of a value: a static extent, a symbol of the graph, or neither (known only with concrete
/// shapes).
struct Dim {
  int64_t extent = -1;
  int32_t symbol = -1;

  bool is_known() const noexcept { return extent >= 0; }
  bool operator==(const Dim&) const noexcept = default;
};

/// A named dimension such as "batch". bound is the largest extent allowed, 0 for none. With a definition it
/// is derived, such as "min(length, 16)": an expression of symbols that have no definition.
struct Symbol {
  std::string name;
  int64_t bound = 0;
  std::vector<ExtentTerm> definition;
};

/// Affine quantization: real = scale (stored - zero_point), per tensor (axis -1) or along an axis.
struct Quantization {
  std::vector<float> scale;
  std::vector<int64_t> zero_point;
  int axis = -1;
};

enum class Role : uint8_t { Intermediate = 0, Input = 1, Constant = 2, State = 3 };

struct Value {
  std::string name;
  DType dtype = DType::F32;
  Role role = Role::Intermediate;
  std::vector<Dim> dims;      ///< rank is always known
  Blob data;                  ///< Role::Constant: dense bytes of exactly the value's size
  uint32_t state = kNoState;  ///< Role::State: index into Model::states
  std::optional<Quantization> quantization;

  int rank() const noexcept { return static_cast<int>(dims.size()); }
  bool is_static() const noexcept;
  /// Only when is_static().
  TensorInfo info() const noexcept;
};

struct Graph;

struct Node {
  OpAttributes op;
  std::string name;
  std::vector<ValueId> inputs;  ///< kNoValue for an absent optional input
  std::vector<ValueId> outputs;
  std::vector<Graph> bodies;  ///< see schema/model.fbs
  std::string unknown_op;  ///< the operator's name in the file when this build does not know it (kind NONE)

  OpKind kind() const noexcept { return op.type; }
  /// The attributes; Attributes must match kind(): node.as<op::ConvAttributes>().
  template <class Attributes>
  const Attributes& as() const noexcept {
    return *static_cast<const Attributes*>(op.value);
  }
  template <class Attributes>
  Attributes& as() noexcept {
    return *static_cast<Attributes*>(op.value);
  }
};

/// After a run, the state that `state` refers to takes the value of `value`.
struct StateUpdate {
  ValueId state = kNoValue;
  ValueId value = kNoValue;
};

/// A graph in topological order. Every value is produced once: by a node, or by its role.
struct Graph {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<StateUpdate> state_updates;
  /// For a branch of an If that a run must not take: the reason; its body then only has the right inputs and
  /// outputs. Empty: it may be taken.
  std::string refusal;

  ValueId add_value(Value value);
  /// The symbol with this name, added when it is new.
  int32_t symbol(std::string_view symbol_name);
  /// A constant that shares `data`.
  ValueId add_constant(std::string value_name, const TensorInfo& info, Blob data);
  const Value& operator[](ValueId id) const noexcept { return values[id]; }
  Value& operator[](ValueId id) noexcept { return values[id]; }
};

/// For each value the node that produces it, if any.
std::vector<std::optional<NodeId>> producers(const Graph& graph);
/// For each value how many times it is read: by nodes, as an output, by a state update.
std::vector<uint32_t> use_counts(const Graph& graph);

enum class StateKind : uint8_t { Parameter = 0, Statistic = 1, Optimizer = 2, Counter = 3 };

/// A tensor that outlives a run and is shared by the entries of a model.
struct State {
  std::string name;
  TensorInfo info;
  StateKind kind = StateKind::Parameter;
  Blob initial;  ///< empty: zeros
};

/// The contents of a .rt file: named graphs that can be run, and the state that they share.
class DataChecks;  // data_checks.h

struct ModelGraph {
  struct Entry {
    std::string name;
    Graph graph;
  };
  std::string producer;
  std::vector<Entry> entries;
  std::vector<State> states;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::shared_ptr<const DataChecks> checks;  ///< of data that is not verified yet; null: none

  const Graph* entry(std::string_view name) const noexcept;
  Graph* entry(std::string_view name) noexcept;
};

}  // namespace librt
