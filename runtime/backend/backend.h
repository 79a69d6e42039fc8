// The contract between the session and a backend: Device, Slab, CommandList, Kernel.
//
// Knows: memory by slot and offset, kernels that describe themselves and then record. Must not know: graphs
// beyond one node, files, which session asks. A backend implements these classes; the session is their only
// caller.
//
// Order of calls for one plan: create kernels (kernel_table.h) -> requirements() -> memory is planned ->
// pack() into host memory -> Device::begin() -> record() each kernel in order -> submit()/wait() many times.
// What is submitted runs in the order in which it was submitted, of all lists of a device.
// A Device and all that comes from it is used by one thread at a time. Nothing here throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/graph/node_view.h"

struct rt_communicator;  // rt/communicator.h

namespace rt {

enum class DeviceType : uint8_t {
  Cpu = 0,
  IntegratedGpu = 1,
  DiscreteGpu = 2,
  VirtualGpu = 3,
  SoftwareGpu = 4
};

/// What is known of a device without opening it for work.
struct DeviceInfo {
  std::string backend;  ///< "cpu", "vulkan", "cuda"
  int index = 0;        ///< position among the backend's devices
  std::string name;     ///< "AMD EPYC 9654", "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string uuid;     ///< hexadecimal, empty if there is none
  std::string driver;   ///< name and version of driver or library
  DeviceType type = DeviceType::Cpu;
  uint64_t memory_bytes = 0;
  uint64_t max_buffer_bytes = ~uint64_t{0};  ///< largest range one kernel may address through one binding
  size_t alignment = 64;                     ///< every offset handed to a kernel is a multiple of this
  bool host_memory = false;           ///< kernels work on host pointers: wrap() and bind_host() never copy
  bool asynchronous = false;          ///< submit() returns before the work is done: allocate_exchange()
  int threads = 1;                    ///< Cpu: threads in use
  std::vector<std::string> features;  ///< "avx512_bf16", "fp16_storage", "coopmat", for people and predicates
  std::string collectives;  ///< what carries sums over the ranks from device to device, "NCCL 2.28.9"; empty:
                            ///< the communicator, in host memory
  std::string no_collectives;  ///< why it is the communicator, where there is more to say
};

inline bool has_feature(const DeviceInfo& info, std::string_view name) noexcept {
  for (const std::string& feature : info.features)
    if (feature == name) return true;
  return false;
}

/// One block of device memory. Frees itself; must not outlive its Device.
class Slab {
 public:
  virtual ~Slab() = default;
  virtual size_t size() const noexcept = 0;
  /// Host address of the block when the host can read and write it coherently, else null.
  virtual void* host() noexcept = 0;
};
using SlabPtr = std::unique_ptr<Slab>;

/// Bytes a kernel works on: a range of the slab that the plan put into `slot`.
struct BufferRef {
  static constexpr uint32_t kNoSlot = 0xffffffffu;
  uint32_t slot = kNoSlot;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool present() const noexcept { return slot != kNoSlot; }
};

/// Where a kernel finds its operands when it records. Absent inputs, shape operands whose value the kernel
/// saw in NodeView, inputs that pack() replaces, no scratch, no packed bytes: !present(). A value without
/// elements is present with 0 bytes; a node whose outputs all have none is not recorded.
struct Bindings {
  std::span<const BufferRef> inputs;
  std::span<const BufferRef> outputs;
  BufferRef scratch;
  BufferRef packed;
};

/// output may share memory with input when this node is the input's last reader.
struct InPlace {
  uint8_t input = 0;
  uint8_t output = 0;
};

/// What a kernel needs beyond its operands; booked before memory is planned.
struct Requirements {
  size_t scratch = 0;  ///< bytes, only alive during this node
  size_t packed = 0;   ///< bytes that pack() fills once and every run reads
  /// Kernels of one session whose packed bytes come from the same constants with the same nonzero key share
  /// them (the same weights at another batch size).
  uint64_t packed_key = 0;
  /// Bit i: input i is read by pack() alone, so the device need not hold it.
  uint32_t replaced_inputs = 0;
  std::optional<InPlace> in_place;
  /// Further pairs under the same rule (an optimizer step's moments), in static memory or the kernel's.
  std::span<const InPlace> more_in_place;
};

/// How the bytes of a value are arranged: kDense (row-major), or a number private to one backend.
using LayoutId = uint32_t;
inline constexpr LayoutId kDense = 0;

class CommandList;

/// One node, prepared for concrete shapes on one device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Requirements requirements() const noexcept = 0;
  /// Layouts this kernel reads and writes. The session inserts reorders where a producer's layout differs.
  virtual LayoutId input_layout(size_t) const noexcept { return kDense; }
  virtual LayoutId output_layout(size_t) const noexcept { return kDense; }
  /// Fills the packed bytes from the constants that the factory saw in NodeView (host memory that is still
  /// valid).
  virtual Status pack(std::span<std::byte>) noexcept { return {}; }
  /// Appends this kernel's work. Called once per command list.
  virtual Status record(CommandList& commands, const Bindings& bindings) noexcept = 0;
};
using KernelPtr = std::unique_ptr<Kernel>;

