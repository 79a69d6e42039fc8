// Sorting without moving what is sorted.
//
// Knows: indexes. Must not know: what they stand for. One compiled sort for all of librt, where each call of
// std::sort or std::stable_sort would be another.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rt {

/// The indexes below `count` in the order that `before` wants; equal ones keep theirs.
std::vector<size_t> sorted_order(size_t count, const std::function<bool(size_t, size_t)>& before);

}  // namespace rt
