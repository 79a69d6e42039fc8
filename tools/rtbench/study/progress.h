// What a study does now and how much is left: one line on a terminal, else a line for each phase.
#pragma once

#include <string>

#include "tools/rtbench/study/budget.h"

namespace librt::bench {

class Progress {
 public:
  explicit Progress(const Budget& budget);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// "first points": what the next lines are part of, and how many steps it has; 0: unknown.
  /// seconds: that it is expected to take; 0: unknown.
  void begin(const std::string& phase, size_t steps, double seconds = 0);
  /// Another step: "vulkan:0 fp16 train, batch 8".
  void step(const std::string& what);
  void clear() const;

 private:
  const Budget& budget_;
  bool is_terminal_;
  std::string phase_;
  size_t steps_ = 0, done_ = 0;
  double begun_ = 0, expected_ = 0;
};

}  // namespace librt::bench
