// Samples from arrays in memory: .npz and IDX files, and what tables and texts become.
//
// Knows: matching arrays to inputs, element types. Must not know: files.
#pragma once

#include <string>
#include <vector>

#include "tools/common/array.h"
#include "tools/rttrain/source.h"

namespace rt::train {

/// Samples lie along the first axis of each array. An array fits an input by its name; else by use: `inputs`,
/// `input`, `x`, `images`, `data`, `features` for data, `labels`, `label`, `y`, `targets`, `target`,
/// `classes` for labels. Per-sample element counts must be equal ([N,28,28] fits [batch,28,28,1]). Elements
/// are converted when they are read; an input of integers takes whole numbers only, one of floats finite
/// numbers unless others are allowed. where: the file, for messages. class_count: labels must be below it; 0:
/// unknown.
rt::Result<SourcePtr> source_of(std::vector<tools::Array> arrays, const std::string& where,
                                const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                bool allow_nonfinite, std::vector<std::string> classes = {});

/// The column for an input whose extents are all known after the open ones were filled from `dims`, which has
/// the batch axis too. The error names the input.
rt::Result<Column> column_for(const rt::TensorSpec& input, const std::vector<int64_t>& dims);

/// The only input that is no label; an error lists the inputs when there are several.
rt::Result<rt::TensorSpec> only_data_input(const std::vector<rt::TensorSpec>& inputs, const char* kind);

/// "[1,28,28]"
std::string shape_text(std::span<const int64_t> dims);

}  // namespace rt::train
