#include "runtime/session/session.h"

#include <algorithm>
#include <cstring>

#include "runtime/backend/custom_operators.h"
#include "runtime/core/cache_folder.h"
#include "runtime/core/convert_floats.h"
#include "runtime/session/device/rank_handshake.h"
#include "runtime/session/memory/verify_data.h"
#include "runtime/session/prepare/device_choice.h"
#include "runtime/session/prepare/shapes.h"

namespace librt {

namespace {

/// Of malloc() and NumPy. Memory of inputs that is aligned to less is copied at each run.
constexpr size_t kInputAlignment = 16;

Result<const Graph*> find_entry(const ModelGraph& model, const std::string& asked) {
  if (!asked.empty()) {
    if (const Graph* graph = model.entry(asked)) return graph;
  } else {
    if (const Graph* graph = model.entry("infer")) return graph;
    if (model.entries.size() == 1) return &model.entries.front().graph;
  }
  std::string names;
  for (const auto& entry : model.entries) append(names, names.empty() ? "" : ", ", entry.name);
  return Status::make(Code::NotFound, "the model has no entry '", asked.empty() ? "infer" : asked,
                      "'; it has ", names.empty() ? "none" : names);
}

/// f32 with matmul operands rounded to 10 bits of mantissa, where the device supports it.
bool asks_for_tf32(const SessionOptions& options) {
  return options.precision == "tf32";
}

/// The requested precision; nullopt: the types of the file.
std::optional<DType> precision_of(const SessionOptions& options) {
  if (asks_for_tf32(options)) return DType::F32;
  const std::optional<DType> dtype = dtype_from_name(options.precision);
  return dtype && is_exchangeable(*dtype) ? dtype : std::nullopt;
}

Status check_options(const SessionOptions& options) {
  if (!options.precision.empty() && !precision_of(options))
    return unsupported(
        "precision '", options.precision,
        "': a session computes in fp32, tf32, fp16 or bf16; other types need rtconvert --precision");
  if (options.threads < 0) return invalid_argument("threads: expected 0 or more, found ", options.threads);
  if (options.tuning_ms < 0)
    return invalid_argument("tuning_ms: expected 0 or more, found ", options.tuning_ms);
  return {};
}

/// Ok if a session with these options can run on the devices of another; `name` is the option that says so.
Status check_same_device(const SessionOptions& options, const DeviceSet& devices, const char* name) {
  const std::string& other = devices.entry(DeviceSet::kChosen).backend;
  if (!options.backend.empty() && options.backend != "auto" && options.backend != other)
    return invalid_argument(name, ": the session runs on ", other, ", this one requests ", options.backend,
                            "; both use one device");
  if (!options.prefer.empty())
    return invalid_argument(name, ": the session runs on ", other, ", so there is nothing to prefer, found '",
                            options.prefer, "'");
  if (asks_for_tf32(options) != devices.options().tf32)
    return invalid_argument(name, ": the session's device was opened ",
                            asks_for_tf32(options) ? "without" : "with",
                            " precision 'tf32'; request the same in both");
  if (options.allocator.allocate != nullptr || options.parallel.run != nullptr || !options.cpus.empty() ||
      options.priority != 0)
    return invalid_argument(
        name, ": allocator, parallel, cpus and priority are the other session's; leave them out");
  if (options.custom_operators != nullptr)
    return invalid_argument(name, ": custom_operators are the other session's; leave them out");
  if (options.cuda_stream != nullptr)
    return invalid_argument("cuda_stream: ", name,
                            " gives the session the stream of the other; leave it NULL");
  return {};
}

}  // namespace

SessionOptions SessionOptions::for_same_device() const {
  SessionOptions options = *this;
  options.prefer.clear();
  options.allocator = {};
  options.parallel = {};
  options.cpus.clear();
  options.priority = 0;
  options.custom_operators = nullptr;
  options.cuda_stream = nullptr;
  return options;
}

Result<std::unique_ptr<Session>> Session::create(const std::shared_ptr<const ModelGraph>& model,
                                                 const SessionOptions& options, Session* share,
                                                 Session* device_of) {
  RT_TRY(check_options(options));
  RT_ASSIGN(const Graph* graph, find_entry(*model, options.entry));
  RT_TRY(options.progress.report(RT_STAGE_OPEN, 0, 1));
  if (Session* other = share != nullptr ? share : device_of; other != nullptr) {
    RT_TRY(check_same_device(options, other->devices(),
                             share != nullptr ? "share_states_with" : "share_device_with"));
    auto session = create_on(other->shared_.devices, model, options, share);
    if (session.ok())
      (*session)->device_reason_ = share != nullptr ? "the device of the session whose states are shared"
                                                    : "the device of the session whose device is shared";
    return session;
  }
  DeviceOptions device_options{.device = options.device,
                               .threads = options.threads,
                               .deterministic = options.deterministic,
                               .validation = options.validation,
                               .tf32 = asks_for_tf32(options),
                               .cache_folder = cache_folder(options.cache_folder),
                               .communicator = options.communicator,
                               .allocator = options.allocator,
                               .parallel = options.parallel,
                               .cpus = options.cpus,
                               .priority = options.priority,
                               .custom_operators = options.custom_operators};
  RT_ASSIGN(const DeviceChoice choice,
            choose_device(*graph, model->states, {options.backend, options.prefer, options.precision},
                          device_options));
  if (has_other_ranks(options.communicator))
    RT_TRY(rank_handshake(choice.backend, device_options));
  else if (!choice.device.empty())
    device_options.device = choice.device;
  RT_ASSIGN(const std::shared_ptr<DeviceSet> devices, DeviceSet::open(choice.backend, device_options));
  if (options.cuda_stream != nullptr) {
    if (devices->interop() == nullptr)
      return unsupported("cuda_stream: the session runs on ", choice.backend,
                         "; leave it NULL, or request the backend cuda");
    RT_TRY(devices->interop()->use_stream(options.cuda_stream));
  }
  if (options.log.listens(RT_LOG_INFO))
    options.log.say(RT_LOG_INFO, text("'", graph->name, "' runs on ", choice.backend, ", ",
                                      devices->chosen().info().name, ": ", choice.reason));
  auto session = create_on(devices, model, options);
  if (session.ok()) (*session)->device_reason_ = choice.reason;
  return session;
}

Result<std::unique_ptr<Session>> Session::create_on(const std::shared_ptr<DeviceSet>& devices,
                                                    const std::shared_ptr<const ModelGraph>& model,
                                                    const SessionOptions& options, Session* share) {
  RT_TRY(check_options(options));
  if (options.no_replay && devices->chosen().info().replays == Replays::Nothing)
    return unsupported("no_replay: expected a device that replays recorded work, such as CUDA's graphs; ",
                       devices->entry(DeviceSet::kChosen).backend,
                       " replays nothing, so that every run is without");
  if (model->checks != nullptr) RT_TRY(model->checks->verify_size());
  auto session = std::make_unique<Session>();
  RT_ASSIGN(session->graph_, find_entry(*model, options.entry));
  RT_TRY(check_custom(*session->graph_, devices->options().custom_operators.get()));
  Workspace& shared = session->shared_;
  shared.devices = devices;
  if (share != nullptr) {
    if (share->shared_.model != model)
      return invalid_argument("share_states_with: the session has another model");
    shared.states = share->shared_.states;
  } else {
    RT_ASSIGN(shared.states, StateStore::create(shared.devices, model, options.memory_limit));
  }
  shared.model = model;
  shared.kernel_tuner =
      KernelTuner({.enabled = options.tuning && !options.deterministic,
                   .limit = std::chrono::milliseconds(options.tuning_ms > 0 ? options.tuning_ms : 500),
                   .cache_folder = cache_folder(options.cache_folder),
                   .log = options.log});
  shared.log = options.log;
  shared.stop.progress = options.progress;
  RT_TRY(options.progress.report(RT_STAGE_OPEN, 1, 1));
  shared.strict = options.strict;
  shared.mapped = options.mapped;
  shared.precision = precision_of(options);
  shared.profile = options.profile;
  shared.replay = !options.no_replay;
  shared.limit = MemoryLimit(options.memory_limit);
  shared.plan_cache_bytes = options.plan_cache_bytes;
  session->options_ = options;
  session->options_.allocator = devices->options().allocator;
  if (session->options_.allocator.allocate != nullptr)
    shared.allocator = &session->options_.allocator;
  else  // what the application allocates for one session cannot outlive it
    shared.packed.share(options.packed_pool);
  const Graph& graph = *session->graph_;
  session->inputs_.resize(graph.inputs.size());
  session->outputs_.resize(graph.outputs.size());
  session->input_views_.resize(graph.inputs.size());
  session->input_ranges_.resize(graph.inputs.size());
  session->output_ranges_.resize(graph.outputs.size());
  for (Pending& run : session->pending_) {
    run.outputs.resize(graph.outputs.size());
    run.inputs.resize(graph.inputs.size());
  }
  if (needs_partition(graph)) {
    // Also what the host reads between the parts.
    RT_TRY(verify_data(model->checks.get(), graph, *shared.devices));
    RT_ASSIGN(session->partitioned_, Executor::create(shared, graph, GraphKind::Entry));
    return session;
  }
  session->whole_ = std::make_unique<GraphRunner>(shared, graph);
  const bool fixed =
      std::ranges::all_of(graph.inputs, [&](ValueId input) { return graph[input].is_static(); });
  if (fixed && !session->whole_->reads_while_planning()) RT_TRY(session->plan_for(assumed_inputs(graph)));
  return session;
}

Status Session::check_index(size_t index, size_t count, const char* what) const {
  if (index < count) return {};
  return invalid_argument(what, " ", index, ": the entry has ", count);
}

Status Session::check_input(size_t index, const ConstTensorView& tensor, size_t bytes) const {
  RT_TRY(check_index(index, inputs_.size(), "input"));
  const Value& value = (*graph_)[graph_->inputs[index]];
  const auto elements = tensor.info.shape.checked_elements();
  if (tensor.info.dtype != value.dtype || tensor.info.shape.rank() != value.rank() || !elements)
    return invalid_argument("input '", value.name, "': expected ", declared_text(*graph_, value), ", found ",
                            tensor.info);
  for (int axis = 0; axis < value.rank(); ++axis) {
    const Dim& dim = value.dims[static_cast<size_t>(axis)];
    if (dim.is_known() && dim.extent != tensor.info.shape[axis])
      return invalid_argument("input '", value.name, "': expected ", declared_text(*graph_, value),
                              ", found ", tensor.info);
  }
  if (bytes < tensor.info.bytes() || (tensor.data == nullptr && tensor.info.bytes() > 0))
    return invalid_argument("input '", value.name, "': ", tensor.info, " takes ", tensor.info.bytes(),
                            " bytes, the tensor has ", tensor.data == nullptr ? 0 : bytes);
  return {};
}

Status Session::set_input(size_t index, const ConstTensorView& tensor, size_t bytes) {
  RT_TRY(check_input(index, tensor, bytes));
  Input& input = inputs_[index];
  const size_t size = tensor.info.bytes();
  RT_TRY(shared_.reserve(input.own, std::max<size_t>(size, 1))
             .in("input '", (*graph_)[graph_->inputs[index]].name, "'"));
  if (size > 0) std::memmove(input.own.data(), tensor.data, size);
  input_views_[index] = {input.own.data(), tensor.info};
  input.bound = input.direct = false;
  put(input.place, {}, false, index);
  return {};
}

Status Session::bind_input(size_t index, const ConstTensorView& tensor, size_t bytes) {
  RT_TRY(check_input(index, tensor, bytes));
  Input& input = inputs_[index];
  // The CPU's loops and oneDNN load from any address, others copy to the device: a copy would only take time.
  const bool direct = is_aligned(tensor.data, kInputAlignment);
  RT_TRY(shared_.reserve(input.own, direct ? 1 : tensor.info.bytes())
             .in("input '", (*graph_)[graph_->inputs[index]].name, "'"));
  input_views_[index] = {tensor.data != nullptr ? tensor.data : input.own.data(), tensor.info};
  input.bound = true;
  input.direct = direct;
  put(input.place, {}, false, index);
  return {};
}

Status Session::bind_output(size_t index, void* data, size_t bytes) {
  RT_TRY(check_index(index, outputs_.size(), "output"));
  Output& output = outputs_[index];
  output.bound = data;
  output.bound_bytes = data != nullptr ? bytes : 0;
  put(output.place, {}, true, index);
  return {};
}

Status Session::plan_for(std::span<const ConstTensorView> inputs) {
  if (partitioned_ != nullptr) {
    // Plans are built while it runs: their shapes depend on data.
    if (checked_.size() == inputs.size() &&
        std::equal(inputs.begin(), inputs.end(), checked_.begin(),
                   [](const ConstTensorView& input, const TensorInfo& info) { return input.info == info; }))
      return {};
    checked_.clear();
    std::vector<TensorInfo> infos;
    for (const ConstTensorView& input : inputs) infos.push_back(input.info);
    RT_TRY(check_inputs(*graph_, infos));
    checked_ = std::move(infos);
    return {};
  }
  if (whole_->is_prepared(inputs)) return {};
  settle();
  ran_ = false;
  return whole_->prepare(inputs);
}

Status Session::reserve_output(size_t index, size_t run_slot) {
  Status status = shared_.reserve(outputs_[index].own[run_slot], whole_->output(index).bytes);
  return status.ok()
             ? std::move(status)
             : std::move(status).in("output ", index, " of ", source_text(*graph_, graph_->outputs[index]));
}

/// For a run to come. In a cut graph sizes are known when it runs.
Status Session::reserve_outputs() {
  // They may hold outputs that settle() brought to the host.
  if (whole_ == nullptr || pending_count_ > 0) return {};
  for (size_t k = 0; k < outputs_.size(); ++k)
    if (outputs_[k].bound == nullptr && outputs_[k].place.memory == nullptr) RT_TRY(reserve_output(k, 0));
  return {};
}

Status Session::plan_for(std::span<const TensorInfo> shapes) {
  if (shapes.size() != inputs_.size())
    return invalid_argument("prepare: the entry has ", inputs_.size(), " inputs, found ", shapes.size(),
                            " shapes");
  std::vector<ConstTensorView> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const bool given = input_views_[i].info == shapes[i];
    inputs.push_back({given ? input_views_[i].data : nullptr, shapes[i]});
  }
  return plan_for(inputs);
}

