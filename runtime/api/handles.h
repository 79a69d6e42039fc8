// The types of the opaque handles of rt.h, and error handling of the C functions.
//
// Knows: Status and exceptions on one side, rt_status on the other. Must not know: what a function does.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "rt/rt.h"
#include "rt/status.h"
#include "runtime/api/structs.h"
#include "runtime/session/session.h"

struct rt_status {
  rt_code code;
  std::string message;
};

struct rt_model {
  std::shared_ptr<const librt::ModelGraph> graph;
  std::span<const std::byte> mapped;  ///< the mapped model file, if any
  /// What its sessions share; expired while there are none.
  mutable std::mutex mutex;
  mutable std::weak_ptr<librt::PackedPool> packed_pool;
};

struct rt_session {
  std::unique_ptr<librt::Session> session;
  /// True while a function of rt.h works on the session, or on one that shares its states.
  std::shared_ptr<std::atomic<bool>> in_use = std::make_shared<std::atomic<bool>>(false);
  std::string plan_text;
  std::string features;
};

struct rt_memory {
  std::shared_ptr<librt::DeviceMemory> memory;
  std::shared_ptr<std::atomic<bool>> in_use;  ///< of the session that it was made for
};

struct rt_trainer {
  rt_session session;
  size_t loss = 0;
  size_t learning_rate = 0;
  bool has_loss = false;
  bool has_learning_rate = false;
};

namespace librt::api {

/// Never fails: if a message cannot be allocated, a static one is used.
rt_status* make_status(const Status& status) noexcept;
rt_status* out_of_memory() noexcept;

/// One call's use of a session. Not a lock: a second thread gets an error.
class SessionUse {
 public:
  explicit SessionUse(const rt_session* session) noexcept;
  explicit SessionUse(const rt_memory* memory) noexcept;
  ~SessionUse();
  SessionUse(const SessionUse&) = delete;
  SessionUse& operator=(const SessionUse&) = delete;
  bool ok() const noexcept { return in_use_ != nullptr; }
  /// An error if the session is null, or in use by another thread.
  Status status() const noexcept;

 private:
  void enter(std::atomic<bool>& in_use) noexcept;
  std::atomic<bool>* in_use_ = nullptr;  ///< set by this call; null if it was set already
  const char* null_ = nullptr;           ///< the error if the handle is null
};

template <class Function>
Status call(void* context) {
  return (*static_cast<Function*>(context))();
}

/// Runs run(context) in the default floating point environment, and catches everything.
rt_status* run_guarded(Status (*run)(void* context), void* context) noexcept;

/// The same while the session, or the session of the memory, is in use; an error if it is null or in use
/// already.
rt_status* run_guarded(const rt_session* session, Status (*run)(void* context), void* context) noexcept;
rt_status* run_guarded(const rt_memory* memory, Status (*run)(void* context), void* context) noexcept;

/// Runs a function that returns Status and catches everything. One call for each function of rt.h: what
/// surrounds the function lies in run_guarded() once.
template <class Function>
rt_status* guarded(Function function) noexcept {
  return run_guarded(call<Function>, &function);
}
/// The same for a function that uses a session, or memory of one.
template <class Handle, class Function>
rt_status* guarded(const Handle* handle, Function function) noexcept {
  return run_guarded(handle, call<Function>, &function);
}

inline Status check(const rt_session* session) {
  return session != nullptr ? Status() : invalid_argument("the session is null");
}

/// A tensor with memory: no host address besides, and room for `bytes` if it states a size.
Status check_memory_tensor(const rt_tensor& tensor, size_t bytes);
void fill(rt_tensor& tensor, const TensorInfo& info, void* data) noexcept;
/// The strings refer to the state.
rt_tensor_spec spec_of(const State& state) noexcept;
/// `features` receives the joined list, which the result refers to.
rt_device_info device_of(const DeviceInfo& info, std::string& features);

}  // namespace librt::api
