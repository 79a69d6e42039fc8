// Sources of a run's inputs: files, images, sounds, a test folder, a seed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/data/array.h"
#include "tools/data/image.h"
#include "tools/data/wav.h"

namespace rt::run {

struct InputOptions {
  std::vector<std::string> files;  ///< NAME=FILE
  std::string test_data;           ///< folder with input_I.pb, output_I.pb; empty: none
  bool random = false;
  uint64_t seed = 1;
  std::map<std::string, int64_t> dims;  ///< extents of symbols, for random inputs
  librt::tools::ImageOptions image;
  bool layout_given = false;  ///< image.channels_first was chosen by the user
  bool resize = false;
  int64_t sample_rate = 0;               ///< that sounds must have; 0: any
  std::optional<librt::tools::Mix> mix;  ///< of sounds with several channels
};

/// One array for each input of the session, in order, converted to the input's element type where that is
/// safe.
rt::Result<std::vector<librt::tools::Array>> gather_inputs(const std::vector<rt::TensorSpec>& specs,
                                                           const InputOptions& options);

/// "NAME=FILE" split at the first '='.
rt::Result<std::pair<std::string, std::string>> split_assignment(const std::string& text);

}  // namespace rt::run
