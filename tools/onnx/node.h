// The view of one ONNX node for its operator's importer: attributes, inputs, and the builder to write with.
//
// Knows: attributes, versions, how to report "unsupported". Must not know: names and scopes (importer.cpp
// resolves them).
//
// An importer reads every attribute that it understands; a node with an attribute that was not read is
// refused, so that nothing is silently ignored.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/emitter.h"
#include "tools/compiler/builder.h"
#include "tools/onnx/bodies.h"
#include "tools/onnx/import.h"

namespace rt_onnx {
class AttributeProto;
class NodeProto;
class TensorProto;
}  // namespace rt_onnx

namespace librt::onnx {

/// ONNX types of values that are stored in a wider type; 0 for a value that was checked and has none.
using NarrowTypes = std::map<ValueId, int>;
/// A string tensor is stored as indices into a list of strings.
using StringList = std::shared_ptr<const std::vector<std::string>>;
using StringLists = std::map<ValueId, StringList>;
/// What a node without attributes makes of its input.
using ValuesByInput = std::map<ValueId, ValueId>;

/// State besides the graph that a node's importer reads and writes.
struct ImportNotes {
  NarrowTypes& narrow;
  StringLists& strings;
  ValuesByInput& positions;  ///< NonZero of values
  std::vector<std::string>& warnings;
  std::map<std::string, std::string>& metadata;
  std::set<std::string>& detached;  ///< names of values that no gradient flows through
  const ImportOptions& options;
  std::span<const std::string> model_inputs;  ///< that could be given with --constant
  std::string_view producer;                  ///< that wrote the model, "" where it does not say
  BodyWriter& bodies;
};

class NodeContext {
 public:
  NodeContext(compiler::Builder& builder, ImportNotes notes, const rt_onnx::NodeProto& proto,
              int64_t opset_version, std::vector<ValueId> node_inputs);

  compiler::Builder& emit;
  const rt_onnx::NodeProto& node;
  const ImportOptions& options;
  const int64_t opset;
  const std::vector<ValueId> inputs;  ///< kNoValue for absent ones
  std::vector<ValueId> outputs;       ///< the importer's results, one per requested output of the node

  bool has(size_t i) const { return i < inputs.size() && inputs[i] != kNoValue; }
  ValueId input(size_t i) const { return i < inputs.size() ? inputs[i] : kNoValue; }
  const Value& value(ValueId id) const { return emit.value(id); }
  DType dtype(size_t i = 0) const { return value(inputs[i]).dtype; }
  int rank(size_t i = 0) const { return value(inputs[i]).rank(); }
  /// The extent of an axis of input i, -1 while unknown.
  int64_t extent(size_t i, int axis) const { return value(inputs[i]).dims[static_cast<size_t>(axis)].extent; }
  /// The ONNX type of input i where librt stores it in a wider one, else 0.
  int narrow_type(size_t i) const;
  /// Sets a result's narrow ONNX type; the default is that of input 0, for results of the same dtype.
  void set_narrow_type(ValueId id, int type) { notes_.narrow[id] = type; }
  /// The list that the elements of input i index; null if it has no strings. An importer that does not call
  /// this gets no strings: see check_all_read().
  StringList strings(size_t i);
  /// NonZero of a value, one for all of its uses: exporters write it once for each, and two nodes would have
  /// two numbers of positions, unrelated to all that is inferred.
  ValueId positions_of(ValueId id);
  void set_strings(ValueId id, StringList list) { notes_.strings[id] = std::move(list); }
  /// Whether PyTorch wrote the model, whose meaning counts where it differs from ONNX's definition.
  bool is_from_pytorch() const { return notes_.producer.starts_with("pytorch"); }
  BodyWriter& bodies() const { return notes_.bodies; }
  void warn(std::string text) const { notes_.warnings.push_back(std::move(text)); }
  /// For the model's metadata.
  void add_metadata(const std::string& key, std::string value) { notes_.metadata[key] = std::move(value); }
  /// No gradient flows through the node's result.
  void detach_result();
  size_t output_count() const;
  /// Whether the node names output i.
  bool wants(size_t i) const;

  // --- attributes; each call marks the attribute as read
  const rt_onnx::AttributeProto* attribute(std::string_view name);
  int64_t integer(std::string_view name, int64_t otherwise);
  float real(std::string_view name, float otherwise);
  std::string string(std::string_view name, std::string_view otherwise);
  std::vector<int64_t> integers(std::string_view name);
  std::optional<std::vector<int64_t>> optional_integers(std::string_view name);
  std::vector<float> reals(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  /// Null when it is absent.
  const rt_onnx::TensorProto* tensor(std::string_view name);
  /// For attributes that do not change the result.
  void ignore(std::initializer_list<std::string_view> names);
  /// Ok, or an error with the attributes, or the inputs of strings, that were not read.
  Status check_all_read() const;

  // --- constants
  /// The integers of an input that is known while importing; unsupported otherwise, naming `what`.
  Result<std::vector<int64_t>> known_integers(size_t i, std::string_view what) const;
  Result<std::vector<double>> known_reals(size_t i, std::string_view what) const;
  /// The error for an input that must be known: which inputs of the model to give with --constant, or what
  /// else helps.
  Status not_known(size_t i, std::string_view what) const;
  Result<ValueId> constant_of(const rt_onnx::TensorProto& proto);

  /// Sets the single output.
  Status result(ValueId id) {
    outputs.assign(1, id);
    return {};
  }
  /// Fails unless there are between least and most inputs, the first `least` of them present.
  Status expect_inputs(size_t least, size_t most) const;
  /// The axis normalized to [0, rank).
  Result<int> axis(int64_t axis, int rank) const;

 private:
  const rt_onnx::AttributeProto* typed(std::string_view name, int type);

  ImportNotes notes_;
  std::vector<std::string> mistyped_;
  std::set<std::string, std::less<>> read_;
  std::set<size_t> strings_read_;  ///< inputs
};

using ImportFunction = Status (*)(NodeContext& context);

/// One way of importing one operator at a range of opset versions.
struct ImportRow {
  std::string_view domain;  ///< "" is ai.onnx
  std::string_view op;
  int first_opset;
  int last_opset;
  ImportFunction import;
};

/// All rows of onnx/ops/*.cpp.
std::span<const ImportRow> import_rows();
/// Null when there is none.
const ImportRow* find_import_row(std::string_view domain, std::string_view op, int64_t opset);

/// Advice for operators that are specific to the runtime that wrote them.
inline constexpr std::string_view kWithoutFusion =
    "export without runtime-specific optimization (ONNX Runtime: at most optimization level basic)";

/// The error for a node that is not supported: the reason and, after "; ", advice.
template <class... Parts>
Status cannot(const Parts&... parts) {
  return unsupported(parts...);
}

}  // namespace librt::onnx
