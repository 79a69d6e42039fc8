// The ONNX importer: a .onnx file becomes a graph of core operators.
//
// Knows: ONNX's file format, its graph rules, the importers of its operators (onnx/ops). Must not know:
// passes, the .rt file, devices.
//
// The result has one entry, "infer", with ONNX's inputs and outputs under their ONNX names. Weights are
// constants named as in the file. Nothing in a hostile file makes it crash, recurse without bound, or take
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

namespace rt::onnx {

/// A tensor that takes the place of a graph input.
struct ConstantInput {
  TensorInfo info;
  Blob data;
};

struct ImportOptions {
  /// Extents for named dimensions: {"batch", 8}. An unknown name is an error that lists the names there are.
  std::map<std::string, int64_t> dims;
  /// The inputs' first axes of extent 1 become the dimension `batch`; an error where there is none, or where
  /// an output does not follow.
  bool open_batch = false;
  /// Graph inputs to bake into the graph, by name.
  std::map<std::string, ConstantInput> constants;
  /// Folder that external data may lie in; empty: external data is refused. import_onnx() sets it.
  std::string external_folder;
  /// More nodes than this, after functions and branches were inlined, are refused.
  size_t max_nodes = 1'000'000;
};

/// A node that could not be imported.
struct UnsupportedNode {
  std::string name;
  std::string op;      ///< "(input)" or "(initializer)" for a value that cannot be held
  std::string domain;  ///< "ai.onnx" for the default domain
  int64_t opset = 0;
  std::string dtype;  ///< of the first input, or "-"
  std::string reason;
  std::string help;  ///< what would make it work
};

struct ImportReport {
  std::vector<UnsupportedNode> unsupported;
  std::vector<std::string> warnings;
  std::string producer;
  int64_t ir_version = 0;
  int64_t opset = 0;
  size_t onnx_nodes = 0;
  std::map<std::string, size_t> op_counts;  ///< ONNX operators by name
};

/// Code::Unsupported when report.unsupported is not empty (the message counts and names the operators),
/// Code::InvalidModel with every problem found when the file breaks ONNX's rules.
Result<ModelGraph> import_onnx(const std::string& path, const ImportOptions& options, ImportReport& report);
Result<ModelGraph> import_onnx_bytes(std::span<const std::byte> bytes, const ImportOptions& options,
                                     ImportReport& report);

/// As last_opset: this version and all that follow.
inline constexpr int kNewestOpset = 1 << 30;

/// One row of `rtconvert --list-ops`.
struct SupportedOp {
  std::string_view domain;
  std::string_view op;
  int first_opset;
  int last_opset;  ///< kNewestOpset: and later ones
};
std::vector<SupportedOp> supported_ops();

/// A table of all unsupported nodes, for people.
std::string table_of(std::span<const UnsupportedNode> nodes);

}  // namespace rt::onnx
