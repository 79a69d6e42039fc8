// Which of a node's kernels was the fastest: results of the tuner, kept in the cache folder.
//
// Knows: the lines of the file. Must not know: what a key means, how kernels are timed.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace librt {

class TuningChoices {
 public:
  /// Adds those of a file in the folder, of which the first of a key counts; other lines are left out. None
  /// if there is no such file, or `folder` is empty. An error says why the file is not used.
  Status read(const std::string& folder, const std::string& file);
  /// Replaces the file; does nothing if `folder` is empty.
  Status write(const std::string& folder, const std::string& file) const;

  /// The row's name; empty if the key is unknown.
  std::string_view find(std::string_view key) const;
  /// key: without tabs and line breaks. Replaces an earlier choice.
  void set(std::string_view key, std::string_view row);
  size_t count() const noexcept { return rows_.size(); }

 private:
  std::map<std::string, std::string, std::less<>> rows_;  ///< names by key
};

}  // namespace librt
