// Log of a run: JSON lines and TensorBoard events.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rttrain/event_file.h"
#include "tools/rttrain/metrics.h"

namespace rt::train {

struct StepRecord {
  uint64_t step = 0, epoch = 0;  ///< both from 1
  double loss = 0;               ///< mean over the interval
  double learning_rate = 0;
  double samples_per_second = 0;
  double data_wait_seconds = 0;  ///< time in the interval that training waited for data
};

struct EpochRecord {
  uint64_t epoch = 0, step = 0;
  double loss = 0;           ///< mean over the epoch's samples
  double learning_rate = 0;  ///< of its last step
  double samples_per_second = 0;
  double seconds = 0, data_wait_seconds = 0;
  double total_seconds = 0;  ///< since the run began
  std::vector<Measured> validation;
};

/// {"epoch":1,"step":938,"loss":...,"validation_accuracy":...,...}
std::string json_of(const EpochRecord& record);

class RunLog {
 public:
  /// Empty names: nothing is written. append: continue the file of an earlier run.
  static rt::Result<RunLog> open(const std::string& json_file, const std::string& tensorboard, bool append);
  rt::Status write(const StepRecord& record);
  rt::Status write(const EpochRecord& record);
  bool active() const noexcept { return json_ != nullptr || events_.has_value(); }

 private:
  RunLog() : json_(nullptr, std::fclose) {}
  rt::Status line(const std::string& text);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> json_;
  std::string json_path_;
  std::optional<EventFile> events_;
};

}  // namespace rt::train
