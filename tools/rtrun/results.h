// The outputs of a run: compared with expected ones, saved, shown as text or JSON.
//
// Knows: arrays, files, how results are shown. Must not know: how a run is made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rt/rt.hpp"
#include "tools/data/array.h"
#include "tools/rtrun/options.h"

namespace rt::run {

/// An output's index, and what it must be.
using Expected = std::pair<size_t, librt::tools::Array>;

/// The expected outputs: by --expect, and all output_I.pb of --test-data that exist.
rt::Result<std::vector<Expected>> read_expected(const Options& options,
                                                const std::vector<rt::TensorSpec>& outputs);

/// In seconds.
struct Times {
  double load = 0, session = 0, first_run = 0;
  double median = 0;  ///< of the repeated runs; 0: none
};

struct Results {
  std::vector<librt::tools::Array> outputs;
  std::vector<Expected> expected;
  std::vector<std::string> label_names;  ///< of the classes of an output; empty: not given
  Times times;
};

/// The file --label-names; it must name the classes of one of the outputs.
rt::Result<std::vector<std::string>> read_names(const Options& options,
                                                const std::vector<librt::tools::Array>& outputs);

/// Writes the files of --save.
rt::Status save_outputs(const Options& options, const std::vector<librt::tools::Array>& outputs);

/// Results on stdout, the device and times on stderr; returns kFine, or kDifferent where an output is not as
/// expected.
int show(const rt::Session& session, const Options& options, const Results& results);

}  // namespace rt::run
