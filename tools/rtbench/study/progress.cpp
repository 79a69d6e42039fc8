#include "tools/rtbench/study/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace librt::bench {

Progress::Progress(const Budget& budget) : budget_(budget), is_terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::begin(const std::string& phase, size_t steps, double seconds) {
  phase_ = phase;
  steps_ = steps;
  done_ = 0;
  begun_ = budget_.spent();
  expected_ = seconds;
  if (!is_terminal_)
    std::fprintf(stderr, "rtbench study: %s, after %s\n", phase.c_str(),
                 duration_text(budget_.spent()).c_str());
}

void Progress::step(const std::string& what) {
  ++done_;
  if (!is_terminal_) return;
  std::string line = phase_;
  if (steps_ > 0) line += " " + std::to_string(std::min(done_, steps_)) + "/" + std::to_string(steps_);
  line += ": " + what + "  " + duration_text(budget_.spent());
  if (budget_.limited())
    line += ", at most " + duration_text(budget_.left()) + " left";
  else if (const double left = expected_ - (budget_.spent() - begun_); left > 0)
    line += ", about " + duration_text(left) + " left for this";
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && line.size() >= size.ws_col)
    line.resize(size.ws_col - 1u);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
}

void Progress::clear() const {
  if (is_terminal_) std::fputs("\r\033[K", stderr);
}

}  // namespace librt::bench
