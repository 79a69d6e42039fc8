// librt for C++20: Model, Session, Tensor, Trainer. Header-only, over rt.h, so that it needs no C++ ABI of
// librt.
//
//   auto model = rt::Model::load("resnet50.rt");
//   auto session = rt::Session::create(*model, {.backend = "auto"});
//   session->set_input("image", rt::Tensor::of<float>({1, 224, 224, 3}, pixels));
//   if (auto status = session->run(); !status) std::cerr << status.message();
//   std::span<const float> scores = session->output(0)->values<float>();
//
// Nothing throws except std::bad_alloc. Handles are move-only RAII wrappers. Functions of rt.h without a
// wrapper are called through handle().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rt/rt.h"

namespace rt {
inline namespace v0 {

enum class Code : uint8_t {
  Ok = RT_OK,
  InvalidArgument = RT_INVALID_ARGUMENT,
  InvalidModel = RT_INVALID_MODEL,
  Unsupported = RT_UNSUPPORTED,
  NotFound = RT_NOT_FOUND,
  OutOfMemory = RT_OUT_OF_MEMORY,
  Device = RT_DEVICE,
  Io = RT_IO,
  Internal = RT_INTERNAL,
};

/// Success, or an error code with a message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  /// Takes ownership of the status returned by a C function.
  static Status take(rt_status* status) {
    if (status == nullptr) return {};
    Status result(static_cast<Code>(rt_status_code(status)), rt_status_message(status));
    rt_status_free(status);
    return result;
  }
  bool ok() const noexcept { return code_ == Code::Ok; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

 private:
  Code code_ = Code::Ok;
  std::string message_;
};

/// A value, or the Status of the failure. value(), * and -> require ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT
  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Status& status() const noexcept { return status_; }
  T& value() & noexcept { return *value_; }
  const T& value() const& noexcept { return *value_; }
  T&& value() && noexcept { return std::move(*value_); }
  T& operator*() & noexcept { return *value_; }
  const T& operator*() const& noexcept { return *value_; }
  T&& operator*() && noexcept { return std::move(*value_); }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

enum class DType : uint8_t {
  F32 = RT_F32,
  F16 = RT_F16,
  BF16 = RT_BF16,
  F64 = RT_F64,
  I8 = RT_I8,
  U8 = RT_U8,
  I16 = RT_I16,
  U16 = RT_U16,
  I32 = RT_I32,
  U32 = RT_U32,
  I64 = RT_I64,
  U64 = RT_U64,
  Bool = RT_BOOL,
};
inline std::string_view name_of(DType dtype) noexcept {
  return rt_dtype_name(static_cast<rt_dtype>(dtype));
}
inline size_t size_of(DType dtype) noexcept {
  return rt_dtype_size(static_cast<rt_dtype>(dtype));
}

/// The dtype of a C++ type: dtype_of<float>() is F32. 16-bit floats have no C++ type here; use DType::F16
/// with uint16_t data.
template <class T>
constexpr DType dtype_of() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return DType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::F64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else {
    static_assert(std::is_integral_v<T>, "no dtype for this type");
    if constexpr (sizeof(T) == 1)
      return std::is_signed_v<T> ? DType::I8 : DType::U8;
    else if constexpr (sizeof(T) == 2)
      return std::is_signed_v<T> ? DType::I16 : DType::U16;
    else if constexpr (sizeof(T) == 4)
      return std::is_signed_v<T> ? DType::I32 : DType::U32;
    else
      return std::is_signed_v<T> ? DType::I64 : DType::U64;
  }
}

/// A dense tensor in host memory that owns its bytes (aligned to 64) or borrows them. Move-only.
class Tensor {
 public:
  Tensor() noexcept = default;
  /// Owns zeroed memory. At most RT_MAX_RANK dims, each >= 0.
  Tensor(DType dtype, std::span<const int64_t> dims) : Tensor(borrow(dtype, dims, nullptr)) {
    const size_t size = c_.bytes > 0 ? c_.bytes : 1;
    owned_.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{64})));
    std::memset(owned_.get(), 0, size);
    c_.data = owned_.get();
  }
  Tensor(DType dtype, std::initializer_list<int64_t> dims)
      : Tensor(dtype, std::span<const int64_t>(dims.begin(), dims.size())) {}
  /// Owns a copy of `values`, whose count should be the product of dims (missing elements are zero).
  template <class T>
  static Tensor of(std::span<const int64_t> dims, std::span<const T> values) {
    Tensor tensor(dtype_of<T>(), dims);
    if (!values.empty())
      std::memcpy(tensor.c_.data, values.data(), std::min(tensor.c_.bytes, values.size_bytes()));
    return tensor;
  }
  template <class T>
  static Tensor of(std::initializer_list<int64_t> dims, const std::vector<T>& values) {
    return of<T>(std::span<const int64_t>(dims.begin(), dims.size()), std::span<const T>(values));
  }
  /// Refers to the caller's memory.
  static Tensor borrow(DType dtype, std::span<const int64_t> dims, void* data) {
    Tensor tensor;
    tensor.c_.dtype = static_cast<rt_dtype>(dtype);
    size_t count = 1;
    for (int64_t dim : dims.first(std::min<size_t>(dims.size(), RT_MAX_RANK))) {
      tensor.c_.dims[tensor.c_.rank++] = dim;
      count *= static_cast<size_t>(dim);
    }
    tensor.c_.data = data;
    tensor.c_.bytes = count * size_of(dtype);
    return tensor;
  }
  static Tensor borrow(const rt_tensor& c) {
    Tensor tensor;
    tensor.c_ = c;
    return tensor;
  }
  Tensor clone() const {
    Tensor copy(dtype(), dims());
    if (c_.bytes > 0 && c_.data != nullptr) std::memcpy(copy.c_.data, c_.data, copy.c_.bytes);
    return copy;
  }

  DType dtype() const noexcept { return static_cast<DType>(c_.dtype); }
  std::span<const int64_t> dims() const noexcept { return {c_.dims, static_cast<size_t>(c_.rank)}; }
  int64_t elements() const noexcept {
    int64_t count = 1;
    for (int64_t dim : dims()) count *= dim;
    return count;
  }
  size_t bytes() const noexcept { return static_cast<size_t>(elements()) * size_of(dtype()); }
  void* data() noexcept { return c_.data; }
  const void* data() const noexcept { return c_.data; }
  /// The elements as T; empty if sizeof(T) differs from the dtype's element size.
  template <class T>
  std::span<T> values() noexcept {
    return sizeof(T) == size_of(dtype())
               ? std::span<T>(static_cast<T*>(c_.data), static_cast<size_t>(elements()))
               : std::span<T>();
  }
  template <class T>
  std::span<const T> values() const noexcept {
    return const_cast<Tensor*>(this)->values<const T>();
  }
  const rt_tensor& handle() const noexcept { return c_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept { ::operator delete (bytes, std::align_val_t{64}); }
  };
  rt_tensor c_ = RT_TENSOR_INIT;
  std::unique_ptr<std::byte, Free> owned_;
};

