#include "runtime/session/run/plan.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/session/prepare/cost_model.h"
#include "runtime/session/run/clock.h"
#include "runtime/session/run/slot_table.h"

namespace librt {

void Plan::book(PlanContext& context) {
  packed_is_own_.assign(program_->steps.size(), false);
  for (size_t s = 0; s < program_->steps.size(); ++s) {
    Step& step = program_->steps[s];
    Device& device = context.devices.device(step.device);
    const uint32_t unbound = unbound_inputs(step);
    PackedStore::Request pack{.key = {&device,
                                      step.row,
                                      step.needs.packed_key,
                                      static_cast<size_t>(step.needs.packed),  // checked: insert_copies
                                      {}},
                              .device = &device,
                              .kernel = step.kernel.get(),
                              .shared = true};
    bool stable = true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] == kNone) continue;
      const PlanValue& value = program_->values[root_of(*program_, step.inputs[i])];
      if (value.source != ValueSource::Constant) continue;
      pack.key.constants.push_back(value.origin != nullptr ? value.origin : value.host);
      // The same bytes may be constants of several types and shapes: converted, reshaped.
      const std::span<const int64_t> dims = value.info.shape.dims();
      if (pack.key.packed_key != 0)
        pack.key.packed_key = hash_bytes(dims.data(), dims.size_bytes(),
                                         pack.key.packed_key + static_cast<uint64_t>(value.info.dtype));
      pack.shared = pack.shared && value.origin != nullptr;
      if (is_within(context.mapped, value.host)) pack.mapped.push_back({value.host, value.bytes});
      stable = stable && value.stable;
      // A transfer's constant is read by the host; any other is needed on the device that reads it.
      if (i < 32 && ((unbound >> i) & 1u) != 0) continue;
      if (value.stable)
        context.constants.want(device, value.host, value.bytes);
      else
        own_constants_.want(device, value.host, value.bytes);
    }
    if (step.needs.packed == 0) continue;
    packed_is_own_[s] = !stable || step.needs.packed_key == 0;
    step.packed =
        static_cast<uint32_t>((packed_is_own_[s] ? own_packed_ : context.packed).want(std::move(pack)));
  }
}

uint64_t Plan::new_bytes(const PlanContext& context) const noexcept {
  return context.constants.wanted_bytes() + context.packed.wanted_bytes() + own_constants_.missing_bytes() +
         own_packed_.wanted_bytes();
}

void Plan::abandon(PlanContext& context) noexcept {
  context.constants.abandon();
  context.packed.abandon();
}

Status Plan::commit(PlanContext& context) {
  size_t done = 0;
  const size_t total = context.packed.wanted_count() + own_packed_.wanted_count();
  RT_TRY(context.packed.commit(*context.stop, done, total));
  RT_TRY(own_packed_.commit(*context.stop, done, total));
  RT_TRY(context.constants.commit());
  return own_constants_.commit();
}

MemoryLocation Plan::arena_location(const PlanContext& context, const Storage& storage) const noexcept {
  return {context.arenas[storage.space].get(), storage.offset};
}

Result<BufferRef> Plan::ref(PlanContext& context, SlotTable& slots, Ref id, uint32_t device) const {
  const PlanValue& value = program_->values[id];
  const PlanValue& root = program_->values[root_of(*program_, id)];
  const size_t offset = offset_of(*program_, id);
  MemoryLocation location;
  if (value.bytes == 0) {
    location = {context.arenas[context.devices.entry(device).space].get(), 0};
  } else if (const External external = external_of(context, root_of(*program_, id));
             external.block != nullptr) {
    if (external.bytes < offset + value.bytes)
      return invalid_argument("'", value.name, "': ", value.info, " takes ", value.bytes,
                              " bytes, the bound memory has ", external.bytes);
    location = {external.block, external.offset};
  } else if (root.source == ValueSource::Constant) {
    Device& reader = context.devices.device(device);
    location =
        root.stable ? context.constants.find(reader, root.host) : own_constants_.find(reader, root.host);
  } else {
    const Storage& storage = program_->storages[root.storage];
    switch (storage.pin) {
      case Storage::Pin::None: location = arena_location(context, storage); break;
      case Storage::Pin::State:
        location = {context.states.block(), context.states.offset(storage.index)};
        break;
      case Storage::Pin::Input: return BufferRef{slots.slot(false, storage.index), offset, value.bytes};
      case Storage::Pin::Output: return BufferRef{slots.slot(true, storage.index), offset, value.bytes};
    }
  }
  if (location.block == nullptr) return internal_error("value '", value.name, "' has no memory");
  RT_ASSIGN(const uint32_t slot, slots.slot(*location.block));
  return BufferRef{slot, location.offset + offset, value.bytes};
}

