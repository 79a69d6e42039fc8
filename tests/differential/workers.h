// Runs numbered pieces of work in processes of their own, so that a crash is a result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rt::test {

struct WorkResult {
  int64_t number = 0;
  std::string line;   ///< what the work gave; one line
  std::string crash;  ///< "" or how the process ended during it
};

/// Calls work(first .. first + count - 1) in `jobs` processes. A piece that takes longer than `seconds`
/// counts as a crash. Results in order of their numbers.
std::vector<WorkResult> run_workers(int64_t first, int64_t count, int jobs, unsigned seconds,
                                    const std::function<std::string(int64_t)>& work);

}  // namespace rt::test
