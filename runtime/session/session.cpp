#include "runtime/session/session.h"

#include <algorithm>
#include <cstring>

#include "runtime/session/cache.h"
#include "runtime/session/select.h"
#include "runtime/session/shapes.h"
#include "runtime/session/storage.h"

namespace rt {

namespace {

constexpr uint64_t kPlanCacheBytes = 256u << 20;
constexpr size_t kMostPlans = 64;

Result<const Graph*> find_entry(const ModelGraph& model, const std::string& asked) {
  if (!asked.empty()) {
    if (const Graph* graph = model.entry(asked)) return graph;
  } else {
    if (const Graph* graph = model.entry("infer")) return graph;
    if (model.entries.size() == 1) return &model.entries.front().graph;
  }
  std::string names;
  for (const auto& entry : model.entries) append(names, text(names.empty() ? "" : ", ", entry.name));
  return Status::make(Code::NotFound, "the model has no entry '", asked.empty() ? "infer" : asked,
                      "'; it has ", names.empty() ? "none" : names);
}

Status check_options(const SessionOptions& options) {
  if (!options.precision.empty() && options.precision != "fp32")
    return unsupported(
        "precision '", options.precision,
        "': sessions compute in the dtypes of the file, fp32 unless it says otherwise; convert the "
        "model to another precision or leave this option out");
  if (options.threads < 0) return invalid_argument("threads: expected 0 or more, found ", options.threads);
  if (options.tuning_ms < 0)
    return invalid_argument("tuning_ms: expected 0 or more, found ", options.tuning_ms);
  return {};
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const ModelGraph> model,
                                                 SessionOptions options, Session* share) {
  RT_TRY(check_options(options));
  RT_ASSIGN(const Graph* graph, find_entry(*model, options.entry));
  if (share != nullptr) {
    const std::string& other = share->devices_->entry(DeviceSet::kChosen).backend;
    if (!options.backend.empty() && options.backend != "auto" && options.backend != other)
      return invalid_argument("share_states_with: the session runs on ", other, ", this one asks for ",
                              options.backend, "; states live on one device");
    auto session = create_on(share->devices_, std::move(model), std::move(options), share);
    if (session.ok()) (*session)->device_reason_ = "the device of the session whose states are shared";
    return session;
  }
  const DeviceOptions device_options{.device = options.device,
                                     .threads = options.threads,
                                     .deterministic = options.deterministic,
                                     .validation = options.validation,
                                     .cache_folder = cache_folder(options.cache_folder)};
  RT_ASSIGN(const DeviceChoice choice, select_device(*graph, model->states, options.backend, device_options));
  DeviceOptions chosen = device_options;
  if (!choice.device.empty()) chosen.device = choice.device;
  RT_ASSIGN(std::shared_ptr<DeviceSet> devices, DeviceSet::open(choice.backend, chosen));
  auto session = create_on(std::move(devices), std::move(model), std::move(options));
  if (session.ok()) (*session)->device_reason_ = choice.reason;
  return session;
}

Result<std::unique_ptr<Session>> Session::create_on(std::shared_ptr<DeviceSet> devices,
                                                    std::shared_ptr<const ModelGraph> model,
                                                    SessionOptions options, Session* share) {
  RT_TRY(check_options(options));
  auto session = std::make_unique<Session>();
  RT_ASSIGN(session->graph_, find_entry(*model, options.entry));
  session->devices_ = std::move(devices);
  if (share != nullptr) {
    if (share->model_ != model) return invalid_argument("share_states_with: the session has another model");
    session->states_ = share->states_;
  } else {
    RT_ASSIGN(session->states_, StateStore::create(session->devices_, model, options.memory_limit));
  }
  session->model_ = std::move(model);
  session->chooser_ =
      Chooser({.enabled = options.tuning && !options.deterministic,
               .limit = std::chrono::milliseconds(options.tuning_ms > 0 ? options.tuning_ms : 500),
               .cache_folder = cache_folder(options.cache_folder)});
  session->options_ = std::move(options);
  const Graph& graph = *session->graph_;
  session->shape_inputs_ = shape_inputs(graph);
  session->inputs_.resize(graph.inputs.size());
  session->outputs_.resize(graph.outputs.size());
  session->input_infos_.resize(graph.inputs.size());
  session->input_ranges_.resize(graph.inputs.size());
  session->output_ranges_.resize(graph.outputs.size());
  const bool fixed = std::all_of(graph.inputs.begin(), graph.inputs.end(),
                                 [&](ValueId input) { return graph[input].is_static(); });
  const bool by_value = std::find(session->shape_inputs_.begin(), session->shape_inputs_.end(), true) !=
                        session->shape_inputs_.end();
  if (fixed && !by_value) {
    const std::vector<TensorInfo> infos = assumed_inputs(graph);
    RT_TRY(session->find_plan(infos));
  }
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
  RT_TRY(input.own.reserve(std::max<size_t>(size, 1)));
  if (size > 0) std::memmove(input.own.data(), tensor.data, size);
  input.info = input_infos_[index] = tensor.info;
  input.data = input.own.data();
  input.bound = input.direct = false;
  return {};
}

Status Session::bind_input(size_t index, const ConstTensorView& tensor, size_t bytes) {
  RT_TRY(check_input(index, tensor, bytes));
  Input& input = inputs_[index];
  const bool direct = is_aligned(tensor.data, devices_->alignment());
  RT_TRY(input.own.reserve(direct ? 1 : tensor.info.bytes()));
  input.info = input_infos_[index] = tensor.info;
  input.data = tensor.data != nullptr ? tensor.data : input.own.data();
  input.bound = true;
  input.direct = direct;
  return {};
}

Status Session::bind_output(size_t index, void* data, size_t bytes) {
  RT_TRY(check_index(index, outputs_.size(), "output"));
  Output& output = outputs_[index];
  if (data == nullptr && current_ != nullptr) {
    const Program& program = current_->program();
    RT_TRY(output.own.reserve(program.values[program.outputs[index]].bytes));
  }
  output.bound = data;
  output.bound_bytes = data != nullptr ? bytes : 0;
  return {};
}

bool Session::fits(const Plan& plan, std::span<const TensorInfo> shapes) const noexcept {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!(plan.inputs[i] == shapes[i])) return false;
    if (shape_inputs_[i] && shapes[i].bytes() > 0 &&
        (inputs_[i].data == nullptr || !(inputs_[i].info == shapes[i]) ||
         std::memcmp(plan.values[i].data(), inputs_[i].data, plan.values[i].size()) != 0))
      return false;
  }
  return true;
}