bool Plan::records_anew(const PlanContext& context, uint32_t device) noexcept {
  return !context.replay && context.devices.entry(device).device->info().replays == Replays::CommandBuffer;
}

Status Plan::record_stage(PlanContext& context, const Stage& stage, Recording& recording) const {
  struct Bound {
    std::vector<BufferRef> inputs, outputs;
    BufferRef scratch, packed;
  };
  Device& device = context.devices.device(stage.device);
  SlotTable slots(device, recording);
  std::vector<Bound> bound(stage.last - stage.first);
  for (uint32_t s = stage.first; s < stage.last; ++s) {
    const Step& step = program_->steps[s];
    Bound& refs = bound[s - stage.first];
    const uint32_t unbound = unbound_inputs(step);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      refs.inputs.emplace_back();
      if (step.inputs[i] == kNone || (i < 32 && ((unbound >> i) & 1u) != 0)) continue;
      RT_ASSIGN(refs.inputs.back(), ref(context, slots, step.inputs[i], stage.device));
    }
    for (const Ref output : step.outputs) {
      refs.outputs.emplace_back();
      RT_ASSIGN(refs.outputs.back(), ref(context, slots, output, stage.device));
    }
    if (step.scratch != kNone) {
      const MemoryLocation location = arena_location(context, program_->storages[step.scratch]);
      RT_ASSIGN(refs.scratch.slot, slots.slot(*location.block));
      refs.scratch.offset = location.offset;
      refs.scratch.bytes = step.needs.scratch;
    }
    if (step.needs.packed > 0) {
      const MemoryLocation location = (packed_is_own_[s] ? own_packed_ : context.packed).find(step.packed);
      RT_ASSIGN(refs.packed.slot, slots.slot(*location.block));
      refs.packed.offset = location.offset;
      refs.packed.bytes = step.needs.packed;
    }
  }
  std::vector<const char*> names(context.profile ? stage.last - stage.first : 0);
  for (size_t i = 0; i < names.size(); ++i) names[i] = program_->steps[stage.first + i].name.c_str();
  std::vector<float> seconds;
  if (device.info().wants_estimates)
    seconds = step_seconds(*program_, stage.first, stage.last, context.devices.entry(stage.device).profile);
  RT_ASSIGN(
      recording.commands,
      device.begin({.slots = recording.slots,
                    .spans = stage.last - stage.first,
                    .span_seconds = seconds,
                    .profile = context.profile,
                    .replay = context.replay,
                    .span_names = names,
                    .stop = context.stop,
                    .stoppable = stage.first > first_state_step_ ? 0 : first_state_step_ - stage.first + 1}));
  for (uint32_t s = stage.first; s < stage.last; ++s) {
    const Step& step = program_->steps[s];
    const Bound& refs = bound[s - stage.first];
    RT_TRY(recording.commands->mark(s - stage.first));
    Status status = step.kernel == nullptr
                        ? recording.commands->copy(refs.outputs[0], refs.inputs[0])
                        : step.kernel->record(*recording.commands,
                                              {refs.inputs, refs.outputs, refs.scratch, refs.packed});
    if (!status.ok()) return std::move(status).in("recording '", step.name, "'");
  }
  return recording.commands->finish();
}

