// Reductions as dispatches: along columns (over the rows of a matrix) and along rows.
//
// Knows: the shaders reduce_columns and reduce_rows. Must not know: axes, operators. Results do not depend on
// timing.
#pragma once

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {

enum class Reduction : uint32_t { Sum = 0, Max = 1, Min = 2, Prod = 3 };

/// What is reduced in place of an element x of column c and row r; as in reduce_columns.comp.
enum class ColumnMap : uint32_t {
  None = 0,
  SquaredDeviation = 1,  ///< (x - center[c])^2
  ByColumn = 2,          ///< x (z - center[c]) factor[c]
  ByRow = 3,             ///< x (z - center[r]) factor[r]
  Deviation = 4          ///< x - center[c]
};

struct ColumnReduce {
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 1;
  Reduction reduction = Reduction::Sum;
  DType dtype = DType::F32;
  float scale = 1;
  ColumnMap map = ColumnMap::None;
  /// center[c] is added to the result: with Deviation, a mean whose rounding error is in proportion to the
  /// deviations, not to the values.
  bool adds_center = false;
  Ref center{}, z{}, factor{};
};

/// x [batch,rows,columns] to y [batch,columns]; in two steps if there are many rows.
void add_column_reduce(Program& program, const VulkanDevice& device, const ColumnReduce& reduce, const Ref& x,
                       const Ref& y);
/// x [rows,columns] to y [rows].
void add_row_reduce(Program& program, const VulkanDevice& device, int64_t rows, int64_t columns,
                    Reduction reduction, DType dtype, float scale, const Ref& x, const Ref& y);

}  // namespace librt::vulkan