/// A session runs one function at a time under its limits.
template <class Function>
Status Session::within_limits(uint64_t time_limit_ms, Function function) {
  profile_collected_ = false;
  shared_.stop.begin(time_limit_ms, options_.loop_limit);
  Status status = shared_.stop.check();
  if (status.ok()) status = function();
  shared_.stop.end(status);
  return status;
}

Status Session::prepare() {
  return within_limits(0, [&]() -> Status {
    RT_TRY(plan_now());
    return reserve_outputs();
  });
}

Status Session::prepare_for(std::span<const TensorInfo> shapes) {
  return within_limits(0, [&]() -> Status {
    RT_TRY(plan_for(shapes));
    return reserve_outputs();
  });
}

Status Session::plan_now() {
  std::string missing;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (input_views_[i].data == nullptr && inputs_[i].place.memory == nullptr)
      append(missing, missing.empty() ? "" : ", ", "'", (*graph_)[graph_->inputs[i]].name, "'");
  if (!missing.empty()) return invalid_argument("these inputs are not set: ", missing);
  return plan_for(input_views_);
}

Status Session::collect_inputs() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    const size_t bytes = input_views_[i].info.bytes();
    if (is_external(input.place)) {
      // Steps that other devices run read it on the host.
      input_ranges_[i] = {nullptr, bytes};
      if (bytes == 0 || !whole_->reads_on_host(i)) continue;
      RT_TRY(shared_.reserve(input.own, bytes));
      RT_TRY(input.place.block->download(input.place.offset, {input.own.data(), bytes}));
      input_ranges_[i].data = input.own.data();
      continue;
    }
    const bool copy = input.bound && !input.direct && bytes > 0;
    if (copy) std::memcpy(input.own.data(), input_views_[i].data, bytes);
    input_ranges_[i] = {copy ? input.own.data() : const_cast<void*>(input_views_[i].data), bytes};
  }
  return {};
}

