// Converts a model with open dimensions and with every dimension fixed, runs both, and says where they part.
//
// Knows: the library calls that rtconvert makes, sessions. Must not know: how models are made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/differential/draft.h"
#include "tools/common/array.h"

namespace rt::test {

enum class Fault {
  None,
  WrongResult,       ///< other numbers or another shape than the fixed model's
  ResultOfInvalid,   ///< a result where the fixed model is refused
  DroppedCheck,      ///< the same only after optimization, which drops nodes that no result needs; no fault
  WrongClaim,        ///< a dimension in the file is not the one that a run gives
  RefusedRun,        ///< an error where the fixed model has a result
  RefusedConversion  ///< the open model is not converted, though some fixed ones work
};
inline constexpr Fault kFaults[] = {Fault::WrongResult, Fault::ResultOfInvalid, Fault::DroppedCheck,
                                    Fault::WrongClaim,  Fault::RefusedRun,      Fault::RefusedConversion};
const char* name_of(Fault fault);

struct Finding {
  Fault fault = Fault::None;
  std::string what;
  Assignment at;
};

struct CheckOptions {
  std::string backend = "cpu";  ///< of the open model's session; "reference" evaluates the compiled graph
  uint64_t seed = 0;            ///< of the inputs' values
  /// Every how many assignments the fixed model is also optimized and run in a session; 0 for never.
  int sessions_of_fixed = 5;
};

struct Verdict {
  std::vector<Finding> findings;  ///< of each fault the first
  int compared = 0;               ///< assignments at which both gave results
  int refused = 0;                ///< assignments that both refuse
  int left_out = 0;  ///< assignments at which the fixed model takes too long, or fails for its values

  const Finding* find(Fault fault) const;
};

Verdict check_pair(const rt_onnx::ModelProto& model, const std::vector<Assignment>& assignments,
                   const CheckOptions& options);

/// Values for a fixed model's inputs: floats are multiples of 1/64 in [-4, 4), integers in [0, 7).
std::vector<tools::Array> make_inputs(const rt_onnx::ModelProto& fixed, uint64_t seed);
/// The fixed model's results, by plain loops; nullopt with a message. too_large, if given: set when there is
/// no result because it would take too long.
std::optional<std::vector<tools::Array>> run_fixed(const rt_onnx::ModelProto& fixed,
                                                   const std::vector<tools::Array>& inputs,
                                                   std::string& error, bool* too_large = nullptr);

}  // namespace rt::test
