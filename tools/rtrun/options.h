// The command line of rtrun, as data.
//
// Knows: options and their help. Must not know: how anything is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rt/custom.h"
#include "rt/rt.hpp"
#include "tools/rtrun/generate.h"
#include "tools/rtrun/inputs.h"

namespace rt::run {

struct Options {
  std::string model;  ///< compiled, or an ONNX file
  rt::ModelOptions load;
  rt::SessionOptions session;
  InputOptions inputs;
  GenerateOptions generate;
  std::vector<std::string> expect;  ///< NAME=FILE
  std::vector<std::string> save;    ///< NAME=FILE
  std::string checkpoint, adapter;
  std::vector<rt_custom_operator> operators;  ///< of the libraries of --operators
  double rtol = 1e-3;
  double atol = 1e-4;
  bool plan = false;
  bool inspect = false;
  bool json = false;
  bool quiet = false;
  int repeat = 0;
  int64_t top_k = 0;        ///< largest scores to show; 0: the first values
  std::string label_names;  ///< file
};

/// An exit code where nothing is to be run: help was asked for, or an option is wrong, which has been
/// reported.
std::optional<int> parse_options(int argc, char** argv, Options& options);

}  // namespace rt::run
