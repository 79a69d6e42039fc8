// The zoo: well-known networks built in code, with seeded weights, so that devices can be compared and
// examples run without external files.
//
// Knows: topologies and how their weights are initialised. Must not know: passes, devices. The graphs are as
// an importer would deliver them (not optimized); constants named "*.weight", "*.bias" and so on can be
// trained.
#pragma once

#include <span>
#include <string_view>

#include "runtime/graph/graph.h"

namespace librt::compiler {

struct ZooEntry {
  const char* name;         ///< "resnet50", used as zoo:resnet50
  const char* description;  ///< one line: input, parameters, source
  Result<ModelGraph> (*build)();
};

std::span<const ZooEntry> zoo();

/// A model by name; NotFound lists the names.
Result<ModelGraph> build_zoo_model(std::string_view name);

}  // namespace librt::compiler
