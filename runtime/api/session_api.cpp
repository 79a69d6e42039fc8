// rt_session_* and rt_trainer_* of rt.h, except states and checkpoints.
#include "runtime/api/handles.h"
#include "runtime/core/thread_limit.h"
#include "runtime/session/memory/arena.h"

namespace {

using librt::Status;
using librt::api::check;
using librt::api::guarded;
using librt::api::SessionUse;

constexpr int kMostCpus = 1024;  ///< of a cpu_set_t
static_assert(kMostCpus == 1024 && librt::kMostThreads == 4096 && librt::kLeastArena == 256);  // in messages

std::string string(const char* chars) {
  return chars != nullptr ? chars : "";
}

/// What the hooks of a session lack, or contradict.
Status check_hooks(const rt_session_options& c, const rt_allocator& allocator, const rt_parallel& parallel) {
  if (static_cast<uint32_t>(c.log_level) > RT_LOG_DEBUG)
    return librt::invalid_argument("log_level: expected an rt_log_level");
  if (c.allocator != nullptr && (allocator.allocate == nullptr || allocator.free == nullptr))
    return librt::invalid_argument("rt_allocator: allocate and free must both be set");
  if (c.arena != nullptr && (c.allocator != nullptr || c.arena_bytes < librt::kLeastArena))
    return librt::invalid_argument("arena: expected at least 256 bytes, and no allocator");
  for (size_t i = 0; i < c.cpu_count; ++i)
    if (const int cpu = c.cpus != nullptr ? c.cpus[i] : -1; cpu < 0 || cpu >= kMostCpus)
      return librt::invalid_argument("cpus: expected 0 to 1023, found ", cpu);
  if (c.priority < -20 || c.priority > 19)
    return librt::invalid_argument("priority: expected -20 to 19, found ", c.priority);
  if (c.parallel == nullptr) return {};
  if (parallel.run == nullptr || parallel.threads < 1 || parallel.threads > librt::kMostThreads)
    return librt::invalid_argument("rt_parallel: run must be set, and threads 1 to 4096, not ",
                                   parallel.threads);
  if (c.threads != 0 || c.cpu_count > 0 || c.priority != 0)
    return librt::invalid_argument(
        "parallel: threads, cpus and priority are of librt's own threads; leave them "
        "out");
  return {};
}

Status take_custom(const rt_session_options& c, std::shared_ptr<const librt::CustomOperators>& to) {
  if (c.custom_operator_count == 0) return {};
  const auto* at = reinterpret_cast<const char*>(c.custom_operators);
  if (at == nullptr) return librt::invalid_argument("custom_operators: the pointer is null");
  librt::CustomOperators all(c.custom_operator_count);
  for (size_t i = 0; i < all.size(); ++i, at += librt::api::struct_size(at)) {
    rt_custom_operator& one = all[i].functions;
    RT_TRY(librt::api::take_in(reinterpret_cast<const rt_custom_operator*>(at), one, "rt_custom_operator"));
    if (one.name == nullptr || (one.run == nullptr && one.run_cuda == nullptr))
      return librt::invalid_argument("rt_custom_operator ", i,
                                     ": expected a name, and run or run_cuda; one of them is null");
    all[i].domain = string(one.domain);
    all[i].name = one.name;
    for (size_t k = 0; k < i; ++k)
      if (all[k].name == all[i].name && all[k].domain == all[i].domain)
        return librt::invalid_argument("custom_operators: '", all[i].name, "' of '", all[i].domain,
                                       "' is there twice");
  }
  to = std::make_shared<const librt::CustomOperators>(std::move(all));
  return {};
}

std::shared_ptr<librt::PackedPool> pool_of(const rt_model& model) {
  const std::lock_guard lock(model.mutex);
  std::shared_ptr<librt::PackedPool> pool = model.packed_pool.lock();
  if (pool == nullptr) model.packed_pool = pool = std::make_shared<librt::PackedPool>();
  return pool;
}

Status create(const rt_model* model, const rt_session_options* given, const char* default_entry,
              rt_session& made) {
  if (model == nullptr) return librt::invalid_argument("the model is null");
  rt_session_options c;
  RT_TRY(librt::api::take_in(given, c, "rt_session_options"));
  rt_allocator allocator;
  RT_TRY(librt::api::take_in(c.allocator, allocator, "rt_allocator"));
  rt_parallel parallel;
  RT_TRY(librt::api::take_in(c.parallel, parallel, "rt_parallel"));
  RT_TRY(check_hooks(c, allocator, parallel));
  if (c.arena != nullptr) allocator = librt::arena_allocator(c.arena, c.arena_bytes);
  librt::SessionOptions options{.backend = string(c.backend),
                                .device = string(c.device),
                                .entry = c.entry != nullptr ? c.entry : string(default_entry),
                                .precision = string(c.precision),
                                .prefer = string(c.prefer),
                                .threads = c.threads,
                                .strict = c.strict != 0,
                                .profile = c.profile != 0,
                                .validation = c.validation != 0,
                                .deterministic = c.deterministic != 0,
                                .no_replay = c.no_replay != 0,
                                .tuning = c.tuning != 0,
                                .tuning_ms = c.tuning_ms,
                                .memory_limit = c.memory_limit,
                                .plan_cache_bytes = c.plan_cache_bytes,
                                .loop_limit = c.loop_limit,
                                .time_limit_ms = c.time_limit_ms,
                                .cache_folder = string(c.cache_folder),
                                .communicator = c.communicator,
                                .cuda_stream = c.cuda_stream,
                                .log = {c.log, c.log_user, c.log_level},
                                .progress = {c.progress, c.progress_user},
                                .allocator = allocator,
                                .parallel = parallel,
                                .cpus = {c.cpus, c.cpus + c.cpu_count},
                                .priority = c.priority,
                                .mapped = model->mapped,
                                .packed_pool = pool_of(*model)};
  RT_TRY(take_custom(c, options.custom_operators));
  const bool states = c.share_states_with != nullptr;
  if (states && c.share_device_with != nullptr)
    return librt::invalid_argument(
        "share_device_with: share_states_with shares the device too; set one of them");
  rt_session* share = states ? c.share_states_with : c.share_device_with;
  if (share == nullptr) {
    RT_ASSIGN(made.session, librt::Session::create(model->graph, options));
    return {};
  }
  const SessionUse use(share);
  RT_TRY(use.status());
  librt::Session* const other = share->session.get();
  RT_ASSIGN(made.session, librt::Session::create(model->graph, options, states ? other : nullptr,
                                                 states ? nullptr : other));
  made.in_use = share->in_use;
  return {};
}

Status spec_at(const rt_session* session, size_t index, bool input, rt_tensor_spec* spec) {
  RT_TRY(check(session));
  const librt::Graph& graph = session->session->graph();
  const auto& ids = input ? graph.inputs : graph.outputs;
  if (index >= ids.size())
    return librt::invalid_argument(input ? "input " : "output ", index, ": the entry has ", ids.size());
  return librt::api::hand_out(librt::api::spec_of(graph, graph[ids[index]]), spec, "rt_tensor_spec");
}

Status find(const rt_session* session, const char* name, bool input, size_t* index) {
  RT_TRY(check(session));
  if (name == nullptr || index == nullptr) return librt::invalid_argument("a pointer is null");
  const librt::Graph& graph = session->session->graph();
  const auto& ids = input ? graph.inputs : graph.outputs;
  std::string names;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (graph[ids[i]].name == name) {
      *index = i;
      return {};
    }
    librt::append(names, names.empty() ? "" : ", ", graph[ids[i]].name);
  }
  return Status::make(librt::Code::NotFound, "no ", input ? "input" : "output", " '", name,
                      "'; the entry has ", names);
}

