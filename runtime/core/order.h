// Index sort (argsort): the elements are not moved.
//
// Knows: indices. Must not know: the elements. One sort instantiation for all of librt; each call of
// std::sort or std::stable_sort would add another.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace librt {

/// Stable argsort: the indices [0, count) ordered by `before`.
std::vector<size_t> sorted_order(size_t count, const std::function<bool(size_t, size_t)>& before);

}  // namespace librt
