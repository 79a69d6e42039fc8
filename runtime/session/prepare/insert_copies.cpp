#include "runtime/session/prepare/insert_copies.h"

#include <algorithm>

#include "runtime/core/byte_count.h"
#include "runtime/core/host_memory.h"
#include "runtime/session/prepare/legalize.h"

namespace librt {
namespace {

/// Of each range of memory; sums of them are checked when they are allocated.
[[gnu::always_inline]] inline Status check_addressable(const Requirements& needs) noexcept {
  RT_TRY(librt::check_addressable(needs.scratch));
  return librt::check_addressable(needs.packed);
}

class CopyInserter {
 public:
  CopyInserter(const LegalizeRequest& request, Program& program)
      : request_(request), devices_(request.devices), p_(program) {}

  Status run() {
    is_output_.resize(p_.values.size());
    for (const Ref output : p_.outputs) is_output_[root_of(p_, output)] = true;
    std::vector<Step> steps = std::move(p_.steps);
    for (Step& step : steps) {
      if (request_.stop != nullptr)
        RT_TRY(
            request_.stop->report(RT_STAGE_CREATE, static_cast<size_t>(&step - steps.data()), steps.size()));
      Status status = check_memory(step);
      if (status.ok()) status = prepare(step);
      RT_TRY(std::move(status).in("node '", step.name, "' (", name_of(step.node->kind()), ") on ",
                                  devices_.entry(step.device).backend));
      push(std::move(step));
    }
    RT_TRY(copy_outputs());
    RT_TRY(copy_updates());
    p_.steps = std::move(done_);
    return {};
  }

 private:
  Status check_memory(const Step& step) const;
  Status prepare(Step& step);
  Status make_kernel(Step& step, const NodeView& view, std::span<const LayoutId> layouts);
  Status copy_outputs();
  Status copy_updates();
  /// The value's bytes in this layout, readable by device `to`.
  Result<Ref> locate(Ref value, uint32_t to, LayoutId layout);
  Result<Ref> dense(Ref value, uint8_t space);
  Result<Ref> reorder(Ref value, uint32_t device, LayoutId from, LayoutId to);
  Ref move(Ref value, StepKind kind, uint8_t space);
  Ref make(Ref value, Step step, uint8_t space, LayoutId layout, size_t bytes);

  void push(Step step) {
    for (const Ref output : step.outputs)
      if (p_.values[output].source == ValueSource::Step)
        p_.values[output].index = static_cast<uint32_t>(done_.size());
    done_.push_back(std::move(step));
  }
  Ref add(PlanValue value) {
    p_.values.push_back(std::move(value));
    return static_cast<Ref>(p_.values.size() - 1);
  }
  uint32_t device_of(uint8_t space) const {
    for (uint32_t i = 0; i < devices_.size(); ++i)
      if (devices_.entry(i).space == space) return i;
    return 0;
  }
  Ref& dense_in(uint8_t space, Ref value) {
    if (dense_.size() <= space) dense_.resize(space + size_t{1});
    if (dense_[space].size() <= value) dense_[space].resize(p_.values.size(), kNone);
    return dense_[space][value];
  }
  /// The value at the root of its aliases, with the device and space that produce it.
  const PlanValue& origin(Ref value) const { return p_.values[root_of(p_, value)]; }