Status Session::check_capacity(size_t index, const TensorInfo& info) const {
  const Output& output = outputs_[index];
  const bool bound = output.bound != nullptr || output.place.memory != nullptr;
  if (!bound || output.bound_bytes >= info.bytes()) return {};
  return invalid_argument("output '", (*graph_)[graph_->outputs[index]].name, "': ", info, " takes ",
                          info.bytes(), " bytes, the bound memory has ", output.bound_bytes);
}

/// directly: to bound memory, if the device can write to it.
Status Session::collect_outputs(size_t run_slot, bool directly) {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Output& output = outputs_[k];
    const PlanValue& value = whole_->output(k);
    RT_TRY(check_capacity(k, value.info));
    if (is_external(output.place) && whole_->makes_on_device(k)) {
      output_ranges_[k] = {};
      continue;
    }
    const bool in_place =
        writes_directly(output, directly) && is_aligned(output.bound, devices().alignment());
    if (!in_place) RT_TRY(reserve_output(k, run_slot));
    output_ranges_[k] = {in_place ? output.bound : output.own[run_slot].data(), value.bytes};
  }
  return {};
}

/// Makes each output available to the caller.
Status Session::deliver_outputs(size_t run_slot, bool directly) {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Output& output = outputs_[k];
    output.result_place = {output.place.memory, output.place.offset};
    const bool external = is_external(output.place);
    if (external && whole_->makes_on_device(k)) {
      output.result = {nullptr, whole_->output(k).info};
      continue;
    }
    const bool to_bound = writes_directly(output, directly);
    // The device's memory can be used until the next run.
    const bool borrow = directly && output.bound == nullptr && !external;
    void* target = to_bound ? output.bound : output.own[run_slot].data();
    RT_ASSIGN(void* const data, whole_->deliver(k, output_ranges_, target, borrow));
    output.result = {data, whole_->output(k).info};
    if (!external) continue;
    const size_t bytes = output.result.info.bytes();
    RT_TRY(output.place.block->upload(output.place.offset, {static_cast<std::byte*>(data), bytes}));
    output.result.data = nullptr;
  }
  return {};
}

