#include "tools/convert/verify_extents.h"

#include <algorithm>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/random.h"
#include "runtime/ops/page.h"
#include "tools/compiler/builder.h"

namespace librt::convert {
namespace {

/// Beyond this many operations only one case is compared: the reference evaluator does some 10^8 a second.
constexpr double kMostWork = 2e9;
/// Constants in shape arithmetic above this are not taken for extents.
constexpr int64_t kMostNumber = 4096;

class Cases {
 public:
  Cases(const ModelGraph& model, uint64_t seed)
      : graph_(*model.entry("infer")), states_(model.states), random_(seed) {
    extents_.assign(graph_.symbols.size(), -1);
    for (const ValueId input : graph_.inputs)
      for (const Dim& dim : graph_[input].dims)
        if (!dim.is_known() && dim.symbol >= 0 &&
            graph_.symbols[static_cast<size_t>(dim.symbol)].definition.empty() &&
            std::find(open_.begin(), open_.end(), dim.symbol) == open_.end()) {
          open_.push_back(dim.symbol);
          counts_samples_.push_back(&dim == graph_[input].dims.data() && graph_[input].rank() > 1);
        }
  }

  Result<std::vector<ExtentCase>> run() {
    if (open_.empty()) {
      add({});
      return std::move(cases_);
    }
    add(std::vector<int64_t>(open_.size(), 1));
    add_smallest();
    for (int i = 0; i < 2; ++i) add_random();
    add_beyond_numbers();
    if (cases_.empty()) RT_TRY(add_example());
    return std::move(cases_);
  }

 private:
  /// The inputs at these extents of the symbols; nullopt where the model rejects them.
  std::optional<std::vector<TensorInfo>> accepted(const std::vector<int64_t>& numbers, double& work) {
    Graph fixed = graph_;
    std::vector<int64_t> extents = extents_;
    for (size_t i = 0; i < open_.size(); ++i) extents[static_cast<size_t>(open_[i])] = numbers[i];
    for (size_t i = 0; i < extents.size(); ++i)
      if (const auto& definition = fixed.symbols[i].definition; !definition.empty())
        extents[i] = evaluate(definition, extents).value_or(-1);
    for (size_t i = 0; i < extents.size(); ++i)
      if (fixed.symbols[i].bound > 0 && extents[i] > fixed.symbols[i].bound) return std::nullopt;
    std::vector<TensorInfo> infos;
    for (const ValueId input : fixed.inputs) {
      infos.push_back({.dtype = fixed[input].dtype, .shape = {}});
      for (Dim& dim : fixed[input].dims) {
        if (!dim.is_known() && dim.symbol >= 0) dim = {.extent = extents[static_cast<size_t>(dim.symbol)]};
        if (!dim.is_known()) return std::nullopt;
        infos.back().shape.push_back(dim.extent);
      }
    }
    const compiler::Builder builder(fixed, &states_);
    if (!builder.status().ok()) return std::nullopt;
    work = 0;
    for (const Node& node : fixed.nodes) {
      const ops::Cost cost = builder.example_cost(node);
      work += cost.flops + cost.bytes / 4;
    }
    return infos;
  }

  bool add(const std::vector<int64_t>& numbers) {
    if (std::find(tried_.begin(), tried_.end(), numbers) != tried_.end()) return false;
    tried_.push_back(numbers);
    double work = 0;
    auto infos = accepted(numbers, work);
    if (!infos || (work > kMostWork && !cases_.empty())) return false;
    std::string at;
    for (size_t i = 0; i < open_.size(); ++i)
      append(at, at.empty() ? "" : ", ", graph_.symbols[static_cast<size_t>(open_[i])].name, "=", numbers[i]);
    cases_.push_back({std::move(at), std::move(*infos)});
    return true;
  }

  void add_smallest() {
    for (const int64_t extent :
         {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 224, 256, 384, 512, 640}) {
      smallest_ = extent;
      double work = 0;
      std::vector<int64_t> all(open_.size(), extent);
      for (size_t i = 0; i < all.size(); ++i)
        if (counts_samples_[i]) all[i] = 1;
      if (!accepted(all, work)) continue;
      add(all);
      return;
    }
  }

  void add_random() {
    constexpr int kTries = 8;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      // First arbitrary extents, then multiples of the smallest that works.
      std::vector<int64_t> numbers;
      for (size_t i = 0; i < open_.size(); ++i) {
        const auto any = static_cast<int64_t>(split_mix(random_) >> 33);
        numbers.push_back(counts_samples_[i]     ? 1 + any % 4
                          : attempt < kTries / 2 ? 1 + any % (2 * smallest_ + 16)
                                                 : smallest_ * (1 + any % 3));
      }
      if (add(numbers)) return;
    }
  }

  void add_beyond_numbers() {
    int64_t largest = 1;
    for (const Value& value : graph_.values) {
      if (value.role != Role::Constant || !is_integer(value.dtype)) continue;
      const int64_t count = value.info().elements();
      for (int64_t i = 0; i < count && count <= compiler::kMostElements; ++i)
        if (const int64_t number = load_integer(value.data.data, value.dtype, i); number <= kMostNumber)
          largest = std::max({largest, number, -std::max(number, -kMostNumber)});
    }
    for (const int64_t unit : {int64_t{1}, smallest_, int64_t{64}}) {
      const int64_t beyond = (largest / unit + 1) * unit;
      if (add(std::vector<int64_t>(open_.size(), beyond))) return;
      for (size_t i = 0; i < open_.size(); ++i) {
        std::vector<int64_t> one(open_.size(), smallest_);
        for (size_t k = 0; k < one.size(); ++k)
          if (counts_samples_[k]) one[k] = 1;
        one[i] = beyond;
        if (add(one)) return;
      }
    }
  }

  /// Adds the extents that shape inference takes as an example.
  Status add_example() {
    Graph graph = graph_;
    const compiler::Builder builder(graph, &states_);
    RT_TRY(Status(builder.status()));
    std::vector<int64_t> numbers;
    for (const int32_t symbol : open_) numbers.push_back(builder.example_extent(symbol));
    if (add(numbers)) return {};
    return invalid_model("no extents were found at which the model works; give inputs with --input");
  }

  const Graph& graph_;
  const std::vector<State>& states_;
  std::vector<int32_t> open_;         ///< symbols of inputs
  std::vector<bool> counts_samples_;  ///< for each: whether it is an input's first axis
  std::vector<int64_t> extents_;
  uint64_t random_;
  int64_t smallest_ = 1;
  std::vector<std::vector<int64_t>> tried_;
  std::vector<ExtentCase> cases_;
};

}  // namespace

Result<std::vector<ExtentCase>> extent_cases(const ModelGraph& model, uint64_t seed) {
  return Cases(model, seed).run();
}

}  // namespace librt::convert
