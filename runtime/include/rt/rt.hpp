/// @file
/// librt for C++20: Model, Session, Tensor, Trainer. Header-only, over rt.h, so that it needs no C++ ABI of
/// librt.
///
///     auto model = rt::Model::load("resnet50.rt");
///     auto session = rt::Session::create(*model, {.backend = "auto"});
///     session->set_input("image", rt::Tensor::of<float>({1, 224, 224, 3}, pixels));
///     if (auto status = session->run(); !status) std::cerr << status.message();
///     std::span<const float> scores = session->output(0)->values<float>();
///
/// Nothing throws except std::bad_alloc. Handles are move-only RAII wrappers. Functions of rt.h without a
/// wrapper are called through handle().
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

/// The C++ API of librt.
namespace rt {
// Version of the C++ API. Its members are used as rt::Model, rt::Session, and the reference names them so.
inline namespace v0 {

/// What kind of error a Status is: the values of rt_code.
enum class Code : uint8_t {
  Ok = RT_OK,                             ///< success
  InvalidArgument = RT_INVALID_ARGUMENT,  ///< caller error: a wrong shape, name or option
  InvalidModel = RT_INVALID_MODEL,        ///< a damaged, malicious or inconsistent file
  Unsupported = RT_UNSUPPORTED,           ///< valid, but not supported by this build, backend or device
  NotFound = RT_NOT_FOUND,                ///< no such file, entry or value
  OutOfMemory = RT_OUT_OF_MEMORY,         ///< an allocation failed, or a memory limit would be exceeded
  Device = RT_DEVICE,                     ///< no such backend or device, an error of its driver or of a disk
  Io = RT_IO,                             ///< reading or writing a file failed
  Internal = RT_INTERNAL,                 ///< a bug in librt
  Cancelled = RT_CANCELLED,               ///< the run was stopped by Session::cancel()
  LimitExceeded = RT_LIMIT_EXCEEDED,      ///< the run reached a limit on its work: iterations of loops, time
  DeviceLost = RT_DEVICE_LOST,            ///< the device stopped working; see rt.h
};

/// Success, or an error code with a message.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;
  /// An error, or success with Code::Ok.
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  /// Takes ownership of the status returned by a C function.
  static Status take(rt_status* status) {
    if (status == nullptr) return {};
    Status result(static_cast<Code>(rt_status_code(status)), rt_status_message(status));
    rt_status_free(status);
    return result;
  }
  /// True for success.
  bool ok() const noexcept { return code_ == Code::Ok; }
  /// ok()
  explicit operator bool() const noexcept { return ok(); }
  /// Code::Ok for success.
  Code code() const noexcept { return code_; }
  /// Empty for success.
  const std::string& message() const noexcept { return message_; }

 private:
  Code code_ = Code::Ok;
  std::string message_;
};

/// A value, or the Status of the failure. value(), * and -> require ok().
template <class T>
class [[nodiscard]] Result {
 public:
  /// A value.
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose
  /// An error; the status must not be a success.
  Result(Status status) : status_(std::move(status)) {}  // NOLINT
  /// True if there is a value.
  bool ok() const noexcept { return value_.has_value(); }
  /// ok()
  explicit operator bool() const noexcept { return ok(); }
  /// The error; success if there is a value.
  const Status& status() const noexcept { return status_; }
  /// The value; requires ok().
  T& value() & noexcept { return *value_; }
  /// The value; requires ok().
  const T& value() const& noexcept { return *value_; }
  /// Moves the value out; requires ok().
  T&& value() && noexcept { return std::move(*value_); }
  /// The value; requires ok().
  T& operator*() & noexcept { return *value_; }
  /// The value; requires ok().
  const T& operator*() const& noexcept { return *value_; }
  /// Moves the value out; requires ok().
  T&& operator*() && noexcept { return std::move(*value_); }
  /// A member of the value; requires ok().
  T* operator->() noexcept { return &*value_; }
  /// A member of the value; requires ok().
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

/// Element types: the values of rt_dtype.
enum class DType : uint8_t {
  F32 = RT_F32,    ///< 32-bit IEEE float
  F16 = RT_F16,    ///< 16-bit IEEE float
  BF16 = RT_BF16,  ///< bfloat16
  F64 = RT_F64,    ///< 64-bit IEEE float
  I8 = RT_I8,      ///< 8-bit signed integer
  U8 = RT_U8,      ///< 8-bit unsigned integer
  I16 = RT_I16,    ///< 16-bit signed integer
  U16 = RT_U16,    ///< 16-bit unsigned integer
  I32 = RT_I32,    ///< 32-bit signed integer
  U32 = RT_U32,    ///< 32-bit unsigned integer
  I64 = RT_I64,    ///< 64-bit signed integer
  U64 = RT_U64,    ///< 64-bit unsigned integer
  Bool = RT_BOOL,  ///< one byte, 0 or 1
};
/// Name of an element type: "f32", "i64", "bool".
inline std::string_view name_of(DType dtype) noexcept {
  return rt_dtype_name(static_cast<rt_dtype>(dtype));
}
/// Bytes of one element.
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

/// A dense tensor in host memory that owns its bytes (aligned to 64) or borrows them, or in memory of a
/// device, which it borrows (Memory::tensor()). Move-only.
class Tensor {
 public:
  /// An f32 scalar without memory.
  Tensor() noexcept = default;
  /// Owns zeroed memory. At most RT_MAX_RANK dims, each >= 0.
  Tensor(DType dtype, std::span<const int64_t> dims) : Tensor(borrow(dtype, dims, nullptr)) {
    const size_t size = c_.bytes > 0 ? c_.bytes : 1;
    owned_.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{64})));
    std::memset(owned_.get(), 0, size);
    c_.data = owned_.get();
  }
  /// Owns zeroed memory.
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
  /// Owns a copy of `values`.
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
  /// Refers to the memory of a C tensor.
  static Tensor borrow(const rt_tensor& c) {
    Tensor tensor;
    tensor.c_ = c;
    return tensor;
  }
  /// Refers to memory of a device from `offset` on: for Session::bind_input() and bind_output().
  static Tensor on_device(DType dtype, std::span<const int64_t> dims, rt_memory* memory,
                          uint64_t offset = 0) {
    Tensor tensor = borrow(dtype, dims, nullptr);
    tensor.c_.memory = memory;
    tensor.c_.offset = offset;
    return tensor;
  }
  /// Whether the elements are in memory of a device: then data() is null, unless the host addresses it.
  bool is_on_device() const noexcept { return c_.memory != nullptr; }
  /// A copy that owns its memory. Of a tensor in memory of a device only where the host addresses it, else
  /// zeros: Memory::read() copies from a device, and can fail.
  Tensor clone() const {
    Tensor copy(dtype(), dims());
    if (c_.bytes > 0 && c_.data != nullptr) std::memcpy(copy.c_.data, c_.data, copy.c_.bytes);
    return copy;
  }

  /// The element type.
  DType dtype() const noexcept { return static_cast<DType>(c_.dtype); }
  /// The extents.
  std::span<const int64_t> dims() const noexcept { return {c_.dims, static_cast<size_t>(c_.rank)}; }
  /// Number of elements.
  int64_t elements() const noexcept {
    int64_t count = 1;
    for (int64_t dim : dims()) count *= dim;
    return count;
  }
  /// Bytes of all elements.
  size_t bytes() const noexcept { return static_cast<size_t>(elements()) * size_of(dtype()); }
  /// The elements, dense and row-major.
  void* data() noexcept { return c_.data; }
  /// The elements, dense and row-major.
  const void* data() const noexcept { return c_.data; }
  /// The elements as T; empty if sizeof(T) differs from the dtype's element size, or data() is null.
  template <class T>
  std::span<T> values() noexcept {
    return sizeof(T) == size_of(dtype()) && c_.data != nullptr
               ? std::span<T>(static_cast<T*>(c_.data), static_cast<size_t>(elements()))
               : std::span<T>();
  }
  /// The elements as T; empty if sizeof(T) differs from the dtype's element size, or data() is null.
  template <class T>
  std::span<const T> values() const noexcept {
    return const_cast<Tensor*>(this)->values<const T>();
  }
  /// The C tensor, valid as long as this object.
  const rt_tensor& handle() const noexcept { return c_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept { ::operator delete (bytes, std::align_val_t{64}); }
  };
  rt_tensor c_ = RT_TENSOR_INIT;
  std::unique_ptr<std::byte, Free> owned_;
};

