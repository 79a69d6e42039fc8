#include "runtime/session/device/device_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/text.h"
#include "runtime/session/device/cache.h"

namespace librt {

namespace {

constexpr uint32_t kRequired = 0b11111;  // the first five are in files of every version
constexpr std::pair<const char*, double DeviceProfile::*> kFields[] = {
    {"flops_f32", &DeviceProfile::flops_f32},
    {"memory_bandwidth", &DeviceProfile::memory_bandwidth},
    {"transfer_bandwidth", &DeviceProfile::transfer_bandwidth},
    {"launch_seconds", &DeviceProfile::launch_seconds},
    {"submit_seconds", &DeviceProfile::submit_seconds},
    {"rate_16bit", &DeviceProfile::rate_16bit},
    {"rate_8bit", &DeviceProfile::rate_8bit},
    {"watts", &DeviceProfile::watts},
};
// Curves of another version mean something else and are not read.
constexpr std::string_view kVersion = "curves 3";

/// The device and its driver; on a CPU also the number of threads.
std::string identity_of(const DeviceInfo& info, int threads) {
  const std::string identity = text(info.backend, "|", info.name, "|", info.uuid, "|", info.driver, "|",
                                    info.type == DeviceType::Cpu ? threads : 0);
  return text(info.backend, "-", hex(hash_bytes(identity.data(), identity.size())));
}

std::string file_of(const DeviceInfo& info, int threads) {
  return text("device-", identity_of(info, threads), ".txt");
}

/// What follows the word and a space; null if the text does not begin so.
const char* after(std::string_view text, std::string_view word) {
  const bool begins = text.starts_with(word) && text.size() > word.size() && text[word.size()] == ' ';
  return begins ? text.data() + word.size() + 1 : nullptr;
}

bool is_usable(double number) {
  return number > 0 && number < 1e30;
}

void read_curve(const char* numbers, TimeCurve& curve) {
  TimeCurve read;
  for (TimeCurve::Point& point : read.points) {
    if (*numbers == 0) break;
    const double work = take_number(numbers), seconds = take_number(numbers);
    if (!is_usable(work) || !is_usable(seconds)) return;
    point = {static_cast<float>(work), static_cast<float>(seconds)};
    if (read.count > 0 && (&point)[-1].work >= point.work) return;
    ++read.count;
  }
  curve = read;
}

DeviceProfile typical_cpu(int threads) {
  return {40e9 * threads, 8e9 + 2e9 * threads, 1e12, 2e-6, 2e-6, 5.0 + 5 * threads};
}

/// As if other threads had been measured: arithmetic by their number, memory as for typical devices.
void scale(DeviceProfile& profile, int from, int to) {
  const double flops = static_cast<double>(to) / from;
  const DeviceProfile before = typical_cpu(from), after = typical_cpu(to);
  const double bytes = after.memory_bandwidth / before.memory_bandwidth;
  profile.flops_f32 *= flops;
  profile.memory_bandwidth *= bytes;
  profile.watts *= after.watts / before.watts;
  for (size_t i = 0; i < kFamilies; ++i)
    for (TimeCurve::Point& point : profile.curves[i].points)
      point.seconds /= static_cast<float>(is_bound_by_flops(static_cast<Family>(i)) ? flops : bytes);
  profile.scaled_from = from;
}

void read(const std::string& folder, const DeviceInfo& info, int threads, DeviceProfile& profile) {
  uint32_t found = 0;
  bool has_curves = false;
  std::vector<std::string> lines;
  profile = typical_profile(info);
  const Status problem = read_cache(folder, file_of(info, threads), lines);
  for (const std::string& line : lines) {
    has_curves |= line == kVersion;
    for (size_t i = 0; i < std::size(kFields); ++i) {
      const auto& [name, field] = kFields[i];
      const char* text = after(line, name);
      const double number = text != nullptr ? take_number(text) : 0;
      if (!is_usable(number)) continue;
      profile.*field = number;
      found |= 1u << i;
      profile.measured_watts |= field == &DeviceProfile::watts;
    }
    const char* curve = has_curves ? after(line, "curve") : nullptr;
    for (size_t i = 0; curve != nullptr && i < kFamilies; ++i)
      if (const char* numbers = after(curve, kFamilyNames[i])) read_curve(numbers, profile.curves[i]);
  }
  profile.measured = (found & kRequired) == kRequired;
  if (!profile.measured) profile = typical_profile(info);
  profile.problem = problem;
}

}  // namespace

double TimeCurve::at(double work) const noexcept {
  size_t i = 0;
  while (i < count && points[i].work < work) ++i;
  if (i == 0) return points[0].seconds;
  const Point& left = points[i - 1];
  if (i == count) return left.seconds * work / left.work;
  const double from = std::log(static_cast<double>(left.work));
  const double share = (std::log(work) - from) / (std::log(static_cast<double>(points[i].work)) - from);
  return left.seconds * std::pow(points[i].seconds / left.seconds, share);
}

DeviceProfile typical_profile(const DeviceInfo& info) {
  const double threads = info.threads > 0 ? info.threads : 1;
  switch (info.type) {
    case DeviceType::Cpu:
      if (info.backend == "reference") return {1e8, 1e9, 1e10, 1e-6, 1e-6, 10};
      return typical_cpu(info.threads > 0 ? info.threads : 1);
    case DeviceType::IntegratedGpu: return {1e12, 40e9, 10e9, 5e-6, 60e-6, 25, 2};
    case DeviceType::DiscreteGpu: return {8e12, 400e9, 10e9, 4e-6, 40e-6, 200, 4};
    case DeviceType::VirtualGpu: return {2e12, 100e9, 5e9, 8e-6, 100e-6, 100, 2};
    case DeviceType::SoftwareGpu: return {4e9 * threads, 4e9, 4e9, 2e-5, 2e-4, 5 + 5 * threads};
  }
  return {1e9, 1e9, 1e9, 1e-5, 1e-4, 10};
}

DeviceProfile read_profile(const std::string& folder, const DeviceInfo& info, int all_threads) {
  DeviceProfile profile;
  read(folder, info, info.threads, profile);
  if (profile.measured || all_threads == info.threads || all_threads <= 0 || info.threads <= 0)
    return profile;
  const Status problem = std::move(profile.problem);
  read(folder, info, all_threads, profile);
  if (!problem.ok()) profile.problem = problem;  // of the file that was asked for
  if (profile.measured) scale(profile, all_threads, info.threads);
  return profile;
}

Status write_profile(const std::string& folder, const DeviceInfo& info, const DeviceProfile& profile) {
  std::vector<std::string> lines;
  for (const auto& [name, field] : kFields) {
    if (field == &DeviceProfile::watts && !profile.measured_watts) continue;
    if (!(profile.*field > 0)) return invalid_argument("device profile: ", name, " must be above 0");
    lines.push_back(text(name, " ", profile.*field));
  }
  lines.emplace_back(kVersion);
  for (size_t i = 0; i < kFamilies; ++i) {
    const TimeCurve& curve = profile.curves[i];
    if (curve.count == 0) continue;
    std::string line = text("curve ", kFamilyNames[i]);
    for (size_t k = 0; k < curve.count; ++k)
      append(line, text(" ", curve.points[k].work, " ", curve.points[k].seconds));
    lines.push_back(std::move(line));
  }
  if (folder.empty())
    return Status(Code::Io, "device profile: neither XDG_CACHE_HOME nor HOME is an absolute path");
  return write_cache(folder, file_of(info, info.threads), lines);
}

double read_run(const std::string& folder, uint64_t work, const DeviceInfo& info) {
  std::vector<std::string> lines;
  const Status ignored = read_cache(folder, text("runs-", hex(work), ".txt"), lines);
  const std::string identity = identity_of(info, info.threads);
  for (const std::string& line : lines)
    if (const char* seconds = after(line, identity))
      if (const double number = take_number(seconds); is_usable(number)) return number;
  return 0;
}

Status write_run(const std::string& folder, uint64_t work, const DeviceInfo& info, double seconds) {
  const std::string file = text("runs-", hex(work), ".txt");
  const std::string prefix = text(identity_of(info, info.threads), " ");
  std::vector<std::string> lines;
  const Status ignored = read_cache(folder, file, lines);  // a damaged file is replaced
  std::erase_if(lines, [&](const std::string& line) { return line.starts_with(prefix); });
  lines.push_back(text(prefix, seconds));
  return write_cache(folder, file, lines);
}

}  // namespace librt
