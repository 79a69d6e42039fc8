// The ONNX importer: a .onnx file becomes a graph of core operators.
//
// Knows: ONNX's file format, its graph rules, the importers of its operators (onnx/ops). Must not know:
// passes, the .rt file, devices.
//
// The result has one entry, "infer", with ONNX's inputs and outputs under their ONNX names. Weights are
// constants named as in the file. A malicious file cannot make it crash, recurse without bound, or take
// memory out of proportion to the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/graph/graph.h"
#include "tools/compiler/progress.h"
#include "tools/compiler/train/known_weights.h"
#include "tools/data/array.h"
#include "tools/onnx/untie.h"

namespace rt_onnx {
class ModelProto;
}

namespace librt::onnx {

/// A tensor that replaces a graph input.
struct ConstantInput {
  TensorInfo info;
  Blob data;
  /// Instead of the two above: "0.5" or "1,2,3", in the input's declared type and shape.
  std::string numbers = {};
};

struct ImportOptions {
  /// Extents for named dimensions: {"batch", 8}. An unknown name is an error that lists the known ones.
  std::map<std::string, int64_t> dims;
  /// First axes of extent 1 of inputs become the dynamic dimension `batch`, and what constants hold of it
  /// with them (opened_batch.h); an error if there is none, or if an output's first axis stays static.
  bool open_batch = false;
  /// Graph inputs that become constants, by name. Symbols in their shapes get the extents that these have.
  std::map<std::string, ConstantInput> constants;
  /// KV caches grow by concatenation: all past keys and values are taken to be valid, whatever the lengths
  /// given to GroupQueryAttention.
  bool caches_grow = false;
  /// For training: every parameter gets its own initializer (untie.h, retie.h), and the report lists which
  /// are weights.
  bool untie = false;
  std::vector<std::string> tie;  ///< shell patterns of names that stay tied, see untie.h
  /// Folder that may hold external data; empty: external data is refused. import_onnx() sets it.
  std::string external_folder;
  /// Nodes of these domains are kept as operators of the application (Custom), and those that custom_outputs
  /// names: DOMAIN:OPERATOR to the signature of custom.h. Without one, the model declares types and shapes of
  /// results. A name that the model does not have is an error.
  std::vector<std::string> custom_domains;
  std::map<std::string, std::string> custom_outputs;
  /// More nodes than this, after functions and branches were inlined, are refused.
  size_t max_nodes = 1'000'000;
  /// Replace the weights of their names; null: none. weights_source: for messages.
  const std::vector<tools::Array>* weights = nullptr;
  std::string weights_source;
  compiler::Progress* progress = nullptr;  ///< gets the stage "import" before each node
};

/// A node that could not be imported.
struct UnsupportedNode {
  std::string name;
  std::string op;      ///< "(input)" or "(initializer)" for a value that librt cannot represent
  std::string domain;  ///< "ai.onnx" for the default domain
  int64_t opset = 0;
  std::string dtype;  ///< of the first input, or "-"
  std::string reason;
  std::string help;      ///< what would make it work
  bool refused = false;  ///< by shape or type inference, not for lack of a kernel or an operator
};

/// The dimension that ImportOptions::open_batch makes.
inline constexpr const char* kOpenedBatch = "batch";
/// Whether the dimension is that one.
bool is_opened_batch(const Graph& graph, const Dim& dim);

struct ImportReport {
  std::vector<UnsupportedNode> unsupported;
  std::vector<std::string> warnings;
  std::vector<SharedWeight> shared;  ///< with `untie` or `weights`: initializers that have several uses
  std::vector<std::string> lost;     ///< with `untie`: what cannot be trained because the exporter removed it
  compiler::KnownWeights weights;    ///< with `untie`
  std::set<std::string> detached;    ///< values that PyTorch's gradient does not flow through
  std::vector<std::string> kept;     ///< weights that `weights` did not replace
  std::string producer;
  int64_t ir_version = 0;
  int64_t opset = 0;
  size_t onnx_nodes = 0;
  std::map<std::string, size_t> op_counts;  ///< ONNX operators by name
  /// For the model's metadata: "labels.OUTPUT" is the JSON list of strings that an output's values index.
  std::map<std::string, std::string> metadata;
};

/// Code::Unsupported when report.unsupported is not empty (the message counts and names the operators),
/// Code::InvalidModel with every problem found when the file breaks ONNX's rules.
Result<ModelGraph> import_onnx(const std::string& path, const ImportOptions& options, ImportReport& report);
Result<ModelGraph> import_onnx_bytes(std::span<const std::byte> bytes, const ImportOptions& options,
                                     ImportReport& report);
/// The same of a parsed model, whose weights move into the graph.
Result<ModelGraph> import_onnx_proto(rt_onnx::ModelProto& proto, const ImportOptions& options,
                                     ImportReport& report);

/// The newest opset of ONNX whose operators were compared with their specification (ONNX 1.21).
inline constexpr int kNewestKnownOpset = 26;
/// The last_opset of an operator that is supported in all later versions.
inline constexpr int kNewestOpset = 1 << 30;

/// One row of `rtconvert --list-ops`.
struct SupportedOp {
  std::string_view domain;
  std::string_view op;
  int first_opset;
  int last_opset;  ///< kNewestOpset: and later ones
};
std::vector<SupportedOp> supported_ops();

/// A human-readable table of all unsupported nodes.
std::string table_of(std::span<const UnsupportedNode> nodes);

}  // namespace librt::onnx