/// Declaration of an input, output or state in the model.
struct Dim {
  int64_t extent = -1;  ///< -1: dynamic, known once the inputs are
  std::string symbol;   ///< "batch"; empty if unnamed
  int64_t bound = 0;    ///< upper bound of the extent, 0: none
};
struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<Dim> dims;

  static TensorSpec from(const rt_tensor_spec& c) {
    TensorSpec spec{c.name != nullptr ? c.name : "", static_cast<DType>(c.dtype), {}};
    for (int32_t i = 0; i < c.rank; ++i)
      spec.dims.push_back({c.dims[i], c.symbols[i] != nullptr ? c.symbols[i] : "", c.bounds[i]});
    return spec;
  }
};
struct StateSpec : TensorSpec {
  rt_state_kind kind = RT_PARAMETER;
};

namespace detail {
template <class Handle, void (*free)(Handle*)>
struct Free {
  void operator()(Handle* handle) const noexcept { free(handle); }
};
inline const char* or_null(const std::string& text) noexcept {
  return text.empty() ? nullptr : text.c_str();
}
inline std::string or_empty(const char* text) {
  return text != nullptr ? text : "";
}
}  // namespace detail

class Model {
 public:
  static Result<Model> load(const std::string& path) {
    rt_model* model = nullptr;
    if (Status status = Status::take(rt_model_load(path.c_str(), &model)); !status) return status;
    return Model(model);
  }
  /// copy = false: `bytes` must outlive the model and its sessions.
  static Result<Model> from_memory(std::span<const std::byte> bytes, bool copy = true) {
    rt_model* model = nullptr;
    rt_status* status = rt_model_load_from_memory(bytes.data(), bytes.size(), copy ? 1 : 0, &model);
    if (Status failed = Status::take(status); !failed) return failed;
    return Model(model);
  }

