// `rtbench MODEL --what-if ...` and `rtbench --catalogue`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/rtbench/models.h"

namespace librt::bench {

/// What the command line says.
struct WhatIfCommand {
  std::vector<std::string> devices;  ///< names of the catalogue, or files
  std::vector<std::string> precisions;
  std::vector<int64_t> batches;
  std::map<std::string, int64_t> dims;
  std::vector<tools::Array> rows;  ///< calibration of int8
  int threads = 0;
  std::string price, electricity;
  bool json = false;
};

/// Prints predictions for the described devices and for those of `own` that have a measured profile. Returns
/// an exit code.
int predict_devices(const std::vector<BenchModel>& models, const std::vector<rt::DeviceInfo>& own,
                    const WhatIfCommand& command);
/// Prints the catalogue.
int list_catalogue();

}  // namespace librt::bench
