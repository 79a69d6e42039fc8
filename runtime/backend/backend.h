// The interface between the session and a backend: Device, Slab, CommandList, Kernel.
//
// Knows: memory by slot and offset, kernels that report their requirements and then record. Must not know:
// graphs beyond one node, files, which session is calling. A backend implements these classes; the session is
// their only caller.
//
// Order of calls for one plan: create kernels (kernel_table.h) -> requirements() -> memory is planned ->
// pack() into host memory -> Device::begin() -> record() each kernel in order -> submit()/wait() many times.
// Submitted work of all command lists of a device executes in submission order. A Device and all objects
// created by it are used by one thread at a time. Nothing here throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/stop_signal.h"
#include "runtime/core/tensor_view.h"
#include "runtime/graph/node_view.h"
#include "runtime/include/rt/custom.h"

struct rt_communicator;  // rt/communicator.h

namespace librt {

enum class DeviceType : uint8_t {
  Cpu = 0,
  IntegratedGpu = 1,
  DiscreteGpu = 2,
  VirtualGpu = 3,
  SoftwareGpu = 4
};

/// What a device records at the first runs of a command list and replays in later ones.
enum class Replays : uint8_t {
  Nothing,       ///< it computes, or launches, within submit()
  Launches,      ///< the launches of a list: RecordOptions::replay = false makes each submit() launch them
  CommandBuffer  ///< the list itself: without replay the session records a new one for each run
};

/// Properties of a device, known without opening it for work.
struct DeviceInfo {
  std::string backend;  ///< "cpu", "vulkan", "cuda"
  int index = 0;        ///< index among the backend's devices
  std::string name;     ///< "AMD EPYC 9654", "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string uuid;     ///< hexadecimal, empty if none
  std::string driver;   ///< name and version of driver or library
  DeviceType type = DeviceType::Cpu;
  uint64_t memory_bytes = 0;
  uint64_t cache_bytes = 0;                  ///< Cpu: its largest cache; 0: unknown
  uint64_t max_buffer_bytes = ~uint64_t{0};  ///< largest range one kernel may address through one binding
  size_t alignment = 64;                     ///< every offset passed to a kernel is a multiple of this
  bool host_memory = false;   ///< kernels work on host pointers: wrap() and bind_host() never copy
  bool asynchronous = false;  ///< submit() returns before the work has completed: allocate_exchange()
  Replays replays = Replays::Nothing;  ///< what of recorded work later runs reuse
  bool wants_estimates = false;        ///< it submits work in parts that take a limited time
  int threads = 1;                     ///< Cpu: threads in use
  std::vector<std::string> features;  ///< "avx512_bf16", "fp16_storage", "coopmat", for people and predicates
  std::string collectives;            ///< library for collectives between devices, "NCCL 2.28.9"; empty: the
                                      ///< communicator, in host memory
  std::string no_collectives;         ///< why the communicator is used, if there is a reason to report
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

/// Bytes accessed by a kernel: a range of the slab that the plan assigned to `slot`.
struct BufferRef {
  static constexpr uint32_t kNoSlot = 0xffffffffu;
  uint32_t slot = kNoSlot;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool present() const noexcept { return slot != kNoSlot; }
};

/// Locations of a kernel's operands when it is recorded. !present(): absent inputs, shape operands whose
/// value was in NodeView, inputs that pack() replaces, no scratch, no packed bytes. A value without elements
/// is present with 0 bytes; a node whose outputs are all empty is not recorded.
struct Bindings {
  std::span<const BufferRef> inputs;
  std::span<const BufferRef> outputs;
  BufferRef scratch;
  BufferRef packed;
};

/// output may share memory with input if this node is the input's last reader.
struct InPlace {
  uint8_t input = 0;
  uint8_t output = 0;
};

/// Memory requirements beyond the operands; known before memory is planned.
struct Requirements {
  uint64_t scratch = 0;  ///< bytes, live only during this node
  uint64_t packed = 0;   ///< bytes filled once by pack() and read by every run
  /// Kernels of one session whose packed bytes come from the same constants with the same nonzero key share
  /// them (e.g. the same weights at another batch size).
  uint64_t packed_key = 0;
  /// Bit i: input i is read by pack() alone, so the device need not hold it.
  uint32_t replaced_inputs = 0;
  std::optional<InPlace> in_place;
  /// The kernel leaves an input alone whose address is where its bytes belong in output 0: inputs in order,
  /// one after the other, all dense.
  bool joins_in_place = false;
  /// Further pairs under the same rule (e.g. an optimizer step's moments), in static memory or owned by the
  /// kernel.
  std::span<const InPlace> more_in_place;
};

/// Memory layout of a value: kDense (row-major), or an id private to one backend.
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
  /// Fills the packed bytes from the constants passed to the factory in NodeView (host memory that is still
  /// valid).
  virtual Status pack(std::span<std::byte>) noexcept { return {}; }
  /// Appends this kernel's work. Called once per command list.
  virtual Status record(CommandList& commands, const Bindings& bindings) noexcept = 0;
};
using KernelPtr = std::unique_ptr<Kernel>;

/// Recorded work, submitted many times. Nothing here allocates after the first submit.
class CommandList {
 public:
  virtual ~CommandList() = default;
  /// Following work belongs to span `span` (profiling, error messages) until the next mark.
  virtual Status mark(uint32_t span) noexcept = 0;
  /// Copies bytes between slots as part of the recorded work.
  virtual Status copy(const BufferRef& destination, const BufferRef& source) noexcept = 0;
  /// Ends recording; the list can be submitted from now on.
  virtual Status finish() noexcept = 0;
  /// Rebinds a slot to another host address; only on devices with host_memory, between runs.
  virtual Status bind_host(uint32_t slot, void* address, size_t bytes) noexcept = 0;
  /// Starts the work. Lists that refer to exchange memory, and those between them, may be submitted again
  /// while an earlier submission is in flight.
  virtual Status submit() noexcept = 0;
  /// Waits for the last submission.
  virtual Status wait() noexcept = 0;
  /// After wait(): nanoseconds per span, added to `nanoseconds[span]`. Only if recorded with profile.
  virtual Status timings(std::span<uint64_t> nanoseconds) noexcept = 0;
};
using CommandListPtr = std::unique_ptr<CommandList>;

struct RecordOptions {
  std::span<Slab* const> slots;  ///< slab of each slot; null for slots set by bind_host()
  uint32_t spans = 0;            ///< number of marks
  /// Estimated seconds of each span, if the device wants_estimates; may be empty.
  std::span<const float> span_seconds;
  bool profile = false;
  bool replay = true;  ///< see Replays
  /// With profile: names of the spans for tools that watch the device (Nsight, RenderDoc); may be empty. The
  /// strings outlive the command list.
  std::span<const char* const> span_names;
  /// If set, a device that computes within submit(), or submits in parts, checks it before each step, or
  /// part, of the first `stoppable` spans; submit() then ends with its status. What was submitted completes.
  const StopSignal* stop = nullptr;
  uint32_t stoppable = 0;
};

class KernelTable;

/// An operator of the application, with names that live as long as this.
struct CustomOperator {
  std::string domain, name;
  rt_custom_operator functions;
};
using CustomOperators = std::vector<CustomOperator>;

class Device {
 public:
  virtual ~Device() = default;
  /// Of the session that opened the device; null: none. Outlive the device.
  const CustomOperators* custom_operators = nullptr;

