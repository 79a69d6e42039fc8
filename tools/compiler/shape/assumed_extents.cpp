#include "tools/compiler/shape/assumed_extents.h"

#include <algorithm>

#include "runtime/ops/page.h"

namespace librt::compiler {
namespace {

/// With more extents than this there are too many combinations.
constexpr size_t kMostAssumedOpen = 8;

template <class Extent>
void add(std::vector<Extent>& list, const Extent& extent) {
  if (std::find(list.begin(), list.end(), extent) == list.end()) list.push_back(extent);
}

}  // namespace

void AssumedExtents::open(size_t input, int axis) {
  add(open_, at(given_[input], axis));
}

bool AssumedExtents::is_open(const Extent& extent) const {
  return std::find(open_.begin(), open_.end(), extent) != open_.end();
}

/// Infers with each extent `first` replaced by `second`. The value of an input whose shape changes is
/// unknown.
bool AssumedExtents::infer(const Changes& changes, std::vector<Probes>& results) const {
  std::vector<Probes> inputs = given_;
  for (Probes& input : inputs)
    for (int axis = 0; axis < input[0].info.shape.rank(); ++axis)
      for (const auto& [from, to] : changes) {
        if (at(input, axis) != from) continue;
        for (size_t probe = 0; probe < kProbes; ++probe) {
          input[probe].info.shape[axis] = to[probe];
          input[probe].value = {};
        }
        break;
      }
  return infer_(inputs, results);
}

/// Drops the changes that are not needed.
AssumedExtents::Changes AssumedExtents::without_idle(Changes changes) const {
  std::vector<Probes> results;
  if (!infer(changes, results)) return changes;
  for (size_t i = 0; i < changes.size();) {
    Changes others = changes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (infer(others, results))
      changes = std::move(others);
    else
      ++i;
  }
  return changes;
}

void AssumedExtents::attempt(const Changes& changes) {
  std::vector<Probes> results;
  if (!infer(changes, results)) return;
  if (!found_) results_ = results;
  found_ = true;
  // An extent that differs between assumptions is unknown.
  for (size_t i = 0; i < results.size() && one_rank_; ++i) {
    one_rank_ = results[i][0].info.shape.rank() == results_[i][0].info.shape.rank();
    for (int axis = 0; one_rank_ && axis < results[i][0].info.shape.rank(); ++axis)
      if (at(results[i], axis) != at(results_[i], axis))
        for (ProbeValue& probe : results_[i]) probe.info.shape[axis] = ops::kUnknownExtent;
  }
}

/// All dynamic extents on an axis (counted from the last) become the axis's known extent, or else its first
/// or last one.
AssumedExtents::Changes AssumedExtents::equal_by_axis(bool first) const {
  Changes changes;
  for (int back = 1; back <= kMaxRank; ++back) {
    std::vector<Extent> here;
    for (const Probes& input : given_)
      if (const int axis = input[0].info.shape.rank() - back; axis >= 0) add(here, at(input, axis));
    if (here.empty()) break;
    const auto known = std::find_if(here.begin(), here.end(), [&](const Extent& extent) {
      return !is_open(extent) && extent != candidates_[0];
    });
    const Extent to = known != here.end() ? *known : first ? here.front() : here.back();
    for (const Extent& extent : here)
      if (is_open(extent) && extent != to) changes.emplace_back(extent, to);
  }
  return changes;
}

bool AssumedExtents::run(std::vector<Probes>& outputs) {
  if (open_.empty() || open_.size() > kMostAssumedOpen) return false;
  candidates_ = {{1, 1}};
  for (const Probes& input : given_)
    for (int axis = 0; axis < input[0].info.shape.rank(); ++axis) add(candidates_, at(input, axis));
  for (const Extent& from : open_)
    for (const Extent& to : candidates_)
      if (from != to) attempt({{from, to}});
  const bool one_does = found_;
  for (size_t i = 0; i < open_.size() && !one_does; ++i)
    for (size_t j = i + 1; j < open_.size(); ++j)
      for (const Extent& first : candidates_)
        for (const Extent& second : candidates_) attempt({{open_[i], first}, {open_[j], second}});
  if (!found_)
    for (const bool first : {true, false}) attempt(without_idle(equal_by_axis(first)));
  for (Probes& result : results_)
    for (ProbeValue& probe : result) probe.value = {};
  outputs = std::move(results_);
  return found_ && one_rank_;
}

}  // namespace librt::compiler
