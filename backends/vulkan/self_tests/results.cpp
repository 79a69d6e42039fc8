#include "backends/vulkan/self_tests/results.h"

#include <unistd.h>

#include <sstream>

namespace librt::vulkan {
namespace {

constexpr char kBegun[] = "begun", kDropped[] = "dropped", kPassed[] = "right", kFailed[] = "wrong";

/// Tests of a pipeline that end with their process before it counts as failed: once may have been the user.
constexpr int kStrikes = 2;

/// `line` ends in a line feed. A file that cannot be written costs tests at the next start, not results.
void append_line(int file, std::string_view line) {
  if (file < 0) return;
  if (write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size())) fsync(file);
}

}  // namespace

SelfTestResults::SelfTestResults(std::string path, std::string_view key)
    : path_(std::move(path)), header_(key) {}

void SelfTestResults::read(int file) {
  std::string all;
  char buffer[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(file, buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(got));
  std::istringstream lines(all);
  std::string line;
  if (!std::getline(lines, line) || line != header_) {
    if (ftruncate(file, 0) == 0) append_line(file, text(header_, "\n"));
    return;
  }
  std::map<std::string, int> unfinished;
  if (all.back() != '\n') append_line(file, "\n");  // after a full disk
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string event, name, reason;
    std::getline(fields, event, '\t');
    std::getline(fields, name, '\t');
    std::getline(fields, reason, '\t');
    if (event == kBegun) {
      if (++unfinished[name] == kStrikes) results_[name] = "the process ended during its self-test, twice";
    } else if (event == kDropped) {
      unfinished[name] -= 1;
      results_.erase(name);
    } else if (event == kPassed || (event == kFailed && !reason.empty())) {
      results_[name] = reason;
    }
  }
}

SelfTestResults::Test::Test(SelfTestResults& results, std::string name)
    : results_(results), name_(std::move(name)) {
  auto& all = results_.results_;
  if (const auto found = all.find(name_); found != all.end()) {
    known_ = found->second;
    return;
  }
  if (results_.path_.empty()) return;
  dropped_ = text(kDropped, "\t", name_, "\n");  // before the other lines: a destructor cannot allocate
  auto locked = lock_cache_file(results_.path_);
  if (!locked.ok()) {
    results_.problem_ = std::move(locked).status();
    results_.path_.clear();  // no further test waits for its lock
    return;
  }
  file_ = std::move(locked).value();
  results_.read(file_.number());
  if (const auto found = all.find(name_); found != all.end())
    known_ = found->second;
  else
    append_line(file_.number(), text(kBegun, "\t", name_, "\n"));
}

void SelfTestResults::Test::end(std::string_view reason) {
  std::string result(reason);
  for (char& c : result)
    if (c == '\t' || c == '\n') c = ' ';
  const std::string line =
      result.empty() ? text(kPassed, "\t", name_, "\n") : text(kFailed, "\t", name_, "\t", result, "\n");
  results_.results_[name_] = result;
  known_ = std::move(result);
  append_line(file_.number(), line);
}

SelfTestResults::Test::~Test() {
  if (!known_) append_line(file_.number(), dropped_);
}

}  // namespace librt::vulkan
