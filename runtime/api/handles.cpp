#include "runtime/api/handles.h"
#include "runtime/core/exception.h"
#include "runtime/core/float_environment.h"

namespace librt::api {

namespace {
rt_status& static_out_of_memory() noexcept {
  static rt_status status{RT_OUT_OF_MEMORY, "out of memory"};
  return status;
}
}  // namespace

rt_status* out_of_memory() noexcept {
  return &static_out_of_memory();
}

rt_status* make_status(const Status& status) noexcept {
  RT_ATTEMPT {
    return new rt_status{static_cast<rt_code>(status.code()), status.message()};
  }
  RT_CAUGHT {
    return out_of_memory();
  }
}

rt_status* run_guarded(Status (*run)(void* context), void* context) noexcept {
  [[maybe_unused]] const DefaultFloatEnvironment floats;
  RT_ATTEMPT {
    const Status status = run(context);
    return status.ok() ? nullptr : make_status(status);
  }
  RT_CAUGHT {
    const Status status = caught_exception("this call");
    return status.code() == Code::OutOfMemory ? out_of_memory() : make_status(status);
  }
}

SessionUse::SessionUse(const rt_session* session) noexcept {
  if (session != nullptr)
    enter(*session->in_use);
  else
    null_ = "the session is null";
}

SessionUse::SessionUse(const rt_memory* memory) noexcept {
  if (memory != nullptr)
    enter(*memory->in_use);
  else
    null_ = "the memory is null";
}

void SessionUse::enter(std::atomic<bool>& in_use) noexcept {
  if (!in_use.exchange(true, std::memory_order_acquire)) in_use_ = &in_use;
}

SessionUse::~SessionUse() {
  if (in_use_ != nullptr) in_use_->store(false, std::memory_order_release);
}

Status SessionUse::status() const noexcept {
  if (in_use_ != nullptr) return {};
  return invalid_argument(
      null_ != nullptr ? null_
                       : "session: expected one thread at a time, it is in use by another thread (or a "
                         "session that shares its states or device is); create a session for each thread, or "
                         "use a lock");
}

static rt_status* run_during(const SessionUse& use, Status (*run)(void* context), void* context) noexcept {
  const Status status = use.status();
  return status.ok() ? run_guarded(run, context) : make_status(status);
}
rt_status* run_guarded(const rt_session* session, Status (*run)(void* context), void* context) noexcept {
  return run_during(SessionUse(session), run, context);
}
rt_status* run_guarded(const rt_memory* memory, Status (*run)(void* context), void* context) noexcept {
  return run_during(SessionUse(memory), run, context);
}

Status check_memory_tensor(const rt_tensor& tensor, size_t bytes) {
  if (tensor.data != nullptr)
    return invalid_argument("tensor: data and memory are both set; a tensor is in one of them");
  if (tensor.bytes > 0 && tensor.bytes < bytes)
    return invalid_argument("tensor: expected at least ", bytes, " bytes, found ", tensor.bytes);
  return {};
}

void fill(rt_tensor& tensor, const TensorInfo& info, void* data) noexcept {
  tensor.dtype = static_cast<rt_dtype>(info.dtype);
  tensor.rank = info.shape.rank();
  for (int i = 0; i < RT_MAX_RANK; ++i) tensor.dims[i] = i < info.shape.rank() ? info.shape[i] : 0;
  tensor.data = data;
  tensor.bytes = info.bytes();
}

rt_tensor_spec spec_of(const State& state) noexcept {
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  spec.name = state.name.c_str();
  spec.dtype = static_cast<rt_dtype>(state.info.dtype);
  spec.rank = state.info.shape.rank();
  for (int i = 0; i < spec.rank; ++i) spec.dims[i] = state.info.shape[i];
  return spec;
}

rt_device_info device_of(const DeviceInfo& info, std::string& features) {
  features.clear();
  for (const std::string& feature : info.features) append(features, features.empty() ? "" : " ", feature);
  rt_device_info out = RT_DEVICE_INFO_INIT;
  out.backend = info.backend.c_str();
  out.index = info.index;
  out.type = static_cast<rt_device_type>(info.type);
  out.name = info.name.c_str();
  out.uuid = info.uuid.c_str();
  out.driver = info.driver.c_str();
  out.features = features.c_str();
  out.memory_bytes = info.memory_bytes;
  out.host_memory = info.host_memory;
  out.threads = info.threads;
  out.asynchronous = info.asynchronous;
  return out;
}

}  // namespace librt::api

using librt::api::out_of_memory;

extern "C" {

rt_code rt_status_code(const rt_status* status) {
  return status != nullptr ? status->code : RT_OK;
}
const char* rt_status_message(const rt_status* status) {
  return status != nullptr ? status->message.c_str() : "";
}
void rt_status_free(rt_status* status) {
  if (status != nullptr && status != out_of_memory()) delete status;
}
const char* rt_code_name(rt_code code) {
  return librt::code_name(static_cast<librt::Code>(code)).data();
}
rt_status* rt_status_create(rt_code code, const char* message) {
  if (code == RT_OK) return nullptr;
  return librt::api::make_status(
      librt::Status(static_cast<librt::Code>(code), message != nullptr ? message : ""));
}
const char* rt_version(void) {
  return RT_VERSION_TEXT;
}

size_t rt_dtype_size(rt_dtype dtype) {
  return dtype >= 0 && dtype < librt::kDTypeCount ? librt::size_of(static_cast<librt::DType>(dtype)) : 0;
}
const char* rt_dtype_name(rt_dtype dtype) {
  return dtype >= 0 && dtype < librt::kDTypeCount ? librt::name_of(static_cast<librt::DType>(dtype)).data()
                                                  : "";
}

}  // extern "C"
