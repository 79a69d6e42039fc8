#include "tools/rtbench/study/budget.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace librt::bench {

std::optional<double> parse_duration(const std::string& text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  static constexpr Unit kUnits[] = {{"", 1},   {"ms", 1e-3}, {"s", 1},   {"sec", 1},
                                    {"m", 60}, {"min", 60},  {"h", 3600}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const Unit& known : kUnits)
    if (known.name == unit) return number * known.seconds;
  return std::nullopt;
}

std::string duration_text(double seconds) {
  char text[64];
  if (seconds < 10)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (seconds < 60)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else if (seconds < 3600)
    std::snprintf(text, sizeof text, "%.0f min %02.0f s", std::floor(seconds / 60),
                  std::floor(std::fmod(seconds, 60)));
  else
    std::snprintf(text, sizeof text, "%.0f h %02.0f min", std::floor(seconds / 3600),
                  std::floor(std::fmod(seconds, 3600) / 60));
  return text;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace librt::bench
