#include "runtime/session/prepare/slice_batch.h"

#include <algorithm>

#include "runtime/ops/evaluate.h"

namespace librt {
namespace {

/// Kernels are created for every slice, so there are not many.
constexpr int64_t kMostSlices = 32;
/// Steps with more operations per byte take the same time whether their values are in the caches or not, and
/// their kernels (Winograd) may need many samples: they end a run.
constexpr double kMostFlopsPerByte = 20;

bool has_axis(std::span<const int64_t> axes, int64_t axis, int rank) {
  return std::ranges::any_of(axes, [&](int64_t each) { return (each < 0 ? each + rank : each) == axis; });
}

template <class Attributes>
bool keeps_samples(const Node& node, int rank) {
  const auto& axes = node.as<Attributes>().axes;
  return !axes.empty() && !has_axis(axes, 0, rank);
}

/// Whether sample i of the result depends on sample i of the operands alone; `rank`: of the first operand.
/// Which operands have samples is up to the caller, and that their first extents agree.
/// A list, not a trait of the pages: no other pass asks, and five of the answers depend on attributes.
bool computes_samples(const Node& node, int rank) {
  switch (node.kind()) {
    case OpKind::Conv:
    case OpKind::ConvTranspose:
    case OpKind::QuantizedConv:
    case OpKind::BatchNorm:
    case OpKind::MaxPool:
    case OpKind::AveragePool:
    case OpKind::Resize: return true;
    case OpKind::Transpose: {
      const auto& permutation = node.as<op::TransposeAttributes>().permutation;
      return !permutation.empty() && permutation[0] == 0;
    }
    case OpKind::Concat: return !has_axis(std::array{node.as<op::ConcatAttributes>().axis}, 0, rank);
    case OpKind::Slice: return keeps_samples<op::SliceAttributes>(node, rank);
    case OpKind::ReduceMean: return keeps_samples<op::ReduceMeanAttributes>(node, rank);
    case OpKind::ReduceMax: return keeps_samples<op::ReduceMaxAttributes>(node, rank);
    case OpKind::Lookup: return true;
    default: return ops::form_of(node.kind()) != ops::Form::Opaque;
  }
}

class BatchSlicer {
 public:
  BatchSlicer(const LegalizeRequest& request, Program& program) : request_(request), p_(program) {}

  Status run();

 private:
  struct Run {
    size_t first = 0, last = 0;  ///< steps; last is excluded
    int64_t samples = 0;         ///< of a slice
    uint64_t largest = 0;        ///< bytes of samples that one step reads and writes
  };

  int64_t extent(Ref value) const {
    const Shape& shape = p_.values[value].info.shape;
    return shape.rank() == 0 ? 0 : shape[0];
  }
  bool is_sliced(const Step& step, size_t input) const;
  bool can_slice(const Step& step) const;
  uint64_t sample_bytes(const Step& step) const;
  Run find_run(size_t begin) const;
  bool pays(const Run& run) const;
  void mark_needed(const Run& run);
  TensorInfo slice_info(Ref value, int64_t samples) const {
    TensorInfo info = p_.values[value].info;
    info.shape[0] = samples;
    return info;
  }
  Ref add(PlanValue value) {
    value.bytes = value.info.bytes();
    p_.values.push_back(std::move(value));
    return static_cast<Ref>(p_.values.size() - 1);
  }
  Ref slice(const Run& run, int64_t begin, Ref value, std::vector<Ref>& made);
  bool add_steps(const Run& run, int64_t begin, std::vector<Step>& steps,
                 std::vector<std::vector<Ref>>& parts);
  bool add_joins(const Run& run, const std::vector<std::vector<Ref>>& parts, std::vector<Step>& steps);
  bool finish(Step& step) const;

