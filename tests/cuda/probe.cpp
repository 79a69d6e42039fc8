// The CUDA module loads on every machine and reports devices or a one-sentence reason.
//
//   cuda_probe [WORDS]      the reason must contain these words
//   cuda_probe --device     exit code 77 without a device
#include <cstdio>
#include <string>

#include "runtime/backend/loader.h"

int main(int count, char** arguments) {
  const auto module = librt::load_module("cuda");
  if (!module.ok()) {
    std::printf("the module does not load: %s\n", module.status().message().c_str());
    return 1;
  }
  std::vector<librt::DeviceInfo> devices;
  std::string reason;
  if (const librt::Status status = (*module)->probe(devices, reason); !status.ok()) {
    std::printf("probing failed: %s\n", status.message().c_str());
    return 1;
  }
  for (const librt::DeviceInfo& device : devices)
    std::printf("device %d: %s\n", device.index, device.name.c_str());
  // With devices: the reason why there are not more.
  std::printf("reason: %s\n", reason.c_str());
  if (devices.empty() && reason.empty()) {
    std::puts("expected devices or a reason");
    return 1;
  }
  const auto opened = (*module)->open({});
  if (opened.ok() == devices.empty()) {
    std::puts("opening and probing disagree");
    return 1;
  }
  if (!opened.ok() && opened.status().message().find(reason) == std::string::npos) {
    std::printf("opening gives another reason: %s\n", opened.status().message().c_str());
    return 1;
  }
  if (count > 1 && arguments[1] == std::string("--device")) return devices.empty() ? 77 : 0;
  if (count > 1 && reason.find(arguments[1]) == std::string::npos) {
    std::printf("expected the words: %s\n", arguments[1]);
    return 1;
  }
  return 0;
}
