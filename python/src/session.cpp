#include "python/src/session.h"

#include <nanobind/stl/string.h>

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "python/src/errors.h"
#include "python/src/interrupt.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

/// From here on memory is used in place: binding it and a page fault for each 4 KiB of a new output cost more
/// than copying less. Inputs that shapes are computed from are always smaller.
constexpr size_t kInPlace = size_t{64} << 10;
bool is_read_in_place(const rt_tensor& input) {
  return input.memory != nullptr || input.bytes >= kInPlace;
}

std::atomic<uint64_t> g_forks = 0;

/// Frees a session; one of a GPU that is from before a fork is the parent's alone.
void free_session(rt_session* session, bool survives_forks, uint64_t made) noexcept {
  if (survives_forks || made == forks()) rt_session_free(session);
  free_kept_results();
}

}  // namespace

uint64_t forks() noexcept {
  return g_forks.load(std::memory_order_relaxed);
}

void count_forks() {
  pthread_atfork(nullptr, nullptr, [] { ++g_forks; });
}

Turn::Turn(Turns& turns) : turns_(turns) {
  const auto self = std::this_thread::get_id();
  if (turns.owner == self)
    fail(Code::InvalidArgument,
         "the session is in use by this thread: a signal handler or an input called it while it runs");
  if (!turns.mutex.try_lock()) {
    if (turns.forks != forks())  // the thread that holds it is not in this process
      fail(Code::InvalidArgument,
           "the session was running when the process was forked; make a new one in the new process");
    const nb::gil_scoped_release released;
    turns.mutex.lock();
  }
  turns.owner = self;
  turns.forks = forks();
}

Turn::~Turn() {
  turns_.owner = std::thread::id();
  turns_.mutex.unlock();
}

Session::Session(rt_session* handle, bool owned, std::shared_ptr<Turns> turns, std::shared_ptr<void> owner,
                 nb::object operators)
    : operators_(std::move(operators)), owner_(std::move(owner)), owned_(owned), turns_(std::move(turns)) {
  const rt::Session view = rt::Session::borrow(handle);
  const std::string backend = view.device().backend;
  survives_forks_ = backend == "cpu" || backend == "reference";
  handle_ = {handle, [owned, survives = survives_forks_, made = forks_](rt_session* session) {
               if (owned) free_session(session, survives, made);
             }};
  inputs_ = view.inputs();
  outputs_ = view.outputs();
  const auto name_of_spec = [](const TensorSpec& spec) {
    nb::object name = nb::steal(
        PyUnicode_DecodeUTF8(spec.name.data(), static_cast<Py_ssize_t>(spec.name.size()), "replace"));
    PyObject* raw = name.release().ptr();
    PyUnicode_InternInPlace(&raw);
    return nb::steal(raw);
  };
  for (const TensorSpec& spec : inputs_) input_names_.push_back(name_of_spec(spec));
  for (const TensorSpec& spec : outputs_) {
    output_names_.push_back(name_of_spec(spec));
    std::vector<Extent> extents;
    for (const Dim& dim : spec.dims) {
      Extent extent{.fixed = dim.extent};
      for (size_t i = 0; extent.fixed < 0 && extent.input == SIZE_MAX && i < inputs_.size(); ++i)
        for (size_t axis = 0; axis < inputs_[i].dims.size(); ++axis)
          if (!dim.symbol.empty() && inputs_[i].dims[axis].extent < 0 &&
              inputs_[i].dims[axis].symbol == dim.symbol)
            extent.input = i, extent.axis = axis;
      if (extent.fixed < 0 && extent.input == SIZE_MAX) {
        extents.clear();
        break;
      }
      extents.push_back(extent);
    }
    output_extents_.push_back(std::move(extents));
  }
  borrowed_ = std::make_unique<Borrowed[]>(inputs_.size());
  on_device_ = std::make_unique<DeviceInput[]>(inputs_.size());
  last_.resize(inputs_.size());
}

rt_session* Session::handle() const {
  if (handle_ == nullptr) fail(Code::InvalidArgument, "the session is closed; make a new one");
  if (!survives_forks_ && forks_ != forks())
    fail(
        Code::InvalidArgument,
        "the session is of a GPU, and from before the process was forked; make a new one in the new process");
  return handle_.get();
}

void Session::close() {
  if (!owned_)
    fail(Code::InvalidArgument, "close: this session belongs to its Trainer, which uses it for its steps");
  const Turn turn(*turns_);
  std::shared_ptr<rt_session> handle = std::move(handle_);
  const nb::gil_scoped_release released;
  handle.reset();
}

