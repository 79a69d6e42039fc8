// The CPU as a Device: host memory, and the table of all kernels of this backend.
//
// Knows: memory, layouts, how a session begins to record. Must not know: any operator.
#pragma once

#include "backends/cpu/device/team.h"
#include "backends/cpu/simd/simd.h"
#include "runtime/backend/backend.h"
#include "runtime/backend/kernel_table.h"

namespace librt::cpu {

/// oneDNN's nChw16c: [N, C/16, S1..Sk, 16] for a value that is [N, S1..Sk, C] in the graph. Only where 16
/// divides C, so that a blocked value has exactly the bytes of the dense one.
inline constexpr LayoutId kBlocked16 = 1;
inline constexpr int64_t kBlock = 16;

/// Whether a value can be kept in kBlocked16.
bool can_block(const TensorInfo& info) noexcept;

class CpuDevice final : public Device {
 public:
  /// Throws std::system_error when the OS refuses the threads, PlacementError.
  explicit CpuDevice(DeviceInfo info, const DeviceOptions& options = {});

  const DeviceInfo& info() const noexcept override { return info_; }
  const KernelTable& kernels() const noexcept override { return table_; }
  Result<SlabPtr> allocate(size_t bytes) noexcept override;
  Result<SlabPtr> wrap(void* bytes, size_t size) noexcept override;
  Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept override;
  Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept override;
  Result<CommandListPtr> begin(const RecordOptions& options) noexcept override;
  size_t layout_bytes(LayoutId layout, const TensorInfo& info) const noexcept override;
  Result<KernelPtr> make_reorder(const TensorInfo& info, LayoutId from, LayoutId to) noexcept override;
  void for_each(size_t count, void (*work)(void* context, size_t index) noexcept,
                void* context) noexcept override;
  std::string layout_name(LayoutId layout) const override;

  const Simd& simd() const noexcept { return simd_; }
  /// The threads that work for this device.
  const Workers& workers() const noexcept { return workers_; }
  /// To the other ranks of data parallel training; null where there is only one.
  const rt_communicator* communicator() const noexcept { return communicator_; }

 private:
  DeviceInfo info_;
  const Simd& simd_;
  const rt_communicator* communicator_;
  rt_allocator allocator_;
  std::unique_ptr<Team> pool_;  ///< the application's threads, if it has given any
  Workers workers_;
  KernelTable table_;
};

}  // namespace librt::cpu
