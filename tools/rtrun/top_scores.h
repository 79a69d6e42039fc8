// The largest scores of a classifier's outputs, with the names of their classes.
//
// Knows: arrays and a file of names. Must not know: sessions, how results are printed.
#pragma once

#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/data/array.h"

namespace rt::run {

struct Score {
  size_t index = 0;
  double value = 0;
};

/// The `count` largest elements along the last axis, for each row of the others, largest first; NaN is below
/// all numbers. The array has at least one axis.
std::vector<std::vector<Score>> top_scores(const librt::tools::Array& array, size_t count);

/// One name per line; empty lines at the end are left out.
rt::Result<std::vector<std::string>> read_label_names(const std::string& path);

}  // namespace rt::run
