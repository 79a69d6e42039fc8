#include "tools/convert/memory_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "runtime/model/reader.h"
#include "tools/compiler/report.h"
#include "tools/compiler/train/recompute.h"
#include "tools/compiler/writer.h"
#include "tools/convert/training.h"

namespace librt::convert {
namespace {

/// Each round of recomputation aims at this fraction less. Steps do not depend on the budget, so that the
/// smallest budget that an error names is achievable.
constexpr uint64_t kRound = 16;
constexpr int kMostRounds = 40;

bool updates_weights_only(const std::string& entry) {
  return entry == "update";
}

class BudgetSearch {
 public:
  BudgetSearch(const ModelGraph& source, const Options& options, const compiler::PipelineOptions& pipeline)
      : source_(source), options_(options), pipeline_(pipeline) {}

  Result<MemoryBudget> run(ModelGraph& model, compiler::TrainReport& training) {
    RT_TRY(find_batch_symbol());
    std::vector<DType> types = {options_.training.optimizer.optimizer.state_type};
    if (types[0] == DType::F32) types.insert(types.end(), {DType::BF16, DType::U8});
    for (const DType type : types) {
      RT_TRY(try_batches(type));
      if (!best_) continue;
      model = std::move(best_->model);
      training = std::move(best_->training);
      return std::move(best_->budget);
    }
    std::string reason;
    if (whole_batch_)
      reason =
          "; BatchNormalization in training mode sees whole batches only: freeze it (--trainable) or train "
          "with smaller batches";
    return Status::make(Code::OutOfMemory, "--memory: a batch of ", options_.batch, " does not fit into ",
                        bytes_text(options_.memory), ": the smallest budget is ", bytes_text(smallest_), " (",
                        smallest_, " bytes)", reason);
  }

 private:
  struct Compiled {
    ModelGraph model;
    compiler::TrainReport training;
  };
  struct Candidate {
    ModelGraph model;
    compiler::TrainReport training;
    MemoryBudget budget;
    double cost = 0;
  };

  Status find_batch_symbol() {
    const Graph& infer = *source_.entry("infer");
    const std::vector<Dim>* dims = infer.inputs.empty() ? nullptr : &infer[infer.inputs[0]].dims;
    if (dims == nullptr || dims->empty() || dims->front().symbol < 0)
      return invalid_argument(
          "--memory: expected a dynamic first dimension of the first input, as the batch");
    symbol_ = infer.symbols[static_cast<size_t>(dims->front().symbol)].name;
    // A derived dimension follows from the batch once all others are fixed.
    for (const Symbol& symbol : infer.symbols)
      if (symbol.name != symbol_ && symbol.definition.empty())
        return invalid_argument("--memory: dimension '", symbol.name, "' is dynamic; fix it with --dim ",
                                symbol.name, "=N");
    return {};
  }

  Result<Compiled> compile(DType type, bool accumulate) const {
    Compiled made{.model = source_, .training = {}};
    Options options = options_;
    options.training.optimizer.optimizer.state_type = type;
    options.training.accumulate = accumulate;
    RT_TRY(add_training(made.model, options, made.training));
    RT_TRY(compiler::optimize(made.model, pipeline_, nullptr));
    return made;
  }

  /// From large to small micro-batches, until one fits without recomputation: smaller ones cost more.
  Status try_batches(DType type) {
    for (int64_t micro = options_.batch; micro >= 1; --micro) {
      if (options_.batch % micro != 0) continue;
      if (micro == options_.batch || !accumulating_ || accumulating_type_ != type) {
        RT_ASSIGN(compiled_, compile(type, micro != options_.batch || options_.training.accumulate));
        accumulating_ = micro != options_.batch;
        accumulating_type_ = type;
      }
      RT_ASSIGN(const bool is_plain, try_batch(micro, type));
      if (is_plain) return {};
      const Graph* step = compiled_.model.entry("train_step");
      whole_batch_ = std::any_of(step->nodes.begin(), step->nodes.end(),
                                 [](const Node& node) { return node.kind() == OpKind::BatchNormTrain; });
      if (whole_batch_) return {};
    }
    return {};
  }

  std::map<std::string, int64_t> extents(int64_t micro) const { return {{symbol_, micro}}; }

  /// The entries that rttrain runs: a step as a whole or in parts, and inference for validation.
  std::vector<std::string> entries(int64_t micro) const {
    if (micro == options_.batch) return {"train_step", "infer"};
    return {"accumulate", "update", "infer"};
  }

  /// The model is serialized and read as by the runtime, so that constants are aligned as they are there.
  Result<PlannedMemory> measure(const ModelGraph& model, const std::string& entry, int64_t micro) const {
    ModelGraph alone;
    alone.states = model.states;
    alone.entries.push_back({.name = entry, .graph = *model.entry(entry)});
    RT_ASSIGN(std::vector<std::byte> bytes, compiler::serialize_model(alone));
    RT_ASSIGN(const ModelGraph read, read_model(Blob::own(std::move(bytes))));
    return planned_memory(read.entries[0].graph, read.states,
                          updates_weights_only(entry) ? std::map<std::string, int64_t>() : extents(micro),
                          options_.memory_backend);
  }