/// One dimension of a TensorSpec.
struct Dim {
  int64_t extent = -1;  ///< -1: dynamic, known once the inputs are
  std::string symbol;   ///< "batch"; empty if unnamed
  int64_t bound = 0;    ///< upper bound of the extent, 0: none
};
/// Declaration of an input, output or state in the model.
struct TensorSpec {
  std::string name;          ///< name in the model
  DType dtype = DType::F32;  ///< element type
  std::vector<Dim> dims;     ///< one for each dimension

  /// A copy of a C spec.
  static TensorSpec from(const rt_tensor_spec& c) {
    TensorSpec spec{c.name != nullptr ? c.name : "", static_cast<DType>(c.dtype), {}};
    for (int32_t i = 0; i < c.rank; ++i)
      spec.dims.push_back({c.dims[i], c.symbols[i] != nullptr ? c.symbols[i] : "", c.bounds[i]});
    return spec;
  }
};
/// Declaration of a state.
struct StateSpec : TensorSpec {
  rt_state_kind kind = RT_PARAMETER;  ///< parameter, statistic, optimizer or counter
};

/// @cond
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
/// @endcond

/// The fields of rt_model_options, with the same defaults.
struct ModelOptions {
  bool copy = false;             ///< bytes in memory of librt's own; else a file is mapped
  bool skip_checksums = false;   ///< do not compare the checksums of the weights when they are first used
  uint64_t max_nodes = 0;        ///< nodes of all graphs; 0: 1,000,000
  uint64_t max_values = 0;       ///< values of all graphs; 0: 4,000,000
  uint64_t max_graph_bytes = 0;  ///< memory of everything except tensors; 0: 1 GiB
  uint64_t max_data_bytes = 0;   ///< one value of known shape; all states together; 0: 64 GiB
};

