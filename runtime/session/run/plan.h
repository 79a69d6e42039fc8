// A plan: one set of input shapes, legalized, planned, recorded; run many times.
//
// Knows: how to record a Program into command lists, and the transfers between them. Must not know: where
// inputs come from, which other plans exist.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "runtime/session/memory/constants.h"
#include "runtime/session/memory/exchange.h"
#include "runtime/session/memory/states.h"
#include "runtime/session/prepare/program.h"

namespace librt {

class GraphRunner;

/// Memory of the application that takes the place of a plan's own for an input or an output.
struct External {
  Block* block = nullptr;  ///< null: none
  uint64_t offset = 0, bytes = 0;
  uint64_t id = 0;  ///< of the memory, and never of another
};

/// Shared by the plans of a session.
struct PlanContext {
  DeviceSet& devices;
  StateStore& states;
  ConstantStore& constants;
  PackedStore& packed;
  std::vector<BlockPtr>& arenas;  ///< one for each memory space
  bool profile = false;
  const StopSignal* stop = nullptr;
  std::span<const std::byte> mapped = {};  ///< the mapped model file, whose pages are read again on demand
  std::span<const External> external_inputs = {}, external_outputs = {};  ///< empty if there is none
  bool replay = true;  ///< false: work is launched anew in each run (Replays)
};

/// Host memory of an input or output during one run.
struct HostRange {
  void* data = nullptr;
  size_t bytes = 0;
};

class Plan {
 public:
  /// The key of this plan.
  std::vector<TensorInfo> inputs;
  std::vector<std::vector<std::byte>> values;  ///< of inputs that determine shapes; else empty
  std::list<GraphRunner*>::iterator use;       ///< in Workspace::uses
  static constexpr size_t kNowhere = ~size_t{0};
  size_t recorded_as = kNowhere;  ///< index in Workspace::recorded

  /// slabs: shared by the plans of a graph, outlive them.
  Plan(std::unique_ptr<Program> program, PlanConstants::Slabs& slabs) noexcept
      : program_(std::move(program)), own_constants_(slabs) {}

  const Program& program() const noexcept { return *program_; }
  /// Registers constants and packed bytes; commit() and load_constants() would allocate new_bytes() for them.
  void book(PlanContext& context);
  uint64_t new_bytes(const PlanContext& context) const noexcept;
  void abandon(PlanContext& context) noexcept;
  Status commit(PlanContext& context);
  /// Before the first run after another plan of the graph, with no run in flight. If it allocates, recordings
  /// of the graph's plans become invalid.
  Status load_constants() { return own_constants_.load(); }
  bool allocates_constants() const noexcept { return own_constants_.missing_bytes() > 0; }
  /// Records all command lists with the current arenas.
  Status record(PlanContext& context);
  bool recorded() const noexcept { return recorded_; }
  /// The arenas are about to change.
  void forget_recording() noexcept;

  /// Uploads inputs where the device needs it, submits everything, waits. Allocates nothing, if recorded work
  /// is replayed. May be stopped until the first step that writes a state: then all steps run, so that states
  /// are never half written.
  Status run(PlanContext& context, std::span<const HostRange> input_ranges,
             std::span<const HostRange> output_ranges);

  /// Runs in flight at a time, each with its own slot.
  static constexpr size_t kRunSlots = 2;
  /// Whether submit() returns before the run has completed: one device runs all of it, without host memory.
  bool is_asynchronous(const PlanContext& context) const noexcept;
  bool has_exchange(size_t run_slot) const noexcept { return exchanges_[run_slot].allocated_bytes() > 0; }
  /// Device memory allocated by the first submit() of a slot.
  uint64_t exchange_bytes(const PlanContext& context) const;
  /// Starts a run. The caller may reuse the memory of the ranges when this returns.
  Status submit(PlanContext& context, size_t run_slot, std::span<const HostRange> input_ranges);
  Status wait(size_t run_slot) noexcept { return exchanges_[run_slot].wait(); }
  /// After wait(): copies an output to host memory. Not for constants.
  Status receive(size_t run_slot, size_t output, void* data) const noexcept {
    return exchanges_[run_slot].receive(output, data);
  }

  /// Whether steps on the host read an input that is in device memory: it must be copied there, too.
  bool reads_on_host(const PlanContext& context, size_t input) const noexcept;
  /// Device memory that holds an output after a run; block null if the output is in host memory.
  MemoryLocation output_location(const PlanContext& context, size_t output) const noexcept;

