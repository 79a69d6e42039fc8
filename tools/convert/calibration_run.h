// Runs a model on calibration data in sessions of the CPU backend, and observes values of its graph.
//
// Knows: how to run a changed copy of a graph, and what is observed. Must not know: which nodes are
// quantized, files.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/compiler/quantize/calibrate.h"
#include "tools/convert/calibration_data.h"
#include "tools/convert/run_session.h"

namespace librt::convert {

/// Called for output i of a run.
using OnOutput = std::function<Status(size_t run, size_t i, const Runner::Output& output)>;

/// Runs the graph, with the states of `model`, on the first `runs` runs of the data.
Status for_each_output(const ModelGraph& model, Graph graph, const CalibrationData& data, size_t runs,
                       const OnOutput& on_output);

/// The elements of an f32 output.
std::span<const float> floats(const Runner::Output& output);

/// Observes the values that a choice of quantized nodes needs ranges for.
class Observer {
 public:
  /// calibration: "minmax", "entropy" or "percentile", with its percentile. All references must outlive the
  /// observer.
  Observer(const ModelGraph& model, const Graph& graph, const CalibrationData& data,
           const std::string& calibration, double percentile)
      : model_(model), graph_(graph), data_(data), calibration_(calibration), percentile_(percentile) {}

  /// Fills `observed` for all values of the choice that it lacks: one run over the data for extremes and
  /// means, and one more for histograms unless the method is minmax. A value with infinities is in `infinite`
  /// afterwards; NaN, and infinities in inputs of the graph, are errors.
  Status run(const compiler::QuantizationChoice& choice);

  std::map<ValueId, compiler::Observed> observed;
  std::set<ValueId> infinite;

 private:
  Status observe_extremes(const std::vector<ValueId>& values);
  Status clip_ranges(const std::vector<ValueId>& values);

  const ModelGraph& model_;
  const Graph& graph_;
  const CalibrationData& data_;
  const std::string& calibration_;
  double percentile_;
};

}  // namespace librt::convert