/// A loaded model: its entries, states and metadata.
class Model {
 public:
  /// Maps the file, or copies it, and validates its structure: see rt_model_load_with.
  static Result<Model> load(const std::string& path, const ModelOptions& options = {}) {
    rt_model* model = nullptr;
    const rt_model_options c = to_c(options);
    if (Status status = Status::take(rt_model_load_with(path.c_str(), &c, &model)); !status) return status;
    return Model(model);
  }
  /// A model file in memory. copy = false: `bytes` must outlive the model and its sessions.
  static Result<Model> from_memory(std::span<const std::byte> bytes, bool copy = true) {
    return from_memory(bytes, ModelOptions{.copy = copy});
  }
  /// The same with options.
  static Result<Model> from_memory(std::span<const std::byte> bytes, const ModelOptions& options) {
    rt_model* model = nullptr;
    const rt_model_options c = to_c(options);
    rt_status* status = rt_model_load_from_memory_with(bytes.data(), bytes.size(), &c, &model);
    if (Status failed = Status::take(status); !failed) return failed;
    return Model(model);
  }

  /// Name and version of the program that wrote the file.
  std::string producer() const { return detail::or_empty(rt_model_producer(handle())); }
  /// Names of the entries (graphs that can be run).
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < rt_model_entry_count(handle()); ++i)
      names.push_back(rt_model_entry_name(handle(), i));
    return names;
  }
  /// Inputs of an entry. entry empty: "infer", or the model's only entry.
  std::vector<TensorSpec> inputs(const std::string& entry = {}) const {
    return specs(entry, rt_model_input_count, rt_model_input);
  }
  /// Outputs of an entry, as for inputs().
  std::vector<TensorSpec> outputs(const std::string& entry = {}) const {
    return specs(entry, rt_model_output_count, rt_model_output);
  }
  /// Tensors that persist across runs and are shared by the entries.
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
  /// Value of a key that the converter has written.
  std::optional<std::string> metadata(const std::string& key) const {
    const char* text = rt_model_metadata_value(handle(), key.c_str());
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  }
  /// For functions of rt.h; owned by this object.
  const rt_model* handle() const noexcept { return handle_.get(); }

 private:
  explicit Model(rt_model* model) : handle_(model) {}
  static rt_model_options to_c(const ModelOptions& options) noexcept {
    return {sizeof(rt_model_options), options.copy ? 1 : 0, options.skip_checksums ? 1 : 0,
            options.max_nodes,        options.max_values,   options.max_graph_bytes,
            options.max_data_bytes};
  }
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

/// Properties of a device: the fields of rt_device_info.
struct DeviceInfo {
  std::string backend;           ///< "cpu", "vulkan", "cuda", "reference"
  int index = 0;                 ///< position among the backend's devices
  rt_device_type type = RT_CPU;  ///< CPU, or what kind of GPU
  std::string name,              ///< the model of the CPU or GPU
      uuid,                      ///< empty if there is none
      driver,                    ///< driver or library that runs it, with its version
      features;                  ///< separated by spaces
  uint64_t memory_bytes = 0;     ///< size of the device's memory
  bool host_memory = false;      ///< bound inputs and outputs are used in place
  int threads = 0;               ///< of a CPU device: number of threads
  bool asynchronous = false;     ///< runs asynchronously to the caller