/// Recorded work, submitted many times. After the first submit nothing here allocates.
class CommandList {
 public:
  virtual ~CommandList() = default;
  /// What follows belongs to span `span` (profiling, error messages) until the next mark.
  virtual Status mark(uint32_t span) noexcept = 0;
  /// Copies bytes between slots as part of the recorded work.
  virtual Status copy(const BufferRef& destination, const BufferRef& source) noexcept = 0;
  /// Recording is over; the list can be submitted from now on.
  virtual Status finish() noexcept = 0;
  /// Puts another host address behind a slot; only on devices with host_memory, between runs.
  virtual Status bind_host(uint32_t slot, void* address, size_t bytes) noexcept = 0;
  /// Begins the work. Lists that refer to exchange memory, and those between them, may be submitted again
  /// while an earlier submission is under way.
  virtual Status submit() noexcept = 0;
  /// Waits for the last submission.
  virtual Status wait() noexcept = 0;
  /// After wait(): nanoseconds per span, added to `nanoseconds[span]`. Only when begun with profile.
  virtual Status timings(std::span<uint64_t> nanoseconds) noexcept = 0;
};
using CommandListPtr = std::unique_ptr<CommandList>;

struct RecordOptions {
  std::span<Slab* const> slots;  ///< slab behind each slot; null where bind_host() will give an address
  uint32_t spans = 0;            ///< how many marks there will be
  bool profile = false;
};

class KernelTable;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const noexcept = 0;
  virtual const KernelTable& kernels() const noexcept = 0;

  virtual Result<SlabPtr> allocate(size_t bytes) noexcept = 0;
  /// Device memory over existing host memory, without a copy; Unsupported where the device cannot. The memory
  /// must outlive the slab and is only read by kernels when `bytes` come from a constant.
  virtual Result<SlabPtr> wrap(void* bytes, size_t size) noexcept = 0;
  /// Memory by which the inputs of a run come and its outputs go while other runs are under way: upload() to
  /// it and download() from it wait for no submitted work, so none may touch these bytes then; work that is
  /// submitted later finds what was uploaded. Only on devices that are asynchronous.
  virtual Result<SlabPtr> allocate_exchange(size_t) noexcept {
    return unsupported("this device computes while work is submitted");
  }
  /// To and from other memory: in order with submitted work.
  virtual Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept = 0;
  virtual Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept = 0;
  virtual Result<CommandListPtr> begin(const RecordOptions& options) noexcept = 0;

  /// Bytes that a value takes in a layout (kDense: the dense size).
  virtual size_t layout_bytes(LayoutId layout, const TensorInfo& info) const noexcept {
    return layout == kDense ? info.bytes() : 0;
  }
  /// A kernel with one input and one output that rearranges; Unsupported when this pair does not exist.
  virtual Result<KernelPtr> make_reorder(const TensorInfo&, LayoutId, LayoutId) noexcept {
    return unsupported("this device has no private layouts");
  }
  /// For people: "nChw16c". kDense is "dense".
  virtual std::string layout_name(LayoutId layout) const { return layout == kDense ? "dense" : "private"; }
};
using DevicePtr = std::unique_ptr<Device>;

/// What a session asks of a device.
struct DeviceOptions {
  std::string device;          ///< index, part of the name, or UUID; empty: the backend's choice
  int threads = 0;             ///< Cpu: 0 = what the cgroup and affinity allow
  bool deterministic = false;  ///< equal results from run to run on this device
  bool validation = false;     ///< Vulkan: validation layers, whose errors make wait() fail
  bool tf32 = false;           ///< products of f32 may round their factors to TF32; needs the feature "tf32"
  std::string cache_folder;    ///< for pipelines and tuning results; empty: the user's cache folder
  const rt_communicator* communicator =
      nullptr;               ///< with the other ranks; null: there is one. Outlives the device
  int local_rank = 0;        ///< this rank's number among those of its machine
  bool same_backend = true;  ///< all ranks open this backend now
};

}  // namespace rt