  virtual const DeviceInfo& info() const noexcept = 0;
  virtual const KernelTable& kernels() const noexcept = 0;

  virtual Result<SlabPtr> allocate(size_t bytes) noexcept = 0;
  /// Device memory that wraps existing host memory, without a copy; Unsupported if the device cannot. The
  /// memory must outlive the slab and is only read by kernels if `bytes` come from a constant.
  virtual Result<SlabPtr> wrap(void* bytes, size_t size) noexcept = 0;
  /// Memory for transferring the inputs and outputs of a run while other runs are in flight: upload() and
  /// download() on it do not wait for submitted work, which must not access these bytes at that time; work
  /// submitted later sees what was uploaded. Only on asynchronous devices.
  virtual Result<SlabPtr> allocate_exchange(size_t) noexcept {
    return unsupported("this device computes while work is submitted");
  }
  /// To and from other memory: ordered with submitted work.
  virtual Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept = 0;
  virtual Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept = 0;
  virtual Result<CommandListPtr> begin(const RecordOptions& options) noexcept = 0;

  /// Bytes of a value in a layout (kDense: the dense size).
  virtual size_t layout_bytes(LayoutId layout, const TensorInfo& info) const noexcept {
    return layout == kDense ? info.bytes() : 0;
  }
  /// A kernel with one input and one output that reorders; Unsupported if this pair does not exist.
  virtual Result<KernelPtr> make_reorder(const TensorInfo&, LayoutId, LayoutId) noexcept {
    return unsupported("this device has no private layouts");
  }
  /// Calls work(context, i) for each i below `count`, in any order: on the device's threads, if they are the
  /// host's. Not while work is submitted.
  virtual void for_each(size_t count, void (*work)(void* context, size_t index) noexcept,
                        void* context) noexcept {
    for (size_t i = 0; i < count; ++i) work(context, i);
  }
  /// Human-readable: "nChw16c". kDense is "dense".
  virtual std::string layout_name(LayoutId layout) const { return layout == kDense ? "dense" : "private"; }
};
using DevicePtr = std::unique_ptr<Device>;

/// Device options of a session.
struct DeviceOptions {
  std::string device;          ///< index, part of the name, or UUID; empty: chosen by the backend
  int threads = 0;             ///< Cpu: 0 = as allowed by cgroup and affinity
  bool deterministic = false;  ///< reproducible results from run to run on this device
  bool validation = false;     ///< Vulkan: validation layers; their errors make wait() fail
  bool tf32 = false;           ///< matmuls of f32 may round their operands to TF32; needs the feature "tf32"
  std::string cache_folder;    ///< for pipelines and tuning results; empty: the user's cache folder
  const rt_communicator* communicator =
      nullptr;                  ///< with the other ranks; null: single process. Outlives the device
  rt_allocator allocator = {};  ///< Cpu: memory; allocate null: the C library's
  rt_parallel parallel = {};    ///< Cpu: the application's threads; run null: its own
  std::vector<int> cpus;        ///< Cpu: where its own threads may run; empty: anywhere
  int priority = 0;             ///< Cpu: nice value of its own threads; 0: that of the caller
  std::shared_ptr<const CustomOperators> custom_operators;  ///< of the application; null: none
  int local_rank = 0;                                       ///< this rank's index among those on its machine
  bool same_backend = true;                                 ///< all ranks open this backend now
};

}  // namespace librt