PlanContext Session::context() noexcept {
  return {*devices_, *states_, constants_, packed_, arenas_, options_.profile};
}

Status Session::find_plan(std::span<const TensorInfo> shapes) {
  if (current_ != nullptr && current_->recorded() && fits(*current_, shapes)) return {};
  ran_ = false;
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return fits(*plan, shapes); });
  if (found != plans_.end()) {
    std::rotate(found, found + 1, plans_.end());
    current_ = plans_.back().get();
  } else {
    current_ = nullptr;
    RT_TRY(build_plan(shapes));
  }
  Plan& plan = *current_;
  Status status;
  if (!plan.recorded()) {
    PlanContext shared = context();
    status = grow_arenas(plan);
    if (status.ok()) status = plan.record(shared);
  }
  for (size_t k = 0; status.ok() && k < outputs_.size(); ++k)
    status = outputs_[k].own.reserve(plan.program().values[plan.program().outputs[k]].bytes);
  if (!status.ok()) current_ = nullptr;
  return status;
}

Status Session::build_plan(std::span<const TensorInfo> shapes) {
  RT_TRY(check_inputs(*graph_, shapes));
  std::vector<const std::byte*> values(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shape_inputs_[i]) continue;
    if (inputs_[i].data == nullptr || !(inputs_[i].info == shapes[i]))
      return invalid_argument("input '", (*graph_)[graph_->inputs[i]].name,
                              "' decides over shapes: set it before planning");
    values[i] = static_cast<const std::byte*>(inputs_[i].data);
  }
  chooser_.begin_plan();
  RT_ASSIGN(std::unique_ptr<Program> program, legalize({.graph = *graph_,
                                                        .states = model_->states,
                                                        .devices = *devices_,
                                                        .inputs = shapes,
                                                        .values = values,
                                                        .folded = folded_,
                                                        .chooser = chooser_,
                                                        .strict = options_.strict}));
  chooser_.save();
  assign_storage(*devices_, *program);
  auto plan = std::make_unique<Plan>(std::move(program));
  plan->inputs.assign(shapes.begin(), shapes.end());
  plan->values.resize(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i)
    if (values[i] != nullptr) plan->values[i].assign(values[i], values[i] + shapes[i].bytes());
  PlanContext shared = context();
  // What is booked in the shared stores refers to this plan's kernels: it must not outlive a failure, nor
  // bad_alloc.
  struct Booking {
    Plan& plan;
    PlanContext& context;
    bool kept = false;
    ~Booking() {
      if (!kept) plan.abandon(context);
    }
  } booking{*plan, shared};
  plan->book(shared);
  RT_TRY(check_limit(*plan));
  RT_TRY(plan->commit(shared));
  plans_.reserve(plans_.size() + 1);
  booking.kept = true;
  plans_.push_back(std::move(plan));
  current_ = plans_.back().get();
  evict(current_);
  return {};
}

