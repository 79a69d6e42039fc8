// A session: one entry of a model, prepared for a device, run many times.
//
// Knows: the order of work (check shapes, find or build the plan, grow memory, record, run) and what outlives
// a plan: states, weights, packed bytes, arenas, bound memory. Must not know: C, files other than the caches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/session/legalize.h"
#include "runtime/session/plan.h"

namespace rt {

/// See rt_session_options in rt/rt.h.
struct SessionOptions {
  std::string backend;
  std::string device;
  std::string entry;
  std::string precision;
  int threads = 0;
  bool strict = false;
  bool profile = false;
  bool validation = false;
  bool deterministic = false;
  bool tuning = false;
  int tuning_ms = 0;
  uint64_t memory_limit = 0;
  uint64_t plan_cache_bytes = 0;
  std::string cache_folder;
};

struct MemoryStats {
  uint64_t states = 0, weights = 0, packed = 0, arena = 0, peak_planned = 0, naive = 0, staging = 0,
           plans = 0;
};

class Session {
 public:
  /// share: see and change the states of this session, on its device.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const ModelGraph> model,
                                                 SessionOptions options, Session* share = nullptr);
  /// On devices that are open already: for tests.
  static Result<std::unique_ptr<Session>> create_on(std::shared_ptr<DeviceSet> devices,
                                                    std::shared_ptr<const ModelGraph> model,
                                                    SessionOptions options, Session* share = nullptr);

  const Graph& graph() const noexcept { return *graph_; }
  const ModelGraph& model() const noexcept { return *model_; }
  const std::shared_ptr<const ModelGraph>& shared_model() const noexcept { return model_; }
  const SessionOptions& options() const noexcept { return options_; }

  /// Copies (set) or refers to (bind) host memory; bytes: how much there is.
  Status set_input(size_t index, const ConstTensorView& tensor, size_t bytes);
  Status bind_input(size_t index, const ConstTensorView& tensor, size_t bytes);
  /// data null: back to the session's own memory.
  Status bind_output(size_t index, void* data, size_t bytes);
  /// Plans for the shapes of the inputs as they are set, or for these.
  Status prepare();
  Status prepare_for(std::span<const TensorInfo> shapes);
  Status run();
  /// After a run.
  Result<TensorView> output(size_t index) const;

  StateStore& states() noexcept { return *states_; }
  DeviceSet& devices() noexcept { return *devices_; }
  const std::string& device_reason() const noexcept { return device_reason_; }
  /// Null before the first plan.
  const Plan* plan() const noexcept { return current_; }
  void reset_profile() noexcept;
  MemoryStats memory() const noexcept;
  std::string plan_text() const;

  /// Values kept with the checkpoint loaded last.
  std::vector<std::pair<std::string, std::string>> checkpoint_metadata;

 private:
  struct Input {
    TensorInfo info;
    const void* data = nullptr;  ///< the caller's (bound) or own; null: not set
    bool bound = false;
    bool direct = false;  ///< bound memory that a device may use where it lies
    AlignedBytes own;
  };
  struct Output {
    void* bound = nullptr;
    size_t bound_bytes = 0;
    AlignedBytes own;
    TensorView result;
  };

  Status check_index(size_t index, size_t count, const char* what) const;
  Status check_input(size_t index, const ConstTensorView& tensor, size_t bytes) const;
  Status find_plan(std::span<const TensorInfo> shapes);
  bool fits(const Plan& plan, std::span<const TensorInfo> shapes) const noexcept;
  Status build_plan(std::span<const TensorInfo> shapes);
  Status grow_arenas(const Plan& plan);
  Status check_limit(const Plan& plan);
  void evict(const Plan* keep);
  PlanContext context() noexcept;
  Status collect_io();
  Status deliver_outputs();

  SessionOptions options_;
  std::shared_ptr<const ModelGraph> model_;
  const Graph* graph_ = nullptr;
  std::shared_ptr<DeviceSet> devices_;  // before all that holds device memory
  std::shared_ptr<StateStore> states_;
  std::string device_reason_;
  FoldedConstants folded_;
  ConstantStore constants_;
  PackedStore packed_;
  std::vector<BlockPtr> arenas_;
  Chooser chooser_{TuningOptions{}};
  std::vector<std::unique_ptr<Plan>> plans_;  ///< least recently used first
  Plan* current_ = nullptr;

  std::vector<bool> shape_inputs_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<TensorInfo> input_infos_;  ///< of inputs_, as one list
  std::vector<HostRange> input_ranges_, output_ranges_;
  bool ran_ = false;
};

}  // namespace rt