Status Session::run_in_pieces(bool directly) {
  RT_TRY(partitioned_->run(input_views_));
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const ConstTensorView& made = partitioned_->outputs()[k];
    RT_TRY(check_capacity(k, made.info));
    outputs_[k].result_place = {outputs_[k].place.memory, outputs_[k].place.offset};
    void* const target = writes_directly(outputs_[k], directly) ? outputs_[k].bound : nullptr;
    outputs_[k].result = {target != nullptr ? target : const_cast<void*>(made.data), made.info};
    if (target != nullptr && made.info.bytes() > 0) std::memcpy(target, made.data, made.info.bytes());
  }
  return {};
}

/// A complete synchronous run. Not directly: bound memory, and outputs of the other in-flight slot, stay
/// untouched.
Status Session::run_now(size_t run_slot, bool directly) {
  if (partitioned_ != nullptr) return run_in_pieces(directly);
  RT_TRY(collect_inputs());
  RT_TRY(collect_outputs(run_slot, directly));
  RT_TRY(whole_->run(input_ranges_, output_ranges_));
  return deliver_outputs(run_slot, directly);
}

Status Session::run() {
  if (pending_count_ > 0)
    return invalid_argument("run: ", pending_count_, " submitted run", pending_count_ > 1 ? "s are" : " is",
                            " in flight; wait for ", pending_count_ > 1 ? "them" : "it", " first");
  RT_TRY(check_places());
  return within_limits(options_.time_limit_ms, [&]() -> Status {
    RT_TRY(plan_now());
    ran_ = false;
    RT_TRY(run_now(0, true));
    ran_ = true;
    return {};
  });
}

