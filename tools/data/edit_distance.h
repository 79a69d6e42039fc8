// How far two sequences are apart, of labels or of letters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace librt::tools {

/// Levenshtein distance: insertions, deletions and substitutions. Sequence: has size() and [].
template <class Sequence>
size_t edit_distance(const Sequence& a, const Sequence& b) {
  // One row of the table: the distances of a prefix of `a` from all prefixes of `b`.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace librt::tools