  const LegalizeRequest& request_;
  Program& p_;
  uint64_t limit_ = 0;
  std::vector<uint8_t> needed_;  ///< by value: read outside of the run
};

/// Operands without samples are constants, or the same for all: of less rank, or with a first extent of 1.
bool BatchSlicer::is_sliced(const Step& step, size_t input) const {
  const Ref value = step.inputs[input];
  if (value == kNone || p_.values[value].source == ValueSource::Constant) return false;
  return p_.values[value].info.shape.rank() == p_.values[step.outputs[0]].info.shape.rank() &&
         extent(value) == extent(step.outputs[0]);
}

bool BatchSlicer::can_slice(const Step& step) const {
  if (step.node == nullptr || step.device != DeviceSet::kChosen || step.outputs.size() != 1 ||
      step.inputs.empty() || step.inputs[0] == kNone || !step.fallback.empty())
    return false;
  const PlanValue& result = p_.values[step.outputs[0]];
  const int rank = result.info.shape.rank();
  if (result.source != ValueSource::Step || rank == 0 || extent(step.outputs[0]) < 2) return false;
  if (!computes_samples(*step.node, p_.values[step.inputs[0]].info.shape.rank())) return false;
  const bool broadcasts = ops::form_of(step.node->kind()) == ops::Form::Broadcast;
  const bool joins = step.node->kind() == OpKind::Concat;
  bool any = false;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] == kNone) continue;
    const PlanValue& value = p_.values[step.inputs[i]];
    const Shape& shape = value.info.shape;
    const bool sliced = is_sliced(step, i);
    any = any || sliced;
    if (sliced && p_.values[root_of(p_, step.inputs[i])].source == ValueSource::State) return false;
    if (broadcasts                              ? !sliced && shape.rank() >= rank && shape[0] != 1
        : joins || i == 0                       ? !sliced
        : value.source == ValueSource::Constant ? false
                                                : !sliced || shape != result.info.shape || i == 1)
      return false;  // beside the first operand, only a residual has samples
  }
  return any;
}

uint64_t BatchSlicer::sample_bytes(const Step& step) const {
  uint64_t bytes = p_.values[step.outputs[0]].bytes;
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (is_sliced(step, i)) bytes += p_.values[step.inputs[i]].bytes;
  return bytes;
}

/// The next steps with one number of samples, from the first to the last whose values exceed the limit.
BatchSlicer::Run BatchSlicer::find_run(size_t begin) const {
  Run run{.first = begin, .last = begin};
  int64_t total = 0;
  for (size_t i = begin; i < p_.steps.size(); ++i) {
    const Step& step = p_.steps[i];
    const uint64_t bytes = sample_bytes(step);
    const bool fits = can_slice(step) && (total == 0 || extent(step.outputs[0]) == total) &&
                      step.cost.flops <= kMostFlopsPerByte * static_cast<double>(bytes);
    if (!fits) {
      if (total != 0) break;
      continue;
    }
    if (bytes <= limit_) continue;
    if (total == 0) run.first = i;
    total = extent(step.outputs[0]);
    run.last = i + 1;
    run.largest = std::max(run.largest, bytes);
  }
  // As few slices as make one small enough, of the numbers that divide the samples.
  for (int64_t slices = 1; slices <= std::min(total, kMostSlices); ++slices) {
    if (total % slices != 0) continue;
    run.samples = total / slices;
    if (run.largest / static_cast<uint64_t>(total) * static_cast<uint64_t>(run.samples) <= limit_) break;
  }
  return run;
}

void BatchSlicer::mark_needed(const Run& run) {
  needed_.assign(p_.values.size(), 0);
  for (size_t i = 0; i < p_.steps.size(); ++i) {
    if (i >= run.first && i < run.last) continue;
    for (const Ref input : p_.steps[i].inputs)
      if (input != kNone) needed_[root_of(p_, input)] = 1;
  }
  for (const Ref output : p_.outputs) needed_[root_of(p_, output)] = 1;
}

/// Whether more bytes stay in the caches than are read again for each slice.
bool BatchSlicer::pays(const Run& run) const {
  uint64_t kept = 0, again = 0;
  for (size_t i = run.first; i < run.last; ++i) {
    const Step& step = p_.steps[i];
    if (needed_[step.outputs[0]] == 0) kept += p_.values[step.outputs[0]].bytes;
    for (const Ref input : step.inputs)
      if (input != kNone && p_.values[input].source == ValueSource::Constant) again += p_.values[input].bytes;
  }
  const auto slices = static_cast<uint64_t>(extent(p_.steps[run.first].outputs[0]) / run.samples);
  return slices > 1 && kept > limit_ && kept > again * slices;
}

/// The samples from `begin` on of a value that the run reads. made: by value, those that there are.
Ref BatchSlicer::slice(const Run& run, int64_t begin, Ref value, std::vector<Ref>& made) {
  if (made[value] != kNone) return made[value];
  const PlanValue source = p_.values[value];
  const Ref root = root_of(p_, value);
  const TensorInfo info = slice_info(value, run.samples);
  const size_t bytes = info.bytes() / static_cast<size_t>(run.samples);
  PlanValue part{.name = source.name, .info = info, .source = ValueSource::Alias};
  part.index = made[root] != kNone ? made[root] : value;
  part.offset = made[root] != kNone ? 0 : bytes * static_cast<size_t>(begin);
  const Ref result = add(std::move(part));
  made.resize(p_.values.size(), kNone);
  made[value] = result;
  return result;
}

