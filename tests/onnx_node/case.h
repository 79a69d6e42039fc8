// One conformance case: its row in cases.tsv, its tensors, and the comparison of results.
//
// Knows: the archive's layout and ONNX's tolerance rule. Must not know: how a case is run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::test {

struct Case {
  std::string name;
  std::string op;
  int tier = 3;
  std::vector<std::string> baked;  ///< inputs whose values become constants
  bool shape_only = false;         ///< random results: only type and shape are compared
  double relative = 1e-3;
  double absolute = 1e-7;
};

/// The rows of cases.tsv, or those of models.tsv, whose names are folders "light/light_resnet50" and whose
/// tier is 1; empty with a message when the file cannot be read.
std::vector<Case> read_cases(const std::string& path, std::string& error);

/// input_K.pb or output_K.pb of a case's folder, in order. nullopt for missing ones in between.
std::optional<std::vector<std::optional<tools::Array>>> read_tensors(const std::string& folder,
                                                                     const std::string& stem,
                                                                     std::string& error);

/// Empty when `got` matches `want`, else the first difference.
std::string difference(const tools::Array& got, const tools::Array& want, const Case& rules);

/// Lines `name TAB reason`; '#' begins a comment.
std::map<std::string, std::string> read_skips(const std::string& path, std::string& error);

}  // namespace librt::test
