// A data set in memory: arrays of samples that fit the inputs of a training step.
//
// Knows: .npz files, matching arrays to inputs, converting types, drawing batches in a seeded order. Must not
// know: sessions, the training loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rt/rt.hpp"

namespace rt::train {

/// One input's samples, already in the input's dtype and per-sample shape.
struct Column {
  std::string input;  ///< name of the model input
  rt::DType dtype = rt::DType::F32;
  std::vector<int64_t> sample_dims;  ///< without the batch axis
  size_t sample_bytes = 0;
  std::vector<std::byte> bytes;
};

class Dataset {
 public:
  /// Reads `path` and fits it to `inputs` (those fed from data: the first axis of each is the batch). An
  /// array fits an input by its name; with exactly one data input and one label input also by order of use:
  /// `inputs`, `x`, `images`, `data` and `labels`, `y`, `targets`. Integers become floats where the input
  /// wants floats, multiplied by `scale`. Per-sample shapes must have equal element counts ([N,28,28] fits
  /// [batch,28,28,1]).
  static rt::Result<Dataset> load(const std::string& path, const std::vector<rt::TensorSpec>& inputs,
                                  double scale);

  size_t size() const noexcept { return size_; }
  const std::vector<Column>& columns() const noexcept { return columns_; }
  const Column* column(const std::string& input) const noexcept;
  /// Gathers samples `order[first .. first + count)` of a column.
  rt::Tensor batch(const Column& column, const std::vector<uint32_t>& order, size_t first,
                   size_t count) const;

 private:
  size_t size_ = 0;
  std::vector<Column> columns_;
};

/// The order of the samples in an epoch: depends on (size, seed, epoch) alone, so that a resumed run
/// continues with the very same batches. Without shuffling: 0, 1, 2, ...
std::vector<uint32_t> epoch_order(size_t size, uint64_t seed, uint64_t epoch, bool shuffle);

}  // namespace rt::train
