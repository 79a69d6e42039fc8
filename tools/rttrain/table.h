// Tables: numeric columns as one data input, or a column of text as tokens; a column of labels.
#pragma once

#include "tools/rttrain/data.h"

namespace rt::train {

/// A model whose data input takes integers reads the text column, tokenized, cut and padded to the input's
/// length; any other reads numeric columns in order. Labels that are all whole numbers stand for themselves,
/// any others are named classes, numbered in sorted order. Errors name line and column.
rt::Result<SourcePtr> open_table(const std::string& path, const DataOptions& options, char delimiter,
                                 const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                 DataFacts& facts);

/// Position of `name` in the sorted list of classes; an error lists them.
rt::Result<int64_t> class_of(const std::string& name, const std::vector<std::string>& classes);

}  // namespace rt::train
