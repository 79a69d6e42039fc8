#include "runtime/session/memory/storage.h"

#include <algorithm>
#include <numeric>

#include "runtime/session/memory/planner.h"

namespace librt {
namespace {

using Pin = Storage::Pin;

class Assigner {
 public:
  Assigner(const DeviceSet& devices, Program& program) : devices_(devices), p_(program) {}

  void run() {
    update_states_in_place();
    make_storages();
    pin_outputs();
    place_parts();
    share_in_place();
    add_scratch();
    plan();
  }

 private:
  static bool bound(const Step& step, size_t input) {
    return step.inputs[input] != kNone && (input >= 32 || ((unbound_inputs(step) >> input) & 1u) == 0);
  }
  const PlanValue& root(Ref value) const { return p_.values[root_of(p_, value)]; }
  template <class Function>
  static void for_pairs(const Step& step, Function function) {
    if (step.needs.in_place) function(*step.needs.in_place);
    for (const InPlace& pair : step.needs.more_in_place) function(pair);
  }
  void find_last_readers();
  bool can_update(const Program::Update& update) const;
  void update_states_in_place();
  void make_storages();
  void pin_outputs();
  bool can_place(Ref part, Ref joined) const;
  void place_parts();
  void share_in_place();
  void add_scratch();
  void plan();

  uint32_t find(uint32_t storage) {
    while (parent_[storage] != storage) storage = parent_[storage] = parent_[parent_[storage]];
    return storage;
  }
  uint32_t storage_of(Ref value) {
    const uint32_t storage = root(value).storage;
    return storage == kNone ? kNone : find(storage);
  }
  uint32_t add(Storage storage) {
    p_.storages.push_back(storage);
    parent_.push_back(static_cast<uint32_t>(parent_.size()));
    return parent_.back();
  }

