// Runs indexed tasks in separate processes, so that a crash is reported as a result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace librt::test {

struct WorkResult {
  int64_t number = 0;
  std::string line;   ///< the task's output; one line
  std::string crash;  ///< "", or how the process ended during the task
};

/// Calls work(first .. first + count - 1) in `jobs` processes. A task that takes longer than `seconds` counts
/// as a crash. Results are in index order.
std::vector<WorkResult> run_workers(int64_t first, int64_t count, int jobs, unsigned seconds,
                                    const std::function<std::string(int64_t)>& work);

}  // namespace librt::test