/// Infers the step's results from its operands, which must be what is expected, and finds its kernels.
bool BatchSlicer::finish(Step& step) const {
  std::vector<Operand> operands;
  for (const Ref input : step.inputs) {
    if (input == kNone) {
      operands.push_back({});
      continue;
    }
    const PlanValue& value = p_.values[input];
    operands.push_back({.present = true,
                        .info = value.info,
                        .value = value.source == ValueSource::Constant ? value.host : nullptr});
  }
  std::vector<TensorInfo> infos;
  if (!ops::infer_node({.node = *step.node, .inputs = operands}, infos).ok() || infos.size() != 1 ||
      !(infos[0] == p_.values[step.outputs[0]].info))
    return false;
  const NodeView view{.node = *step.node, .inputs = operands, .outputs = infos};
  Device& device = request_.devices.chosen();
  auto candidates = device.kernels().candidates(device, view);
  if (!candidates.ok()) return false;
  step.candidates = std::move(candidates).value();
  step.cost = ops::cost_of(view);
  return true;
}

/// The run's steps for the samples from `begin` on. parts: by step of the run, its results.
bool BatchSlicer::add_steps(const Run& run, int64_t begin, std::vector<Step>& steps,
                            std::vector<std::vector<Ref>>& parts) {
  std::vector<Ref> made(p_.values.size(), kNone);
  for (size_t i = run.first; i < run.last; ++i) {
    const Step& whole = p_.steps[i];
    Step step{.node = whole.node, .name = whole.name, .inputs = whole.inputs, .device = whole.device};
    append(step.name, " [", begin, ":", begin + run.samples, "]");
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const Ref input = step.inputs[k];
      if (input == kNone) continue;
      if (is_sliced(whole, k))
        step.inputs[k] = slice(run, begin, input, made);
      else if (made[root_of(p_, input)] != kNone)
        return false;  // all samples of a value of which this slice has some
    }
    const Ref result = whole.outputs[0];
    step.outputs = {add({.name = p_.values[result].name, .info = slice_info(result, run.samples)})};
    p_.values[step.outputs[0]].index = static_cast<uint32_t>(run.first + steps.size());
    made.resize(p_.values.size(), kNone);
    made[result] = step.outputs[0];
    parts[i - run.first].push_back(step.outputs[0]);
    if (!finish(step)) return false;
    // An operand that a slice begins at must be aligned.
    for (const Ref input : step.inputs)
      if (input != kNone && offset_of(p_, input) % request_.devices.alignment() != 0) return false;
    steps.push_back(std::move(step));
  }
  return true;
}

bool BatchSlicer::add_joins(const Run& run, const std::vector<std::vector<Ref>>& parts,
                            std::vector<Step>& steps) {
  for (size_t i = run.first; i < run.last; ++i) {
    const Ref result = p_.steps[i].outputs[0];
    if (needed_[result] == 0) continue;
    auto node = std::make_unique<Node>();
    node->op = make_op(op::ConcatAttributes{});
    Step step{
        .node = node.get(), .name = text(p_.values[result].name, ": joined"), .inputs = parts[i - run.first]};
    step.outputs = {result};
    p_.joins.push_back(std::move(node));
    if (!finish(step)) return false;
    steps.push_back(std::move(step));
  }
  return true;
}

Status BatchSlicer::run() {
  const DeviceInfo& device = request_.devices.chosen().info();
  limit_ = device.cache_bytes / 2;
  if (!device.host_memory || limit_ == 0 || !p_.updates.empty()) return {};
  for (size_t begin = 0; begin < p_.steps.size();) {
    const Run run = find_run(begin);
    if (run.last == begin) break;
    begin = run.last;
    mark_needed(run);
    if (!pays(run)) continue;
    const int64_t total = extent(p_.steps[run.first].outputs[0]);
    const size_t values = p_.values.size();
    std::vector<Step> steps;
    std::vector<std::vector<Ref>> parts(run.last - run.first);
    bool done = true;
    for (int64_t at = 0; done && at < total; at += run.samples) done = add_steps(run, at, steps, parts);
    if (!done || !add_joins(run, parts, steps)) {
      p_.values.resize(values);
      continue;
    }
    const auto at = p_.steps.begin() + static_cast<std::ptrdiff_t>(run.first);
    p_.steps.erase(at, at + static_cast<std::ptrdiff_t>(run.last - run.first));
    p_.steps.insert(p_.steps.begin() + static_cast<std::ptrdiff_t>(run.first),
                    std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
    begin = run.first + steps.size();
  }
  return {};
}

}  // namespace

Status slice_batch(const LegalizeRequest& request, Program& program) {
  return BatchSlicer(request, program).run();
}

}  // namespace librt