void Plan::forget_recording() noexcept {
  stages_.clear();
  for (Exchange& exchange : exchanges_) exchange.forget_recording();
  recorded_ = false;
}

void Plan::find_first_state_step() noexcept {
  const auto count = static_cast<uint32_t>(program_->steps.size());
  const auto is_state = [&](Ref output) {
    const PlanValue& value = program_->values[output];
    return value.storage != kNone && program_->storages[value.storage].pin == Storage::Pin::State;
  };
  for (first_state_step_ = 0; first_state_step_ < count; ++first_state_step_) {
    const std::vector<Ref>& outputs = program_->steps[first_state_step_].outputs;
    if (std::ranges::any_of(outputs, is_state)) return;
  }
}

Status Plan::record(PlanContext& context) {
  forget_recording();
  find_first_state_step();
  output_roots_.clear();
  for (const Ref output : program_->outputs) output_roots_.push_back(root_of(*program_, output));
  const auto count = static_cast<uint32_t>(program_->steps.size());
  for (uint32_t s = 0; s < count;) {
    const Step& step = program_->steps[s];
    const bool transfer = step.kind == StepKind::Transfer;
    Stage stage{.kind = transfer ? Stage::Kind::Transfer : Stage::Kind::Steps,
                .device = step.device,
                .first = s,
                .last = s + 1};
    while (!transfer && stage.last < count && program_->steps[stage.last].kind != StepKind::Transfer &&
           program_->steps[stage.last].device == step.device)
      ++stage.last;
    s = stage.last;
    if (!transfer) find_ports(context, stage);
    stages_.push_back(std::move(stage));
  }
  stages_.push_back({.kind = Stage::Kind::Copies, .first = count, .last = count});
  find_ports(context, stages_.back());
  if (stages_.back().ports.empty()) stages_.pop_back();
  if (context.profile && nanoseconds_.size() != count) nanoseconds_.assign(count, 0);
  RT_TRY(select_recordings(context));
  recorded_ = true;
  return {};
}

/// Between a device's memory and host memory: one side is addressable by the host.
Status Plan::transfer(PlanContext& context, const Step& step, std::span<const HostRange> input_ranges,
                      std::span<const HostRange> output_ranges) const {
  const PlanValue& source = program_->values[root_of(*program_, step.inputs[0])];
  const PlanValue& target = program_->values[step.outputs[0]];
  const auto location = [&](const PlanValue& value) -> MemoryLocation {
    const auto root = static_cast<Ref>(&value - program_->values.data());
    if (const External external = external_of(context, root); external.block != nullptr)
      return {external.block, external.offset};
    const Storage& storage = program_->storages[value.storage];
    if (storage.pin == Storage::Pin::State)
      return {context.states.block(), context.states.offset(storage.index)};
    return arena_location(context, storage);
  };
  const auto host = [&](const PlanValue& value) -> std::byte* {
    const Storage& storage = program_->storages[value.storage];
    if (storage.pin == Storage::Pin::Input) return static_cast<std::byte*>(input_ranges[storage.index].data);
    if (storage.pin == Storage::Pin::Output)
      return static_cast<std::byte*>(output_ranges[storage.index].data);
    const MemoryLocation in_arena = arena_location(context, storage);
    return in_arena.block->host() + in_arena.offset;
  };
  if (context.devices.kind(source.space) == SpaceKind::Host) {
    const MemoryLocation to = location(target);
    return to.block->upload(to.offset, {host(source), target.bytes});
  }
  const MemoryLocation from = location(source);
  return from.block->download(from.offset, {host(target), target.bytes});
}

