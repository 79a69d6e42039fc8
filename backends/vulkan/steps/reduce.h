// Reductions as dispatches: along columns (over the rows of a matrix) and along rows.
//
// Knows: the shaders reduce_columns and reduce_rows. Must not know: axes, operators. Results do not depend on
// timing.
#pragma once

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {

enum class Reduction : uint32_t { Sum = 0, Max = 1, Min = 2, Prod = 3 };

struct ColumnReduce {
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 1;
  Reduction reduction = Reduction::Sum;
  DType dtype = DType::F32;
  float scale = 1;
  /// Applied to elements first: 0 none, 1 (x - center)^2, 2 x (z - center) factor, 3 the same with a center
  /// and a factor of each row instead of each column. 4: x - center, and center is added to the result: a
  /// mean whose rounding error is in proportion to the deviations, not to the values. 5: center is added
  /// alone.
  uint32_t map = 0;
  Ref center{}, z{}, factor{};
};

/// x [batch,rows,columns] to y [batch,columns]; in two steps if there are many rows.
void add_column_reduce(Program& program, const VulkanDevice& device, const ColumnReduce& reduce, const Ref& x,
                       const Ref& y);
/// x [rows,columns] to y [rows].
void add_row_reduce(Program& program, const VulkanDevice& device, int64_t rows, int64_t columns,
                    Reduction reduction, DType dtype, float scale, const Ref& x, const Ref& y);

}  // namespace librt::vulkan
