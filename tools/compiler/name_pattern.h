// Shell patterns over names of nodes and weights: "head*,conv1".
#pragma once

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <vector>

namespace librt::compiler {

inline bool is_match(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

inline bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return is_match(pattern, name); });
}

}  // namespace librt::compiler