Status give_input(rt_session* session, size_t index, const rt_tensor* given, bool bind) {
  if (given == nullptr) return librt::invalid_argument("the tensor is null");
  rt_tensor tensor;
  RT_TRY(librt::api::take_in(given, tensor, "rt_tensor"));
  RT_ASSIGN(const librt::TensorInfo info, librt::api::info_of(tensor));
  if (tensor.memory != nullptr) {
    if (!bind)
      return librt::invalid_argument("input ", index,
                                     ": rt_session_set_input copies from host memory; use "
                                     "rt_session_bind_input for an rt_memory");
    RT_TRY(librt::api::check_memory_tensor(tensor, info.bytes()));
    return session->session->bind_input(index, info, tensor.memory->memory, tensor.offset);
  }
  const librt::ConstTensorView view{tensor.data, info};
  return bind ? session->session->bind_input(index, view, tensor.bytes)
              : session->session->set_input(index, view, tensor.bytes);
}

rt_status* null_trainer() noexcept {
  return guarded([]() -> Status { return librt::invalid_argument("the trainer is null"); });
}

/// A step, or its submit or wait, and the loss of the completed step if requested.
rt_status* advance(rt_trainer* trainer, float* loss, Status (librt::Session::*function)()) {
  if (trainer == nullptr) return null_trainer();
  return guarded(&trainer->session, [&]() -> Status {
    librt::Session& session = *trainer->session.session;
    if (loss != nullptr && !trainer->has_loss)
      return Status::make(librt::Code::NotFound, "entry '", session.graph().name,
                          "' has no f32 output 'loss'");
    RT_TRY((session.*function)());
    if (loss == nullptr) return {};
    RT_ASSIGN(const librt::TensorView view, session.output(trainer->loss));
    if (view.info.elements() != 1)
      return librt::invalid_model("output 'loss' is ", view.info, ", not a scalar");
    if (view.data == nullptr)
      return librt::invalid_argument(
          "output 'loss' is bound to device memory: pass NULL for the loss and read "
          "the memory, or unbind it");
    __builtin_memcpy(loss, view.data, sizeof *loss);
    return {};
  });
}

}  // namespace

