#include "tools/rtbench/price.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace librt::bench {
namespace {

constexpr double kSecondsPerHour = 3600;
// A breakpoint for every device added; with more devices than this costs are all but proportional to the
// load.
constexpr int kMostDevices = 1000;

std::optional<double> amount(const std::string& text, const std::string& where, std::string& error) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc() && stop == end && std::isfinite(number) && number >= 0) return number;
  error = where + ": expected a number of at least 0, found '" + text + "'";
  return std::nullopt;
}

double energy_per_hour(const Costs& costs, double devices, double busy) {
  if (!costs.electricity_per_kwh || !costs.watts) return 0;
  const double idle = costs.idle_watts.value_or(0);
  const double watts = idle * devices + std::max(*costs.watts - idle, 0.0) * busy;
  return *costs.electricity_per_kwh * watts / 1000;
}

// With a fixed number of devices the cost of an hour is a line over the load.
double hourly_with(const Costs& costs, double devices, double load) {
  return costs.per_hour * devices + energy_per_hour(costs, devices, load / costs.samples_per_second);
}

double devices_for(const Costs& costs, double load) {
  return std::max(1.0, std::ceil(load / costs.samples_per_second * (1 - 1e-12)));
}

void extend(std::vector<LoadRange>& ranges, size_t device, double from, double to) {
  if (to <= from) return;
  if (!ranges.empty() && ranges.back().device == device)
    ranges.back().to = to;
  else
    ranges.push_back({device, from, to});
}

}  // namespace

std::optional<Prices> parse_prices(const std::string& text, const std::vector<std::string>& known,
                                   std::string& error) {
  Prices prices;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string entry = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      error = "--price: expected DEVICE=PRICE per hour, found '" + entry + "'";
      return std::nullopt;
    }
    const std::string device = entry.substr(0, equals);
    const bool exists = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
      return name == device || name.substr(0, name.find(':')) == device;
    });
    if (!exists) {
      std::string names;
      for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
      error =
          "--price: there is no device '" + device + "'; the devices are " + (names.empty() ? "none" : names);
      return std::nullopt;
    }
    const auto price = amount(entry.substr(equals + 1), "--price: " + device, error);
    if (!price) return std::nullopt;
    if (!prices.emplace(device, *price).second) {
      error = "--price: '" + device + "' is given twice";
      return std::nullopt;
    }
  }
  return prices;
}

std::optional<double> parse_electricity(const std::string& text, std::string& error) {
  return amount(text, "--electricity (per kWh)", error);
}

std::optional<double> price_of(const Prices& prices, const std::string& device) {
  auto found = prices.find(device);
  if (found == prices.end()) found = prices.find(device.substr(0, device.find(':')));
  return found == prices.end() ? std::nullopt : std::optional<double>(found->second);
}

double hourly(const Costs& costs) {
  return costs.per_hour + energy_per_hour(costs, 1, 1);
}

double per_million(const Costs& costs) {
  if (!(costs.samples_per_second > 0)) return std::numeric_limits<double>::infinity();
  return hourly(costs) / kSecondsPerHour / costs.samples_per_second * 1e6;
}

double per_epoch(const Costs& costs, int64_t samples) {
  return per_million(costs) * static_cast<double>(samples) * 1e-6;
}

double hourly_at(const Costs& costs, double load) {
  if (!(costs.samples_per_second > 0)) return std::numeric_limits<double>::infinity();
  return hourly_with(costs, devices_for(costs, load), load);
}

double per_million_at(const Costs& costs, double load) {
  if (!(load > 0)) return std::numeric_limits<double>::infinity();
  return hourly_at(costs, load) / kSecondsPerHour / load * 1e6;
}

std::vector<LoadRange> cheapest_by_load(const std::vector<Costs>& devices, double most) {
  std::vector<double> ends{most};
  for (const Costs& costs : devices)
    for (int count = 1;
         count <= kMostDevices && count * costs.samples_per_second < most && costs.samples_per_second > 0;
         ++count)
      ends.push_back(count * costs.samples_per_second);
  std::sort(ends.begin(), ends.end());
  std::vector<LoadRange> ranges;
  double from = 0;
  for (const double to : ends) {
    // Between breakpoints all costs are lines: the cheapest changes only where two of them cross.
    std::vector<double> cuts{from, to};
    const double middle = 0.5 * (from + to);
    const auto line = [&](const Costs& costs, double load) {
      return hourly_with(costs, devices_for(costs, middle), load);
    };
    for (size_t a = 0; a < devices.size(); ++a)
      for (size_t b = a + 1; b < devices.size(); ++b) {
        if (!(devices[a].samples_per_second > 0) || !(devices[b].samples_per_second > 0)) continue;
        const double left = line(devices[a], from) - line(devices[b], from);
        const double right = line(devices[a], to) - line(devices[b], to);
        if (left * right < 0) cuts.push_back(from + (to - from) * left / (left - right));
      }
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      std::optional<size_t> best;
      double least = 0;
      const double load = 0.5 * (cuts[i] + cuts[i + 1]);
      for (size_t d = 0; d < devices.size(); ++d) {
        if (!(devices[d].samples_per_second > 0)) continue;
        const double cost = line(devices[d], load);
        if (!best || cost < least * (1 - 1e-12)) {
          best = d;
          least = cost;
        }
      }
      if (best) extend(ranges, *best, cuts[i], cuts[i + 1]);
    }
    from = to;
  }
  return ranges;
}

std::optional<int64_t> cheaper_from(const std::vector<std::pair<int64_t, double>>& first,
                                    const std::vector<std::pair<int64_t, double>>& other) {
  std::optional<int64_t> from;
  for (const auto& [batch, cost] : other) {
    const auto same = std::find_if(first.begin(), first.end(),
                                   [batch = batch](const auto& point) { return point.first == batch; });
    if (same == first.end()) continue;
    if (cost >= same->second)
      from.reset();
    else if (!from)
      from = batch;
  }
  return from;
}

}  // namespace librt::bench