void Session::release_inputs() noexcept {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    borrowed_[i].release();
    on_device_[i].release();
  }
}

void Session::set_input(size_t index, nb::handle value) {
  const TensorSpec& spec = inputs_[index];
  Borrowed& source = borrowed_[index];
  const bool on_device = on_device_[index].take(value, spec.name, handle());
  if (!on_device) source.take(value, spec.name.c_str(), static_cast<rt_dtype>(spec.dtype));
  const rt_tensor& tensor = on_device ? on_device_[index].tensor() : source.tensor();
  if (tensor.dtype != static_cast<rt_dtype>(spec.dtype)) {
    std::string found = rt_dtype_name(tensor.dtype);
    fail(Code::InvalidArgument, "input '" + spec.name + "': expected " + text_of(spec) +
                                    ", found an array of " + found +
                                    "; convert it, for example with .astype() of NumPy");
  }
  check(is_read_in_place(tensor) ? rt_session_bind_input(handle(), index, &tensor)
                                 : rt_session_set_input(handle(), index, &tensor));
  rt_tensor& last = last_[index];
  if (last.rank != tensor.rank ||
      std::memcmp(last.dims, tensor.dims, sizeof(int64_t) * static_cast<size_t>(tensor.rank)) != 0)
    is_new_ = true;
  last = tensor;
}

void Session::set_inputs(nb::handle inputs, size_t own) {
  PyObject* const dict = inputs.ptr();
  size_t found = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (i == own) continue;
    PyObject* const value = PyDict_GetItemWithError(dict, input_names_[i].ptr());
    if (value == nullptr) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      continue;
    }
    const nb::object keep = nb::borrow(value);  // its protocols may change the dict
    ++found;
    set_input(i, keep);
  }
  const size_t wanted = inputs_.size() - (own < inputs_.size() ? 1 : 0);
  if (found != wanted || static_cast<size_t>(PyDict_Size(dict)) != wanted) fail_for_names(inputs, own);
}

void Session::fail_for_names(nb::handle inputs, size_t own) const {
  std::string missing, unknown, names;
  const auto add = [](std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (i == own) continue;
    const std::string quoted = "'" + inputs_[i].name + "'";
    add(names, quoted);
    if (PyDict_Contains(inputs.ptr(), input_names_[i].ptr()) == 0)
      add(missing, quoted + " (" + text_of(inputs_[i]) + ")");
  }
  for (auto [key, value] : nb::borrow<nb::dict>(inputs)) {
    bool known = false;
    for (size_t i = 0; i < inputs_.size(); ++i) known = known || (i != own && input_names_[i].equal(key));
    if (!known) add(unknown, nb::cast<std::string>(nb::repr(key)));
  }
  std::string text = "inputs: expected " + (names.empty() ? "none" : names);
  if (!missing.empty()) text += "; missing: " + missing;
  if (!unknown.empty()) text += "; not inputs of the model: " + unknown;
  fail(Code::InvalidArgument, text);
}

std::optional<rt_tensor> Session::planned_output(size_t k) const {
  const std::vector<Extent>& extents = output_extents_[k];
  if (extents.size() != outputs_[k].dims.size()) return std::nullopt;
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = static_cast<rt_dtype>(outputs_[k].dtype);
  for (const Extent& extent : extents)
    tensor.dims[tensor.rank++] = extent.fixed >= 0 ? extent.fixed : last_[extent.input].dims[extent.axis];
  tensor.bytes = bytes_of(tensor);
  return tensor;
}

void Session::bind_outputs(std::vector<std::unique_ptr<Tensor>>& bound) {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const std::optional<rt_tensor> tensor = planned_output(k);
    if (!tensor || tensor->bytes < kInPlace) continue;
    bound.resize(outputs_.size());
    bound[k] = std::make_unique<Tensor>(*tensor);
    check(rt_session_bind_output(handle(), k, &bound[k]->handle()));
  }
}

void Session::bind_on_device(OnDevice& bound) {
  const std::string backend = rt::Session::borrow(handle()).device().backend;
  bound.resize(outputs_.size());
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const std::optional<rt_tensor> tensor = planned_output(k);
    if (!tensor)
      fail(Code::Unsupported, "output '" + outputs_[k].name +
                                  "': on_device needs an output whose shape follows from "
                                  "the inputs' shapes, found " +
                                  text_of(outputs_[k]) + "; run without on_device");
    rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
    options.bytes = std::max<size_t>(tensor->bytes, 1);
    rt_memory* memory = nullptr;
    check(rt_memory_create(handle(), &options, &memory));
    bound[k] = std::make_unique<DeviceTensor>(MemoryPointer(memory), *tensor, turns_, backend);
    check(rt_session_bind_output(handle(), k, &bound[k]->handle()));
  }
}