extern "C" {

rt_status* rt_session_create(const rt_model* model, const rt_session_options* options, rt_session** session) {
  return guarded([&]() -> Status {
    if (session == nullptr) return librt::invalid_argument("rt_session_create: the pointer is null");
    *session = nullptr;
    auto made = std::make_unique<rt_session>();
    RT_TRY(create(model, options, nullptr, *made));
    *session = made.release();
    return {};
  });
}
void rt_session_free(rt_session* session) {
  delete session;
}

size_t rt_session_input_count(const rt_session* session) {
  return session != nullptr ? session->session->graph().inputs.size() : 0;
}
size_t rt_session_output_count(const rt_session* session) {
  return session != nullptr ? session->session->graph().outputs.size() : 0;
}
rt_status* rt_session_input_spec(const rt_session* session, size_t index, rt_tensor_spec* spec) {
  return guarded([&] { return spec_at(session, index, true, spec); });
}
rt_status* rt_session_output_spec(const rt_session* session, size_t index, rt_tensor_spec* spec) {
  return guarded([&] { return spec_at(session, index, false, spec); });
}
rt_status* rt_session_find_input(const rt_session* session, const char* name, size_t* index) {
  return guarded([&] { return find(session, name, true, index); });
}
rt_status* rt_session_find_output(const rt_session* session, const char* name, size_t* index) {
  return guarded([&] { return find(session, name, false, index); });
}

rt_status* rt_session_set_input(rt_session* session, size_t index, const rt_tensor* tensor) {
  return guarded(session, [&] { return give_input(session, index, tensor, false); });
}
rt_status* rt_session_bind_input(rt_session* session, size_t index, const rt_tensor* tensor) {
  return guarded(session, [&] { return give_input(session, index, tensor, true); });
}
rt_status* rt_session_bind_output(rt_session* session, size_t index, const rt_tensor* given) {
  return guarded(session, [&]() -> Status {
    if (given == nullptr) return session->session->bind_output(index, nullptr, 0);
    rt_tensor tensor;
    RT_TRY(librt::api::take_in(given, tensor, "rt_tensor"));
    const librt::Graph& graph = session->session->graph();
    if (index < graph.outputs.size() &&
        static_cast<librt::DType>(tensor.dtype) != graph[graph.outputs[index]].dtype)
      return librt::invalid_argument("output '", graph[graph.outputs[index]].name, "': expected ",
                                     librt::name_of(graph[graph.outputs[index]].dtype), ", found ",
                                     rt_dtype_name(tensor.dtype));
    if (tensor.memory == nullptr) return session->session->bind_output(index, tensor.data, tensor.bytes);
    RT_TRY(librt::api::check_memory_tensor(tensor, 0));
    const librt::Session::MemoryPtr& memory = tensor.memory->memory;
    const uint64_t rest = memory->bytes() - std::min<uint64_t>(tensor.offset, memory->bytes());
    return session->session->bind_output(index, tensor.bytes > 0 ? tensor.bytes : rest, memory,
                                         tensor.offset);
  });
}

rt_status* rt_session_prepare(rt_session* session, const rt_tensor* shapes, size_t count) {
  return guarded(session, [&]() -> Status {
    if (shapes == nullptr) return session->session->prepare();
    std::vector<librt::TensorInfo> infos;
    const auto* at = reinterpret_cast<const char*>(shapes);
    for (size_t i = 0; i < count; ++i, at += shapes->struct_size) {
      rt_tensor tensor;
      RT_TRY(librt::api::take_in(reinterpret_cast<const rt_tensor*>(at), tensor, "rt_tensor"));
      RT_ASSIGN(const librt::TensorInfo info, librt::api::info_of(tensor));
      infos.push_back(info);
    }
    return session->session->prepare_for(infos);
  });
}
rt_status* rt_session_run(rt_session* session) {
  return guarded(session, [&]() -> Status { return session->session->run(); });
}
rt_status* rt_session_submit(rt_session* session) {
  return guarded(session, [&]() -> Status { return session->session->submit(); });
}
rt_status* rt_session_wait(rt_session* session) {
  return guarded(session, [&]() -> Status { return session->session->wait(); });
}
void rt_session_cancel(rt_session* session) {
  if (session != nullptr) session->session->cancel();
}
void rt_session_uncancel(rt_session* session) {
  if (session != nullptr) session->session->uncancel();
}
rt_status* rt_session_output(rt_session* session, size_t index, rt_tensor* tensor) {
  return guarded(session, [&]() -> Status {
    RT_ASSIGN(const librt::TensorView view, session->session->output(index));
    rt_tensor out = RT_TENSOR_INIT;
    librt::api::fill(out, view.info, view.data);
    const librt::Session::ResultPlace& place = session->session->output_place(index);
    if (const auto memory = place.memory.lock(); memory != nullptr) {
      out.memory = static_cast<rt_memory*>(memory->handle());
      out.offset = place.offset;
    }
    return librt::api::hand_out(out, tensor, "rt_tensor");
  });
}

rt_status* rt_session_device(const rt_session* session, rt_device_info* info) {
  return guarded(session, [&]() -> Status {
    auto* owner = const_cast<rt_session*>(session);
    return librt::api::hand_out(
        librt::api::device_of(owner->session->devices().chosen().info(), owner->features), info,
        "rt_device_info");
  });
}
const char* rt_session_device_reason(const rt_session* session) {
  return session != nullptr ? session->session->device_reason().c_str() : "";
}
const char* rt_session_collectives(const rt_session* session, const char** reason) {
  if (reason != nullptr) *reason = "";
  if (session == nullptr) return "";
  const librt::DeviceInfo& info = session->session->devices().chosen().info();
  if (reason != nullptr) *reason = info.no_collectives.c_str();
  return info.collectives.c_str();
}
rt_status* rt_session_plan_text(rt_session* session, const char** text) {
  return guarded(session, [&]() -> Status {
    if (text == nullptr) return librt::invalid_argument("rt_session_plan_text: the pointer is null");
    session->plan_text = session->session->plan_text();
    *text = session->plan_text.c_str();
    return {};
  });
}
size_t rt_session_fallback_count(const rt_session* session) {
  const SessionUse use(session);
  size_t count = 0;
  if (use.ok())
    for (const librt::Plan* plan : session->session->plans()) count += plan->program().fallbacks;
  return count;
}

rt_status* rt_session_memory(const rt_session* session, rt_memory_stats* stats) {
  return guarded(session, [&]() -> Status {
    const librt::MemoryStats m = session->session->memory();
    const rt_memory_stats out{sizeof(rt_memory_stats), m.states, m.weights, m.packed, m.arena,
                              m.peak_planned,          m.naive,  m.staging, m.plans};
    return librt::api::hand_out(out, stats, "rt_memory_stats");
  });
}

size_t rt_session_profile_count(const rt_session* session) {
  const SessionUse use(session);
  return use.ok() ? session->session->profile().size() : 0;
}
rt_status* rt_session_profile(const rt_session* session, size_t index, rt_profile_entry* entry) {
  return guarded(session, [&]() -> Status {
    const std::vector<librt::Executor::Timing>& timings = session->session->profile();
    if (index >= timings.size())
      return librt::invalid_argument(
          "profile entry ", index, ": there are ", timings.size(),
          session->session->options().profile ? "" : "; create the session with profile = 1");
    const librt::Executor::Timing& timing = timings[index];
    rt_profile_entry out = RT_PROFILE_ENTRY_INIT;
    out.nanoseconds = timing.nanoseconds;
    if (timing.plan == nullptr) {
      out.name = timing.node->name.c_str();
      out.op = librt::name_of(timing.node->kind()).data();
      out.kernel = "";
      out.device = "host";
      return librt::api::hand_out(out, entry, "rt_profile_entry");
    }
    if (timing.transfer != nullptr) {
      out.name = timing.transfer;
      out.op = "Transfer";
      out.kernel = "";
      out.device = session->session->devices().entry(librt::DeviceSet::kChosen).backend.c_str();
      return librt::api::hand_out(out, entry, "rt_profile_entry");
    }
    const librt::Step& step = timing.plan->program().steps[timing.step];
    out.name = step.name.c_str();
    switch (step.kind) {
      case librt::StepKind::Kernel: out.op = librt::name_of(step.node->kind()).data(); break;
      case librt::StepKind::Reorder: out.op = "Reorder"; break;
      case librt::StepKind::Copy: out.op = "Copy"; break;
      case librt::StepKind::Transfer: out.op = "Transfer"; break;
    }
    out.kernel = step.row != nullptr ? step.row->name : "";
    out.device = session->session->devices().entry(step.device).backend.c_str();
    out.flops = step.cost.flops;
    out.bytes = step.cost.bytes;
    out.live_bytes = timing.live_bytes;
    out.scratch_bytes = step.needs.scratch;
    return librt::api::hand_out(out, entry, "rt_profile_entry");
  });
}
uint64_t rt_session_profile_runs(const rt_session* session) {
  const SessionUse use(session);
  uint64_t runs = 0;
  if (use.ok())
    for (const librt::Executor::Timing& timing : session->session->profile())
      runs = std::max(runs, timing.runs);
  return runs;
}
rt_status* rt_session_profile_reset(rt_session* session) {
  return guarded(session, [&]() -> Status {
    session->session->reset_profile();
    return {};
  });
}

// --- training

rt_status* rt_trainer_create(const rt_model* model, const rt_session_options* options, rt_trainer** trainer) {
  return guarded([&]() -> Status {
    if (trainer == nullptr) return librt::invalid_argument("rt_trainer_create: the pointer is null");
    *trainer = nullptr;
    auto made = std::make_unique<rt_trainer>();
    RT_TRY(create(model, options, "train_step", made->session));
    const librt::Graph& graph = made->session.session->graph();
    const auto scalar_f32 = [](const librt::Value& value) {
      return value.dtype == librt::DType::F32 && value.is_static() && value.info().elements() == 1;
    };
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      if (graph[graph.inputs[i]].name == "learning_rate" && scalar_f32(graph[graph.inputs[i]])) {
        made->learning_rate = i;
        made->has_learning_rate = true;
      }
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      if (graph[graph.outputs[i]].name == "loss" && graph[graph.outputs[i]].dtype == librt::DType::F32) {
        made->loss = i;
        made->has_loss = true;
      }
    *trainer = made.release();
    return {};
  });
}
void rt_trainer_free(rt_trainer* trainer) {
  delete trainer;
}
rt_session* rt_trainer_session(rt_trainer* trainer) {
  return trainer != nullptr ? &trainer->session : nullptr;
}

rt_status* rt_trainer_set_learning_rate(rt_trainer* trainer, float learning_rate) {
  if (trainer == nullptr) return null_trainer();
  return guarded(&trainer->session, [&]() -> Status {
    librt::Session& session = *trainer->session.session;
    if (!trainer->has_learning_rate)
      return Status::make(librt::Code::NotFound, "entry '", session.graph().name,
                          "' has no scalar f32 input 'learning_rate'");
    const librt::Value& value = session.graph()[session.graph().inputs[trainer->learning_rate]];
    return session.set_input(trainer->learning_rate, {&learning_rate, value.info()}, sizeof learning_rate);
  });
}

rt_status* rt_trainer_step(rt_trainer* trainer, float* loss) {
  return advance(trainer, loss, &librt::Session::run);
}
rt_status* rt_trainer_submit(rt_trainer* trainer) {
  return advance(trainer, nullptr, &librt::Session::submit);
}
rt_status* rt_trainer_wait(rt_trainer* trainer, float* loss) {
  return advance(trainer, loss, &librt::Session::wait);
}

rt_status* rt_trainer_open(rt_trainer* trainer, const char* entry, rt_session** session) {
  if (trainer == nullptr) return null_trainer();
  return guarded(&trainer->session, [&]() -> Status {
    if (session == nullptr) return librt::invalid_argument("rt_trainer_open: the pointer is null");
    *session = nullptr;
    librt::Session& training = *trainer->session.session;
    librt::SessionOptions options = training.options().for_same_device();
    options.entry = entry != nullptr ? entry : "infer";
    auto made = std::make_unique<rt_session>();
    made->in_use = trainer->session.in_use;
    RT_ASSIGN(made->session, librt::Session::create(training.shared_model(), options, &training));
    *session = made.release();
    return {};
  });
}

}  // extern "C"