Status Session::check_limit(const Plan& plan) {
  if (options_.memory_limit == 0) return {};
  uint64_t arenas = 0;
  for (size_t space = 0; space < plan.program().arena_bytes.size(); ++space) {
    const size_t have = space < arenas_.size() && arenas_[space] != nullptr ? arenas_[space]->size() : 0;
    arenas += std::max(have, plan.program().arena_bytes[space]);
  }
  const uint64_t fresh = plan.new_bytes(context());
  const uint64_t kept = states_->bytes() + constants_.allocated_bytes() + packed_.allocated_bytes();
  const uint64_t needed = arenas + fresh + kept;
  if (needed <= options_.memory_limit) return {};
  return Status::make(Code::OutOfMemory, "entry '", graph_->name, "' at these shapes needs ",
                      bytes_text(needed), " on ", devices_->chosen().info().name, " (working memory ",
                      bytes_text(arenas), ", weights and states ", bytes_text(fresh + kept),
                      "), the memory limit is ", bytes_text(options_.memory_limit),
                      "; use smaller shapes or a higher limit");
}

Status Session::grow_arenas(const Plan& plan) {
  if (arenas_.size() < devices_->space_count()) arenas_.resize(devices_->space_count());
  for (uint8_t space = 0; space < arenas_.size(); ++space) {
    const std::vector<size_t>& planned = plan.program().arena_bytes;
    const size_t needed = std::max<size_t>(space < planned.size() ? planned[space] : 0, kHostAlignment);
    if (arenas_[space] != nullptr && arenas_[space]->size() >= needed) continue;
    // Other plans refer to the old arena: they are recorded again when they are next used.
    for (const auto& other : plans_) other->forget_recording();
    arenas_[space].reset();
    auto grown = Block::allocate(devices_->owner(space), needed);
    if (!grown.ok()) {
      // Leave something to stand on: the next attempt allocates anew.
      return std::move(grown).status().in(text("working memory of ", bytes_text(needed)));
    }
    arenas_[space] = std::move(grown).value();
  }
  return {};
}

void Session::evict(const Plan* keep) {
  const uint64_t limit = options_.plan_cache_bytes > 0 ? options_.plan_cache_bytes : kPlanCacheBytes;
  size_t bytes = 0;
  for (const auto& plan : plans_) bytes += plan->footprint();
  while (plans_.size() > 1 && plans_.front().get() != keep && (bytes > limit || plans_.size() > kMostPlans)) {
    bytes -= plans_.front()->footprint();
    plans_.erase(plans_.begin());
  }
}