  /// A copy of the C struct.
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
  /// A backend known to librt.
  struct Backend {
    std::string name;    ///< "cpu", "vulkan"
    std::string reason;  ///< why it has no device, empty if it has devices
  };
  std::vector<DeviceInfo> devices;  ///< of all backends
  std::vector<Backend> backends;    ///< with and without devices

  /// Queries every backend for its devices.
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
  std::string backend = {};                       ///< "cpu", "vulkan", "cuda", "reference"; empty: "auto"
  std::string device = {};                        ///< index, part of the name, or UUID
  std::string entry = {};                         ///< empty: "infer", or the model's only entry
  std::string precision = {};                     ///< "fp32", "tf32", "fp16", "bf16"; empty: as in the file
  int threads = 0;                                ///< CPU threads; 0: as allowed by cgroup and affinity
  bool strict = false;                            ///< nodes that the device does not support are an error
  bool profile = false;                           ///< time every node, see Session::profile()
  bool validation = false;                        ///< Vulkan validation layers
  bool deterministic = false;                     ///< reproducible results from run to run; disables tuning
  bool tuning = false;                            ///< time alternative kernels when a plan is built
  int tuning_ms = 0;                              ///< time limit per plan; 0: 500 ms
  uint64_t memory_limit = 0;                      ///< of the session, in bytes; 0: what the machine has
  uint64_t plan_cache_bytes = 0;                  ///< for plans of earlier shapes; 0: 256 MiB
  uint64_t loop_limit = 0;                        ///< iterations of all Loops of a run; 0: a million
  std::string cache_folder = {};                  ///< empty: the user's (XDG_CACHE_HOME/librt)
  const Session* share_states_with = nullptr;     ///< of the same model, on the same device
  const rt_communicator* communicator = nullptr;  ///< must outlive the session
  uint64_t time_limit_ms = 0;                     ///< of a run, on the host; 0: none
  /// What "auto" minimizes: "latency" (empty), "throughput", "energy".
  std::string prefer = {};
  bool no_replay = false;                      ///< a GPU's work is launched anew in each run, see rt.h
  void* cuda_stream = nullptr;                 ///< a cudaStream_t that outlives the session
  const Session* share_device_with = nullptr;  ///< uses its device and stream; used by one thread at a time
  rt_log_callback log = nullptr;               ///< receives messages, with log_user
  void* log_user = nullptr;                    ///< must outlive the session
  rt_log_level log_level = RT_LOG_WARNING;     ///< messages up to this level are logged
  rt_progress_callback progress = nullptr;     ///< hears of what takes long before a run, and can stop it
  void* progress_user = nullptr;               ///< must outlive the session
  const rt_allocator* allocator = nullptr;     ///< host memory; copied, its user must outlive the session
  const rt_parallel* parallel = nullptr;       ///< the application's threads; copied in the same way
  std::vector<int32_t> cpus = {};              ///< where librt's own threads may run; empty: anywhere
  int priority = 0;                            ///< nice value of librt's own threads
  std::span<const rt_custom_operator> custom_operators =
      {};                           ///< see custom.hpp; each user outlives the session
  std::span<std::byte> arena = {};  ///< in the place of an allocator; outlives the session
};

/// One entry of a model, prepared for one device: see rt_session.
class Session {
 public:
  /// Opens the device and prepares the entry.
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

  /// Number of inputs of the entry.
  size_t input_count() const noexcept { return rt_session_input_count(handle()); }
  /// Number of outputs of the entry.
  size_t output_count() const noexcept { return rt_session_output_count(handle()); }
  /// The inputs as declared in the model.
  std::vector<TensorSpec> inputs() const { return specs(input_count(), rt_session_input_spec); }
  /// The outputs as declared in the model.
  std::vector<TensorSpec> outputs() const { return specs(output_count(), rt_session_output_spec); }
  /// Index of the input of this name.
  Result<size_t> find_input(const std::string& name) const { return find(name, rt_session_find_input); }
  /// Index of the output of this name.
  Result<size_t> find_output(const std::string& name) const { return find(name, rt_session_find_output); }

