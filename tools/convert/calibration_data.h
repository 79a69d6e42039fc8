// Calibration data: rows that a model is run on for quantization, and their labels, from files or memory.
//
// Knows: file formats of arrays, which array is which input's. Must not know: sessions, ranges.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/progress.h"
#include "tools/data/array.h"

namespace librt::convert {

/// Arrays that are divided among runs.
struct CalibrationBatch {
  std::vector<tools::Array> inputs;  ///< in the model's order
  std::vector<size_t> steps;  ///< for each input the rows of a run; 0: the whole array is for every run
  size_t runs = 1;
  size_t rows = 1;     ///< of a run: the extent of its batch
  size_t runs_to = 0;  ///< the runs of this batch and of those before it, set by CalibrationData::add()
};

/// What a model is run on.
struct CalibrationData {
  std::vector<CalibrationBatch> batches;
  compiler::Progress* progress = nullptr;  ///< gets the stage "calibrate" before each run

  void add(CalibrationBatch batch);
  size_t runs() const { return batches.empty() ? 0 : batches.back().runs_to; }
  /// Of all runs.
  size_t rows() const;
  /// The rows and the inputs of run i.
  size_t rows_of(size_t i) const;
  std::vector<tools::Array> run(size_t i) const;

 private:
  /// The batch of run i, and which of its runs that is.
  std::pair<const CalibrationBatch*, size_t> place_of(size_t i) const;
};

/// path: an .npz file, or a folder of .npy or .pb files, with rows of all runs as for calibration_data(); or
/// a folder of .npz files, each with the inputs of one run, in the order of their names. option: for
/// messages.
Result<CalibrationData> read_calibration_data(const Graph& graph, const std::string& path,
                                              const std::string& option);

/// Arrays in memory, by input name. The first axis of each counts rows; a run takes as many as the input's
/// first axis has, and one where it is dynamic. An array with the shape of an input without dynamic
/// dimensions may be for every run, as that of a scalar is. Rows that do not fill a run are left out. source:
/// where the arrays are from, for messages.
Result<CalibrationData> calibration_data(const Graph& graph, std::vector<tools::Array> arrays,
                                         const std::string& source);

/// The same of batches, from `next` until it has none; rows that do not fill a run wait for the next batch.
/// All of them together are limited as files are.
Result<CalibrationData> calibration_data(
    const Graph& graph, const std::function<Result<std::vector<tools::Array>>(size_t batch)>& next,
    const std::string& source);

/// The class of each row, for --labels: an .npy, .pb or IDX file.
Result<std::vector<int64_t>> read_labels(const std::string& path, size_t rows);

}  // namespace librt::convert