  const LegalizeRequest& request_;
  DeviceSet& devices_;
  Program& p_;
  std::vector<Step> done_;
  std::vector<uint8_t> is_output_;  ///< by value: the root of an output of the graph
  /// A value in one additional layout.
  struct Reordered {
    Ref value;
    uint32_t device;
    LayoutId layout;
    Ref result;
  };
  std::vector<std::vector<Ref>> dense_;  ///< by space and value, created on demand
  std::vector<Reordered> reordered_;
};

/// Adds the step and its result: the elements of `value` in another space or layout.
Ref CopyInserter::make(Ref value, Step step, uint8_t space, LayoutId layout, size_t bytes) {
  const PlanValue& source = p_.values[value];
  step.inputs = {value};
  step.cost.bytes = static_cast<double>(source.bytes + bytes);
  const Ref result = add({.name = source.name,
                          .info = source.info,
                          .source = ValueSource::Step,
                          .space = space,
                          .device = step.device,
                          .layout = layout,
                          .bytes = bytes});
  step.outputs = {result};
  push(std::move(step));
  return result;
}

Result<Ref> CopyInserter::reorder(Ref value, uint32_t device, LayoutId from, LayoutId to) {
  for (const Reordered& known : reordered_)
    if (known.value == value && known.device == device && known.layout == to) return known.result;
  Device& on = devices_.device(device);
  const PlanValue source = p_.values[value];
  const std::string name = text(source.name, ": ", on.layout_name(from), " -> ", on.layout_name(to));
  auto kernel = on.make_reorder(source.info, from, to);
  if (!kernel.ok()) return std::move(kernel).status().in("reorder ", name);
  Step step{.kind = StepKind::Reorder, .name = name, .device = device};
  step.kernel = std::move(kernel).value();
  step.needs = step.kernel->requirements();
  RT_TRY(check_addressable(step.needs));
  const size_t bytes = to == kDense ? source.info.bytes() : on.layout_bytes(to, source.info);
  const Ref result = make(value, std::move(step), devices_.entry(device).space, to, bytes);
  reordered_.push_back({value, device, to, result});
  return result;
}

/// A new value with the same bytes, in `space`: by the device itself (Copy) or through the host (Transfer).
Ref CopyInserter::move(Ref value, StepKind kind, uint8_t space) {
  const PlanValue& source = p_.values[value];
  return make(value, {.kind = kind, .name = source.name, .device = device_of(space)}, space, kDense,
              source.bytes);
}

Result<Ref> CopyInserter::dense(Ref value, uint8_t space) {
  const PlanValue source = p_.values[value];
  if (source.source == ValueSource::Constant) return value;
  if (Ref known = dense_in(space, value); known != kNone) return known;
  Ref result = value;
  if (source.source == ValueSource::Alias) {
    RT_ASSIGN(const Ref base, dense(source.index, space));
    if (base != source.index) {
      PlanValue copy = source;
      copy.index = base;
      result = add(std::move(copy));
    }
    p_.values[result].space = space;
  } else if (source.source == ValueSource::Input) {
    if (space != source.space) {
      PlanValue copy = source;
      copy.space = space;
      result = add(std::move(copy));
    }
    if (devices_.kind(space) == SpaceKind::Device) p_.inputs_used.push_back(result);
  } else {
    if (source.layout != kDense) {
      RT_ASSIGN(result, reorder(value, source.device, source.layout, kDense));
    }
    if (source.space != space) result = move(result, StepKind::Transfer, space);
  }
  dense_in(space, value) = result;
  return result;
}

Result<Ref> CopyInserter::locate(Ref value, uint32_t to, LayoutId layout) {
  const PlanValue& source = p_.values[value];
  if (source.source == ValueSource::Step && source.layout == layout && layout != kDense &&
      source.device == to)
    return value;
  RT_ASSIGN(const Ref plain, dense(value, devices_.entry(to).space));
  if (layout == kDense) return plain;
  return reorder(plain, to, kDense, layout);
}

Status CopyInserter::make_kernel(Step& step, const NodeView& view, std::span<const LayoutId> layouts) {
  Device& device = devices_.device(step.device);
  RT_ASSIGN(const size_t first,
            request_.kernel_tuner.choose(device, view, step.candidates, layouts, step.choice));
  std::string refused;
  for (size_t i = 0; i < step.candidates.size(); ++i) {
    // the chosen row, then the others in order
    const KernelRow* row = step.candidates[i == 0 ? first : i <= first ? i - 1 : i];
    auto kernel = row->create(device, view, layouts);
    if (kernel.ok() && *kernel != nullptr) {
      step.row = row;
      step.kernel = std::move(kernel).value();
      if (!refused.empty()) step.choice = text("after ", refused);
      return {};
    }
    const Status status = kernel.ok() ? internal_error("created nothing") : kernel.status();
    append(refused, refused.empty() ? "" : "; ", row->name, ": ", status.message());
    if (status.code() != Code::Unsupported) return Status(status.code(), refused);
  }
  return unsupported(refused);
}

/// Results and tables that cannot fit are refused before a kernel is created for them.
Status CopyInserter::check_memory(const Step& step) const {
  const bool on_host = devices_.kind(devices_.entry(step.device).space) == SpaceKind::Host;
  const uint64_t machine =
      on_host ? host_memory_bytes() : devices_.entry(step.device).device->info().memory_bytes;
  // A result may take the place of an operand that is as large.
  uint64_t largest = 0;
  for (const Ref input : step.inputs)
    if (input != kNone) largest = std::max<uint64_t>(largest, p_.values[input].bytes);
  uint64_t results = 0;
  for (const Ref output : step.outputs) {
    const PlanValue& value = p_.values[output];
    if (value.source != ValueSource::Step) continue;
    RT_TRY(MemoryLimit::check_machine(value.bytes, machine));
    // The graph's outputs may be written to memory of the caller; a session checks them when it runs.
    if (value.bytes > largest && (!on_host || !is_output_[output])) results += value.bytes;
  }
  const uint64_t tables = to_bytes(step.cost.tables);
  RT_TRY(MemoryLimit::check_machine(tables, host_memory_bytes()));
  return request_.limit.check(request_.held + to_bytes(p_.total.tables),
                              results + (tables > MemoryLimit::kSmall ? tables : 0));
}

Status CopyInserter::prepare(Step& step) {
  Device& device = devices_.device(step.device);
  std::vector<Operand> operands;
  std::vector<LayoutId> layouts;
  std::vector<TensorInfo> infos;
  for (const Ref input : step.inputs) {
    if (input == kNone) {
      operands.push_back({});
      layouts.push_back(kDense);
      continue;
    }
    const PlanValue& value = p_.values[input];
    operands.push_back({.present = true,
                        .info = value.info,
                        .value = value.source == ValueSource::Constant ? value.host : nullptr});
    layouts.push_back(value.source == ValueSource::Step && value.device == step.device ? value.layout
                                                                                       : kDense);
  }
  for (const Ref output : step.outputs) infos.push_back(p_.values[output].info);
  const NodeView view{.node = *step.node, .inputs = operands, .outputs = infos};
  RT_TRY(make_kernel(step, view, layouts));
  step.needs = step.kernel->requirements();
  RT_TRY(check_addressable(step.needs));
  const uint32_t unbound = unbound_inputs(step);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] == kNone || (i < 32 && ((unbound >> i) & 1u) != 0)) continue;
    RT_ASSIGN(step.inputs[i], locate(step.inputs[i], step.device, step.kernel->input_layout(i)));
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    PlanValue& value = p_.values[step.outputs[i]];
    if (value.source != ValueSource::Step) continue;
    value.space = devices_.entry(step.device).space;
    value.device = step.device;
    value.layout = step.kernel->output_layout(i);
    if (value.layout == kDense) continue;
    value.bytes = device.layout_bytes(value.layout, value.info);
    if (value.bytes < value.info.bytes()) return internal_error("layout without size");
  }
  p_.total.flops += step.cost.flops;
  p_.total.bytes += step.cost.bytes;
  p_.total.tables += step.cost.tables;
  return {};
}

