// Whatever is in a file of the cache folder, it is read, what it says is possible, and it can be written
// anew. The first byte of an input chooses the file: device profile, tuning choices, self-tests or pipelines.
// What opens files, and refuses links, pipes and others, has tests of its own (tests/session/cache_files.sh).
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "backends/vulkan/dispatch/pipeline_cache_file.h"
#include "backends/vulkan/self_tests/results.h"
#include "runtime/core/hash.h"
#include "runtime/session/device/device_profile.h"
#include "runtime/session/prepare/tuning_choices.h"

namespace {

namespace fs = std::filesystem;

void require(bool condition) {
  if (!condition) std::abort();
}

/// A folder of this process in memory, where there is one, because self-tests are synchronized with the disk.
class Folder {
 public:
  Folder() {
    for (const char* parent : {"/dev/shm", "/tmp"}) {
      path_ = std::string(parent) + "/fuzz_cache.XXXXXX";
      if (mkdtemp(path_.data()) != nullptr) return;
    }
    std::abort();
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const Folder& folder() {
  static const Folder instance;
  return instance;
}

void write(const std::string& name, std::span<const uint8_t> bytes) {
  std::ofstream file(folder().file(name), std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  require(file.good());
}

const librt::DeviceInfo& device() {
  static const librt::DeviceInfo info{.backend = "cpu", .name = "fuzzed", .type = librt::DeviceType::Cpu};
  return info;
}

bool possible(const librt::DeviceProfile& profile) {
  for (const double value : {profile.flops_f32, profile.memory_bandwidth, profile.transfer_bandwidth,
                             profile.launch_seconds, profile.submit_seconds})
    if (!(value > 0 && value < 1e30)) return false;
  return true;
}

void check_profile(std::span<const uint8_t> bytes) {
  // The file's name follows from the device.
  static const std::string name = [] {
    require(librt::write_profile(folder().path(), device(), librt::typical_profile(device())).ok());
    for (const auto& entry : fs::directory_iterator(folder().path()))
      if (entry.path().filename().string().starts_with("device-")) return entry.path().filename().string();
    std::abort();
  }();
  write(name, bytes);
  const auto profile = librt::read_profile(folder().path(), device());
  require(profile.problem.ok() && possible(profile));
  require(librt::write_profile(folder().path(), device(), profile).ok());
  require(possible(librt::read_profile(folder().path(), device())));
}

// The first line of the input is the key that is looked for.
void check_tuning(std::span<const uint8_t> bytes) {
  write("tuning", bytes);
  librt::TuningChoices choices, again;
  require(choices.read(folder().path(), "tuning").ok());
  const std::string all(bytes.begin(), bytes.end());
  std::string key = all.substr(0, all.find_first_of("\t\n"));
  if (key.empty()) key = "key";
  require(choices.find(key).find('\n') == std::string_view::npos);
  choices.set(key, "row");
  require(choices.write(folder().path(), "tuning").ok() && again.read(folder().path(), "tuning").ok());
  require(again.count() == choices.count() && again.find(key) == "row");
}

void check_self_tests(std::span<const uint8_t> bytes) {
  write("tests", bytes);
  constexpr const char* kNames[] = {"a", "conv", "an unknown test"};
  std::string known[std::size(kNames)];
  for (const bool first : {true, false}) {
    librt::vulkan::SelfTestResults results(folder().file("tests"), "key");
    for (size_t i = 0; i < std::size(kNames); ++i) {
      auto test = results.begin(kNames[i]);
      if (!test.known()) {
        require(first);  // the second time, the file has it
        test.end(i == 0 ? "" : "differs\tby 2\n");
      }
      require(test.known().has_value() && results.problem().ok());
      if (first)
        known[i] = *test.known();
      else
        require(known[i] == *test.known());
    }
  }
}

void check_pipelines(std::span<const uint8_t> bytes) {
  write("pipelines", bytes);
  const std::string path = folder().file("pipelines");
  const auto read = librt::vulkan::read_pipelines(path, "key");
  require(read.ok());
  // Its checksum is right only if this program has made it.
  const std::vector<uint8_t> driver(bytes.begin(), bytes.end());
  require(librt::vulkan::write_pipelines(path, "key", driver).ok());
  const auto again = librt::vulkan::read_pipelines(path, "key");
  require(again.ok() && *again == driver);
  const auto other = librt::vulkan::read_pipelines(path, "another key");
  require(other.ok() && other->empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr void (*kChecks[])(std::span<const uint8_t>) = {check_profile, check_tuning,
                                                                  check_self_tests, check_pipelines};
  if (size == 0) return 0;
  kChecks[data[0] % std::size(kChecks)]({data + 1, size - 1});
  return 0;
}
