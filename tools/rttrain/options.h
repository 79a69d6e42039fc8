// rttrain's command line.
//
// Knows: option names, their help and checks. Must not know: how anything is done.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_line.h"
#include "tools/rttrain/data.h"
#include "tools/rttrain/facts.h"
#include "tools/rttrain/loop_options.h"

namespace rt::train {

struct Options {
  std::string model;
  DataFiles training, validation;
  double validate_fraction = 0;
  DataOptions data;
  Normalization normalization;
  std::vector<std::string> augment;
  rt::ModelOptions load;
  rt::SessionOptions session;
  LoopOptions loop;
  bool no_header = false, no_shuffle = false;
  std::string target, log, tensorboard;
  std::string schedule = "constant";
  std::string on_device_lost = "stop";
  double time_limit = 0;  ///< seconds of a run on the device; 0: none
  std::vector<std::string> operator_libraries;
  std::vector<rt_custom_operator> operators;  ///< of these libraries
  std::string share = "equal";
  std::string deterministic;  ///< "ranks", "run", or empty
  RankLimits ranks;
  Facts facts;  ///< of the command line
  librt::tools::Option *batch = nullptr, *micro_batch = nullptr, *memory = nullptr, *learning_rate = nullptr;

  bool validates() const { return !validation.paths.empty() || validate_fraction > 0; }
};

void declare(librt::tools::CommandLine& app, Options& options);
/// Checks options against each other and completes the settings of the loop.
rt::Status check(Options& options);
/// The options that ranks must have in common, as given on the command line.
Facts facts_of(const librt::tools::CommandLine& app);
/// Settings besides the seed that determine the batches: compared when a run is resumed.
std::string data_text(const Options& options);

}  // namespace rt::train
