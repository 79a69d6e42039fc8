#include "backends/vulkan/steps/reduce.h"

#include <algorithm>

namespace librt::vulkan {
namespace {

Shader typed(DType dtype, Shader f32, Shader i32, Shader i64) {
  return dtype == DType::F32 ? f32 : dtype == DType::I32 ? i32 : i64;
}

/// Rows that one invocation sums in f32 before the partial sums are added: bounds the rounding error.
constexpr int64_t kRowsPerPartial = 512;

/// A part of reduce: what it adds to the result is left to the last pass.
void add_pass(Program& program, const VulkanDevice& device, const ColumnReduce& reduce, int64_t splits,
              bool is_last, const Ref& x, const Ref& y) {
  const ColumnMap map = reduce.map;
  const bool adds_center = reduce.adds_center && is_last;
  const int64_t count = reduce.batch * splits * reduce.columns;
  Step& step = program.dispatch_each(
      typed(reduce.dtype, Shader::reduce_columns_f32, Shader::reduce_columns_i32, Shader::reduce_columns_i64),
      count, std::min<uint32_t>(device.plan().elementwise_lanes, 64));
  step.spec(static_cast<uint32_t>(reduce.reduction)).spec(static_cast<uint32_t>(map)).spec(adds_center);
  step.push(count).push(reduce.rows).push(reduce.columns).push(splits).push(reduce.scale);
  step.read(0, x).write(1, y);
  if (map != ColumnMap::None || adds_center) step.read(2, reduce.center);
  if (map == ColumnMap::ByColumn || map == ColumnMap::ByRow) step.read(3, reduce.z).read(4, reduce.factor);
}

}  // namespace

void add_column_reduce(Program& program, const VulkanDevice& device, const ColumnReduce& reduce, const Ref& x,
                       const Ref& y) {
  const int64_t results = std::max<int64_t>(reduce.batch * reduce.columns, 1);
  const int64_t wanted = device.plan().texel_loads ? 256 : 16384;
  const int64_t splits =
      std::clamp<int64_t>(std::max(ceil_div(wanted, results), ceil_div(reduce.rows, kRowsPerPartial)), 1,
                          std::max<int64_t>(ceil_div(reduce.rows, 16), 1));
  if (splits == 1) return add_pass(program, device, reduce, 1, true, x, y);
  const Ref partial = program.scratch(static_cast<uint64_t>(results * splits) * size_of(reduce.dtype));
  ColumnReduce first = reduce;
  first.scale = 1;
  add_pass(program, device, first, splits, false, x, partial);
  ColumnReduce second = reduce;
  second.rows = splits;
  second.map = ColumnMap::None;
  if (splits > kRowsPerPartial) return add_column_reduce(program, device, second, partial, y);
  add_pass(program, device, second, 1, true, partial, y);
}

void add_row_reduce(Program& program, const VulkanDevice& device, int64_t rows, int64_t columns,
                    Reduction reduction, DType dtype, float scale, const Ref& x, const Ref& y) {
  const ColumnReduce single_columns{
      .batch = rows, .rows = columns, .columns = 1, .reduction = reduction, .dtype = dtype, .scale = scale};
  constexpr int64_t kShortRow = 16, kLongRow = 4096;
  if (columns <= kShortRow) return add_pass(program, device, single_columns, 1, true, x, y);
  if (columns > kLongRow) return add_column_reduce(program, device, single_columns, x, y);
  Step& step = program.dispatch(
      typed(dtype, Shader::reduce_rows_f32, Shader::reduce_rows_i32, Shader::reduce_rows_i64),
      static_cast<uint64_t>(rows), device.plan().row_lanes);
  step.spec(static_cast<uint32_t>(reduction)).push(rows).push(columns).push(scale).read(0, x).write(1, y);
}

}  // namespace librt::vulkan
