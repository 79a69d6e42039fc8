// Calibration data: rows that a model is run on for quantization, and their labels, from files or memory.
//
// Knows: file formats of arrays, which array is which input's. Must not know: sessions, ranges.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/progress.h"
#include "tools/data/array.h"

namespace librt::convert {

/// For each input of the model an array whose first axis counts the rows.
struct CalibrationData {
  std::vector<tools::Array> inputs;  ///< in the model's order
  size_t rows = 0;
  size_t step = 1;                         ///< rows of one run
  compiler::Progress* progress = nullptr;  ///< gets the stage "calibrate" before each run on the rows

  /// Run i's inputs.
  std::vector<tools::Array> run(size_t i) const;
  size_t runs() const { return rows / step; }
};

/// path: an .npz file, or a folder of .npy or .pb files. option: for messages.
Result<CalibrationData> read_calibration_data(const Graph& graph, const std::string& path,
                                              const std::string& option);

/// Arrays in memory, by input name. source: where they are from, for messages.
Result<CalibrationData> calibration_data(const Graph& graph, const std::vector<tools::Array>& arrays,
                                         const std::string& source);

/// The class of each row, for --labels: an .npy, .pb or IDX file.
Result<std::vector<int64_t>> read_labels(const std::string& path, size_t rows);

}  // namespace librt::convert
