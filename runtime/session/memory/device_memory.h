// Memory for inputs and outputs that the application made on a device, or gave to librt.
//
// Knows: who owns it, whether it has been freed. Must not know: sessions, plans.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/session/device/device_set.h"
#include "runtime/session/memory/memory.h"

namespace librt {

class DeviceMemory {
 public:
  struct Options {
    MemoryRequest request;
    bool read_only = false;
    /// Called once, from any thread, when the memory is not used any more.
    void (*release)(void* user) = nullptr;
    void* user = nullptr;
  };
  /// On the chosen device. `release` is called after a success only.
  static Result<std::shared_ptr<DeviceMemory>> create(std::shared_ptr<DeviceSet> devices,
                                                      const Options& options);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const std::shared_ptr<DeviceSet>& devices() const noexcept { return devices_; }
  Block& block() const noexcept { return *block_; }
  size_t bytes() const noexcept { return bytes_; }
  bool read_only() const noexcept { return options_.read_only; }
  /// Never that of another.
  uint64_t id() const noexcept { return id_; }
  /// The address that host or device code uses; null if there is none.
  std::byte* address() const noexcept;
  /// The application's handle, which tensors refer to; null once it has been freed: nothing may be run with
  /// the memory any more.
  void note_handle(void* handle) noexcept { handle_.store(handle, std::memory_order_release); }
  void* handle() const noexcept { return handle_.load(std::memory_order_acquire); }

 private:
  DeviceMemory(std::shared_ptr<DeviceSet> devices, const Options& options);
  std::shared_ptr<DeviceSet> devices_;  // outlives the block
  BlockPtr block_;
  Options options_;
  size_t bytes_ = 0;
  uint64_t id_;
  std::atomic<void*> handle_{nullptr};
  bool made_ = false;
};

}  // namespace librt
