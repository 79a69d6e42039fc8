// Data sets from their options: which reader, which columns, which part.
//
// Knows: the command line's data options. Must not know: the training loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rttrain/source.h"

namespace rt::train {

/// How files are read; the same for training and validation.
struct DataOptions {
  std::string format = "auto";           ///< auto, npz, npy, csv, tsv, idx, images, text
  bool allow_nonfinite = false;          ///< accept NaN and infinities in arrays
  std::optional<int64_t> ignored_label;  ///< accepted though it is no class: the loss ignores it
  // Tables.
  bool header = true;
  std::string label_column;  ///< name or number; empty: the one named label, labels, target, class or y
  std::string text_column;   ///< name or number; empty: the first one that is not a label
  std::vector<std::string> columns;  ///< features by name or number; empty: all but the label
  bool skip_missing = false;         ///< leave out rows with an empty field instead of refusing them
  bool standardize = false;          ///< scale features to mean 0 and deviation 1 over the training data
  // Texts.
  std::string tokenizer = "bytes";  ///< "bytes", or a tokenizer file of llama2.c
  int64_t sequence = 0;             ///< tokens per sample if the model leaves it dynamic
  int64_t stride = 0;               ///< between the starts of windows; 0: the window's length
  int64_t padding = 0;              ///< token that pads short texts at the end
  // Images.
  std::vector<int64_t> size;  ///< height, width if the model leaves them dynamic
  bool bgr = false;
  size_t cache_bytes = size_t{512} << 20;  ///< cache limit for decoded images
};

/// Properties of the training data needed for validation data and for using the model later.
struct DataFacts {
  std::vector<std::string> classes;
  std::vector<std::string> features;
  std::vector<double> mean, deviation;  ///< per feature, when standardized
};

struct DataFiles {
  std::vector<std::string> paths;
  std::string labels;  ///< IDX and .npy: the file with the labels
};

/// The part [begin, end) of a data set, as fractions of its samples in an order that `seed` shuffles (of a
/// text: of its length, in file order).
struct Part {
  double begin = 0, end = 1;
  uint64_t seed = 0;
};

/// Opens a data set. class_count: of the model, 0 when unknown. facts: filled when empty, otherwise applied.
rt::Result<SourcePtr> open_source(const DataFiles& files, const DataOptions& options, const Part& part,
                                  const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                  DataFacts& facts);

}  // namespace rt::train
