#include "backends/vulkan/verdicts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "runtime/core/status.h"

namespace rt::vulkan {
namespace {

constexpr char kBegun[] = "begun", kDropped[] = "dropped", kRight[] = "right", kWrong[] = "wrong";

/// A file that cannot be written costs tests at the next start, not results.
void append_line(int file, std::string_view line) {
  if (file < 0) return;
  const std::string whole = text(line, "\n");
  if (write(file, whole.data(), whole.size()) == static_cast<ssize_t>(whole.size())) fsync(file);
}

}  // namespace

Verdicts::Verdicts(std::string path, std::string_view key) : path_(std::move(path)), header_(key) {}

void Verdicts::read(int file) {
  std::string all;
  char buffer[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(file, buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(got));
  std::istringstream lines(all);
  std::string line;
  if (!std::getline(lines, line) || line != header_) {
    if (ftruncate(file, 0) == 0) append_line(file, header_);
    return;
  }
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string event, name, reason;
    std::getline(fields, event, '\t');
    std::getline(fields, name, '\t');
    std::getline(fields, reason, '\t');
    if (event == kBegun)
      verdicts_[name] = "the process ended during its self-test";
    else if (event == kDropped)
      verdicts_.erase(name);
    else if (event == kRight || (event == kWrong && !reason.empty()))
      verdicts_[name] = reason;
  }
}

Verdicts::Test::Test(Verdicts& verdicts, std::string name) : verdicts_(verdicts), name_(std::move(name)) {
  auto& all = verdicts_.verdicts_;
  if (const auto found = all.find(name_); found != all.end()) {
    known_ = found->second;
    return;
  }
  if (verdicts_.path_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(verdicts_.path_).parent_path(), error);
  file_ = open(verdicts_.path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) return;
  flock(file_, LOCK_EX);
  verdicts_.read(file_);
  if (const auto found = all.find(name_); found != all.end())
    known_ = found->second;
  else
    append_line(file_, text(kBegun, "\t", name_));
}

void Verdicts::Test::end(std::string_view reason) {
  known_ = reason;
  for (char& c : *known_)
    if (c == '\t' || c == '\n') c = ' ';
  verdicts_.verdicts_[name_] = *known_;
  append_line(file_, known_->empty() ? text(kRight, "\t", name_) : text(kWrong, "\t", name_, "\t", *known_));
}

Verdicts::Test::~Test() {
  if (file_ < 0) return;
  if (!known_) append_line(file_, text(kDropped, "\t", name_));
  close(file_);  // which ends the lock
}

}  // namespace rt::vulkan
