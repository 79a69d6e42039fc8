// librt.Session: runs of one entry, from dicts of arrays to dicts of tensors.
//
// Knows: turns of threads, what is copied and what is used in place. Must not know: how arrays are read
// (arrays.h), signals (interrupt.h).
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/custom.h"
#include "python/src/device_arrays.h"
#include "python/src/model.h"
#include "python/src/tensor.h"

namespace rt::python {

/// Sessions that share states take turns: one lock for all of them.
struct Turns {
  std::mutex mutex;
  std::atomic<std::thread::id> owner{};
  std::atomic<uint64_t> forks = 0;  ///< forks() when the lock was taken last
};

/// How often this process is a fork of a process that had loaded librt: objects of before can be told apart.
uint64_t forks() noexcept;
/// Call once, from the module's initialization.
void count_forks();

/// Holds the lock; waits for it without the interpreter's.
class Turn {
 public:
  explicit Turn(Turns& turns);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Turns& turns_;
};

class Session {
 public:
  /// owner: what must live as long as the session, and frees the handle, if `owned` is false.
  Session(rt_session* handle, bool owned, std::shared_ptr<Turns> turns, std::shared_ptr<void> owner,
          nanobind::object operators);

  /// on_device: the outputs stay in memory of the device, as DeviceTensor.
  nanobind::dict run(nanobind::handle inputs, bool on_device);
  nanobind::dict call(const nanobind::args& arguments, const nanobind::kwargs& named);
  /// The native session; a failure if it was closed, or is of a GPU and from before a fork.
  rt_session* handle() const;
  bool is_closed() const noexcept { return handle_ == nullptr; }
  /// Frees the native session, once the run in progress has ended. Later calls fail, except of what was
  /// declared.
  void close();
  const std::shared_ptr<Turns>& turns() const noexcept { return turns_; }
  /// CustomOperators, or None.
  nanobind::handle operators() const noexcept { return operators_; }
  const std::vector<TensorSpec>& inputs() const noexcept { return inputs_; }
  const std::vector<TensorSpec>& outputs() const noexcept { return outputs_; }

  /// With the turn held. Sets the inputs of the dict, which must be all; `own`: but this one, set by the
  /// caller.
  void set_inputs(nanobind::handle inputs, size_t own = SIZE_MAX);
  /// Seconds of `count` runs as a C++ program makes them: inputs set, run, outputs read.
  double time_runs(nanobind::handle inputs, size_t count);
  /// Whether Ctrl-C has to be answered within the run that begins: it may take long.
  bool may_take_long() const noexcept { return is_new_ || seconds_ > 5e-3; }
  /// Runs `work` as run_released(), and measures it.
  void run_timed(rt_status* (*work)(void*), void* argument);
  void release_inputs() noexcept;
  /// The outputs of the run, copied to tensors of their own.
  nanobind::dict results(std::vector<std::unique_ptr<Tensor>>& bound);

 private:
  /// Outputs bound to memory of a run's own.
  using OnDevice = std::vector<std::unique_ptr<DeviceTensor>>;
  /// Where an output's extent comes from.
  struct Extent {
    int64_t fixed = -1;
    size_t input = SIZE_MAX, axis = 0;
  };
  void set_input(size_t index, nanobind::handle value);
  [[noreturn]] void fail_for_names(nanobind::handle inputs, size_t own) const;
  /// The type and extents of output k, by the inputs that are set; nothing where they are known after the
  /// run.
  std::optional<rt_tensor> planned_output(size_t k) const;
  void bind_outputs(std::vector<std::unique_ptr<Tensor>>& bound);
  void bind_on_device(OnDevice& bound);
  nanobind::dict results_on_device(OnDevice& bound);
  template <class Bound>
  void unbind_outputs(const std::vector<std::unique_ptr<Bound>>& bound) noexcept;

  nanobind::object operators_;  ///< CustomOperators or None; outlives what calls them
  std::shared_ptr<void> owner_;
  std::shared_ptr<rt_session> handle_;
  bool owned_;
  bool survives_forks_;       ///< of the CPU: a forked process may go on with it
  uint64_t forks_ = forks();  ///< when it was made
  std::shared_ptr<Turns> turns_;
  std::vector<TensorSpec> inputs_, outputs_;
  std::vector<nanobind::object> input_names_, output_names_;
  std::vector<std::vector<Extent>> output_extents_;  ///< empty where the size is known after the run only
  std::unique_ptr<Borrowed[]> borrowed_;             ///< one for each input
  std::unique_ptr<DeviceInput[]> on_device_;         ///< one for each input
  std::vector<rt_tensor> last_;                      ///< shapes of the inputs of the last run
  bool is_new_ = true;                               ///< the inputs' shapes are not those of the last run
  double seconds_ = 0;                               ///< of the last run
};

/// The keyword share_states_with.
struct Sharing {
  explicit Sharing(const nanobind::kwargs& keywords);
  rt_session* session = nullptr;  ///< null: none
  std::shared_ptr<Turns> turns;   ///< of all that share the states: they take turns
};
/// The keywords of librt.Session as options, except share_states_with and custom_operators. function: for
/// messages.
SessionOptions options_of(const nanobind::kwargs& keywords, const char* function);
/// Their part of a signature, for the type stubs.
#define RT_PYTHON_SESSION_OPTIONS                                                                            \
  "backend: str = 'auto', device: str | int | None = None, precision: str | None = None, threads: int = 0, " \
  "strict: bool = False, profile: bool = False, validation: bool = False, deterministic: bool = False, "     \
  "tuning: bool = False, tuning_ms: int = 0, memory_limit: int = 0, plan_cache_bytes: int = 0, "             \
  "loop_limit: int = 0, time_limit: float | None = None, cache_folder: str | os.PathLike[str] | None = "     \
  "None, prefer: str | None = None, no_replay: bool = False, custom_operators: dict[str, "                   \
  "collections.abc.Callable[..., typing.Any]] | None = None"

void bind_session(nanobind::module_& module);
void bind_states(nanobind::class_<Session>& session);
void bind_trainer(nanobind::module_& module);
void bind_metrics(nanobind::module_& module);

}  // namespace rt::python
