#include "tools/compiler/passes/movement.h"

namespace rt::compiler {

bool is_identity(const std::vector<int64_t>& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<int64_t> compose(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  std::vector<int64_t> both;
  for (int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
  return both;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

bool keeps_order(const Value& x, const std::vector<int64_t>& permutation) {
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (x.dims[static_cast<size_t>(axis)].extent == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<std::vector<int64_t>> reshape_target(const Value& y) {
  std::vector<int64_t> target;
  int unknown = 0;
  bool empty = false;
  for (const Dim& dim : y.dims) {
    target.push_back(dim.is_known() ? dim.extent : -1);
    unknown += dim.is_known() ? 0 : 1;
    empty = empty || dim.extent == 0;
  }
  if (unknown > 1 || (unknown == 1 && empty)) return std::nullopt;
  return target;
}

}  // namespace rt::compiler