Status Plan::run(PlanContext& context, std::span<const HostRange> input_ranges,
                 std::span<const HostRange> output_ranges) {
  RT_TRY(select_recordings(context));
  const ProfileClock::time_point began = context.profile ? ProfileClock::now() : ProfileClock::time_point();
  for (const Ref input : program_->inputs_used) {
    const PlanValue& value = program_->values[input];
    if (external_of(context, input).block != nullptr) continue;
    const MemoryLocation location = arena_location(context, program_->storages[value.storage]);
    const auto* data = static_cast<const std::byte*>(input_ranges[value.index].data);
    RT_TRY(location.block->upload(location.offset, {data, value.bytes}));
  }
  if (context.profile && !program_->inputs_used.empty()) transfer_times_.inputs += nanoseconds_since(began);
  for (Stage& stage : stages_) {
    if (stage.kind == Stage::Kind::Copies && !has_copies(context)) continue;
    if (stage.first <= first_state_step_) RT_TRY(context.stop->check());
    if (stage.kind == Stage::Kind::Transfer) {
      const auto start = ProfileClock::now();
      RT_TRY(transfer(context, program_->steps[stage.first], input_ranges, output_ranges));
      if (context.profile) nanoseconds_[stage.first] += nanoseconds_since(start);
      continue;
    }
    if (stage.recordings.front().submitted && records_anew(context, stage.device)) {
      stage.recordings.erase(stage.recordings.begin());
      RT_TRY(select_recording(context, stage));
    }
    Recording& recording = stage.recordings.front();
    recording.submitted = true;
    for (Binding& binding : recording.bindings) {
      const HostRange& range = (binding.output ? output_ranges : input_ranges)[binding.index];
      if (range.data == binding.bound) continue;
      RT_TRY(recording.commands->bind_host(binding.slot, range.data, range.bytes));
      binding.bound = range.data;
    }
    RT_TRY(recording.commands->submit());
    RT_TRY(recording.commands->wait());
    if (context.profile && stage.kind == Stage::Kind::Steps)
      RT_TRY(recording.commands->timings(
          std::span(nanoseconds_).subspan(stage.first, stage.last - stage.first)));
  }
  ++profiled_runs_;
  return {};
}

Status Plan::download(const PlanContext& context, const MemoryLocation& location,
                      std::span<std::byte> bytes) {
  const ProfileClock::time_point start = context.profile ? ProfileClock::now() : ProfileClock::time_point();
  RT_TRY(location.block->download(location.offset, bytes));
  if (context.profile) transfer_times_.outputs += nanoseconds_since(start);
  return {};
}

bool Plan::is_asynchronous(const PlanContext& context) const noexcept {
  const DeviceInfo& device = context.devices.entry(DeviceSet::kChosen).device->info();
  if (!device.asynchronous || device.host_memory || context.profile ||
      records_anew(context, DeviceSet::kChosen))
    return false;
  for (const Stage& stage : stages_)
    if (stage.kind == Stage::Kind::Transfer || stage.device != DeviceSet::kChosen ||
        (!stage.recordings.empty() && !stage.recordings.front().bindings.empty()))
      return false;
  for (size_t k = 0; k < program_->outputs.size(); ++k) {
    const PlanValue& root = program_->values[output_roots_[k]];
    if (root.source == ValueSource::Constant || root.bytes == 0) continue;
    if (output_location(context, k).block == nullptr) return false;
  }
  return true;
}

std::vector<Exchange::Range> Plan::arriving(const PlanContext& context) const {
  std::vector<Exchange::Range> ranges;
  for (const Ref input : program_->inputs_used) {
    const PlanValue& value = program_->values[input];
    const bool external = external_of(context, input).block != nullptr;
    ranges.push_back(external
                         ? Exchange::Range{}
                         : Exchange::Range{program_->storages[value.storage].offset, value.bytes, nullptr});
  }
  return ranges;
}

