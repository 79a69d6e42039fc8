// A session: one entry of a model, prepared for a device, run many times.
//
// Knows: options, and the memory of inputs and outputs, the caller's and its own. A graph whose shapes all
// follow from its inputs is run as a whole (runner.h), any other is cut (executor.h). Must not know: C, files
// other than the caches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/session/memory/device_memory.h"
#include "runtime/session/run/executor.h"

namespace librt {

/// See rt_session_options in rt/rt.h.
struct SessionOptions {
  std::string backend;
  std::string device;
  std::string entry;
  std::string precision;
  std::string prefer;
  int threads = 0;
  bool strict = false;
  bool profile = false;
  bool validation = false;
  bool deterministic = false;
  bool no_replay = false;
  bool tuning = false;
  int tuning_ms = 0;
  uint64_t memory_limit = 0;
  uint64_t plan_cache_bytes = 0;
  uint64_t loop_limit = 0;
  uint64_t time_limit_ms = 0;
  std::string cache_folder;
  const rt_communicator* communicator = nullptr;
  void* cuda_stream = nullptr;
  Log log = {};
  Progress progress = {};
  rt_allocator allocator = {};  ///< allocate null: none
  rt_parallel parallel = {};    ///< run null: none
  std::vector<int> cpus = {};
  std::shared_ptr<const CustomOperators> custom_operators = nullptr;
  int priority = 0;
  /// The mapped model file, if any: pages of weights that only planning reads are released.
  std::span<const std::byte> mapped = {};
  /// Of the model's sessions; null: the session shares no packed weights.
  std::shared_ptr<PackedPool> packed_pool = nullptr;

  /// These for another session on the same device: without what that device has already.
  SessionOptions for_same_device() const;
};

struct MemoryStats {
  uint64_t states = 0, weights = 0, packed = 0, arena = 0, peak_planned = 0, naive = 0, staging = 0,
           plans = 0;
};

class Session {
 public:
  /// share: use the states of this session, on its device. device_of: use the device of this one.
  static Result<std::unique_ptr<Session>> create(const std::shared_ptr<const ModelGraph>& model,
                                                 const SessionOptions& options, Session* share = nullptr,
                                                 Session* device_of = nullptr);
  /// On already open devices: for tests.
  static Result<std::unique_ptr<Session>> create_on(const std::shared_ptr<DeviceSet>& devices,
                                                    const std::shared_ptr<const ModelGraph>& model,
                                                    const SessionOptions& options, Session* share = nullptr);

  const Graph& graph() const noexcept { return *graph_; }
  const ModelGraph& model() const noexcept { return *shared_.model; }
  const std::shared_ptr<const ModelGraph>& shared_model() const noexcept { return shared_.model; }
  const SessionOptions& options() const noexcept { return options_; }

  /// Copies (set) or refers to (bind) host memory; bytes: its size.
  Status set_input(size_t index, const ConstTensorView& tensor, size_t bytes);
  Status bind_input(size_t index, const ConstTensorView& tensor, size_t bytes);
  /// data null: back to the session's own memory.
  Status bind_output(size_t index, void* data, size_t bytes);
  /// Device memory, used in place at each run; `bytes` is what an output may take.
  using MemoryPtr = std::shared_ptr<DeviceMemory>;
  Status bind_input(size_t index, const TensorInfo& info, const MemoryPtr& memory, uint64_t offset);
  Status bind_output(size_t index, uint64_t bytes, const MemoryPtr& memory, uint64_t offset);
  /// Plans for the shapes of the inputs as they are set, or for the given shapes.
  Status prepare();
  Status prepare_for(std::span<const TensorInfo> shapes);
  Status run();
  /// Asynchronous runs, at most Plan::kRunSlots in flight: see rt_session_submit in rt/rt.h.
  Status submit();
  Status wait();
  /// Stops the run in progress, or the next one: see rt_session_cancel. From any thread, and from signal
  /// handlers.
  void cancel() noexcept { shared_.stop.request(); }
  void uncancel() noexcept { shared_.stop.withdraw(); }
  /// After run() or wait(). data is null if the output is in device memory.
  Result<TensorView> output(size_t index) const;
  /// Where the output was written, if it was bound to device memory that still exists.
  struct ResultPlace {
    std::weak_ptr<DeviceMemory> memory;
    size_t offset = 0;
  };
  const ResultPlace& output_place(size_t index) const noexcept { return outputs_[index].result_place; }
  /// The order of this session's work and that of others on the device: see rt_session_wait_for.
  Status wait_for(const SyncPoint& point);
  Status signal(const SyncPoint& point);