nb::dict Session::results_on_device(OnDevice& bound) {
  nb::dict all;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    rt_tensor c = RT_TENSOR_INIT;
    check(rt_session_output(handle(), k, &c));
    bound[k]->set_dims(c);  // the run's own
    const nb::object made = nb::cast(std::move(*bound[k]));
    if (PyDict_SetItem(all.ptr(), output_names_[k].ptr(), made.ptr()) != 0) throw nb::python_error();
  }
  return all;
}

template <class Bound>
void Session::unbind_outputs(const std::vector<std::unique_ptr<Bound>>& bound) noexcept {
  if (handle_ == nullptr) return;
  for (size_t k = 0; k < bound.size(); ++k)
    if (bound[k] != nullptr) rt_status_free(rt_session_bind_output(handle_.get(), k, nullptr));
}

void Session::run_timed(rt_status* (*work)(void*), void* argument) {
  const bool guarded = may_take_long();
  is_new_ = true;  // unless it succeeds
  const auto start = std::chrono::steady_clock::now();
  run_released(handle(), guarded, work, argument);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  is_new_ = false;
}

nb::dict Session::results(std::vector<std::unique_ptr<Tensor>>& bound) {
  nb::dict all;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    rt_tensor c = RT_TENSOR_INIT;
    check(rt_session_output(handle(), k, &c));
    nb::object made;
    if (k < bound.size() && bound[k] != nullptr) {
      Tensor& tensor = *bound[k];
      tensor.handle().rank = c.rank;  // the run's own
      std::memcpy(tensor.handle().dims, c.dims, sizeof c.dims);
      tensor.handle().bytes = bytes_of(c);
      made = nb::cast(std::move(tensor));
    } else {
      made = nb::cast(Tensor::copy(c));
    }
    if (PyDict_SetItem(all.ptr(), output_names_[k].ptr(), made.ptr()) != 0) throw nb::python_error();
  }
  return all;
}

nb::dict Session::run(nb::handle inputs, bool on_device) {
  nb::object dict = nb::borrow(inputs);
  if (!PyDict_Check(dict.ptr()) && !nb::hasattr(inputs, "keys"))
    throw nb::type_error("run: expected a dict of arrays by name; session(array) takes them by position");
  if (!PyDict_Check(dict.ptr()))
    dict = nb::borrow<nb::type_object>(reinterpret_cast<PyObject*>(&PyDict_Type))(inputs);
  const Turn turn(*turns_);
  struct Cleanup {
    Session& session;
    std::vector<std::unique_ptr<Tensor>> bound;
    OnDevice on_device;
    ~Cleanup() {
      session.unbind_outputs(bound);
      session.unbind_outputs(on_device);
      session.release_inputs();
    }
  } cleanup{*this, {}, {}};
  set_inputs(dict);
  if (on_device)
    bind_on_device(cleanup.on_device);
  else
    bind_outputs(cleanup.bound);
  run_timed([](void* session) { return rt_session_run(static_cast<rt_session*>(session)); }, handle());
  return on_device ? results_on_device(cleanup.on_device) : results(cleanup.bound);
}

double Session::time_runs(nb::handle inputs, size_t count) {
  const Turn turn(*turns_);
  struct Cleanup {
    Session& session;
    ~Cleanup() { session.release_inputs(); }
  } const cleanup{*this};
  set_inputs(inputs);
  rt_session* const session = handle();
  rt_tensor output = RT_TENSOR_INIT;
  const nb::gil_scoped_release released;
  const auto start = std::chrono::steady_clock::now();
  for (size_t run = 0; run < count; ++run) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!is_read_in_place(last_[i])) check(rt_session_set_input(session, i, &last_[i]));
    check(rt_session_run(session));
    for (size_t k = 0; k < outputs_.size(); ++k) check(rt_session_output(session, k, &output));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

nb::dict Session::call(const nb::args& arguments, const nb::kwargs& named) {
  if (arguments.size() == 0) return run(named, false);
  if (arguments.size() > inputs_.size())
    throw nb::type_error(("the session has " + std::to_string(inputs_.size()) + " inputs, found " +
                          std::to_string(arguments.size()) + " arguments")
                             .c_str());
  nb::dict all;
  for (auto [key, value] : named) all[key] = value;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (all.contains(input_names_[i]))
      throw nb::type_error(
          ("input '" + inputs_[i].name + "' is given twice, by position and by name").c_str());
    all[input_names_[i]] = arguments[i];
  }
  return run(all, false);
}

}  // namespace rt::python
