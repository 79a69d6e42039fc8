#include "runtime/session/run/plan_text.h"

#include <algorithm>
#include <map>

#include "runtime/session/session.h"

namespace librt {

namespace {

class Printer {
 public:
  Printer(const Program& program, DeviceSet& devices, const std::string& indent)
      : p_(program), devices_(devices), indent_(indent) {}

  std::string steps() {
    std::string out;
    for (size_t i = 0; i < p_.steps.size(); ++i) append(out, step(i));
    return out;
  }

 private:
  std::string value(Ref id) const {
    const PlanValue& v = p_.values[id];
    const std::string layout =
        v.layout == kDense ? "" : text(" ", devices_.device(v.device).layout_name(v.layout));
    return text(v.name, " ", v.info, layout, " ", v.source == ValueSource::Alias ? "alias " : "", "@",
                location_text(p_, devices_, id));
  }
  std::string step(size_t i) const {
    const Step& s = p_.steps[i];
    const char* kind = s.kind == StepKind::Copy       ? "Copy"
                       : s.kind == StepKind::Transfer ? "Transfer"
                       : s.kind == StepKind::Reorder  ? "Reorder"
                                                      : nullptr;
    std::string out =
        text(indent_, i, "  ", kind != nullptr ? std::string_view(kind) : name_of(s.node->kind()), "  '",
             s.name, "'  ", devices_.entry(s.device).backend, s.row != nullptr ? text(" ", s.row->name) : "");
    if (s.in_place) out += "  in place";
    if (s.needs.scratch > 0) append(out, "  scratch ", bytes_text(s.needs.scratch));
    if (s.needs.packed > 0) append(out, "  packed ", bytes_text(s.needs.packed));
    if (!s.choice.empty()) append(out, "  (", s.choice, ")");
    out += '\n';
    for (const Ref input : s.inputs)
      append(out, indent_, "     <- ", input == kNone ? "-" : value(input), "\n");
    for (const Ref output : s.outputs) append(out, indent_, "     -> ", value(output), "\n");
    if (!s.fallback.empty()) append(out, indent_, "     fallback: ", s.fallback, "\n");
    return out;
  }

  const Program& p_;
  DeviceSet& devices_;
  const std::string& indent_;
};

/// Totals over the plans of a run.
struct Totals {
  size_t steps = 0, fallbacks = 0, transfers = 0, reorders = 0, folded = 0;
  uint64_t arena = 0, naive = 0;
  size_t updates = 0, in_place = 0;
  std::map<DType, size_t> types;  ///< of steps, by the first float operand
  size_t casts = 0;               ///< inserted by the session
  ops::Cost work;

  void add_types(const Program& p, const Step& step) {
    if (step.node == nullptr) return;
    for (const auto& cast : p.casts)
      if (step.node == cast.get()) {
        ++casts;
        return;
      }
    for (const Ref input : step.inputs)
      if (input != kNone && is_float(p.values[input].info.dtype)) {
        ++types[p.values[input].info.dtype];
        return;
      }
  }
  void add(const Program& p) {
    steps += p.steps.size();
    fallbacks += p.fallbacks;
    folded += p.folded_nodes;
    for (const Step& step : p.steps) {
      transfers += step.kind == StepKind::Transfer;
      reorders += step.kind == StepKind::Reorder;
      add_types(p, step);
    }
    uint64_t own_arena = 0, own_naive = 0;
    for (const uint64_t bytes : p.arena_bytes) own_arena += bytes;
    for (const uint64_t bytes : p.naive_bytes) own_naive += bytes;
    arena = std::max(arena, own_arena);
    naive = std::max(naive, own_naive);
    updates += p.updates.size();
    for (const auto& update : p.updates) in_place += update.in_place;
    work.flops += p.total.flops;
    work.bytes += p.total.bytes;
  }
};

}  // namespace

std::string steps_text(const Program& program, DeviceSet& devices, const std::string& indent) {
  return Printer(program, devices, indent).steps();
}

std::string location_text(const Program& program, const DeviceSet& devices, Ref value) {
  const PlanValue& root = program.values[root_of(program, value)];
  if (root.bytes == 0) return "empty";
  if (root.source == ValueSource::Constant) return "constant";
  const Storage& storage = program.storages[root.storage];
  const size_t offset = offset_of(program, value);
  const std::string part = offset == 0 ? "" : text("+", offset);
  switch (storage.pin) {
    case Storage::Pin::Input: return text("input ", storage.index, part);
    case Storage::Pin::Output: return text("output ", storage.index, part);
    case Storage::Pin::State: return text("state ", storage.index, part);
    case Storage::Pin::None: break;
  }
  return text(devices.space_count() > 1 ? text("arena", storage.space, "+") : "arena+",
              storage.offset + offset);
}

std::string Session::plan_text() const {
  const std::vector<const Plan*> plans = this->plans();
  if (plans.empty() && partitioned_ == nullptr) return {};
  const DeviceInfo& info = devices().chosen().info();
  std::string out = text("entry '", graph_->name, "' on ", info.backend, " (", info.name, ")\n");
  for (size_t i = 0; i < graph_->inputs.size(); ++i)
    append(out, "input ", i, " '", (*graph_)[graph_->inputs[i]].name, "' ", input_views_[i].info,
           whole_ != nullptr && whole_->reads_while_planning(i) ? "  read while planning" : "", "\n");
  if (partitioned_ != nullptr) {
    partitioned_->print(out, "");
    for (size_t k = 0; k < graph_->outputs.size(); ++k)
      append(out, "output ", k, " '", (*graph_)[graph_->outputs[k]].name, "' ", outputs_[k].result.info,
             "\n");
  } else {
    const Program& p = plans[0]->program();
    out += steps_text(p, devices(), "");
    for (size_t k = 0; k < p.outputs.size(); ++k)
      append(out, "output ", k, " '", (*graph_)[graph_->outputs[k]].name, "' ", p.values[p.outputs[k]].info,
             " @", location_text(p, devices(), p.outputs[k]), "\n");
  }
  Totals total;
  for (const Plan* plan : plans) total.add(plan->program());
  const MemoryStats stats = memory();
  append(out, "total: ", total.steps, " steps, ", total.fallbacks, " fallbacks, ", total.transfers,
         " transfers, ", total.reorders, " reorders, ", total.folded, " nodes evaluated while planning\n");
  std::string types;
  for (const auto& [dtype, count] : total.types)
    append(types, types.empty() ? "" : ", ", count, " in ", name_of(dtype));
  append(out, "steps by type: ", types, "; ", total.casts, " casts added to the graph\n");
  if (total.updates > 0) append(out, "states: ", total.updates, " updated, ", total.in_place, " in place\n");
  for (size_t i = 0; i < devices().size(); ++i)
    for (const std::string& feature : devices().device(i).info().features)
      if (feature.find(": ") != std::string::npos) append(out, feature, "\n");
  out += shared_.kernel_tuner.notes();
  append(out, "work: ", static_cast<uint64_t>(total.work.flops / 1e6), " Mflop, ",
         bytes_text(static_cast<uint64_t>(total.work.bytes)), " moved\n");
  append(out, "memory: arena ", bytes_text(total.arena), " (", bytes_text(total.naive),
         " without sharing), weights ", bytes_text(stats.weights), ", packed ", bytes_text(stats.packed),
         " (", bytes_text(shared_.packed.found_bytes()), " packed by another session), states ",
         bytes_text(stats.states), "\n");
  return out;
}

}  // namespace librt
