// Runs a graph whose shapes all follow from its inputs: finds or builds the plan for them.
//
// Knows: the order of work (find or build the plan, grow memory, record, run) and the data shared by plans:
// weights, packed bytes, arenas (Workspace). Must not know: who owns the memory of inputs and outputs.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "runtime/core/stop_signal.h"
#include "runtime/session/memory/memory_limit.h"
#include "runtime/session/prepare/legalize.h"
#include "runtime/session/run/plan.h"

namespace librt {

class GraphRunner;

/// What plans hold.
struct PlanBytes {
  uint64_t on_devices = 0;
  uint64_t tables = 0;
  uint64_t footprint = 0;  ///< see Plan
};

/// Shared by the graphs of a session: devices, states, weights, the arenas (used by one graph at a time), and
/// the limits on all of it.
struct Workspace {
  std::shared_ptr<DeviceSet> devices;  // first, because members below hold device memory
  std::shared_ptr<const ModelGraph> model;
  std::shared_ptr<StateStore> states;
  FoldedConstants folded;
  ConvertedConstants converted;
  ConstantStore constants;
  PackedStore packed;
  std::vector<BlockPtr> arenas;
  KernelTuner kernel_tuner{TuningOptions{}};
  bool strict = false;
  std::span<const std::byte> mapped;  ///< see SessionOptions
  std::optional<DType> precision;
  bool profile = false;
  bool replay = true;  ///< see PlanContext
  MemoryLimit limit;
  uint64_t host_bytes = 0;  ///< taken by reserve() and grow()
  PlanBytes plans;          ///< of all runners, each of which counts its own
  uint64_t plan_cache_bytes = 0;
  StopSignal stop;
  Log log;
  const rt_allocator* allocator = nullptr;  ///< of reserve() and grow(); null: the C library's
  /// By input and output of the entry, which is run as a whole; empty if there is none.
  std::vector<External> external_inputs, external_outputs;
  std::vector<GraphRunner*> runners;  ///< each registers and unregisters itself
  std::list<GraphRunner*> uses;       ///< an entry for each plan, the least recently used first
  std::vector<Plan*> recorded;        ///< plans that may refer to the arenas

  PlanContext context() noexcept {
    return {*devices, *states, constants,       packed,           arenas, profile,
            &stop,    mapped,  external_inputs, external_outputs, replay};
  }
  /// Bytes of the session, except arenas: on devices, and on the host unless they are few.
  uint64_t held() const noexcept;
  uint64_t arena_bytes() const noexcept;
  /// Whether `more` bytes of host memory may be taken.
  Status check_host(uint64_t more) const noexcept;
  /// As the functions of AlignedBytes, within the limit.
  Status reserve(AlignedBytes& bytes, size_t size) noexcept { return take(bytes, size, false); }
  Status grow(AlignedBytes& bytes, size_t size) noexcept { return take(bytes, size, true); }
  /// fresh: device bytes about to be allocated.
  Status check_limit(const Graph& graph, const Plan& plan, uint64_t fresh);
  Status grow_arenas(const Plan& plan);
  /// Discards converted constants, and pages of the file, that have been packed by kernels, copied to
  /// devices, or folded into plans.
  void discard_constants(const Graph& graph) noexcept;
  void note_use(const Plan& plan) noexcept { uses.splice(uses.end(), uses, plan.use); }
  /// Before the plan is recorded.
  void note_recording(Plan& plan);
  /// Before the plan is destroyed.
  void forget(Plan& plan) noexcept;
  /// Evicts plans, least recently used first, until they are within the limits; not the one that `newest` is
  /// about to run.
  void evict(GraphRunner& newest);

 private:
  Status take(AlignedBytes& bytes, size_t size, bool keep) noexcept;
};

class GraphRunner {
 public:
  GraphRunner(Workspace& workspace, const Graph& graph);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  const Graph& graph() const noexcept { return graph_; }
  /// Shapes depend on the value of this input, not only on its shape: it must be known while planning.
  bool reads_while_planning(size_t input) const noexcept { return shape_inputs_[input] != 0; }
  bool reads_while_planning() const noexcept;

  /// Whether the current plan is for these inputs. data is null where only the shape is given.
  bool is_prepared(std::span<const ConstTensorView> inputs) const noexcept;
  Status prepare(std::span<const ConstTensorView> inputs);
  /// Null before the first plan, and after it has been evicted.
  const Plan* plan() const noexcept { return current_; }
  /// Only after prepare().
  const PlanValue& output(size_t k) const noexcept {
    return current_->program().values[current_->program().outputs[k]];
  }
  Status run(std::span<const HostRange> inputs, std::span<const HostRange> outputs);

  /// See Plan; only after prepare().
  bool reads_on_host(size_t input) const noexcept {
    return current_->reads_on_host(shared_.context(), input);
  }
  /// Whether output k is made in device memory, where external memory takes its place.
  bool makes_on_device(size_t k) const noexcept {
    return current_->output_location(shared_.context(), k).block != nullptr;
  }

  /// One asynchronous run, see Plan.
  bool is_asynchronous() const noexcept;
  Status submit(size_t run_slot, std::span<const HostRange> inputs);
  Status wait(size_t run_slot) noexcept { return current_->wait(run_slot); }
  /// After wait(): copies output k to `target`.
  Status receive(size_t run_slot, size_t k, void* target) const;

  /// After a run with these outputs: copies output k to `target`, which may be its range, and returns that;
  /// or, if borrow is set, returns its address, valid until the next run.
  Result<void*> deliver(size_t k, std::span<const HostRange> outputs, void* target, bool borrow);

  size_t plan_count() const noexcept { return plans_.size(); }
  /// Device memory owned by the plans.
  size_t own_bytes() const noexcept;
  /// Device memory for inputs and outputs of submitted runs in transfer.
  size_t exchanged_bytes() const noexcept;
  void reset_profile() noexcept;

 private:
  friend struct Workspace;
  bool fits(const Plan& plan, std::span<const ConstTensorView> inputs) const noexcept;
  Status build_plan(std::span<const ConstTensorView> inputs);
  Status load_constants();
  void drop_oldest() noexcept;
  /// Brings Workspace::plans up to date.
  void count_bytes() noexcept { count_bytes(bytes_of_plans()); }
  void count_bytes(const PlanBytes& bytes) noexcept;
  PlanBytes bytes_of_plans() const noexcept;

  Workspace& shared_;
  const Graph& graph_;
  std::vector<uint8_t> shape_inputs_;
  PlanConstants::Slabs slabs_;                ///< the plans take turns in them
  std::vector<std::unique_ptr<Plan>> plans_;  ///< least recently used first
  Plan* current_ = nullptr;
  PlanBytes counted_;  ///< the share of Workspace::plans
  size_t position_;    ///< in Workspace::runners
};

}  // namespace librt