  /// Whether it fits without recomputation; if not, tries recomputation.
  Result<bool> try_batch(int64_t micro, DType type) {
    Candidate candidate{.model = compiled_.model, .training = compiled_.training};
    MemoryBudget& budget = candidate.budget;
    budget.batch = options_.batch;
    budget.micro_batch = micro;
    budget.optimizer_state = type;
    RT_ASSIGN(budget.states, state_bytes(candidate.model.states, options_.memory_backend));
    for (const std::string& entry : entries(micro)) {
      RT_ASSIGN(const PlannedMemory memory, measure(candidate.model, entry, micro));
      budget.entries.emplace_back(entry, memory);
    }
    candidate.cost = 1 + 0.5 / static_cast<double>(micro);
    smallest_ = std::min(smallest_, budget.total());
    const bool fits = budget.total() <= options_.memory;
    if (!fits) RT_TRY(save_memory(candidate));
    if (budget.total() <= options_.memory && (!best_ || candidate.cost < best_->cost))
      best_ = std::move(candidate);
    return fits;
  }

  /// Recomputes in the first entry, more in each round, until the budget is met or nothing helps.
  Status save_memory(Candidate& candidate) {
    MemoryBudget& budget = candidate.budget;
    const std::string entry = budget.entries[0].first;
    Graph& graph = *candidate.model.entry(entry);
    RT_ASSIGN(const compiler::GraphReport report,
              compiler::report_of(graph, candidate.model.states, extents(budget.micro_batch)));
    uint64_t live = report.live_bytes;
    double flops = 0;
    for (int round = 0; round < kMostRounds && budget.total() > options_.memory; ++round) {
      RT_ASSIGN(const compiler::RecomputeReport made,
                compiler::recompute(graph, candidate.model.states, extents(budget.micro_batch),
                                    live - live / kRound));
      if (made.nodes == 0) return {};
      if (flops == 0) flops = made.flops;
      live = made.live_after;
      budget.recomputed_nodes += made.nodes;
      budget.recomputed_flops += made.added_flops / std::max(flops, 1.0);
      candidate.cost += made.added_flops / std::max(flops, 1.0);
      RT_ASSIGN(budget.entries[0].second, measure(candidate.model, entry, budget.micro_batch));
      smallest_ = std::min(smallest_, budget.total());
    }
    return {};
  }

  const ModelGraph& source_;
  const Options& options_;
  const compiler::PipelineOptions& pipeline_;
  std::string symbol_;
  Compiled compiled_;
  bool accumulating_ = false;  ///< compiled_ has the entries accumulate and update
  DType accumulating_type_ = DType::F32;
  bool whole_batch_ = false;
  std::optional<Candidate> best_;
  uint64_t smallest_ = std::numeric_limits<uint64_t>::max();
};

}  // namespace

uint64_t MemoryBudget::total() const noexcept {
  uint64_t sum = states;
  for (const auto& [name, memory] : entries) sum += memory.total();
  return sum;
}

Result<MemoryBudget> fit_training(ModelGraph& model, const Options& options,
                                  const compiler::PipelineOptions& pipeline,
                                  compiler::TrainReport& training) {
  const ModelGraph source = model;
  RT_ASSIGN(MemoryBudget budget, BudgetSearch(source, options, pipeline).run(model, training));
  model.metadata.emplace_back("train.batch", text(budget.batch));
  model.metadata.emplace_back("train.micro_batch", text(budget.micro_batch));
  model.metadata.emplace_back("train.memory", text(options.memory));
  return budget;
}

std::string budget_text(const MemoryBudget& budget, const Options& options) {
  std::string out = text("training    takes ", bytes_text(budget.total()), " (", budget.total(),
                         " bytes) of ", bytes_text(options.memory), " on ", options.memory_backend,
                         ": states ", bytes_text(budget.states));
  for (const auto& [name, memory] : budget.entries)
    append(out, text(", ", name, " ", bytes_text(memory.total())));
  append(out, text("\nbatch       ", budget.batch));
  if (budget.micro_batch != budget.batch) append(out, text(" in micro-batches of ", budget.micro_batch));
  if (budget.recomputed_nodes > 0) {
    const auto tenths = static_cast<int64_t>(std::llround(budget.recomputed_flops * 1000));
    append(out, text(", ", budget.recomputed_nodes, " nodes run again in the backward pass (", tenths / 10,
                     ".", tenths % 10, " % more operations)"));
  }
  append(out, text(", optimizer states in ", name_of(budget.optimizer_state)));
  return out;
}

}  // namespace librt::convert
