// Plans whose inputs and outputs are in memory of the application.
#include <algorithm>

#include "runtime/session/run/slot_table.h"

namespace librt {

External Plan::external_at(const PlanContext& context, const Port& port) noexcept {
  const std::span<const External> all = port.output ? context.external_outputs : context.external_inputs;
  return port.index < all.size() ? all[port.index] : External{};
}

External Plan::external_of(const PlanContext& context, Ref root) const noexcept {
  const PlanValue& value = program_->values[root];
  if (value.bytes == 0 || context.devices.kind(value.space) == SpaceKind::Host) return {};
  if (value.source == ValueSource::Input) return external_at(context, {false, value.index});
  if (context.external_outputs.empty() || value.source != ValueSource::Step || value.storage == kNone ||
      program_->storages[value.storage].pin != Storage::Pin::None)
    return {};
  for (uint32_t k = 0; k < output_roots_.size(); ++k)
    if (output_roots_[k] == root && context.external_outputs[k].block != nullptr)
      return context.external_outputs[k];
  return {};
}

bool Plan::is_copied(const PlanContext& context, size_t output) const noexcept {
  const External own = external_at(context, {true, static_cast<uint32_t>(output)});
  if (own.block == nullptr || output_location(context, output).block == nullptr) return false;
  const External used = external_of(context, output_roots_[output]);
  return used.block != own.block || used.offset != own.offset;
}

bool Plan::is_elsewhere(const PlanContext& context, size_t output) const noexcept {
  return external_at(context, {true, static_cast<uint32_t>(output)}).block == nullptr &&
         external_of(context, output_roots_[output]).block != nullptr;
}

bool Plan::has_copies(const PlanContext& context) const noexcept {
  for (size_t k = 0; k < context.external_outputs.size(); ++k)
    if (is_copied(context, k)) return true;
  return false;
}

bool Plan::reads_on_host(const PlanContext& context, size_t input) const noexcept {
  for (const PlanValue& value : program_->values)
    if (value.source == ValueSource::Input && value.index == input &&
        context.devices.kind(value.space) == SpaceKind::Host)
      return true;
  return false;
}

void Plan::find_ports(const PlanContext& context, Stage& stage) const {
  const auto add = [&](Ref id) {
    const Ref root = root_of(*program_, id);
    const PlanValue& value = program_->values[root];
    if (value.bytes == 0 || context.devices.kind(value.space) == SpaceKind::Host) return;
    const auto add_port = [&](Port port) {
      if (std::ranges::find(stage.ports, port) == stage.ports.end()) stage.ports.push_back(port);
    };
    if (value.source == ValueSource::Input) add_port({false, value.index});
    for (uint32_t k = 0; k < output_roots_.size(); ++k)
      if (output_roots_[k] == root) add_port({true, k});
  };
  if (stage.kind == Stage::Kind::Copies) {
    for (const Ref root : output_roots_)
      if (program_->values[root].source != ValueSource::Constant) add(root);
    return;
  }
  for (uint32_t s = stage.first; s < stage.last; ++s) {
    const Step& step = program_->steps[s];
    const uint32_t unbound = unbound_inputs(step);
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (step.inputs[i] != kNone && (i >= 32 || ((unbound >> i) & 1u) == 0)) add(step.inputs[i]);
    for (const Ref output : step.outputs) add(output);
  }
}

Status Plan::select_recordings(PlanContext& context) {
  for (Stage& stage : stages_) {
    const bool idle =
        stage.kind == Stage::Kind::Transfer || (stage.kind == Stage::Kind::Copies && !has_copies(context));
    if (!idle) RT_TRY(select_recording(context, stage));
  }
  return {};
}

Status Plan::select_recording(PlanContext& context, Stage& stage) {
  const auto fits = [&](const Recording& recording) {
    for (size_t i = 0; i < stage.ports.size(); ++i) {
      const External external = external_at(context, stage.ports[i]);
      if (recording.externals[i] != std::pair(external.id, external.offset)) return false;
    }
    return true;
  };
  std::vector<Recording>& all = stage.recordings;
  const auto found = std::ranges::find_if(all, fits);
  if (found != all.end()) {
    if (found != all.begin()) std::rotate(all.begin(), found, found + 1);
    return {};
  }
  Recording made;
  for (const Port& port : stage.ports) {
    const External external = external_at(context, port);
    made.externals.emplace_back(external.id, external.offset);
  }
  RT_TRY(stage.kind == Stage::Kind::Copies ? record_copies(context, made)
                                           : record_stage(context, stage, made));
  if (all.size() == kRecordings) all.pop_back();
  all.insert(all.begin(), std::move(made));
  return {};
}

Status Plan::record_copies(PlanContext& context, Recording& recording) const {
  SlotTable slots(context.devices.chosen(), recording);
  struct Copy {
    BufferRef to, from;
  };
  std::vector<Copy> copies;
  for (size_t k = 0; k < context.external_outputs.size(); ++k) {
    if (!is_copied(context, k)) continue;
    const External& to = context.external_outputs[k];
    RT_ASSIGN(const BufferRef from, ref(context, slots, program_->outputs[k], DeviceSet::kChosen));
    if (to.bytes < from.bytes)
      return invalid_argument("output ", k, ": it takes ", from.bytes, " bytes, the bound memory has ",
                              to.bytes);
    RT_ASSIGN(const uint32_t slot, slots.slot(*to.block));
    copies.push_back({{slot, to.offset, from.bytes}, from});
  }
  RT_ASSIGN(recording.commands,
            context.devices.chosen().begin({.slots = recording.slots, .replay = context.replay}));
  for (const Copy& copy : copies) RT_TRY(recording.commands->copy(copy.to, copy.from));
  return recording.commands->finish();
}

}  // namespace librt
