// Which device, queue, memory and limits to use: pure choices over plain facts, so that they are tested
// without a GPU.
//
// Knows: facts about devices as values and flags. Must not know: Vulkan handles, how facts were obtained.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/backend.h"

namespace librt::vulkan {

struct QueueFamilyFacts {
  bool graphics = false;
  bool compute = false;
  uint32_t count = 0;
  uint32_t timestamp_bits = 0;
};

struct MemoryTypeFacts {
  bool device_local = false;
  bool host_visible = false;
  bool host_coherent = false;
  bool host_cached = false;
  uint64_t heap_bytes = 0;
};

struct FeatureFacts {
  bool storage_8bit = false;   ///< bool and u8 tensors
  bool storage_16bit = false;  ///< f16 tensors
  bool float16 = false;        ///< arithmetic on f16
  bool int8 = false;
  bool int16 = false;
  bool int64 = false;
  bool timeline = false;     ///< timeline semaphores
  bool integer_dot = false;  ///< packed dot products of signed with unsigned bytes that are accelerated
};

/// Component types of a cooperative matrix.
enum class Component : uint8_t { F16, F32, S8, S32, Other };

/// D[m,n] = A[m,k] B[k,n] + D as one subgroup's operation.
struct MatrixFacts {
  uint32_t m = 0, n = 0, k = 0;
  Component factors = Component::Other, sums = Component::Other;
};

struct DeviceFacts {
  std::string name;
  std::string uuid;
  std::string driver;
  uint32_t vendor_id = 0;
  uint32_t driver_version = 0;
  uint32_t api_version = 0;  ///< major * 100 + minor
  DeviceType type = DeviceType::VirtualGpu;
  uint64_t max_storage_range = 0;
  uint64_t max_allocation = 0;
  uint64_t max_texel_elements = 0;
  uint64_t storage_alignment = 1;
  uint64_t texel_alignment = 1;
  uint32_t max_groups = 65535;  ///< per dimension; the smallest of the dimensions used
  uint32_t max_invocations = 128;
  uint32_t max_push_bytes = 128;
  uint32_t max_storage_buffers = 4;
  uint32_t subgroup_size = 0;
  bool subgroup_shuffle = false;  ///< with votes, in compute shaders
  uint32_t max_shared_bytes = 16384;
  std::vector<MatrixFacts> matrices;  ///< cooperative matrices that can be used, by subgroups
  double timestamp_period = 0;
  bool memory_fd = false;               ///< memory is shared by file descriptors
  bool memory_host = false;             ///< host memory can be imported,
  uint64_t host_pointer_alignment = 0;  ///< in multiples of this
  FeatureFacts features;
  std::vector<QueueFamilyFacts> queues;
  std::vector<MemoryTypeFacts> memory;
};

/// The most storage buffers and texel buffers that a shader binds, the storage buffers first.
inline constexpr uint32_t kStorageBindings = 10;
inline constexpr uint32_t kTexelBindings = 4;
inline constexpr uint32_t kPushBytes = 128;

/// How workgroups tile a matmul by cooperative matrices; see shaders/gemm_matrices.comp.
struct MatrixPlan {
  uint32_t m = 0, n = 0, k = 0;             ///< of one operation; 0: the device lists none that fits
  uint32_t rows = 0, columns = 0;           ///< per subgroup, of the result
  uint32_t subgroups = 1, subgroups_n = 1;  ///< per workgroup, and along the columns
  uint32_t lanes = 0;                       ///< per workgroup
  uint32_t step = 0;                        ///< extent of k staged at once
  bool listed() const noexcept { return m > 0; }
};

struct DevicePlan {
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;  ///< that count; 0: there are no timestamps
  uint32_t tensor_memory = 0;   ///< memory type of slabs
  uint32_t staging_memory = 0;  ///< memory type for uploads and exchange; unused when slabs are mapped
  uint32_t reading_memory = 0;  ///< memory type for downloads; may lack coherence
  bool mapped = false;          ///< slabs are host visible and coherent, and the host reads them fast
  bool writable = false;        ///< the host writes to slabs, but reads them through reading_memory
  uint64_t memory_bytes = 0;
  uint64_t alignment = 64;
  uint64_t max_binding_bytes = 0;
  double submission_seconds = 0;  ///< what one submission may take (pace.h); 0: any, on software devices
  uint32_t wait_seconds = 0;      ///< for a submission, after which the device counts as lost; 0: for ever
  /// Iterations of all loops of an invocation together, after which the driver leaves them, so that results
  /// are wrong: llvmpipe counts down from 65535. 0: any number.
  int64_t most_iterations = 0;
  /// Read matrices through texel buffers: on software devices a vector gather replaces a loop over the lanes.
  bool texel_loads = false;
  /// Compute tiles in workgroups of one subgroup, whose lanes share their loads by shuffles.
  bool subgroup_tiles = false;
  uint32_t elementwise_lanes = 256;  ///< workgroup size of kernels without barriers
  uint32_t row_lanes = 64;           ///< workgroup size for reducing one row
  uint32_t tile_lanes = 64;          ///< workgroup size of register-tiled kernels
  MatrixPlan half_matrices;          ///< f16 with f32 accumulators
  MatrixPlan byte_matrices;          ///< i8 with i32 accumulators; steps are multiples of 16
  /// Matmuls may use cooperative matrices: not on software devices, whose own tiles are faster.
  bool use_matrices = true;
};

/// Ok, or what this device lacks to be usable at all.
Status usable(const DeviceFacts& facts);

/// Index of the device: `wanted` is an index, a part of the name or the UUID; empty selects the best device
/// that is not software, or a software device if `allow_software` and there is nothing else.
Result<size_t> choose_device(std::span<const DeviceFacts> devices, std::string_view wanted,
                             bool allow_software);

/// Queue, memory types and tuning for a usable device.
Result<DevicePlan> plan_device(const DeviceFacts& facts);

/// Between two timestamps of so many bits, which may have wrapped around once.
double timestamp_nanoseconds(uint64_t from, uint64_t to, uint32_t bits, double period) noexcept;

/// The description that probe() lists.
DeviceInfo describe_device(const DeviceFacts& facts, int index);

}  // namespace librt::vulkan
