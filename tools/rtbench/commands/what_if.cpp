// `rtbench MODEL --what-if ...`: predictions for devices that this machine need not have.
#include "tools/rtbench/commands/what_if.h"

#include <cstdio>

#include "tools/cli/exit_code.h"
#include "tools/rtbench/calibrate.h"
#include "tools/rtbench/catalogue.h"
#include "tools/rtbench/what_if.h"

namespace librt::bench {
namespace {

int refuse(const std::string& error) {
  std::fprintf(stderr, "rtbench: %s\n", error.c_str());
  return tools::kBadInput;
}

// Devices of this machine that --measure-devices has measured, for comparison.
void add_own(std::vector<Candidate>& candidates, const std::vector<rt::DeviceInfo>& devices, int threads) {
  for (const rt::DeviceInfo& device : devices) {
    const DeviceProfile profile = stored_profile(device, threads);
    const std::string name = device.backend + ":" + std::to_string(device.index);
    if (profile.measured && profile.curves[static_cast<size_t>(Family::Elementwise)].count > 0)
      candidates.push_back(candidate_of(name, device.name, profile, device.host_memory, device.memory_bytes));
    else
      std::fprintf(stderr,
                   "rtbench: %s (%s) has no measured profile to compare with; `rtbench --measure-devices` "
                   "makes it\n",
                   name.c_str(), device.name.c_str());
  }
}

}  // namespace

int list_catalogue() {
  std::string error;
  const auto devices = read_catalogue(catalogue_path(), error);
  if (!devices) return refuse(error);
  std::fputs(catalogue_text(*devices).c_str(), stdout);
  return tools::kFine;
}

int predict_devices(const std::vector<BenchModel>& models, const std::vector<rt::DeviceInfo>& own,
                    const WhatIfCommand& command) {
  std::string error;
  // "here" adds nothing to the devices of this machine.
  std::vector<std::string> names = command.devices;
  std::erase(names, "here");
  const auto described = described_devices(names, error);
  if (!described) return refuse(error);
  WhatIfOptions options{.batches = command.batches, .extents = command.dims};
  std::vector<std::string> known;
  for (const DeviceDescription& device : *described) known.push_back(device.name);
  for (const rt::DeviceInfo& device : own)
    known.push_back(device.backend + ":" + std::to_string(device.index));
  if (!command.price.empty()) {
    options.prices = parse_prices(command.price, known, error);
    if (!options.prices) return refuse(error);
  }
  if (!command.electricity.empty()) {
    options.electricity_per_kwh = parse_electricity(command.electricity, error);
    if (!options.electricity_per_kwh) return refuse(error);
  }
  for (const BenchModel& model : models)
    for (const std::string& precision : command.precisions) {
      const auto typed = in_precision(model, precision, command.rows, error);
      if (!typed) return refuse(error);
      std::vector<Candidate> candidates;
      for (const DeviceDescription& device : *described)
        candidates.push_back(candidate_of(device, precision));
      add_own(candidates, own, command.threads);
      if (candidates.empty()) return refuse("--what-if here: no device has a measured profile");
      const auto prediction = what_if(*typed, std::move(candidates), options, error);
      if (!prediction) return refuse("--what-if: " + error);
      std::fputs((command.json ? what_if_json(*prediction) : what_if_text(*prediction)).c_str(), stdout);
    }
  return tools::kFine;
}

}  // namespace librt::bench
