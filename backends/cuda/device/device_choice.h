// Which CUDA devices there are, which of them this build can use, and which one is selected.
//
// Pure except list_devices(). Must not know: how a device is used.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace librt::cuda {

struct DeviceFacts {
  int ordinal = 0;  ///< CUDA device ordinal
  std::string name;
  std::string uuid;            ///< hexadecimal
  int compute_capability = 0;  ///< 90 is 9.0
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;
  size_t shared_bytes = 0;  ///< most shared memory that a block can request
  int driver_version = 0;   ///< the CUDA version of the driver, 13000 is 13.0
  std::string problem;      ///< why the driver did not describe it; then all else but the ordinal is unset
};

/// The runtime's answers to the first queries.
struct ProbeFacts {
  cudaError_t error = cudaSuccess;  ///< of cudaGetDeviceCount
  std::string error_text;
  int driver_version = 0;  ///< 0: no driver
  std::string no_driver;   ///< then the reason, from the system's loader
  int runtime_version = 0;
  int count = 0;
  std::string visible;  ///< CUDA_VISIBLE_DEVICES; empty also when it is not set
  bool visible_set = false;
};

/// Ok, or one sentence: why there is no device and what to do.
Status explain(const ProbeFacts& facts);

/// True if code compiled for `architectures` ("75-real;80-real;120": CMake's form) runs on this GPU: SASS of
/// its generation that is not newer, or PTX that is not newer.
bool runs_on(std::string_view architectures, int compute_capability);
/// Ok, or why this build cannot use the device.
Status usable(const DeviceFacts& device);

/// The device selected by an index, a part of the name, or a UUID; without one the first that is usable, and
/// for further ranks on this machine the next ones, round-robin.
Result<size_t> choose_device(std::span<const DeviceFacts> devices, std::string_view wanted,
                             int local_rank = 0);

DeviceInfo describe(const DeviceFacts& device);

/// Queries the driver. Fails with the sentence of explain().
Status list_devices(std::vector<DeviceFacts>& devices);

}  // namespace librt::cuda
