// Lines for a person at a terminal: the live progress line, times, the table at the end of a run.
//
// Knows: text and the terminal's width. Must not know: training.
#pragma once

#include <string>
#include <vector>

#include "tools/rttrain/log.h"

namespace rt::train {

/// "12.3 s", "3 min 12 s", "2 h 03 min"
std::string duration_text(double seconds);

/// At most `columns` - 1 characters of an ASCII text, so that a terminal does not wrap it; 0: unknown, all.
std::string fitted(const std::string& text, size_t columns);

/// One line for each epoch, the first one a header; the best epoch (from 1, 0: none) ends with a star. At
/// most `most` epochs, the last ones. monitor: a metric that has a column in any case.
std::string epoch_table(const std::vector<EpochRecord>& epochs, const std::string& monitor, uint64_t best,
                        size_t most);

/// A line on stderr that the next one replaces; nothing if it is not active.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_active) : is_active_(is_active) {}
  /// Whether a new line is due, `now` seconds after the start.
  bool is_due(double now) noexcept;
  void show(const std::string& text) const;
  void clear() const;

 private:
  bool is_active_;
  double shown_ = -1;
};

}  // namespace rt::train
