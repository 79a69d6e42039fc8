// Samples from arrays in memory: .npz, .npy and IDX files, converted tables and texts.
//
// Knows: matching arrays to inputs, element types. Must not know: files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/data/array.h"
#include "tools/rttrain/source.h"

namespace rt::train {

/// What the values of arrays may be.
struct ValueRules {
  int64_t class_count = 0;               ///< labels must be below it; 0: unknown
  std::optional<int64_t> ignored_label;  ///< accepted though it is no class
  bool allow_nonfinite = false;
};

/// "label 12, the model has 10 classes"; empty if the label is a class or the ignored one.
std::string label_problem(int64_t label, int64_t class_count, const std::optional<int64_t>& ignored);

/// Samples are stacked along the first axis of each array. An array matches an input by its name; otherwise
/// by role: `inputs`, `input`, `x`, `images`, `data`, `features` for data, `labels`, `label`, `y`, `targets`,
/// `target`, `classes` for labels. Per-sample element counts must be equal ([N,28,28] fits [batch,28,28,1]).
/// Elements are converted when they are read; integer inputs accept only whole numbers, float inputs only
/// finite numbers unless non-finite ones are allowed. Label sequences (with `label_lengths`) may have any
/// padding. where: the file, for messages.
rt::Result<SourcePtr> source_of(std::vector<librt::tools::Array> arrays, const std::string& where,
                                const std::vector<rt::TensorSpec>& inputs, const ValueRules& rules,
                                std::vector<std::string> classes = {});

/// The column for an input; its dynamic dimensions are filled from `dims`, which includes the batch axis, and
/// all must then be known. The error names the input.
rt::Result<Column> column_for(const rt::TensorSpec& input, const std::vector<int64_t>& dims);

/// The only input that is not a label; if there are several, the error lists them.
rt::Result<rt::TensorSpec> only_data_input(const std::vector<rt::TensorSpec>& inputs, const char* kind);

using librt::tools::shape_text;

}  // namespace rt::train
