#include "runtime/api/handles.h"

#include <algorithm>
#include <cstring>

namespace librt::api {

namespace {
rt_status& static_out_of_memory() noexcept {
  static rt_status status{RT_OUT_OF_MEMORY, "out of memory"};
  return status;
}

Status check_size(size_t size, const char* name) noexcept {
  if (size >= sizeof(size_t) && size <= 4096) return {};
  return invalid_argument(name, ": struct_size is ", size, "; set it to sizeof(", name, ")");
}

size_t struct_size(const void* from) noexcept {
  return *static_cast<const size_t*>(from);
}
}  // namespace

Status copy_out(const void* from, size_t bytes, void* to, const char* name) noexcept {
  if (to == nullptr) return invalid_argument(name, ": the pointer is null");
  const size_t size = struct_size(to);
  RT_TRY(check_size(size, name));
  std::memcpy(static_cast<char*>(to) + sizeof(size_t), static_cast<const char*>(from) + sizeof(size_t),
              std::min(size, bytes) - sizeof(size_t));
  return {};
}

Status copy_in(const void* from, void* to, size_t bytes, const char* name) noexcept {
  if (from == nullptr) return {};
  const size_t size = struct_size(from);
  RT_TRY(check_size(size, name));
  std::memcpy(to, from, std::min(size, bytes));
  // A newer caller's fields that this library does not support must not be silently ignored.
  const auto* unknown = static_cast<const char*>(from);
  if (std::any_of(unknown + bytes, unknown + std::max(size, bytes), [](char byte) { return byte != 0; }))
    return unsupported(name, ": a field beyond what this librt (", rt_version(),
                       ") knows is set; update librt");
  return {};
}

rt_status* out_of_memory() noexcept {
  return &static_out_of_memory();
}

rt_status* make_status(const Status& status) noexcept {
  try {
    return new rt_status{static_cast<rt_code>(status.code()), status.message()};
  } catch (...) {
    return out_of_memory();
  }
}

rt_status* run_guarded(Status (*run)(void* context), void* context) noexcept {
  try {
    const Status status = run(context);
    return status.ok() ? nullptr : make_status(status);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return make_status(Status(Code::Internal, error.what()));
  } catch (...) {
    return make_status(Status(Code::Internal, "unexpected exception"));
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

Status SessionUse::status() const {
  if (in_use_ != nullptr) return {};
  return invalid_argument(
      null_ != nullptr ? null_
                       : "session: expected one thread at a time, it is in use by another thread (or a "
                         "session that shares its states or device is); create a session for each thread, or "
                         "use a lock");
}

Result<TensorInfo> info_of(const rt_tensor& tensor) {
  if (tensor.dtype < 0 || tensor.dtype >= kDTypeCount)
    return invalid_argument("tensor: ", static_cast<int>(tensor.dtype), " is no dtype");
  if (tensor.rank < 0 || tensor.rank > RT_MAX_RANK)
    return invalid_argument("tensor: expected a rank from 0 to ", RT_MAX_RANK, ", found ", tensor.rank);
  TensorInfo info{.dtype = static_cast<DType>(tensor.dtype), .shape = {}};
  for (int32_t i = 0; i < tensor.rank; ++i) info.shape.push_back(tensor.dims[i]);
  if (!info.shape.checked_elements())
    return invalid_argument("tensor: invalid dims ", info.shape, "; each must be 0 or more");
  return info;
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

rt_tensor_spec spec_of(const Graph& graph, const Value& value) noexcept {
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  spec.name = value.name.c_str();
  spec.dtype = static_cast<rt_dtype>(value.dtype);
  spec.rank = value.rank();
  for (int i = 0; i < value.rank() && i < RT_MAX_RANK; ++i) {
    const Dim& dim = value.dims[static_cast<size_t>(i)];
    spec.dims[i] = dim.is_known() ? dim.extent : -1;
    if (dim.is_known() || dim.symbol < 0 || static_cast<size_t>(dim.symbol) >= graph.symbols.size()) continue;
    spec.symbols[i] = graph.symbols[static_cast<size_t>(dim.symbol)].name.c_str();
    spec.bounds[i] = graph.symbols[static_cast<size_t>(dim.symbol)].bound;
  }
  return spec;
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