  std::string producer() const { return detail::or_empty(rt_model_producer(handle())); }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < rt_model_entry_count(handle()); ++i)
      names.push_back(rt_model_entry_name(handle(), i));
    return names;
  }
  /// entry empty: "infer", or the model's only entry.
  std::vector<TensorSpec> inputs(const std::string& entry = {}) const {
    return specs(entry, rt_model_input_count, rt_model_input);
  }
  std::vector<TensorSpec> outputs(const std::string& entry = {}) const {
    return specs(entry, rt_model_output_count, rt_model_output);
  }
  std::vector<StateSpec> states() const {
    std::vector<StateSpec> all;
    for (size_t i = 0; i < rt_model_state_count(handle()); ++i) {
      rt_tensor_spec c = RT_TENSOR_SPEC_INIT;
      rt_state_kind kind = RT_PARAMETER;
      rt_status_free(rt_model_state(handle(), i, &c, &kind));
      all.push_back({TensorSpec::from(c), kind});
    }
    return all;
  }
  std::optional<std::string> metadata(const std::string& key) const {
    const char* text = rt_model_metadata_value(handle(), key.c_str());
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  }
  const rt_model* handle() const noexcept { return handle_.get(); }

 private:
  explicit Model(rt_model* model) : handle_(model) {}
  template <class Count, class Get>
  std::vector<TensorSpec> specs(const std::string& entry, Count count, Get get) const {
    std::vector<TensorSpec> all;
    for (size_t i = 0; i < count(handle(), detail::or_null(entry)); ++i) {
      rt_tensor_spec c = RT_TENSOR_SPEC_INIT;
      rt_status_free(get(handle(), detail::or_null(entry), i, &c));
      all.push_back(TensorSpec::from(c));
    }
    return all;
  }
  std::unique_ptr<rt_model, detail::Free<rt_model, rt_model_free>> handle_;
};

struct DeviceInfo {
  std::string backend;
  int index = 0;
  rt_device_type type = RT_CPU;
  std::string name, uuid, driver, features;
  uint64_t memory_bytes = 0;
  bool host_memory = false;
  int threads = 0;
  bool asynchronous = false;

  static DeviceInfo from(const rt_device_info& c) {
    return {detail::or_empty(c.backend),
            c.index,
            c.type,
            detail::or_empty(c.name),
            detail::or_empty(c.uuid),
            detail::or_empty(c.driver),
            detail::or_empty(c.features),
            c.memory_bytes,
            c.host_memory != 0,
            c.threads,
            c.asynchronous != 0};
  }
};

/// The devices of this machine, and why a backend has none.
struct Devices {
  struct Backend {
    std::string name;
    std::string reason;  ///< empty if it has devices
  };
  std::vector<DeviceInfo> devices;
  std::vector<Backend> backends;

  static Result<Devices> list() {
    rt_device_list* c = nullptr;
    if (Status status = Status::take(rt_devices_list(&c)); !status) return status;
    Devices all;
    for (size_t i = 0; i < rt_device_list_count(c); ++i) {
      rt_device_info info = RT_DEVICE_INFO_INIT;
      rt_status_free(rt_device_list_get(c, i, &info));
      all.devices.push_back(DeviceInfo::from(info));
    }
    for (size_t i = 0; i < rt_backend_count(c); ++i)
      all.backends.push_back(
          {detail::or_empty(rt_backend_name(c, i)), detail::or_empty(rt_backend_reason(c, i))});
    rt_device_list_free(c);
    return all;
  }
};

class Session;

/// The fields of rt_session_options, with the same defaults.
struct SessionOptions {
  std::string backend = {};    ///< "cpu", "vulkan", "cuda", "reference"; empty: "auto"
  std::string device = {};     ///< index, part of the name, or UUID
  std::string entry = {};      ///< empty: "infer", or the model's only entry
  std::string precision = {};  ///< "fp32", "tf32", "fp16", "bf16"; empty: as in the file
  int threads = 0;
  bool strict = false;
  bool profile = false;
  bool validation = false;
  bool deterministic = false;
  bool tuning = false;
  int tuning_ms = 0;
  uint64_t memory_limit = 0;
  uint64_t plan_cache_bytes = 0;
  uint64_t loop_limit = 0;  ///< maximum iterations; 0: a million
  std::string cache_folder = {};
  const Session* share_states_with = nullptr;
  const rt_communicator* communicator = nullptr;  ///< must outlive the session
};

class Session {
 public:
  static Result<Session> create(const Model& model, const SessionOptions& options = {}) {
    const rt_session_options c = to_c(options);
    rt_session* session = nullptr;
    if (Status status = Status::take(rt_session_create(model.handle(), &c, &session)); !status) return status;
    return Session(session);
  }
  /// Takes ownership of a handle (rt_trainer_open).
  static Session adopt(rt_session* session) { return Session(session); }
  /// Does not free the handle, which must outlive the returned Session.
  static Session borrow(rt_session* session) { return Session(session, false); }