  /// Copies the tensor; the value is kept for subsequent runs.
  Status set_input(size_t index, const Tensor& tensor) {
    return Status::take(rt_session_set_input(handle(), index, &tensor.handle()));
  }
  /// Copies the tensor to the input of this name.
  Status set_input(const std::string& name, const Tensor& tensor) {
    auto index = find_input(name);
    return index ? set_input(*index, tensor) : index.status();
  }
  /// Uses the tensor's memory at each run: it must stay alive until the input is bound or set again. Memory
  /// of a device is read in place.
  Status bind_input(size_t index, const Tensor& tensor) {
    return Status::take(rt_session_bind_input(handle(), index, &tensor.handle()));
  }
  /// Each run writes the output to the tensor's memory: it must stay alive until the output is bound again or
  /// unbound. Memory of a device is written in place.
  Status bind_output(size_t index, const Tensor& tensor) {
    return Status::take(rt_session_bind_output(handle(), index, &tensor.handle()));
  }
  /// Ends bind_output().
  Status unbind_output(size_t index) {
    return Status::take(rt_session_bind_output(handle(), index, nullptr));
  }
  /// Plans and allocates now, for the shapes of the inputs that are set: see rt_session_prepare.
  Status prepare() { return Status::take(rt_session_prepare(handle(), nullptr, 0)); }
  /// Runs once, synchronously.
  Status run() { return Status::take(rt_session_run(handle())); }
  /// Starts an asynchronous run, which overlaps transfers with compute: see rt_session_submit.
  Status submit() { return Status::take(rt_session_submit(handle())); }
  /// Waits for the oldest submitted run.
  Status wait() { return Status::take(rt_session_wait(handle())); }
  /// Stops the run in progress, or the next one, with Code::Cancelled. From any thread: see
  /// rt_session_cancel.
  void cancel() const noexcept { rt_session_cancel(handle()); }
  /// Withdraws a request that has not stopped anything yet.
  void uncancel() const noexcept { rt_session_uncancel(handle()); }
  /// An output of the last run. Refers to the session's memory, valid until its next run, submit or prepare;
  /// clone() to keep it.
  Result<Tensor> output(size_t index) {
    rt_tensor c = RT_TENSOR_INIT;
    if (Status status = Status::take(rt_session_output(handle(), index, &c)); !status) return status;
    return Tensor::borrow(c);
  }
  /// The output of this name.
  Result<Tensor> output(const std::string& name) {
    auto index = find_output(name);
    if (!index) return index.status();
    return output(*index);
  }

  /// Work that is submitted from now on starts on the device when the point is reached: see
  /// rt_session_wait_for.
  Status wait_for(const rt_sync& point) { return Status::take(rt_session_wait_for(handle(), &point)); }
  /// The device reaches the point when all work submitted until now is complete.
  Status signal(const rt_sync& point) { return Status::take(rt_session_signal(handle(), &point)); }
  /// The handles of the device for other code that uses it.
  rt_native_handles native() const {
    rt_native_handles handles = RT_NATIVE_HANDLES_INIT;
    rt_status_free(rt_session_native(handle(), &handles));
    return handles;
  }

  /// A copy of a state.
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
  /// Copies the tensor to the state. dtype and shape must match.
  Status write_state(const std::string& name, const Tensor& tensor) {
    return Status::take(rt_session_write_state(handle(), name.c_str(), &tensor.handle()));
  }
  /// Resets the states to the model's initial values.
  Status reset_states() { return Status::take(rt_session_reset_states(handle())); }
  /// Writes all states and the key-value pairs to a file, atomically.
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
  /// Restores all states; on error they are unchanged.
  Status load_checkpoint(const std::string& path) {
    return Status::take(rt_session_load_checkpoint(handle(), path.c_str()));
  }
  /// Loads only the parameters and statistics: see rt_session_load_adapter.
  Status load_adapter(const std::string& path) {
    return Status::take(rt_session_load_adapter(handle(), path.c_str()));
  }
  /// A value saved with the checkpoint loaded last.
  std::optional<std::string> checkpoint_value(const std::string& key) const {
    const char* text = rt_session_checkpoint_value(handle(), key.c_str());
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  }

