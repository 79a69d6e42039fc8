// One conversion: from options to a compiled model, or to the weights in another file, with everything that
// is reported.
//
// Knows: which task the options ask for, and where models come from. Must not know: how options are spelled,
// how a report is shown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/convert/options.h"
#include "tools/convert/summary.h"

namespace librt::convert {

struct Conversion {
  Status status;
  std::vector<std::byte> bytes;  ///< the compiled model, where it is wanted in memory
  onnx::ImportReport import;     ///< also after a failure: what is unsupported, warnings
  Summary summary;               ///< of a compiled model
  std::string passes;            ///< a table of the passes and their times
  std::string graph;             ///< with `inspect`: its text
  std::string text;              ///< the report as lines, or the table of what is unsupported
  std::string json;              ///< the report, or the error, as one object
  std::vector<std::string> warnings;
};

/// Does what the options ask for. check_only: an ONNX model is only imported.
Conversion run_conversion(const Options& options, bool check_only);

/// What can be imported, and the optimization passes, as JSON lists of objects.
std::string operators_json();
std::string passes_json();

}  // namespace librt::convert
