#include "tools/rttrain/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace rt::train {
namespace {

constexpr double kBetweenLines = 0.2;  // seconds

__attribute__((format(printf, 1, 2))) std::string formatted(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// The first two metrics, and the monitored one.
std::vector<size_t> shown_metrics(const std::vector<Measured>& measured, const std::string& monitor) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < measured.size(); ++i)
    if (i < 2 || measured[i].name == monitor) shown.push_back(i);
  return shown;
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 60) return formatted("%.1f s", seconds);
  const auto whole = static_cast<unsigned long>(std::lround(seconds));
  if (whole < 3600) return formatted("%lu min %02lu s", whole / 60, whole % 60);
  return formatted("%lu h %02lu min", whole / 3600, whole % 3600 / 60);
}

std::string fitted(const std::string& text, size_t columns) {
  return columns == 0 ? text : text.substr(0, columns - 1);
}

std::string epoch_table(const std::vector<EpochRecord>& epochs, const std::string& monitor, uint64_t best,
                        size_t most) {
  if (epochs.empty()) return {};
  const std::vector<size_t> metrics = shown_metrics(epochs.back().validation, monitor);
  std::string out = formatted("%6s %12s", "epoch", "loss");
  std::vector<int> widths;
  for (const size_t i : metrics) {
    const std::string name = "validation " + epochs.back().validation[i].name;
    widths.push_back(static_cast<int>(name.size()) + 2);
    out += formatted("%*s", widths.back(), name.c_str());
  }
  out += formatted(" %14s %10s %13s\n", "learning rate", "samples/s", "time");
  const size_t first = epochs.size() - std::min(epochs.size(), most);
  for (size_t e = first; e < epochs.size(); ++e) {
    const EpochRecord& epoch = epochs[e];
    out += formatted("%6lu %12.6f", static_cast<unsigned long>(epoch.epoch), epoch.loss);
    for (size_t m = 0; m < metrics.size(); ++m)
      out += formatted("%*.6f", widths[m], epoch.validation[metrics[m]].value);
    out += formatted(" %14.3g %10.0f %13s%s\n", epoch.learning_rate, epoch.samples_per_second,
                     duration_text(epoch.seconds).c_str(), epoch.epoch == best ? " *" : "");
  }
  return out;
}

bool ProgressLine::is_due(double now) noexcept {
  if (!is_active_ || (now - shown_ < kBetweenLines && shown_ >= 0 && shown_ <= now)) return false;
  shown_ = now;
  return true;
}

void ProgressLine::show(const std::string& text) const {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  std::fprintf(stderr, "\r\033[K%s", fitted(text, is_known ? size.ws_col : 0).c_str());
}

void ProgressLine::clear() const {
  if (is_active_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace rt::train