  size_t input_count() const noexcept { return rt_session_input_count(handle()); }
  size_t output_count() const noexcept { return rt_session_output_count(handle()); }
  std::vector<TensorSpec> inputs() const { return specs(input_count(), rt_session_input_spec); }
  std::vector<TensorSpec> outputs() const { return specs(output_count(), rt_session_output_spec); }
  Result<size_t> find_input(const std::string& name) const { return find(name, rt_session_find_input); }
  Result<size_t> find_output(const std::string& name) const { return find(name, rt_session_find_output); }

  /// Copies the tensor.
  Status set_input(size_t index, const Tensor& tensor) {
    return Status::take(rt_session_set_input(handle(), index, &tensor.handle()));
  }
  Status set_input(const std::string& name, const Tensor& tensor) {
    auto index = find_input(name);
    return index ? set_input(*index, tensor) : index.status();
  }
  /// Uses the tensor's memory, which must stay alive until the input or output is bound or set again.
  Status bind_input(size_t index, const Tensor& tensor) {
    return Status::take(rt_session_bind_input(handle(), index, &tensor.handle()));
  }
  Status bind_output(size_t index, const Tensor& tensor) {
    return Status::take(rt_session_bind_output(handle(), index, &tensor.handle()));
  }
  Status unbind_output(size_t index) {
    return Status::take(rt_session_bind_output(handle(), index, nullptr));
  }
  Status prepare() { return Status::take(rt_session_prepare(handle(), nullptr, 0)); }
  Status run() { return Status::take(rt_session_run(handle())); }
  /// Asynchronous runs, which overlap transfers with compute: see rt_session_submit.
  Status submit() { return Status::take(rt_session_submit(handle())); }
  Status wait() { return Status::take(rt_session_wait(handle())); }
  /// Refers to the session's memory, valid until its next run, submit or prepare; clone() to keep it.
  Result<Tensor> output(size_t index) {
    rt_tensor c = RT_TENSOR_INIT;
    if (Status status = Status::take(rt_session_output(handle(), index, &c)); !status) return status;
    return Tensor::borrow(c);
  }
  Result<Tensor> output(const std::string& name) {
    auto index = find_output(name);
    if (!index) return index.status();
    return output(*index);
  }

