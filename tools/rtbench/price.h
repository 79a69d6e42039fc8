// What runs cost: prices by the hour, electricity, and from which load which device is cheaper.
//
// Knows: numbers and device names. Must not know: how times and joules are measured. Amounts are in the unit
// of the prices given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace librt::bench {

/// Prices by device: "cpu", or one of several: "cuda:1".
using Prices = std::map<std::string, double>;

/// --price cpu=0.17,cuda:1=3.99: per hour, finite, at least 0. known: the devices there are, "cpu:0" and
/// "cuda:1"; a backend's name prices all its devices. Nothing: `error` says which entry is wrong and what was
/// expected.
std::optional<Prices> parse_prices(const std::string& text, const std::vector<std::string>& known,
                                   std::string& error);
/// --electricity 0.30: per kWh. The same rules.
std::optional<double> parse_electricity(const std::string& text, std::string& error);
/// The price of "cuda:1": its own, else that of "cuda".
std::optional<double> price_of(const Prices& prices, const std::string& device);

/// A device at work.
struct Costs {
  std::string device;
  double per_hour = 0;  ///< rent or depreciation; also due while the device waits
  /// Electricity, where --electricity was given and the power is known.
  std::optional<double> electricity_per_kwh, watts, idle_watts;
  double samples_per_second = 0;  ///< at most
};

/// An hour at full load.
double hourly(const Costs& costs);
/// A million samples at full load; infinite without throughput.
double per_million(const Costs& costs);
double per_epoch(const Costs& costs, int64_t samples);
/// An hour at a load in samples per second. A load beyond one device's throughput takes several of them, each
/// of which is paid for and idles for its share of the time.
double hourly_at(const Costs& costs, double load);
/// A million samples at that load, idle time included.
double per_million_at(const Costs& costs, double load);

/// Loads for which one device is the cheapest, in samples per second.
struct LoadRange {
  size_t device = 0;  ///< index
  double from = 0, to = 0;
};
/// Up to `most`, in ascending order; neighbours differ. Of equally cheap devices the earlier one.
std::vector<LoadRange> cheapest_by_load(const std::vector<Costs>& devices, double most);

/// The smallest batch from which `other` costs less per sample than `first` at every larger batch measured on
/// both; nothing if there is none. Pairs of batch and cost, by ascending batch.
std::optional<int64_t> cheaper_from(const std::vector<std::pair<int64_t, double>>& first,
                                    const std::vector<std::pair<int64_t, double>>& other);

}  // namespace librt::bench
