// What the command line of a study asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/measure.h"
#include "tools/rtbench/mode.h"

namespace librt::bench {

/// Data and target of a training, as rttrain takes them.
struct TargetOptions {
  std::vector<std::string> arguments;  ///< for rttrain: --data, --labels, ... with their values
  std::string target;                  ///< "accuracy=0.985"; empty: none
  uint64_t seed = 0;
  double most_seconds = 0;  ///< for each device; 0: no limit but the budget
};

struct StudyOptions {
  std::string model;  ///< as on the command line
  std::vector<std::string> backends = {"all"};
  std::vector<std::string> precisions;  ///< empty: all that a mode has
  std::vector<Mode> modes = {Mode::Infer};
  MeasureOptions measure;  ///< seconds: for each point, of a study without a budget
  std::optional<double> budget_seconds;
  int64_t largest_batch = 4096;
  bool check = true;  ///< compare outputs
  TargetOptions target;
  std::vector<std::string> predicted;   ///< names of described devices, which --price may also name
  std::string price;                    ///< "cpu=0.17,cuda=3.99", per hour; empty: none
  std::string electricity;              ///< "0.30", per kWh; empty: none
  std::vector<std::string> peers;       ///< other engines to measure beside
  std::string peer_python = "python3";  ///< where they are installed
  std::vector<std::string> arguments;   ///< the command line
};

}  // namespace librt::bench
