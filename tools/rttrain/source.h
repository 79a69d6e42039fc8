// Data sources: indexed samples that match the inputs of a training step.
//
// Knows: the interface between data sets and the loader. Must not know: files, batches, sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rt/rt.hpp"
#include "tools/data/digest.h"
#include "tools/data/file.h"

namespace rt::train {

/// One model input that is fed from data.
struct Column {
  std::string input;  ///< name of the model input
  rt::DType dtype = rt::DType::F32;
  std::vector<int64_t> dims;  ///< of a sample: without the batch axis
  size_t bytes = 0;           ///< of a sample
  bool is_label = false;      ///< `labels` or `target`

  size_t elements() const noexcept { return bytes / rt::size_of(dtype); }
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  virtual size_t size() const noexcept = 0;
  /// Writes sample `index`, column.bytes to each target. Called by several threads concurrently.
  virtual rt::Status read(size_t index, std::span<std::byte* const> targets) const = 0;
  /// Equal for equal samples in the same order. Images in files are known by their names and sizes.
  virtual librt::tools::Digest digest() const = 0;

  const std::vector<Column>& columns() const noexcept { return columns_; }
  /// Class names in the order of their labels; empty when the data has only numeric labels.
  const std::vector<std::string>& classes() const noexcept { return classes_; }

 protected:
  std::vector<Column> columns_;
  std::vector<std::string> classes_;
};

using SourcePtr = std::unique_ptr<Source>;

/// Whether a model input is for labels or targets.
inline bool is_label_name(std::string_view input) noexcept {
  return input == "labels" || input == "target";
}

inline rt::Status bad_data(std::string message) {
  return {rt::Code::InvalidArgument, std::move(message)};
}

}  // namespace rt::train
