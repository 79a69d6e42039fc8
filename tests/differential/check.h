// Converts a model with dynamic and with static dimensions, runs both, and reports where they differ.
//
// Knows: the library calls that rtconvert makes, sessions. Must not know: how models are generated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/differential/draft.h"
#include "tools/data/array.h"

namespace librt::test {

enum class Fault {
  None,
  WrongResult,       ///< values or shape differ from the static model's
  ResultOfInvalid,   ///< a result where the static model is rejected
  DroppedCheck,      ///< ResultOfInvalid only after optimization, which drops unneeded nodes; no fault
  WrongClaim,        ///< a dimension in the file differs from that of a run
  RefusedRun,        ///< an error where the static model has a result
  RefusedConversion  ///< the dynamic model is not converted, though some static ones are
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
  std::string backend = "cpu";  ///< of the dynamic model's session; "reference" evaluates the compiled graph
  uint64_t seed = 0;            ///< of the input values
  /// Every how many assignments the static model is also optimized and run in a session; 0 for never.
  int sessions_of_fixed = 5;
};

struct Verdict {
  std::vector<Finding> findings;  ///< the first of each fault
  int compared = 0;               ///< assignments at which both have results
  int refused = 0;                ///< assignments that both reject
  int left_out = 0;  ///< assignments at which the static model takes too long, or fails because of its values

  const Finding* find(Fault fault) const;
};

Verdict check_pair(const rt_onnx::ModelProto& model, const std::vector<Assignment>& assignments,
                   const CheckOptions& options);

/// Input values for a static model: floats are multiples of 1/64 in [-4, 4), integers in [0, 7).
std::vector<tools::Array> make_inputs(const rt_onnx::ModelProto& fixed, uint64_t seed);
/// The static model's results, by the reference; nullopt with a message. too_large, if given: set when it was
/// skipped because it would take too long.
std::optional<std::vector<tools::Array>> run_fixed(const rt_onnx::ModelProto& fixed,
                                                   const std::vector<tools::Array>& inputs,
                                                   std::string& error, bool* too_large = nullptr);

}  // namespace librt::test