Status Session::submit() {
  if (pending_count_ == pending_.size())
    return invalid_argument("submit: ", pending_count_, " runs are in flight; wait for the first of them");
  RT_TRY(check_places());
  return within_limits(options_.time_limit_ms, [&] { return submit_now(); });
}

Status Session::submit_now() {
  RT_TRY(plan_now());
  ran_ = false;
  const size_t run_slot = (first_pending_ + pending_count_) % pending_.size();
  Pending& run = pending_[run_slot];
  run.status = {};
  run.on_host = partitioned_ != nullptr || !whole_->is_asynchronous();
  if (run.on_host) {
    RT_TRY(run_now(run_slot, false));
  } else {
    for (size_t k = 0; k < outputs_.size(); ++k) RT_TRY(check_capacity(k, whole_->output(k).info));
    RT_TRY(collect_inputs());
    RT_TRY(whole_->submit(run_slot, input_ranges_));
  }
  for (size_t k = 0; k < outputs_.size(); ++k)
    run.outputs[k] = {outputs_[k].bound, outputs_[k].place, outputs_[k].result};
  for (size_t i = 0; i < inputs_.size(); ++i) run.inputs[i] = inputs_[i].place.memory;
  ++pending_count_;
  return {};
}

/// directly: to bound memory.
Status Session::bring_to_host(size_t run_slot, bool directly) {
  Pending& run = pending_[run_slot];
  run.on_host = true;
  RT_TRY(whole_->wait(run_slot));
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const PlanValue& value = whole_->output(k);
    AlignedBytes& own = outputs_[k].own[run_slot];
    const Place& place = run.outputs[k].place;
    if (is_external(place) && whole_->makes_on_device(k)) {
      run.outputs[k].made = {nullptr, value.info};
      continue;
    }
    void* target = directly ? run.outputs[k].bound : nullptr;
    if (target == nullptr) {
      RT_TRY(reserve_output(k, run_slot));
      target = own.data();
    }
    RT_TRY(whole_->receive(run_slot, k, target));
    run.outputs[k].made = {target, value.info};
    if (!is_external(place)) continue;
    RT_TRY(place.block->upload(place.offset, {static_cast<std::byte*>(target), value.bytes}));
    run.outputs[k].made.data = nullptr;
  }
  return {};
}

