// The printed form of a session's plan.
#include <algorithm>

#include "runtime/session/session.h"

namespace rt {

namespace {

class Printer {
 public:
  Printer(const Program& program, DeviceSet& devices) : p_(program), devices_(devices) {}

  std::string steps() {
    std::string out;
    for (size_t i = 0; i < p_.steps.size(); ++i) append(out, step(i));
    return out;
  }
  std::string place(Ref id) const {
    const PlanValue& root = p_.values[root_of(p_, id)];
    if (root.bytes == 0) return "empty";
    if (root.source == ValueSource::Constant) return "constant";
    const Storage& storage = p_.storages[root.storage];
    switch (storage.pin) {
      case Storage::Pin::Input: return text("input ", storage.index);
      case Storage::Pin::Output: return text("output ", storage.index);
      case Storage::Pin::State: return text("state ", storage.index);
      case Storage::Pin::None: break;
    }
    return text(devices_.space_count() > 1 ? text("arena", storage.space, "+") : "arena+", storage.offset);
  }

 private:
  std::string value(Ref id) const {
    const PlanValue& v = p_.values[id];
    const std::string layout =
        v.layout == kDense ? "" : text(" ", devices_.device(v.device).layout_name(v.layout));
    return text(v.name, " ", v.info, layout, " ", v.source == ValueSource::Alias ? "alias " : "", "@",
                place(id));
  }
  std::string step(size_t i) const {
    const Step& s = p_.steps[i];
    const char* kind = s.kind == StepKind::Copy       ? "Copy"
                       : s.kind == StepKind::Transfer ? "Transfer"
                       : s.kind == StepKind::Reorder  ? "Reorder"
                                                      : nullptr;
    std::string out =
        text(i, "  ", kind != nullptr ? std::string_view(kind) : name_of(s.node->kind()), "  '", s.name,
             "'  ", devices_.entry(s.device).backend, s.row != nullptr ? text(" ", s.row->name) : "");
    if (s.in_place) out += "  in place";
    if (s.needs.scratch > 0) append(out, text("  scratch ", bytes_text(s.needs.scratch)));
    if (s.needs.packed > 0) append(out, text("  packed ", bytes_text(s.needs.packed)));
    if (!s.choice.empty()) append(out, text("  (", s.choice, ")"));
    out += '\n';
    for (const Ref input : s.inputs) append(out, text("     <- ", input == kNone ? "-" : value(input), "\n"));
    for (const Ref output : s.outputs) append(out, text("     -> ", value(output), "\n"));
    if (!s.fallback.empty()) append(out, text("     fallback: ", s.fallback, "\n"));
    return out;
  }

  const Program& p_;
  DeviceSet& devices_;
};

}  // namespace

std::string Session::plan_text() const {
  if (current_ == nullptr) return {};
  const Program& p = current_->program();
  const DeviceInfo& info = devices_->chosen().info();
  std::string out = text("entry '", graph_->name, "' on ", info.backend, " (", info.name, ")\n");
  for (size_t i = 0; i < graph_->inputs.size(); ++i)
    append(out, text("input ", i, " '", (*graph_)[graph_->inputs[i]].name, "' ", current_->inputs[i],
                     shape_inputs_[i] ? "  read while planning" : "", "\n"));
  Printer printer(p, *devices_);
  out += printer.steps();
  for (size_t k = 0; k < p.outputs.size(); ++k)
    append(out, text("output ", k, " '", (*graph_)[graph_->outputs[k]].name, "' ",
                     p.values[p.outputs[k]].info, " @", printer.place(p.outputs[k]), "\n"));
  const auto in_place =
      std::count_if(p.updates.begin(), p.updates.end(), [](const auto& update) { return update.in_place; });
  size_t transfers = 0, reorders = 0, arena = 0, naive = 0;
  for (const Step& step : p.steps) {
    transfers += step.kind == StepKind::Transfer;
    reorders += step.kind == StepKind::Reorder;
  }
  for (const size_t bytes : p.arena_bytes) arena += bytes;
  for (const size_t bytes : p.naive_bytes) naive += bytes;
  const MemoryStats stats = memory();
  append(out,
         text("total: ", p.steps.size(), " steps, ", p.fallbacks, " fallbacks, ", transfers, " transfers, ",
              reorders, " reorders, ", p.folded_nodes, " nodes evaluated while planning\n"));
  if (!p.updates.empty())
    append(out,
           text("states: ", p.updates.size(), " updated, ", static_cast<int64_t>(in_place), " in place\n"));
  append(out, text("work: ", static_cast<uint64_t>(p.total.flops / 1e6), " Mflop, ",
                   bytes_text(static_cast<uint64_t>(p.total.bytes)), " moved\n"));
  append(out, text("memory: arena ", bytes_text(arena), " (", bytes_text(naive),
                   " without sharing), weights ", bytes_text(stats.weights), ", packed ",
                   bytes_text(stats.packed), ", states ", bytes_text(stats.states), "\n"));
  return out;
}

}  // namespace rt
