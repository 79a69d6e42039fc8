// Descriptions of devices that this machine need not have: figures of data sheets, from a JSON file.
//
// Knows: the file's format, its limits. Must not know: models, predictions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session/device/device_profile.h"

namespace librt::bench {

/// An entry. Units are in the file's keys.
struct DeviceDescription {
  std::string name;    ///< "nvidia_l4": for the command line
  std::string title;   ///< "NVIDIA L4"
  std::string source;  ///< URLs, separated by spaces, of where the figures are from
  std::string notes;   ///< how figures follow from the source, where it does not state them
  DeviceType type = DeviceType::DiscreteGpu;
  std::map<std::string, double> peak_flops;  ///< operations per second by precision; has "fp32"
  double memory_bandwidth = 0;               ///< bytes per second
  std::optional<double> memory_bytes;        ///< nothing: the host's, or unknown
  double transfer_bandwidth = 0;             ///< host to device, bytes per second
  double launch_seconds = 0, submit_seconds = 0;
  std::optional<double> watts, idle_watts, price_per_hour;  ///< watts: under load
  std::vector<std::string> assumed;  ///< fields that the entry does not state, with the value taken
};

/// The catalogue that comes with the program: share/librt/devices.json beside the folder of the executable.
std::string catalogue_path();

/// All entries of a file. Nothing: `error` names the file, the entry and the field, what was expected and
/// what was found.
std::optional<std::vector<DeviceDescription>> read_catalogue(const std::string& path, std::string& error);
/// The same from text. path: for messages.
std::optional<std::vector<DeviceDescription>> parse_catalogue(const std::string& text,
                                                              const std::string& path, std::string& error);

/// Entries by names of the catalogue or paths of files, all of whose entries are taken.
std::optional<std::vector<DeviceDescription>> described_devices(const std::vector<std::string>& names,
                                                                std::string& error);

/// "NAME  TITLE  SOURCE" lines.
std::string catalogue_text(const std::vector<DeviceDescription>& devices);

}  // namespace librt::bench
