#include "runtime/session/run/executor.h"

#include <algorithm>
#include <cstring>

#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "runtime/session/memory/storage.h"
#include "runtime/session/run/clock.h"
#include "runtime/session/run/plan_text.h"

namespace librt {

std::string source_text(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes)
    if (std::ranges::find(node.outputs, id) != node.outputs.end()) return text(describe(node));
  return text("value '", graph[id].name, "'");
}

/// Stores a host node's results in the slots of its outputs.
class Executor::Results final : public ops::ResultMaker {
 public:
  Results(Executor& executor, Step& step) : executor_(executor), step_(step) {}
  Result<TensorView> make(size_t output, const TensorInfo& info) override {
    const std::vector<ValueId>& outputs = step_.part.node->outputs;
    const ValueId id = output < outputs.size() ? outputs[output] : kNoValue;
    if (id == kNoValue && step_.unread.size() <= output) step_.unread.resize(output + 1);
    Slot& slot = id == kNoValue ? step_.unread[output] : executor_.slots_[id];
    AlignedBytes& bytes = id == kNoValue ? slot.own[0] : executor_.buffer(id);
    RT_TRY(executor_.shared_.grow(bytes, std::max<size_t>(info.bytes(), 1)).in("a result of ", info));
    slot.view = {bytes.data(), info};
    return TensorView{bytes.data(), info};
  }
  Status hold(double bytes) override {
    return executor_.shared_.check_host(to_bytes(bytes)).in("intermediate values");
  }

 private:
  Executor& executor_;
  Step& step_;
};

Executor::Executor(Workspace& workspace, const Graph& graph)
    : shared_(workspace),
      graph_(graph),
      slots_(graph.values.size()),
      is_output_(graph.values.size()),
      copies_(graph.outputs.size()),
      outputs_(graph.outputs.size()) {
  static constexpr std::byte kNothing{};
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (const Value& value = graph[id]; value.role == Role::Constant)
      slots_[id].view = {value.data.data != nullptr ? value.data.data : &kNothing, value.info()};
  for (const ValueId output : graph.outputs) is_output_[output] = true;
}

Result<std::unique_ptr<Executor>> Executor::create(Workspace& workspace, const Graph& graph,
                                                   GraphKind graph_kind) {
  auto executor = std::make_unique<Executor>(workspace, graph);
  for (PartitionStep& part : partition_graph(graph, graph_kind)) RT_TRY(executor->add(std::move(part)));
  return executor;
}

Status Executor::add(PartitionStep part) {
  Step step;
  step.part = std::move(part);
  if (const Node* node = step.part.node) {
    step.operands.resize(node->inputs.size());
    for (size_t i = 0; ops::is_control(node->kind()) && i < node->bodies.size(); ++i) {
      RT_ASSIGN(auto body, create(shared_, node->bodies[i], GraphKind::Body));
      step.bodies.push_back(std::move(body));
    }
  } else {
    step.runner = std::make_unique<GraphRunner>(shared_, *step.part.segment);
    step.operands.resize(step.part.inputs.size());
    step.inputs.resize(step.part.inputs.size());
    step.outputs.resize(step.part.outputs.size());
  }
  steps_.push_back(std::move(step));
  return {};
}

Status Executor::run(std::span<const ConstTensorView> inputs) {
  output_buffer_ = 1 - output_buffer_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Slot& slot = slots_[graph_.inputs[i]];
    slot.view = inputs[i];
    if (slot.view.data != nullptr && is_aligned(slot.view.data, kHostAlignment)) continue;
    const size_t bytes = slot.view.info.bytes();
    RT_TRY(shared_.reserve(slot.own[0], std::max<size_t>(bytes, 1))
               .in("value '", graph_[graph_.inputs[i]].name, "'"));
    if (bytes > 0) std::memcpy(slot.own[0].data(), slot.view.data, bytes);
    slot.view.data = slot.own[0].data();
  }
  for (Step& step : steps_) {
    RT_TRY(shared_.stop.check());
    RT_TRY(step.runner != nullptr ? run_segment(step) : run_node(step));
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const ValueId id = graph_.outputs[k];
    outputs_[k] = slots_[id].view;
    if (graph_[id].role != Role::Input) continue;
    // The caller's memory may change before the next run.
    AlignedBytes& copy = copies_[k][output_buffer_];
    const size_t bytes = outputs_[k].info.bytes();
    RT_TRY(shared_.reserve(copy, std::max<size_t>(bytes, 1)).in("output '", graph_[id].name, "'"));
    if (bytes > 0) std::memcpy(copy.data(), outputs_[k].data, bytes);
    outputs_[k].data = copy.data();
  }
  return {};
}

