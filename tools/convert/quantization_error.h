// How much quantization changes results: of each node alone, of the model's outputs, and its accuracy.
//
// Knows: the measures. Must not know: how nodes are chosen, files, options.
#pragma once

#include <map>
#include <vector>

#include "tools/convert/calibration_run.h"
#include "tools/convert/quantization_report.h"

namespace librt::convert {

/// A line for each matmul and convolution of the choice, worst first: its signal-to-noise ratio when only it
/// is quantized.
Result<std::vector<QuantizationReport::Line>> measure_nodes(
    const ModelGraph& model, const Graph& graph, const compiler::QuantizationChoice& choice,
    const std::map<ValueId, compiler::Observed>& observed, const CalibrationData& data);

/// Errors of outputs against f32, on the first runs.
class OutputError {
 public:
  OutputError(const ModelGraph& model, const CalibrationData& data);

  /// The outputs of this graph are the expected ones.
  Status remember(const Graph& real);
  /// The largest error of an output.
  Result<double> of(const Graph& graph) const;

 private:
  const ModelGraph& model_;
  const CalibrationData& data_;
  size_t runs_;
  std::vector<tools::Array> want_;  ///< run by run, all outputs
};

/// The share of rows whose largest score in the first output is the label's.
Result<double> accuracy_of(const ModelGraph& model, const Graph& graph, const CalibrationData& data,
                           const std::vector<int64_t>& labels);

}  // namespace librt::convert