Status CopyInserter::copy_outputs() {
  for (Ref& output : p_.outputs) {
    if (origin(output).source == ValueSource::Constant) continue;
    RT_ASSIGN(output, dense(output, origin(output).space));
    const ValueSource source = origin(output).source;
    const bool host = devices_.kind(origin(output).space) == SpaceKind::Host;
    if (source == ValueSource::State || (source == ValueSource::Input && host)) {
      output = move(output, StepKind::Copy, origin(output).space);
    }
  }
  return {};
}

Status CopyInserter::copy_updates() {
  for (auto& update : p_.updates) {
    RT_ASSIGN(update.value, dense(update.value, 0));
    if (origin(update.value).source != ValueSource::State) continue;
    update.value = move(update.value, StepKind::Copy, 0);
  }
  for (auto& update : p_.updates) {
    const TensorInfo info = p_.values[update.value].info;
    const std::string& name = request_.states[update.state].name;
    const Ref state = add({.name = name,
                           .info = info,
                           .source = ValueSource::State,
                           .index = update.state,
                           .bytes = info.bytes()});
    push({.kind = StepKind::Copy,
          .name = text(name, " (state)"),
          .inputs = {update.value},
          .outputs = {state}});
  }
  return {};
}

}  // namespace

Status insert_copies(const LegalizeRequest& request, Program& program) {
  return CopyInserter(request, program).run();
}

}  // namespace librt
