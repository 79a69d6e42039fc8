#include "tools/rtbench/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "tools/cli/exit_code.h"
#include "tools/cli/process.h"

namespace librt::bench {
namespace {

constexpr int kPollMs = 100;
constexpr double kAfterKillSeconds = 0.5;

// Appends what can be read; false at the end.
bool read_some(const tools::Descriptor& pipe, std::string& text) {
  char part[4096];
  const ssize_t got = read(pipe.number(), part, sizeof part);
  if (got > 0) text.append(part, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

}  // namespace

Child::~Child() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  wait();
}

std::string Child::start(const std::vector<std::string>& arguments) {
  int output[2], error[2];
  if (pipe2(output, O_CLOEXEC) != 0) return std::string("no pipe: ") + std::strerror(errno);
  output_ = tools::Descriptor(output[0]);
  const tools::Descriptor output_end(output[1]);
  if (pipe2(error, O_CLOEXEC) != 0) return std::string("no pipe: ") + std::strerror(errno);
  error_ = tools::Descriptor(error[0]);
  const tools::Descriptor error_end(error[1]);
  const int failed =
      tools::start_process(child_, arguments, {.output = output_end.number(), .error = error_end.number()});
  if (failed == 0) return {};
  child_ = -1;
  return arguments[0] + ": " + std::strerror(failed);
}

int Child::wait() {
  return tools::wait_for_process(std::exchange(child_, -1), tools::kBadMachine);
}

int Child::follow(const ChildTime& time, const StopRequest& stop,
                  const std::function<void(const std::string&)>& on_line,
                  const std::function<bool()>& has_result) {
  const Budget watch(std::nullopt);
  const auto is_over = [&] {
    const double spent = watch.spent();
    return spent >= time.without_result || (spent >= time.seconds && (!has_result || has_result()));
  };
  double asked_at = 0;
  std::string text;
  bool output_open = true, error_open = true;
  while (output_open || error_open) {
    if (!asked_ && (stop.requested() || is_over())) {
      asked_ = true;
      asked_at = watch.spent();
      kill(child_, SIGTERM);
    }
    if (asked_ && !killed_ && watch.spent() >= asked_at + time.grace) {
      killed_ = true;
      kill(child_, SIGKILL);
    }
    // Its own children may keep the pipes open: what they still write is not waited for.
    if (killed_ && watch.spent() >= asked_at + time.grace + kAfterKillSeconds) break;
    pollfd files[2] = {{output_open ? output_.number() : -1, POLLIN, 0},
                       {error_open ? error_.number() : -1, POLLIN, 0}};
    if (poll(files, 2, kPollMs) < 0 && errno != EINTR) break;
    if (files[0].revents != 0) output_open = read_some(output_, text);
    if (files[1].revents != 0) error_open = read_some(error_, errors_);
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n')) {
      on_line(text.substr(0, at));
      text.erase(0, at + 1);
    }
  }
  return wait();
}

namespace {

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::string last_error(const std::string& name, const std::string& errors) {
  const std::string begin = name + ": ";
  std::string last, first_of_others;
  for (size_t at = 0; at < errors.size();) {
    const size_t end = std::min(errors.find('\n', at), errors.size());
    const std::string line = errors.substr(at, end - at);
    if (line.starts_with(begin))
      last = line.substr(begin.size());
    else if (first_of_others.empty() && std::any_of(line.begin(), line.end(), is_letter))
      first_of_others = line;
    at = end + 1;
  }
  if (!last.empty()) return last;
  return name + " failed" + (first_of_others.empty() ? " without a message" : ": " + first_of_others);
}

std::string path_for_child(const std::string& path) {
  constexpr std::string_view kOwn = "/proc/self/";
  if (!path.starts_with(kOwn)) return path;
  return "/proc/" + std::to_string(getpid()) + "/" + path.substr(kOwn.size());
}

}  // namespace librt::bench
