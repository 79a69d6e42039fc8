#include "runtime/session/run/runner.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/host_memory.h"
#include "runtime/session/memory/storage.h"
#include "runtime/session/memory/verify_data.h"
#include "runtime/session/prepare/shapes.h"

namespace librt {

namespace {

constexpr uint64_t kPlanCacheBytes = 256u << 20;
constexpr size_t kMostPlans = 64;  ///< per graph

}  // namespace

// --- Workspace

uint64_t Workspace::held() const noexcept {
  const uint64_t bytes =
      states->bytes() + constants.allocated_bytes() + packed.allocated_bytes() + plans.on_devices;
  const uint64_t host = host_bytes + plans.tables;
  return bytes + (host > MemoryLimit::kSmall ? host : 0);
}

uint64_t Workspace::arena_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const BlockPtr& arena : arenas) bytes += arena != nullptr ? arena->size() : 0;
  return bytes;
}

Status Workspace::check_host(uint64_t more) const noexcept {
  const uint64_t host = host_bytes + plans.tables;
  if (host + more <= MemoryLimit::kSmall) return {};
  uint64_t on_host = host;
  for (size_t space = 0; space < arenas.size(); ++space)
    if (arenas[space] != nullptr && devices->kind(space) == SpaceKind::Host) on_host += arenas[space]->size();
  RT_TRY(MemoryLimit::check_machine(more, host_memory_bytes()));  // so that the sums do not overflow
  RT_TRY(MemoryLimit::check_machine(on_host + more, host_memory_bytes()));
  // Small values count from the first one that exceeds what is free.
  return limit.check(held() + arena_bytes(), more + (host > MemoryLimit::kSmall ? 0 : host));
}

Status Workspace::take(AlignedBytes& bytes, size_t size, bool keep) noexcept {
  if (size <= bytes.capacity() && bytes.data() != nullptr) return {};
  RT_TRY(check_host(size));
  const size_t before = bytes.capacity();
  RT_TRY(keep ? bytes.grow(size, allocator) : bytes.reserve(size, allocator));
  host_bytes += bytes.capacity() - before;
  return {};
}

Status Workspace::check_limit(const Graph& graph, const Plan& plan, uint64_t fresh) {
  const std::vector<uint64_t>& planned = plan.program().arena_bytes;
  uint64_t working = 0;
  for (size_t space = 0; space < planned.size(); ++space) {
    const uint64_t memory = devices->kind(space) == SpaceKind::Host
                                ? host_memory_bytes()
                                : devices->owner(space).info().memory_bytes;
    RT_TRY(MemoryLimit::check_machine(planned[space], memory).in("entry '", graph.name, "' at these shapes"));
    const uint64_t have = space < arenas.size() && arenas[space] != nullptr ? arenas[space]->size() : 0;
    working += std::max(have, planned[space]);
  }
  const uint64_t kept = held(), needed = working + fresh + kept, memory_limit = limit.bytes();
  if (memory_limit == 0 || needed <= memory_limit) return {};
  return Status::make(Code::OutOfMemory, "entry '", graph.name, "' at these shapes needs ",
                      bytes_text(needed), " on ", devices->chosen().info().name, " (working memory ",
                      bytes_text(working), ", weights, states and values on the host ",
                      bytes_text(fresh + kept), "), the memory limit is ", bytes_text(memory_limit),
                      "; use smaller shapes or a higher limit");
}

Status Workspace::grow_arenas(const Plan& plan) {
  if (arenas.size() < devices->space_count()) arenas.resize(devices->space_count());
  for (size_t space = 0; space < arenas.size(); ++space) {
    const std::vector<uint64_t>& planned = plan.program().arena_bytes;
    const uint64_t needed = std::max<uint64_t>(space < planned.size() ? planned[space] : 0, kHostAlignment);
    if (arenas[space] != nullptr && arenas[space]->size() >= needed) continue;
    // Other plans refer to the old arena: they are re-recorded at their next use.
    for (Plan* other : recorded) {
      other->forget_recording();
      other->recorded_as = Plan::kNowhere;
    }
    recorded.clear();
    arenas[space].reset();
    auto grown = Block::allocate(devices->owner(static_cast<uint8_t>(space)), needed);
    if (!grown.ok()) {
      // The arena stays empty: the next attempt allocates again.
      return std::move(grown).status().in("working memory of ", bytes_text(needed));
    }
    arenas[space] = std::move(grown).value();
  }
  return {};
}

void Workspace::evict(GraphRunner& newest) {
  const uint64_t most = plan_cache_bytes > 0 ? plan_cache_bytes : kPlanCacheBytes;
  while (newest.plans_.size() > kMostPlans) newest.drop_oldest();
  while (plans.footprint > most && !uses.empty()) {
    GraphRunner* oldest = uses.front();
    if (oldest->plans_.front().get() == newest.current_) return;
    oldest->drop_oldest();
  }
}

void Workspace::note_recording(Plan& plan) {
  if (plan.recorded_as != Plan::kNowhere) return;
  recorded.push_back(&plan);
  plan.recorded_as = recorded.size() - 1;
}

