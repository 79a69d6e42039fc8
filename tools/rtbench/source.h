// Models and extents as a command line names them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/measure.h"
#include "tools/rtbench/models.h"

namespace librt::bench {

/// A model by its name on the command line; an ONNX file is compiled. An exit code if it is none, and the
/// reason on stderr.
std::optional<BenchModel> open_source(const std::string& source, Mode mode, int& code);

/// "NAME=EXTENT", each.
rt::Status read_dims(const std::vector<std::string>& texts, std::map<std::string, int64_t>& dims);
/// Every extent of options.dims must be that of a dynamic dimension of one of the models.
rt::Status check_dims(const std::vector<BenchModel>& models, const MeasureOptions& options);

}  // namespace librt::bench
