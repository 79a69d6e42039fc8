#include "runtime/core/order.h"

#include <algorithm>
#include <numeric>

namespace librt {

std::vector<size_t> sorted_order(size_t count, const std::function<bool(size_t, size_t)>& before) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return before(a, b) || (a < b && !before(b, a)); });
  return order;
}

}  // namespace librt
