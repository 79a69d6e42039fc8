#include "tools/rtbench/words.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace librt::bench::words {

std::string format(const char* pattern, ...) {
  char buffer[1024];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

namespace {

struct TimeUnit {
  const char* name;
  double factor;  ///< of milliseconds
};

TimeUnit time_unit(double ms) {
  if (ms < 0.1) return {"us", 1e3};
  if (ms < 10000) return {"ms", 1};
  return {"s", 1e-3};
}

}  // namespace

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
  return format("%.*f", std::clamp(4 - digits, 0, 9), value);
}

std::string time_text(double ms) {
  const TimeUnit unit = time_unit(ms);
  return number_text(ms * unit.factor) + " " + unit.name;
}

std::string time_text(double ms, const Interval& interval) {
  const TimeUnit unit = time_unit(ms);
  return time_text(ms) + " (" + number_text(interval.low * unit.factor) + " to " +
         number_text(interval.high * unit.factor) + ")";
}

std::string times_text(double ratio, const Interval& interval) {
  const auto text = [](double value) {
    return format(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  };
  const std::string low = text(interval.low), high = text(interval.high), middle = text(ratio);
  if (low == middle && high == middle) return middle + " times";
  return middle + " times (" + low + " to " + high + ")";
}

const char* mode_text(Mode mode) {
  return mode == Mode::Train ? "training" : "inference";
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return format(unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
}

std::string columns(const std::vector<std::vector<std::string>>& rows, size_t left) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += (i > 0 ? "  " : "") + (i < left ? row[i] + padding : padding + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace librt::bench::words