Status Executor::run_segment(Step& step) {
  for (size_t i = 0; i < step.operands.size(); ++i) {
    step.operands[i] = slots_[step.part.inputs[i]].view;
    step.inputs[i] = {const_cast<void*>(step.operands[i].data), step.operands[i].info.bytes()};
  }
  RT_TRY(step.runner->prepare(step.operands));
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    AlignedBytes& bytes = buffer(step.part.outputs[k]);
    const size_t needed = step.runner->output(k).bytes;
    if (Status status = shared_.reserve(bytes, std::max<size_t>(needed, 1)); !status.ok())
      return std::move(status).in(source_text(graph_, step.part.outputs[k]));
    step.outputs[k] = {bytes.data(), needed};
  }
  RT_TRY(step.runner->run(step.inputs, step.outputs));
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    RT_TRY(step.runner->deliver(k, step.outputs, step.outputs[k].data, false).status());
    slots_[step.part.outputs[k]].view = {step.outputs[k].data, step.runner->output(k).info};
  }
  return {};
}

Status Executor::run_node(Step& step) {
  const auto start = ProfileClock::now();
  const Node& node = *step.part.node;
  std::vector<Operand> operands(node.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    step.operands[i] = slots_[node.inputs[i]].view;
    operands[i] = {.present = true, .info = step.operands[i].info, .value = step.operands[i].data};
  }
  const NodeView view{.node = node, .inputs = operands};
  Results results(*this, step);
  if (step.bodies.empty()) {
    RT_TRY(ops::run_node(view, step.operands, results, ops::host_value));
  } else {
    std::vector<TensorInfo> infos;  // checks the operands
    RT_TRY(ops::infer_node(view, infos));
    const ops::RunBody run_body =
        [&step](size_t body,
                std::span<const ConstTensorView> inputs) -> Result<std::span<const ConstTensorView>> {
      RT_TRY(step.bodies[body]->run(inputs));
      return step.bodies[body]->outputs();
    };
    RT_TRY(ops::run_control(view, step.operands, shared_.stop, run_body, results).in(describe(node)));
  }
  step.nanoseconds += nanoseconds_since(start);
  ++step.runs;
  return {};
}

void Executor::collect(const Plan& plan, std::vector<Timing>& timings) {
  if (plan.nanoseconds().empty()) return;
  const std::vector<uint64_t> live = live_bytes(plan.program());
  Timing timing{.plan = &plan, .runs = plan.profiled_runs()};
  const auto add_transfer = [&](const char* name, uint64_t time) {
    timing.transfer = name;
    timing.nanoseconds = time;
    if (time > 0) timings.push_back(timing);
  };
  add_transfer("inputs", plan.transfer_times().inputs);
  for (timing.transfer = nullptr; timing.step < live.size(); ++timing.step) {
    timing.nanoseconds = plan.nanoseconds()[timing.step];
    timing.live_bytes = live[timing.step];
    timings.push_back(timing);
  }
  timing.live_bytes = 0;
  add_transfer("outputs", plan.transfer_times().outputs);
}

void Executor::collect(std::vector<Timing>& timings) const {
  for (const Step& step : steps_) {
    if (step.runner == nullptr) {
      timings.push_back({.node = step.part.node, .nanoseconds = step.nanoseconds, .runs = step.runs});
      for (const auto& body : step.bodies) body->collect(timings);
      continue;
    }
    if (step.runner->plan() != nullptr) collect(*step.runner->plan(), timings);
  }
}

void Executor::reset_profile() noexcept {
  for (Step& step : steps_) {
    step.nanoseconds = step.runs = 0;
    if (step.runner != nullptr) step.runner->reset_profile();
    for (const auto& body : step.bodies) body->reset_profile();
  }
}

size_t Executor::host_bytes() const noexcept {
  size_t bytes = 0;
  const auto add = [&](const std::array<AlignedBytes, 2>& own) {
    bytes += own[0].capacity() + own[1].capacity();
  };
  for (const Slot& slot : slots_) add(slot.own);
  for (const auto& copy : copies_) add(copy);
  for (const Step& step : steps_) {
    for (const Slot& slot : step.unread) add(slot.own);
    for (const auto& body : step.bodies) bytes += body->host_bytes();
  }
  return bytes;
}

void Executor::print(std::string& out, const std::string& indent) const {
  const auto value = [&](ValueId id) {
    if (id == kNoValue) return std::string("-");
    const TensorInfo& info = slots_[id].view.info;
    return slots_[id].view.data == nullptr ? graph_[id].name : text(graph_[id].name, " ", info);
  };
  for (const Step& step : steps_) {
    if (step.runner != nullptr) {
      append(out, indent, "segment '", step.part.segment->name, "', ", step.part.segment->nodes.size(),
             " nodes\n");
      if (const Plan* plan = step.runner->plan())
        out += steps_text(plan->program(), *shared_.devices, indent + "  ");
      else
        append(out, indent, "  (no plan at hand)\n");
      continue;
    }
    const Node& node = *step.part.node;
    append(out, indent, "cut: ", op_name(node), "  '", node.name, "'  on the host\n");
    for (const ValueId input : node.inputs) append(out, indent, "     <- ", value(input), "\n");
    for (const ValueId output : node.outputs) append(out, indent, "     -> ", value(output), "\n");
    for (size_t i = 0; i < step.bodies.size(); ++i) {
      append(out, indent, "  body ", i, " '", node.bodies[i].name, "'\n");
      step.bodies[i]->print(out, indent + "    ");
    }
  }
}

}  // namespace librt
