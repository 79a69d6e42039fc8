// ONNX models of any number of nodes, each of a form that some step of a conversion could take quadratic time
// for.
//
// Knows: ONNX's messages. Must not know: how they are converted and measured.
#pragma once

#include <span>
#include <string_view>

#include "tools/onnx/onnx.pb.h"

namespace librt::test {

struct LargeModel {
  std::string_view name;
  std::string_view what;  ///< one line for the table
  /// About this many nodes, outputs, constants or dimensions; at least 2.
  rt_onnx::ModelProto (*make)(int count);
  bool trains = false;   ///< a train_step is added
  bool runs = true;      ///< a session runs it
  bool refused = false;  ///< it cannot be converted: what is measured is the time to the message
};

std::span<const LargeModel> large_models();

}  // namespace librt::test
