// Tables: numeric columns as one data input, or a text column as tokens; a label column.
#pragma once

#include "tools/rttrain/data.h"

namespace rt::train {

/// If the model's data input is an integer type, reads the text column, tokenized, truncated and padded to
/// the input's length; otherwise numeric columns in order. Labels that are all whole numbers are used as they
/// are, all others are class names, numbered in sorted order. Errors name line and column.
rt::Result<SourcePtr> open_table(const std::string& path, const DataOptions& options, char delimiter,
                                 const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                 DataFacts& facts);

/// Position of `name` in the sorted list of classes; an error lists them.
rt::Result<int64_t> class_of(const std::string& name, const std::vector<std::string>& classes);

}  // namespace rt::train
