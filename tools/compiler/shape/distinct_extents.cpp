#include "tools/compiler/shape/distinct_extents.h"

#include <algorithm>

#include "runtime/ops/page.h"
#include "tools/compiler/shape/primes.h"

namespace librt::compiler {
namespace {

/// Beyond this the product of all extents might exceed what a shape may have.
constexpr size_t kMostDistinctOpen = 10;
constexpr int kFirstPrime = 4;

}  // namespace

DistinctExtents::DistinctExtents(std::vector<const Known*> inputs, std::vector<Probes> given, Infer infer)
    : inputs_(std::move(inputs)), given_(std::move(given)), infer_(std::move(infer)) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr) continue;
    for (size_t axis = 0; axis < inputs_[i]->dims.size(); ++axis) {
      const Extent extent = inputs_[i]->dims[axis];
      const auto at = static_cast<int>(axis);
      const bool listed =
          std::any_of(open_.begin(), open_.end(), [&](const Open& open) { return open.extent == extent; });
      if (extent.is_constant() || listed) continue;
      open_.push_back({extent, {given_[i][0].info.shape[at], given_[i][1].info.shape[at]}, open_.size()});
      groups_.push_back(extent);
    }
  }
}

DistinctExtents::Pair DistinctExtents::number_of(size_t group) const {
  if (groups_[group].is_constant()) return {groups_[group].constant, groups_[group].constant};
  return prime_pair(kFirstPrime + static_cast<int>(group), 1);
}

bool DistinctExtents::infer(std::vector<Probes>& outputs) const {
  std::vector<Probes> inputs = given_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr) continue;
    for (size_t axis = 0; axis < inputs_[i]->dims.size(); ++axis)
      for (const Open& open : open_) {
        if (!(open.extent == inputs_[i]->dims[axis])) continue;
        const Pair number = number_of(open.group);
        for (size_t probe = 0; probe < kProbes; ++probe) {
          inputs[i][probe].info.shape[static_cast<int>(axis)] = number[probe];
          inputs[i][probe].value = {};
        }
      }
  }
  return infer_(inputs, outputs);
}

/// Extents whose probes are equal get one value.
void DistinctExtents::merge_by_probes() {
  for (size_t i = 0; i < open_.size(); ++i)
    for (size_t k = 0; k < i && open_[i].group == i; ++k)
      if (open_[k].probes == open_[i].probes) open_[i].group = open_[k].group;
}

/// Extents whose two probes are equal are taken as constants.
void DistinctExtents::use_numbers() {
  for (size_t i = 0; i < open_.size(); ++i)
    if (open_[i].group == i && open_[i].probes[0] == open_[i].probes[1])
      groups_[i] = number(open_[i].probes[0]);
}

/// An extent that need not be equal to the others of its group leaves it.
void DistinctExtents::split_where_possible() {
  std::vector<Probes> outputs;
  for (size_t i = 0; i < open_.size(); ++i) {
    const size_t group = open_[i].group;
    const Extent stands = groups_[i];
    if (group == i && !stands.is_constant()) continue;
    open_[i].group = i;
    groups_[i] = open_[i].extent;
    if (infer(outputs)) continue;
    open_[i].group = group;
    groups_[i] = stands;
  }
}

void DistinctExtents::run(std::vector<std::vector<Extent>>& dims, std::vector<Demand>& demands) {
  if (open_.empty() || open_.size() > kMostDistinctOpen) return;
  std::vector<Probes> outputs;
  if (!infer(outputs)) {
    merge_by_probes();
    if (!infer(outputs)) use_numbers();
    if (!infer(outputs)) return;
    split_where_possible();
    if (!infer(outputs)) return;
    for (const Open& open : open_)
      if (!(groups_[open.group] == open.extent)) demands.push_back({groups_[open.group], open.extent});
  }
  for (size_t i = 0; i < dims.size() && i < outputs.size(); ++i) {
    if (static_cast<size_t>(outputs[i][0].info.shape.rank()) != dims[i].size()) return;
    for (size_t axis = 0; axis < dims[i].size(); ++axis) {
      const auto at = static_cast<int>(axis);
      const Pair found = {outputs[i][0].info.shape[at], outputs[i][1].info.shape[at]};
      if (found[0] == ops::kUnknownExtent || found[1] == ops::kUnknownExtent) continue;
      if (found[0] == found[1]) dims[i][axis] = number(found[0]);
      for (const Open& open : open_)
        if (found == number_of(open.group) && !groups_[open.group].is_constant())
          dims[i][axis] = groups_[open.group];
    }
  }
}

}  // namespace librt::compiler