  const DeviceSet& devices_;
  Program& p_;
  std::vector<uint32_t> parent_;
  std::vector<std::pair<Ref, uint32_t>> state_roots_;  ///< values that are written to a state's memory
  std::vector<uint8_t> is_taken_;                      ///< by value: an output, or one of these
  std::vector<uint8_t> is_part_;                       ///< by value: written to its place in a joined value
  std::vector<uint32_t> last_readers_;                 ///< by state: the last step that reads it
};

/// Whether the kernel that produces the new value may overwrite the old one: it supports this, and the old
/// value has no later reader.
bool Assigner::can_update(const Program::Update& update) const {
  const Ref value = root_of(p_, update.value);
  const PlanValue& made = p_.values[value];
  if (made.source != ValueSource::Step || made.space != 0 || made.layout != kDense) return false;
  if (is_taken_[value]) return false;
  const Step& step = p_.steps[made.index];
  bool allowed = false;
  for_pairs(step, [&](const InPlace& pair) {
    if (pair.output >= step.outputs.size() || pair.input >= step.inputs.size()) return;
    if (step.outputs[pair.output] != value || !bound(step, pair.input)) return;
    const PlanValue& old = root(step.inputs[pair.input]);
    if (old.source != ValueSource::State || old.index != update.state || old.bytes != made.bytes) return;
    const auto times = std::count_if(step.inputs.begin(), step.inputs.end(), [&](Ref input) {
      return input != kNone && root(input).source == ValueSource::State && root(input).index == update.state;
    });
    allowed = times == 1;
  });
  return allowed && last_readers_[update.state] <= made.index;
}

void Assigner::find_last_readers() {
  for (uint32_t i = 0; i < p_.steps.size(); ++i)
    for (size_t k = 0; k < p_.steps[i].inputs.size(); ++k) {
      if (!bound(p_.steps[i], k)) continue;
      const PlanValue& read = root(p_.steps[i].inputs[k]);
      if (read.source != ValueSource::State) continue;
      if (last_readers_.size() <= read.index) last_readers_.resize(read.index + size_t{1});
      last_readers_[read.index] = i;
    }
}

void Assigner::update_states_in_place() {
  std::vector<uint8_t> drop(p_.steps.size());
  is_taken_.resize(p_.values.size());
  for (const Ref output : p_.outputs) is_taken_[root_of(p_, output)] = true;
  find_last_readers();
  const size_t first_copy = p_.steps.size() - p_.updates.size();
  for (size_t i = 0; i < p_.updates.size(); ++i) {
    Program::Update& update = p_.updates[i];
    if (!can_update(update)) continue;
    update.in_place = true;
    state_roots_.emplace_back(root_of(p_, update.value), update.state);
    is_taken_[state_roots_.back().first] = true;
    p_.steps[p_.values[root_of(p_, update.value)].index].in_place = true;
    drop[first_copy + i] = true;
  }
  size_t next = 0;
  for (size_t i = 0; i < p_.steps.size(); ++i) {
    if (drop[i]) continue;
    if (next != i) p_.steps[next] = std::move(p_.steps[i]);
    ++next;
  }
  p_.steps.erase(p_.steps.begin() + static_cast<std::ptrdiff_t>(next), p_.steps.end());
}

void Assigner::make_storages() {
  const auto end = static_cast<uint32_t>(p_.steps.size());
  std::vector<uint32_t> states;  // by state: its storage
  const auto state_storage = [&](uint32_t state, size_t bytes) {
    if (states.size() <= state) states.resize(state + size_t{1}, kNone);
    if (states[state] == kNone)
      states[state] = add({.pin = Pin::State, .index = state, .bytes = bytes, .last = end});
    return states[state];
  };
  for (PlanValue& value : p_.values) {
    if (value.source == ValueSource::State) {
      value.storage = state_storage(value.index, value.bytes);
    } else if (value.source == ValueSource::Input) {
      const bool host = devices_.kind(value.space) == SpaceKind::Host;
      value.storage = add({.pin = host ? Pin::Input : Pin::None,
                           .index = value.index,
                           .space = value.space,
                           .bytes = host ? value.bytes : 0,
                           .last = host ? end : 0});
    }
  }
  for (const Ref input : p_.inputs_used) p_.storages[p_.values[input].storage].bytes = p_.values[input].bytes;
  for (const auto& [value, state] : state_roots_)
    p_.values[value].storage = state_storage(state, p_.values[value].bytes);
  for (uint32_t i = 0; i < end; ++i)
    for (const Ref output : p_.steps[i].outputs) {
      PlanValue& value = p_.values[output];
      if (value.source == ValueSource::Step && value.storage == kNone)
        value.storage = add({.space = value.space, .bytes = value.bytes, .first = i, .last = i});
    }
  for (uint32_t i = 0; i < end; ++i)
    for (size_t k = 0; k < p_.steps[i].inputs.size(); ++k)
      if (bound(p_.steps[i], k))
        if (const uint32_t storage = storage_of(p_.steps[i].inputs[k]); storage != kNone)
          p_.storages[storage].last = std::max(p_.storages[storage].last, i);
}

void Assigner::pin_outputs() {
  for (uint32_t k = 0; k < p_.outputs.size(); ++k) {
    const uint32_t storage = storage_of(p_.outputs[k]);
    if (storage == kNone) continue;
    Storage& memory = p_.storages[storage];
    memory.last = static_cast<uint32_t>(p_.steps.size());
    if (memory.pin == Pin::None && devices_.kind(memory.space) == SpaceKind::Host) {
      memory.pin = Pin::Output;
      memory.index = k;
    }
  }
}

/// Whether the step that writes `part` may write it to its place in `joined`.
bool Assigner::can_place(Ref part, Ref joined) const {
  const PlanValue& from = p_.values[part];
  const PlanValue& to = p_.values[joined];
  if (from.source != ValueSource::Step || from.layout != kDense || is_taken_[part] || is_part_[part])
    return false;
  const Step& writer = p_.steps[from.index];
  if (writer.kind != StepKind::Kernel && writer.kind != StepKind::Reorder) return false;
  if (writer.device != to.device || from.space != to.space || from.storage == to.storage) return false;
  return p_.storages[from.storage].pin == Pin::None;
}

/// The values that a step joins are written there at once. The last steps first: what they join may have been
/// joined itself.
void Assigner::place_parts() {
  is_part_.resize(p_.values.size());
  for (uint32_t i = static_cast<uint32_t>(p_.steps.size()); i-- > 0;) {
    const Step& step = p_.steps[i];
    if (!step.needs.joins_in_place) continue;
    const Ref joined = step.outputs[0];
    const uint32_t to = p_.values[joined].storage;
    Storage& target = p_.storages[to];
    if (target.pin != Pin::None && target.pin != Pin::Output) continue;
    size_t offset = p_.values[joined].offset;
    for (const Ref input : step.inputs) {
      const Ref part = root_of(p_, input);
      const size_t at = offset;
      offset += p_.values[input].bytes;
      if (at % devices_.alignment() != 0 || p_.values[input].bytes != p_.values[part].bytes) continue;
      if (offset_of(p_, input) != 0 || !can_place(part, joined)) continue;
      Storage& own = p_.storages[p_.values[part].storage];
      target.first = std::min(target.first, own.first);
      target.last = std::max(target.last, own.last);
      own.bytes = 0;
      p_.values[part].storage = to;
      p_.values[part].offset = at;
      is_part_[part] = true;
    }
  }
}

void Assigner::share_in_place() {
  for (uint32_t i = 0; i < p_.steps.size(); ++i) {
    Step& step = p_.steps[i];
    for_pairs(step, [&](const InPlace& pair) {
      if (pair.output >= step.outputs.size() || pair.input >= step.inputs.size()) return;
      if (!bound(step, pair.input)) return;
      // A value that is a part of a storage cannot stand for all of it.
      if (is_part_[root_of(p_, step.inputs[pair.input])] ||
          is_part_[root_of(p_, step.outputs[pair.output])] || offset_of(p_, step.inputs[pair.input]) != 0)
        return;
      const uint32_t from = storage_of(step.inputs[pair.input]), to = storage_of(step.outputs[pair.output]);
      if (from == kNone || to == kNone || from == to) return;
      Storage& input = p_.storages[from];
      Storage& output = p_.storages[to];
      if (input.pin != Pin::None || input.last != i || input.space != output.space || output.first != i)
        return;
      if (output.pin != Pin::None && output.pin != Pin::Output) return;
      if (output.pin == Pin::None ? output.bytes > input.bytes : output.bytes != input.bytes) return;
      for (size_t k = 0; k < step.inputs.size(); ++k)
        if (k != pair.input && bound(step, k) && storage_of(step.inputs[k]) == from) return;
      for (size_t k = 0; k < step.outputs.size(); ++k)
        if (k != pair.output && storage_of(step.outputs[k]) == from) return;
      step.in_place = true;
      if (output.pin == Pin::Output) {
        output.first = std::min(output.first, input.first);
        input.bytes = 0;
        parent_[from] = to;
      } else {
        input.last = std::max(input.last, output.last);
        output.bytes = 0;
        parent_[to] = from;
      }
    });
  }
}

void Assigner::add_scratch() {
  for (uint32_t i = 0; i < p_.steps.size(); ++i) {
    Step& step = p_.steps[i];
    if (step.needs.scratch == 0) continue;
    step.scratch =
        add({.space = devices_.entry(step.device).space, .bytes = step.needs.scratch, .first = i, .last = i});
  }
}

void Assigner::plan() {
  for (PlanValue& value : p_.values)
    if (value.storage != kNone) value.storage = find(value.storage);
  for (size_t space = 0; space < devices_.space_count(); ++space) {
    std::vector<uint32_t> ids;
    std::vector<Lifetime> lives;
    for (uint32_t i = 0; i < p_.storages.size(); ++i) {
      const Storage& storage = p_.storages[i];
      if (storage.pin != Pin::None || storage.space != space || storage.bytes == 0) continue;
      ids.push_back(i);
      lives.push_back({storage.first, storage.last, storage.bytes});
    }
    const MemoryPlan planned = plan_memory(lives, devices_.alignment());
    for (size_t i = 0; i < ids.size(); ++i) p_.storages[ids[i]].offset = planned.offsets[i];
    p_.arena_bytes.push_back(planned.peak);
    p_.naive_bytes.push_back(planned.naive);
  }
  // An alias shares the storage of its root.
  for (PlanValue& value : p_.values)
    if (value.source == ValueSource::Alias)
      value.storage = root(static_cast<Ref>(&value - p_.values.data())).storage;
}

}  // namespace

void assign_storage(const DeviceSet& devices, Program& program) {
  Assigner(devices, program).run();
}

std::vector<uint64_t> live_bytes(const Program& program) {
  const size_t steps = program.steps.size();
  // Differences from step to step; unsigned sums wrap back.
  std::vector<uint64_t> live(steps + 1);
  const auto add = [&](const Storage& storage, uint64_t bytes) {
    live[std::min<size_t>(storage.first, steps)] += bytes;
    live[std::min<size_t>(storage.last + size_t{1}, steps)] -= bytes;
  };
  for (const Storage& storage : program.storages)
    if (storage.pin == Storage::Pin::None) add(storage, storage.bytes);
  for (const Step& step : program.steps)
    if (step.scratch != kNone) add(program.storages[step.scratch], -program.storages[step.scratch].bytes);
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

}  // namespace librt