void Workspace::forget(Plan& plan) noexcept {
  uses.erase(plan.use);
  if (plan.recorded_as == Plan::kNowhere) return;
  recorded[plan.recorded_as] = recorded.back();
  recorded[plan.recorded_as]->recorded_as = plan.recorded_as;
  recorded.pop_back();
}

// --- GraphRunner

GraphRunner::GraphRunner(Workspace& workspace, const Graph& graph)
    : shared_(workspace),
      graph_(graph),
      shape_inputs_(shape_inputs(graph)),
      position_(workspace.runners.size()) {
  shared_.runners.push_back(this);
}

GraphRunner::~GraphRunner() {
  GraphRunner* last = shared_.runners.back();
  shared_.runners[position_] = last;
  last->position_ = position_;
  shared_.runners.pop_back();
  for (const auto& plan : plans_) shared_.forget(*plan);
  count_bytes(PlanBytes{});
}

PlanBytes GraphRunner::bytes_of_plans() const noexcept {
  PlanBytes bytes{.on_devices = own_bytes() + exchanged_bytes()};
  for (const auto& plan : plans_) {
    bytes.tables += to_bytes(plan->program().total.tables);
    bytes.footprint += plan->footprint();
  }
  return bytes;
}

void GraphRunner::count_bytes(const PlanBytes& bytes) noexcept {
  shared_.plans.on_devices += bytes.on_devices - counted_.on_devices;
  shared_.plans.tables += bytes.tables - counted_.tables;
  shared_.plans.footprint += bytes.footprint - counted_.footprint;
  counted_ = bytes;
}

size_t GraphRunner::own_bytes() const noexcept {
  size_t bytes = PlanConstants::allocated_bytes(slabs_);
  for (const auto& plan : plans_) bytes += plan->own_bytes();
  return bytes;
}

bool GraphRunner::reads_while_planning() const noexcept {
  return std::ranges::find(shape_inputs_, true) != shape_inputs_.end();
}

bool GraphRunner::fits(const Plan& plan, std::span<const ConstTensorView> inputs) const noexcept {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(plan.inputs[i] == inputs[i].info)) return false;
    if (shape_inputs_[i] && inputs[i].info.bytes() > 0 &&
        (inputs[i].data == nullptr ||
         std::memcmp(plan.values[i].data(), inputs[i].data, plan.values[i].size()) != 0))
      return false;
  }
  return true;
}

bool GraphRunner::is_prepared(std::span<const ConstTensorView> inputs) const noexcept {
  return current_ != nullptr && current_->recorded() && fits(*current_, inputs);
}

Status GraphRunner::prepare(std::span<const ConstTensorView> inputs) {
  if (is_prepared(inputs)) {
    shared_.note_use(*current_);
    return {};
  }
  bool built = false;
  const auto found = std::ranges::find_if(plans_, [&](const auto& plan) { return fits(*plan, inputs); });
  if (found != plans_.end()) {
    std::rotate(found, found + 1, plans_.end());
    current_ = plans_.back().get();
  } else {
    current_ = nullptr;
    RT_TRY(build_plan(inputs));
    built = true;
  }
  shared_.note_use(*current_);
  PlanContext context = shared_.context();
  Status status = load_constants();
  if (status.ok() && !current_->recorded()) {
    status = shared_.grow_arenas(*current_);
    if (status.ok()) shared_.note_recording(*current_);
    if (status.ok()) status = current_->record(context);
  }
  if (status.ok() && built) {
    if (shared_.log.listens(RT_LOG_DEBUG))
      shared_.log.say(RT_LOG_DEBUG,
                      text("a plan of '", graph_.name, "': ", current_->program().steps.size(), " steps"));
    status = shared_.stop.report(RT_STAGE_READY, 1, 1);
  }
  if (!status.ok()) current_ = nullptr;
  return status;
}

Status GraphRunner::load_constants() {
  if (current_->allocates_constants())
    for (const auto& plan : plans_) plan->forget_recording();
  Status status = current_->load_constants().in("constants computed for these shapes");
  count_bytes();
  return status;
}

void Workspace::discard_constants(const Graph& graph) noexcept {
  for (ConvertedConstant* constant : converted.filled) {
    if (!constant->filled || constants.reads_host(constant->bytes.data())) continue;
    constant->bytes.discard();
    constant->filled = false;
  }
  converted.filled.clear();
  for (const Value& value : graph.values) {
    const std::byte* data = value.data.data;
    if (is_within(mapped, data) && !constants.reads_host(data)) discard_pages(data, value.data.size);
  }
}

