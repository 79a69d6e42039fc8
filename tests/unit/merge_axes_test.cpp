// merge_axes() and the plans built on it, compared with plain loops over all indices.
#include "runtime/geometry/merge_axes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "runtime/core/random.h"
#include "runtime/geometry/broadcast.h"
#include "runtime/geometry/reduction.h"

namespace librt::test {
namespace {

int64_t below(uint64_t& random, int64_t n) {
  return static_cast<int64_t>(split_mix(random) % static_cast<uint64_t>(n));
}

struct Space {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;  ///< [operand][axis]

  int merge(int64_t max_inner = std::numeric_limits<int64_t>::max()) {
    std::vector<int64_t*> operands;
    for (auto& operand : strides) operands.push_back(operand.data());
    const int rank = merge_axes(extents, operands, max_inner);
    extents.resize(static_cast<size_t>(rank));
    for (auto& operand : strides) operand.resize(static_cast<size_t>(rank));
    return rank;
  }
  /// Each element's offsets in all operands, in row-major order.
  std::vector<int64_t> offsets() const {
    int64_t count = 1;
    for (const int64_t extent : extents) count *= extent;
    std::vector<int64_t> all;
    for (int64_t element = 0; element < count; ++element)
      for (const auto& operand : strides) {
        int64_t offset = 0, rest = element;
        for (size_t axis = extents.size(); axis-- > 0; rest /= extents[axis])
          offset += rest % extents[axis] * operand[axis];
        all.push_back(offset);
      }
    return all;
  }
};

/// Strides of a dense tensor, some of its axes broadcast, reversed or stepped over.
std::vector<int64_t> strides_for(uint64_t& random, const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size());
  int64_t step = 1;
  for (size_t axis = extents.size(); axis-- > 0; step *= extents[axis]) {
    const int64_t kind = below(random, 8);
    if (kind == 1) step *= 2;
    strides[axis] = kind == 0 ? 0 : kind == 2 ? -step : step;
  }
  return strides;
}

TEST(MergeAxes, VisitsTheSameElementsInTheSameOrder) {
  uint64_t random = 1;
  int merged = 0, kept = 0;
  for (int round = 0; round < 2000; ++round) {
    Space space;
    const int64_t rank = below(random, 7), operands = 1 + below(random, 3);
    for (int64_t i = 0; i < rank; ++i)
      space.extents.push_back(below(random, 40) == 0 ? 0 : 1 + below(random, 4));
    for (int64_t k = 0; k < operands; ++k) space.strides.push_back(strides_for(random, space.extents));
    Space fewer = space;
    const int left = fewer.merge();
    ASSERT_LE(left, rank);
    (left < rank ? merged : kept) += 1;
    ASSERT_EQ(fewer.offsets(), space.offsets()) << "round " << round;
    Space again = fewer;
    ASSERT_EQ(again.merge(), left) << "round " << round << ": merging once is not enough";
    const int64_t limit = 1 + below(random, 12);
    Space limited = space;
    ASSERT_GE(limited.merge(limit), left);
    ASSERT_EQ(limited.offsets(), space.offsets()) << "round " << round << " with limit " << limit;
    for (size_t axis = 1; axis < limited.extents.size(); ++axis)
      ASSERT_LE(limited.extents[axis], std::max<int64_t>(limit, 4)) << "round " << round;
  }
  EXPECT_GT(merged, 500);
  EXPECT_GT(kept, 100);
}

TEST(MergeAxes, DenseOperandsNeedOneAxis) {
  Space dense{{2, 3, 1, 4}, {{12, 4, 4, 1}, {12, 4, 4, 1}}};
  EXPECT_EQ(dense.merge(), 1);
  EXPECT_EQ(dense.extents, std::vector<int64_t>{24});
  Space transposed{{2, 3, 4}, {{12, 4, 1}, {1, 8, 2}}};
  EXPECT_EQ(transposed.merge(), 2);
  EXPECT_EQ(transposed.extents, (std::vector<int64_t>{2, 12}));
  Space units{{1, 1}, {{7, 5}}};
  EXPECT_EQ(units.merge(), 0);
}

TEST(MergeAxes, BroadcastPlansFollowNumPy) {
  uint64_t random = 2;
  for (int round = 0; round < 500; ++round) {
    Shape result;
    const int64_t rank = below(random, 6);
    for (int64_t i = 0; i < rank; ++i) result.push_back(1 + below(random, 4));
    std::array<Shape, 2> shapes;
    for (Shape& shape : shapes)
      for (int64_t i = below(random, rank + 1); i < rank; ++i)
        shape.push_back(below(random, 3) == 0 ? 1 : result[static_cast<int>(i)]);
    Space space;
    space.extents.assign(result.begin(), result.end());
    for (const Shape& shape : shapes) {
      std::vector<int64_t> strides(static_cast<size_t>(rank), 0);
      int64_t step = 1;
      for (int i = 1; i <= shape.rank(); ++i) {
        const int64_t extent = shape[shape.rank() - i];
        if (extent != 1) strides[static_cast<size_t>(rank - i)] = step;
        step *= extent;
      }
      space.strides.push_back(std::move(strides));
    }
    const auto plan = broadcast_plan<2>(result, shapes);
    ASSERT_GE(plan.rank, 1);
    ASSERT_EQ(plan.elements(), result.elements());
    std::vector<int64_t> visited;
    for_each_run(plan, 0, plan.elements(), [&](int64_t first, const auto& offsets, int64_t count) {
      ASSERT_EQ(static_cast<size_t>(first) * 2, visited.size());
      for (int64_t i = 0; i < count; ++i)
        for (int k = 0; k < 2; ++k)
          visited.push_back(offsets[static_cast<size_t>(k)] + i * plan.inner_stride(k));
    });
    ASSERT_EQ(visited, space.offsets()) << "round " << round;
  }
}

TEST(MergeAxes, ReductionPlansCoverEveryElementOnce) {
  uint64_t random = 3;
  for (int round = 0; round < 500; ++round) {
    Shape shape;
    const int64_t rank = 1 + below(random, 5);
    for (int64_t i = 0; i < rank; ++i) shape.push_back(1 + below(random, 4));
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < rank; ++i)
      if (below(random, 2) == 0) axes.push_back(i - (below(random, 2) == 0 ? rank : 0));
    if (axes.empty()) axes.push_back(0);
    // The result element of each element, by a plain loop.
    std::vector<bool> reduced(static_cast<size_t>(rank), false);
    for (const int64_t axis : axes) reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
    std::vector<int64_t> wanted, found(static_cast<size_t>(shape.elements()), -1);
    for (int64_t element = 0; element < shape.elements(); ++element) {
      int64_t rest = element, target = 0, step = 1;
      for (int i = shape.rank() - 1; i >= 0; rest /= shape[i], --i)
        if (!reduced[static_cast<size_t>(i)]) {
          target += rest % shape[i] * step;
          step *= shape[i];
        }
      wanted.push_back(target);
    }
    const ReductionPlan plan = reduction_plan(shape, axes);
    ASSERT_EQ(plan.outputs * plan.count, shape.elements());
    ASSERT_LE(std::abs(plan.kept_rank - plan.reduced_rank), 1) << "kept and reduced axes alternate";
    for (int64_t k = 0; k < plan.outputs; ++k)
      for (int64_t r = 0; r < plan.count; ++r)
        found[static_cast<size_t>(plan.kept_offset(k, plan.kept_rank) +
                                  plan.reduced_offset(r, plan.reduced_rank))] = k;
    ASSERT_EQ(found, wanted) << "round " << round;
  }
}

}  // namespace
}  // namespace librt::test