  Result<Tensor> read_state(const std::string& name) {
    rt_tensor c = RT_TENSOR_INIT;
    if (Status status = Status::take(rt_session_read_state(handle(), name.c_str(), &c)); !status)
      return status;
    Tensor tensor(static_cast<DType>(c.dtype), std::span<const int64_t>(c.dims, static_cast<size_t>(c.rank)));
    rt_tensor target = tensor.handle();
    if (Status status = Status::take(rt_session_read_state(handle(), name.c_str(), &target)); !status)
      return status;
    return tensor;
  }
  Status write_state(const std::string& name, const Tensor& tensor) {
    return Status::take(rt_session_write_state(handle(), name.c_str(), &tensor.handle()));
  }
  Status reset_states() { return Status::take(rt_session_reset_states(handle())); }
  Status save_checkpoint(const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& pairs = {}) {
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : pairs) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
    return Status::take(
        rt_session_save_checkpoint(handle(), path.c_str(), keys.data(), values.data(), keys.size()));
  }
  Status load_checkpoint(const std::string& path) {
    return Status::take(rt_session_load_checkpoint(handle(), path.c_str()));
  }
  Status load_adapter(const std::string& path) {
    return Status::take(rt_session_load_adapter(handle(), path.c_str()));
  }
  std::optional<std::string> checkpoint_value(const std::string& key) const {
    const char* text = rt_session_checkpoint_value(handle(), key.c_str());
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  }

  DeviceInfo device() const {
    rt_device_info info = RT_DEVICE_INFO_INIT;
    rt_status_free(rt_session_device(handle(), &info));
    return DeviceInfo::from(info);
  }
  std::string device_reason() const { return detail::or_empty(rt_session_device_reason(handle())); }
  /// The library for collectives, and why: see rt_session_collectives.
  std::pair<std::string, std::string> collectives() const {
    const char* reason = "";
    std::string carrier = detail::or_empty(rt_session_collectives(handle(), &reason));
    return {std::move(carrier), detail::or_empty(reason)};
  }
  Result<std::string> plan_text() {
    const char* text = nullptr;
    if (Status status = Status::take(rt_session_plan_text(handle(), &text)); !status) return status;
    return std::string(text);
  }
  size_t fallback_count() const noexcept { return rt_session_fallback_count(handle()); }
  rt_memory_stats memory() const noexcept {
    rt_memory_stats stats = RT_MEMORY_STATS_INIT;
    rt_status_free(rt_session_memory(handle(), &stats));
    return stats;
  }
  /// Strings live as long as the plan.
  std::vector<rt_profile_entry> profile() const {
    std::vector<rt_profile_entry> all(rt_session_profile_count(handle()));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = RT_PROFILE_ENTRY_INIT;
      rt_status_free(rt_session_profile(handle(), i, &all[i]));
    }
    return all;
  }
  uint64_t profile_runs() const noexcept { return rt_session_profile_runs(handle()); }
  Status reset_profile() { return Status::take(rt_session_profile_reset(handle())); }
  rt_session* handle() const noexcept { return handle_.get(); }

  /// The strings of `options` must outlive the returned struct.
  static rt_session_options to_c(const SessionOptions& options) noexcept {
    rt_session_options c = RT_SESSION_OPTIONS_INIT;
    c.backend = detail::or_null(options.backend);
    c.device = detail::or_null(options.device);
    c.entry = detail::or_null(options.entry);
    c.precision = detail::or_null(options.precision);
    c.threads = options.threads;
    c.strict = options.strict;
    c.profile = options.profile;
    c.validation = options.validation;
    c.deterministic = options.deterministic;
    c.tuning = options.tuning;
    c.tuning_ms = options.tuning_ms;
    c.memory_limit = options.memory_limit;
    c.plan_cache_bytes = options.plan_cache_bytes;
    c.loop_limit = options.loop_limit;
    c.cache_folder = detail::or_null(options.cache_folder);
    c.communicator = options.communicator;
    c.share_states_with =
        options.share_states_with != nullptr ? options.share_states_with->handle() : nullptr;
    return c;
  }

 private:
  struct Free {
    bool owned = true;
    void operator()(rt_session* session) const noexcept {
      if (owned) rt_session_free(session);
    }
  };
  explicit Session(rt_session* session, bool owned = true) : handle_(session, Free{owned}) {}
  template <class Get>
  std::vector<TensorSpec> specs(size_t count, Get get) const {
    std::vector<TensorSpec> all;
    for (size_t i = 0; i < count; ++i) {
      rt_tensor_spec c = RT_TENSOR_SPEC_INIT;
      rt_status_free(get(handle(), i, &c));
      all.push_back(TensorSpec::from(c));
    }
    return all;
  }
  template <class Find>
  Result<size_t> find(const std::string& name, Find function) const {
    size_t index = 0;
    if (Status status = Status::take(function(handle(), name.c_str(), &index)); !status) return status;
    return index;
  }
  std::unique_ptr<rt_session, Free> handle_;
};

/// Runs "train_step". session() sets inputs, reads states, writes checkpoints.
class Trainer {
 public:
  static Result<Trainer> create(const Model& model, const SessionOptions& options = {}) {
    const rt_session_options c = Session::to_c(options);
    rt_trainer* trainer = nullptr;
    if (Status status = Status::take(rt_trainer_create(model.handle(), &c, &trainer)); !status) return status;
    return Trainer(trainer);
  }
  /// Owned by the trainer.
  Session& session() noexcept { return session_; }
  Status set_learning_rate(float rate) { return Status::take(rt_trainer_set_learning_rate(handle(), rate)); }
  /// Runs one step; returns the loss.
  Result<float> step() {
    float loss = 0;
    if (Status status = Status::take(rt_trainer_step(handle(), &loss)); !status) return status;
    return loss;
  }
  /// Asynchronous steps: see rt_session_submit.
  Status submit() { return Status::take(rt_trainer_submit(handle())); }
  Result<float> wait() {
    float loss = 0;
    if (Status status = Status::take(rt_trainer_wait(handle(), &loss)); !status) return status;
    return loss;
  }
  /// A session on another entry that shares the trained states.
  Result<Session> open(const std::string& entry = "infer") {
    rt_session* session = nullptr;
    if (Status status = Status::take(rt_trainer_open(handle(), entry.c_str(), &session)); !status)
      return status;
    return Session::adopt(session);
  }
  rt_trainer* handle() const noexcept { return handle_.get(); }

 private:
  explicit Trainer(rt_trainer* trainer)
      : handle_(trainer), session_(Session::borrow(rt_trainer_session(trainer))) {}
  std::unique_ptr<rt_trainer, detail::Free<rt_trainer, rt_trainer_free>> handle_;
  Session session_;
};

inline std::string version() {
  return rt_version();
}

}  // namespace v0
}  // namespace rt