void Session::settle() {
  for (size_t i = 0; i < pending_count_; ++i) {
    const size_t run_slot = (first_pending_ + i) % pending_.size();
    if (!pending_[run_slot].on_host) pending_[run_slot].status = bring_to_host(run_slot, false);
  }
}

Status Session::wait() {
  if (pending_count_ == 0) return invalid_argument("wait: no submitted run is pending");
  const size_t run_slot = first_pending_;
  Pending& run = pending_[run_slot];
  first_pending_ = (run_slot + 1) % pending_.size();
  --pending_count_;
  ran_ = false;
  profile_collected_ = false;
  Status status = run.on_host ? std::move(run.status) : bring_to_host(run_slot, true);
  for (MemoryPtr& memory : run.inputs) memory.reset();
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Place place = std::exchange(run.outputs[k].place, Place{});
    outputs_[k].result_place = {place.memory, place.offset};
  }
  RT_TRY(std::move(status));
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Pending::Output& output = run.outputs[k];
    outputs_[k].result = output.made;
    if (output.bound == nullptr || output.bound == output.made.data) continue;
    if (const size_t bytes = output.made.info.bytes(); bytes > 0)
      std::memcpy(output.bound, output.made.data, bytes);
    outputs_[k].result.data = output.bound;
  }
  ran_ = true;
  return {};
}

Result<TensorView> Session::output(size_t index) const {
  RT_TRY(check_index(index, outputs_.size(), "output"));
  if (!ran_)
    return invalid_argument("output ", index, ": not available before a run, or after the next submit");
  return outputs_[index].result;
}

const std::vector<Executor::Timing>& Session::profile() const {
  if (profile_collected_ || !options_.profile) return profile_;
  profile_.clear();
  if (partitioned_ != nullptr) partitioned_->collect(profile_);
  if (plan() != nullptr) Executor::collect(*plan(), profile_);
  profile_collected_ = true;
  return profile_;
}

std::vector<const Plan*> Session::plans() const {
  std::vector<const Plan*> used;
  for (const GraphRunner* runner : shared_.runners)
    if (runner->plan() != nullptr) used.push_back(runner->plan());
  return used;
}

void Session::reset_profile() noexcept {
  profile_collected_ = false;
  if (whole_ != nullptr) whole_->reset_profile();
  if (partitioned_ != nullptr) partitioned_->reset_profile();
}

MemoryStats Session::memory() const noexcept {
  MemoryStats stats;
  stats.states = shared_.states->bytes();
  stats.weights = shared_.constants.allocated_bytes();
  stats.packed = shared_.packed.allocated_bytes();
  for (const BlockPtr& arena : shared_.arenas) stats.arena += arena != nullptr ? arena->size() : 0;
  for (const GraphRunner* runner : shared_.runners) {
    stats.plans += runner->plan_count();
    stats.weights += runner->own_bytes();
    if (runner->plan() == nullptr) continue;
    uint64_t peak = 0, naive = 0;
    for (const uint64_t bytes : runner->plan()->program().arena_bytes) peak += bytes;
    for (const uint64_t bytes : runner->plan()->program().naive_bytes) naive += bytes;
    stats.peak_planned = std::max(stats.peak_planned, peak);
    stats.naive = std::max(stats.naive, naive);
  }
  for (const Input& input : inputs_) stats.staging += input.own.capacity();
  for (const Output& output : outputs_)
    for (const AlignedBytes& own : output.own) stats.staging += own.capacity();
  for (const GraphRunner* runner : shared_.runners) stats.staging += runner->exchanged_bytes();
  if (partitioned_ != nullptr) stats.staging += partitioned_->host_bytes();
  return stats;
}

}  // namespace librt