std::vector<Exchange::Range> Plan::leaving(const PlanContext& context) const {
  std::vector<Exchange::Range> ranges;
  for (size_t k = 0; k < program_->outputs.size(); ++k) {
    const MemoryLocation location = output_location(context, k);
    const size_t bytes = program_->values[program_->outputs[k]].bytes;
    const bool external = external_at(context, {true, static_cast<uint32_t>(k)}).block != nullptr;
    ranges.emplace_back();
    if (location.block == nullptr || external) continue;
    ranges.back() = {location.offset, bytes, nullptr};
    if (is_elsewhere(context, k)) ranges.back().slab = &location.block->slab();
  }
  return ranges;
}

uint64_t Plan::exchange_bytes(const PlanContext& context) const {
  PlanContext all = context;  // the most that a run may need
  all.external_inputs = all.external_outputs = {};
  return Exchange::bytes_of(arriving(all), leaving(all), context.devices.alignment());
}

/// The copies to and from the arena depend on what is in external memory.
Status Plan::record_exchange(PlanContext& context, size_t run_slot) {
  std::vector<bool>& exchanged = exchanged_[run_slot];
  bool same = exchanges_[run_slot].is_recorded();
  const size_t arrive = program_->inputs_used.size(), leave = program_->outputs.size();
  exchanged.resize(arrive + leave);
  const auto note = [&](size_t at, bool in_exchange) {
    same = same && exchanged[at] == in_exchange;
    exchanged[at] = in_exchange;
  };
  for (size_t i = 0; i < arrive; ++i)
    note(i, external_of(context, program_->inputs_used[i]).block == nullptr);
  for (size_t k = 0; k < leave; ++k) {
    note(arrive + k, external_at(context, {true, static_cast<uint32_t>(k)}).block == nullptr);
    same = same && !is_elsewhere(context, k);
  }
  if (same) return {};
  return exchanges_[run_slot].record(context.devices.chosen(), context.devices.alignment(),
                                     context.arenas[0]->slab(), arriving(context), leaving(context));
}

Status Plan::submit(PlanContext& context, size_t run_slot, std::span<const HostRange> input_ranges) {
  Exchange& exchange = exchanges_[run_slot];
  RT_TRY(select_recordings(context));
  RT_TRY(record_exchange(context, run_slot));
  for (size_t i = 0; i < program_->inputs_used.size(); ++i)
    if (exchanged_[run_slot][i])
      RT_TRY(exchange.send(i, input_ranges[program_->values[program_->inputs_used[i]].index].data));
  RT_TRY(exchange.get());
  for (Stage& stage : stages_)
    if (stage.kind != Stage::Kind::Copies || has_copies(context))
      RT_TRY(stage.recordings.front().commands->submit());
  return exchange.put();
}

MemoryLocation Plan::output_location(const PlanContext& context, size_t output) const noexcept {
  const Ref root = output_roots_[output];
  const PlanValue& value = program_->values[root];
  if (value.source == ValueSource::Constant || value.storage == kNone) return {};
  if (const External external = external_of(context, root); external.block != nullptr)
    return {external.block, external.offset};
  const Storage& storage = program_->storages[value.storage];
  return storage.pin == Storage::Pin::None ? arena_location(context, storage) : MemoryLocation{};
}

void Plan::reset_profile() noexcept {
  std::fill(nanoseconds_.begin(), nanoseconds_.end(), 0);
  transfer_times_ = {};
  profiled_runs_ = 0;
}

size_t Plan::exchanged_bytes() const noexcept {
  size_t bytes = 0;
  for (const Exchange& exchange : exchanges_) bytes += exchange.allocated_bytes();
  return bytes;
}

size_t Plan::footprint() const noexcept {
  size_t bytes = sizeof(Plan) + own_bytes() + exchanged_bytes();
  for (const AlignedBytes& computed : program_->computed) bytes += computed.capacity();
  bytes += program_->values.size() * (sizeof(PlanValue) + 32);
  bytes += program_->steps.size() * (sizeof(Step) + 1024);  // kernels, commands: an estimate
  return bytes;
}

}  // namespace librt