Status Session::prepare_for(std::span<const TensorInfo> shapes) {
  if (shapes.size() != inputs_.size())
    return invalid_argument("prepare: the entry has ", inputs_.size(), " inputs, found ", shapes.size(),
                            " shapes");
  return find_plan(shapes);
}

Status Session::prepare() {
  std::string missing;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].data == nullptr)
      append(missing, text(missing.empty() ? "" : ", ", "'", (*graph_)[graph_->inputs[i]].name, "'"));
  if (!missing.empty()) return invalid_argument("these inputs are not set: ", missing);
  return find_plan(input_infos_);
}

Status Session::collect_io() {
  const Program& program = current_->program();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    const size_t bytes = input.info.bytes();
    const bool copy = input.bound && !input.direct && bytes > 0;
    if (copy) std::memcpy(input.own.data(), input.data, bytes);
    input_ranges_[i] = {copy ? input.own.data() : const_cast<void*>(input.data), bytes};
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Output& output = outputs_[k];
    const PlanValue& value = program.values[program.outputs[k]];
    if (output.bound != nullptr && output.bound_bytes < value.bytes)
      return invalid_argument("output '", (*graph_)[graph_->outputs[k]].name, "': ", value.info, " takes ",
                              value.bytes, " bytes, the bound memory has ", output.bound_bytes);
    const bool direct = output.bound != nullptr && is_aligned(output.bound, devices_->alignment());
    output_ranges_[k] = {direct ? output.bound : output.own.data(), value.bytes};
  }
  return {};
}

/// Puts each output where the caller looks for it.
Status Session::deliver_outputs() {
  const Program& program = current_->program();
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Output& output = outputs_[k];
    const PlanValue& value = program.values[program.outputs[k]];
    const PlanValue& root = program.values[root_of(program, program.outputs[k])];
    void* target = output.bound != nullptr ? output.bound : output.own.data();
    output.result = {target, value.info};
    if (value.bytes == 0) continue;
    const void* source = nullptr;
    if (root.source == ValueSource::Constant) {
      source = root.host;
    } else if (const Place place = current_->output_place(context(), k); place.block != nullptr) {
      if (place.block->host() == nullptr) {
        RT_TRY(place.block->download(place.offset, {static_cast<std::byte*>(target), value.bytes}));
        continue;
      }
      source = place.block->host() + place.offset;
      if (output.bound == nullptr) {  // the device's memory is good enough until the next run
        output.result.data = const_cast<void*>(source);
        continue;
      }
    } else {
      source = output_ranges_[program.storages[root.storage].index].data;
    }
    if (source != target) std::memcpy(target, source, value.bytes);
  }
  return {};
}

Status Session::run() {
  RT_TRY(prepare());
  ran_ = false;
  RT_TRY(collect_io());
  PlanContext shared = context();
  RT_TRY(current_->run(shared, input_ranges_, output_ranges_));
  RT_TRY(deliver_outputs());
  ran_ = true;
  return {};
}

Result<TensorView> Session::output(size_t index) const {
  RT_TRY(check_index(index, outputs_.size(), "output"));
  if (!ran_) return invalid_argument("output ", index, ": there is none before a run");
  return outputs_[index].result;
}

void Session::reset_profile() noexcept {
  for (const auto& plan : plans_) plan->reset_profile();
}

MemoryStats Session::memory() const noexcept {
  MemoryStats stats;
  stats.states = states_->bytes();
  stats.weights = constants_.allocated_bytes();
  stats.packed = packed_.allocated_bytes();
  for (const BlockPtr& arena : arenas_) stats.arena += arena != nullptr ? arena->size() : 0;
  if (current_ != nullptr) {
    for (const size_t bytes : current_->program().arena_bytes) stats.peak_planned += bytes;
    for (const size_t bytes : current_->program().naive_bytes) stats.naive += bytes;
  }
  for (const Input& input : inputs_) stats.staging += input.own.capacity();
  for (const Output& output : outputs_) stats.staging += output.own.capacity();
  stats.plans = plans_.size();
  return stats;
}

}  // namespace rt