  /// The device that the session runs on.
  DeviceInfo device() const {
    rt_device_info info = RT_DEVICE_INFO_INIT;
    rt_status_free(rt_session_device(handle(), &info));
    return DeviceInfo::from(info);
  }
  /// Why this device was chosen.
  std::string device_reason() const { return detail::or_empty(rt_session_device_reason(handle())); }
  /// The library for collectives, and why: see rt_session_collectives.
  std::pair<std::string, std::string> collectives() const {
    const char* reason = "";
    std::string carrier = detail::or_empty(rt_session_collectives(handle(), &reason));
    return {std::move(carrier), detail::or_empty(reason)};
  }
  /// Every node of the plan with kernel, device, shapes: see rt_session_plan_text.
  Result<std::string> plan_text() {
    const char* text = nullptr;
    if (Status status = Status::take(rt_session_plan_text(handle(), &text)); !status) return status;
    return std::string(text);
  }
  /// Nodes that the chosen device does not support and another device runs.
  size_t fallback_count() const noexcept { return rt_session_fallback_count(handle()); }
  /// Memory that the session uses now.
  rt_memory_stats memory() const noexcept {
    rt_memory_stats stats = RT_MEMORY_STATS_INIT;
    rt_status_free(rt_session_memory(handle(), &stats));
    return stats;
  }
  /// Times and costs of the nodes, with the option `profile`. Strings live as long as the plan.
  std::vector<rt_profile_entry> profile() const {
    std::vector<rt_profile_entry> all(rt_session_profile_count(handle()));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = RT_PROFILE_ENTRY_INIT;
      rt_status_free(rt_session_profile(handle(), i, &all[i]));
    }
    return all;
  }
  /// Runs of the current plan since the last reset.
  uint64_t profile_runs() const noexcept { return rt_session_profile_runs(handle()); }
  /// Sets times and number of runs to 0.
  Status reset_profile() { return Status::take(rt_session_profile_reset(handle())); }
  /// For functions of rt.h; owned by this object.
  rt_session* handle() const noexcept { return handle_.get(); }

  /// The options for functions of rt.h. `options` must outlive the returned struct.
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
    c.time_limit_ms = options.time_limit_ms;
    c.prefer = detail::or_null(options.prefer);
    c.no_replay = options.no_replay;
    c.share_states_with =
        options.share_states_with != nullptr ? options.share_states_with->handle() : nullptr;
    c.cuda_stream = options.cuda_stream;
    c.share_device_with =
        options.share_device_with != nullptr ? options.share_device_with->handle() : nullptr;
    c.log = options.log;
    c.log_user = options.log_user;
    c.log_level = options.log_level;
    c.progress = options.progress;
    c.progress_user = options.progress_user;
    c.allocator = options.allocator;
    c.parallel = options.parallel;
    c.cpus = options.cpus.data();
    c.cpu_count = options.cpus.size();
    c.priority = options.priority;
    c.custom_operators = options.custom_operators.data();
    c.custom_operator_count = options.custom_operators.size();
    c.arena = options.arena.data();
    c.arena_bytes = options.arena.size();
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

/// A session on the entry "train_step". session() sets inputs, reads states, writes checkpoints.
class Trainer {
 public:
  /// Creates a trainer. options.entry empty: "train_step".
  static Result<Trainer> create(const Model& model, const SessionOptions& options = {}) {
    const rt_session_options c = Session::to_c(options);
    rt_trainer* trainer = nullptr;
    if (Status status = Status::take(rt_trainer_create(model.handle(), &c, &trainer)); !status) return status;
    return Trainer(trainer);
  }
  /// The session, owned by the trainer.
  Session& session() noexcept { return session_; }
  /// Kept until set again. An error if the entry has no learning rate.
  Status set_learning_rate(float rate) { return Status::take(rt_trainer_set_learning_rate(handle(), rate)); }
  /// Runs one step; returns the loss.
  Result<float> step() {
    float loss = 0;
    if (Status status = Status::take(rt_trainer_step(handle(), &loss)); !status) return status;
    return loss;
  }
  /// Submits a step: see rt_session_submit.
  Status submit() { return Status::take(rt_trainer_submit(handle())); }
  /// Waits for the oldest submitted step; returns its loss.
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
  /// For functions of rt.h; owned by this object.
  rt_trainer* handle() const noexcept { return handle_.get(); }

 private:
  explicit Trainer(rt_trainer* trainer)
      : handle_(trainer), session_(Session::borrow(rt_trainer_session(trainer))) {}
  std::unique_ptr<rt_trainer, detail::Free<rt_trainer, rt_trainer_free>> handle_;
  Session session_;
};

/// Version of the library that is loaded, "0.1.0".
inline std::string version() {
  return rt_version();
}

}  // namespace v0
}  // namespace rt