  std::span<const uint64_t> nanoseconds() const noexcept { return nanoseconds_; }
  uint64_t profiled_runs() const noexcept { return profiled_runs_; }
  /// Time of copying inputs to the device, and outputs from it; where none is copied, 0. Requires profile.
  struct TransferTimes {
    uint64_t inputs = 0, outputs = 0;
  };
  const TransferTimes& transfer_times() const noexcept { return transfer_times_; }
  /// Copies an output, which a device has at `location`, to the host.
  Status download(const PlanContext& context, const MemoryLocation& location, std::span<std::byte> bytes);
  void reset_profile() noexcept;
  /// Device memory owned by this plan: constants packed for its shapes.
  size_t own_bytes() const noexcept { return own_packed_.allocated_bytes(); }
  size_t exchanged_bytes() const noexcept;
  /// Cost of caching this plan: host and device bytes that it owns.
  size_t footprint() const noexcept;

 private:
  struct Binding {
    uint32_t slot = 0;
    bool output = false;
    uint32_t index = 0;
    void* bound = nullptr;
  };
  /// An input or output that may be in external memory.
  struct Port {
    bool output = false;
    uint32_t index = 0;
    bool operator==(const Port&) const = default;
  };
  /// A stage's work with the external memory of its ports.
  struct Recording {
    std::vector<std::pair<uint64_t, uint64_t>> externals;  ///< by port: memory and offset
    std::vector<Slab*> slots;
    std::vector<Binding> bindings;
    CommandListPtr commands;
    bool submitted = false;
  };
  static constexpr size_t kRecordings = 4;  ///< so that buffers can take turns
  /// Steps [first, last) on one device, or one transfer, or copies between outputs after the last step.
  struct Stage {
    enum class Kind : uint8_t { Steps, Transfer, Copies };
    Kind kind = Kind::Steps;
    uint32_t device = 0;
    uint32_t first = 0, last = 0;
    std::vector<Port> ports;
    std::vector<Recording> recordings;  ///< the last used first; none of a transfer
  };
  class SlotTable;

  Result<BufferRef> ref(PlanContext& context, SlotTable& slots, Ref id, uint32_t device) const;
  /// Whether the device's list has to be recorded anew for each run.
  static bool records_anew(const PlanContext& context, uint32_t device) noexcept;
  Status record_stage(PlanContext& context, const Stage& stage, Recording& recording) const;
  Status record_copies(PlanContext& context, Recording& recording) const;
  void find_ports(const PlanContext& context, Stage& stage) const;
  static External external_at(const PlanContext& context, const Port& port) noexcept;
  /// The external memory that a value is in; block null if it is in the plan's own.
  External external_of(const PlanContext& context, Ref root) const noexcept;
  /// Whether an output is in external memory, and another value with its bytes is elsewhere.
  bool is_copied(const PlanContext& context, size_t output) const noexcept;
  /// Whether an output that is not in external memory has its bytes in that of another output or an input.
  bool is_elsewhere(const PlanContext& context, size_t output) const noexcept;
  bool has_copies(const PlanContext& context) const noexcept;
  /// Makes the recordings for the present external memory the first of their stages.
  Status select_recordings(PlanContext& context);
  Status select_recording(PlanContext& context, Stage& stage);
  void find_first_state_step() noexcept;
  Status transfer(PlanContext& context, const Step& step, std::span<const HostRange> input_ranges,
                  std::span<const HostRange> output_ranges) const;
  MemoryLocation arena_location(const PlanContext& context, const Storage& storage) const noexcept;
  /// Ranges of the arena; those of external memory are empty.
  std::vector<Exchange::Range> arriving(const PlanContext& context) const;
  std::vector<Exchange::Range> leaving(const PlanContext& context) const;
  Status record_exchange(PlanContext& context, size_t run_slot);

  std::unique_ptr<Program> program_;
  PlanConstants own_constants_;
  PackedStore own_packed_;
  std::vector<uint8_t> packed_is_own_;  ///< by step
  uint32_t first_state_step_ = 0;       ///< the first step that writes a state; steps.size() if none does
  std::vector<Stage> stages_;  // after everything their commands refer to, so that they are destroyed first
  std::array<Exchange, kRunSlots> exchanges_;
  std::array<std::vector<bool>, kRunSlots> exchanged_;  ///< by input, then by output: in exchange memory
  std::vector<Ref> output_roots_;
  std::vector<uint64_t> nanoseconds_;
  uint64_t profiled_runs_ = 0;
  TransferTimes transfer_times_;
  bool recorded_ = false;
};

}  // namespace librt