Status GraphRunner::build_plan(std::span<const ConstTensorView> inputs) {
  std::vector<TensorInfo> infos;
  for (const ConstTensorView& input : inputs) infos.push_back(input.info);
  RT_TRY(check_inputs(graph_, infos));
  std::vector<const std::byte*> values(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!shape_inputs_[i]) continue;
    if (inputs[i].data == nullptr)
      return invalid_argument("input '", graph_[graph_.inputs[i]].name,
                              "' determines shapes: set it before planning");
    values[i] = static_cast<const std::byte*>(inputs[i].data);
  }
  RT_TRY(verify_data(shared_.model->checks.get(), graph_, *shared_.devices));
  const uint64_t held = shared_.held();
  shared_.kernel_tuner.begin_plan(shared_.limit.left(held), &shared_.stop);
  RT_ASSIGN(std::unique_ptr<Program> program, legalize({.graph = graph_,
                                                        .states = shared_.model->states,
                                                        .devices = *shared_.devices,
                                                        .inputs = infos,
                                                        .values = values,
                                                        .folded = shared_.folded,
                                                        .converted = shared_.converted,
                                                        .kernel_tuner = shared_.kernel_tuner,
                                                        .strict = shared_.strict,
                                                        .precision = shared_.precision,
                                                        .mapped = shared_.mapped,
                                                        .limit = shared_.limit,
                                                        .held = held,
                                                        .stop = &shared_.stop,
                                                        .log = shared_.log}));
  shared_.kernel_tuner.save();
  assign_storage(*shared_.devices, *program);
  auto plan = std::make_unique<Plan>(std::move(program), slabs_);
  plan->inputs = std::move(infos);
  plan->values.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (values[i] != nullptr) plan->values[i].assign(values[i], values[i] + inputs[i].info.bytes());
  PlanContext context = shared_.context();
  // Registrations in the shared stores refer to this plan's kernels: they must not outlive a failure or
  // bad_alloc.
  struct Booking {
    Plan& plan;
    PlanContext& context;
    bool kept = false;
    ~Booking() {
      if (!kept) plan.abandon(context);
    }
  } booking{*plan, context};
  plan->book(context);
  RT_TRY(shared_.check_limit(graph_, *plan, plan->new_bytes(context)));
  RT_TRY(plan->commit(context));
  plans_.reserve(plans_.size() + 1);
  plan->use = shared_.uses.insert(shared_.uses.end(), this);
  booking.kept = true;
  shared_.discard_constants(graph_);
  plans_.push_back(std::move(plan));
  current_ = plans_.back().get();
  count_bytes();
  shared_.evict(*this);
  return {};
}

void GraphRunner::drop_oldest() noexcept {
  if (plans_.front().get() == current_) current_ = nullptr;
  shared_.forget(*plans_.front());
  plans_.erase(plans_.begin());
  count_bytes();
}

Status GraphRunner::run(std::span<const HostRange> inputs, std::span<const HostRange> outputs) {
  PlanContext context = shared_.context();
  return current_->run(context, inputs, outputs);
}

Result<void*> GraphRunner::deliver(size_t k, std::span<const HostRange> outputs, void* target, bool borrow) {
  const Program& program = current_->program();
  const PlanValue& value = output(k);
  const PlanValue& root = program.values[root_of(program, program.outputs[k])];
  if (value.bytes == 0) return target;
  const void* source = nullptr;
  if (root.source == ValueSource::Constant) {
    source = root.host;
  } else if (const MemoryLocation location = current_->output_location(shared_.context(), k);
             location.block != nullptr) {
    if (location.block->host() == nullptr) {
      RT_TRY(current_->download(shared_.context(), location, {static_cast<std::byte*>(target), value.bytes}));
      return target;
    }
    source = location.block->host() + location.offset;
    if (borrow && location.block == shared_.arenas[0].get()) return const_cast<void*>(source);
  } else {
    source = outputs[program.storages[root.storage].index].data;
  }
  if (source != target) std::memcpy(target, source, value.bytes);
  return target;
}

bool GraphRunner::is_asynchronous() const noexcept {
  return current_->is_asynchronous(shared_.context());
}

Status GraphRunner::submit(size_t run_slot, std::span<const HostRange> inputs) {
  PlanContext context = shared_.context();
  if (!current_->has_exchange(run_slot))
    RT_TRY(shared_.check_limit(graph_, *current_, current_->exchange_bytes(context))
               .in("a second run in flight"));
  const bool had = current_->has_exchange(run_slot);
  Status status = current_->submit(context, run_slot, inputs);
  if (!had) count_bytes();
  return status;
}

Status GraphRunner::receive(size_t run_slot, size_t k, void* target) const {
  const Program& program = current_->program();
  const PlanValue& root = program.values[root_of(program, program.outputs[k])];
  const size_t bytes = output(k).bytes;
  if (bytes == 0) return {};
  if (root.source != ValueSource::Constant) return current_->receive(run_slot, k, target);
  std::memcpy(target, root.host, bytes);
  return {};
}

size_t GraphRunner::exchanged_bytes() const noexcept {
  size_t bytes = 0;
  for (const auto& plan : plans_) bytes += plan->exchanged_bytes();
  return bytes;
}

void GraphRunner::reset_profile() noexcept {
  for (const auto& plan : plans_) plan->reset_profile();
}

}  // namespace librt
