// --verify: is the compiled model still the same function?
//
// Knows: reference evaluation, random inputs, comparisons. Must not know: ONNX, options' spelling.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/graph/graph.h"
#include "tools/compiler/progress.h"
#include "tools/data/array.h"

namespace librt::convert {

struct VerifyOptions {
  std::map<std::string, std::string> inputs;  ///< name -> file; the rest is random
  std::string backend;                        ///< also a session on this backend, where not empty
  uint64_t seed = 1;
  double rtol = 1e-3;
  double atol = 1e-4;
  compiler::Progress* progress = nullptr;  ///< gets the stages "verify" and "measure" before each run
};

/// Inputs of the entry `infer` of these shapes, from files or random. Without shapes: at extents that the
/// model accepts.
Result<std::vector<tools::Array>> make_inputs(const ModelGraph& model, const VerifyOptions& options,
                                              const std::vector<TensorInfo>& infos);
Result<std::vector<tools::Array>> make_inputs(const ModelGraph& model, const VerifyOptions& options);

struct VerifyLine {
  std::string what;  ///< "compiled" or the backend
  std::string at;    ///< the extents of dynamic dimensions
  std::string output;
  bool equal = false;
  double largest = 0;  ///< absolute difference
  std::string text;
};

/// Compares the entry `infer` of a compiled model with that of `original`, on the reference evaluator and, if
/// requested, in a session: at several extents of dynamic dimensions (verify_extents.h), or with the inputs
/// from files. file: the bytes of a .rt file.
Result<std::vector<VerifyLine>> verify_compiled(const ModelGraph& original, std::span<const std::byte> file,
                                                const VerifyOptions& options);

}  // namespace librt::convert