  StateStore& states() noexcept { return *shared_.states; }
  DeviceSet& devices() const noexcept { return *shared_.devices; }
  const std::shared_ptr<DeviceSet>& shared_devices() const noexcept { return shared_.devices; }
  const std::string& device_reason() const noexcept { return device_reason_; }
  /// Null before the first plan, and for a cut graph.
  const Plan* plan() const noexcept { return whole_ != nullptr ? whole_->plan() : nullptr; }
  /// All plans currently used by a run.
  std::vector<const Plan*> plans() const;
  /// Timings of the runs since the last reset; requires profile in the options. Collected at the first call
  /// after a run, submit, wait, prepare or reset, until which the reference is valid.
  const std::vector<Executor::Timing>& profile() const;
  void reset_profile() noexcept;
  MemoryStats memory() const noexcept;
  std::string plan_text() const;

  /// Key-value pairs of the checkpoint loaded last.
  std::vector<std::pair<std::string, std::string>> checkpoint_metadata;

 private:
  /// A range of device memory.
  struct Place {
    MemoryPtr memory;
    std::shared_ptr<Block> block;  ///< the memory as this session's device sees it; keeps it alive
    size_t offset = 0, bytes = 0;
  };
  struct Input {
    bool bound = false;
    bool direct = false;  ///< bound memory that a device may use in place
    AlignedBytes own;
    Place place;
  };
  struct Output {
    void* bound = nullptr;
    size_t bound_bytes = 0;
    std::array<AlignedBytes, Plan::kRunSlots> own;  ///< run() uses the first
    TensorView result;
    Place place;
    ResultPlace result_place;
  };
  /// A submitted run that was not waited for yet.
  struct Pending {
    struct Output {
      void* bound = nullptr;  ///< the caller's destination
      Place place;            ///< the same in device memory
      TensorView made;        ///< the output, once it is on the host
    };
    bool on_host = false;  ///< outputs were copied out of the plan; else they are in exchange memory
    Status status;         ///< error of a run that failed while it was brought to the host
    std::vector<Output> outputs;
    std::vector<MemoryPtr> inputs;  ///< kept until the run has completed
  };

  Status check_index(size_t index, size_t count, const char* what) const;
  Status check_input(size_t index, const ConstTensorView& tensor, size_t bytes) const;
  Status check_capacity(size_t index, const TensorInfo& info) const;
  /// The place, if it fits the requirements of the device.
  Result<Place> check_place(std::string_view what, uint64_t bytes, const MemoryPtr& memory,
                            uint64_t offset) const;
  Status check_overlap(std::string_view what, const Place& place, bool output, size_t index) const;
  void put(Place& to, Place place, bool output, size_t index);
  bool is_external(const Place& place) const noexcept;
  /// Whether a run writes to the bound memory on the host: that of a device is written while it runs.
  static bool writes_directly(const Output& output, bool directly) noexcept {
    return output.bound != nullptr && (directly || output.place.memory != nullptr);
  }
  /// No memory that is bound has been freed.
  Status check_places() const;
  Status plan_now();
  /// For inputs of these types and shapes; data null if not given yet.
  Status plan_for(std::span<const ConstTensorView> inputs);
  Status plan_for(std::span<const TensorInfo> shapes);
  /// Host memory of the outputs that are not bound.
  Status reserve_outputs();
  Status reserve_output(size_t index, size_t run_slot);
  Status submit_now();
  template <class Function>
  Status within_limits(uint64_t time_limit_ms, Function function);
  Status collect_inputs();
  Status collect_outputs(size_t run_slot, bool directly);
  Status deliver_outputs(size_t run_slot, bool directly);
  Status run_in_pieces(bool directly);
  Status run_now(size_t run_slot, bool directly);
  Status bring_to_host(size_t run_slot, bool directly);
  /// Before the plan changes: brings the outputs of its submitted runs to the host.
  void settle();

  SessionOptions options_;
  const Graph* graph_ = nullptr;
  std::string device_reason_;
  // Before the plans, whose work may still use the memory when they are destroyed.
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::array<Pending, Plan::kRunSlots> pending_;
  size_t first_pending_ = 0, pending_count_ = 0;
  Workspace shared_;
  std::unique_ptr<GraphRunner> whole_;
  std::unique_ptr<Executor> partitioned_;  ///< set instead of whole_ for a cut graph

  std::vector<ConstTensorView> input_views_;  ///< the caller's memory (bound) or own; data null: not set
  std::vector<TensorInfo> checked_;           ///< inputs of the last run of a cut graph
  std::vector<HostRange> input_ranges_, output_ranges_;
  bool ran_ = false;
  mutable std::vector<Executor::Timing> profile_;
  mutable bool profile_collected_ = false;
};

}  // namespace librt
