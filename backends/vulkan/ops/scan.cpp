// CumSum and CumProd along any axis.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Shader by_type(DType dtype, Shader f32, Shader i32, Shader i64) {
  return dtype == DType::F32 ? f32 : dtype == DType::I32 ? i32 : i64;
}

template <class Attributes>
Status supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  if (!normalized_axis(node.as<Attributes>().axis, node.shape(0).rank()))
    return unsupported("an axis outside the input's rank");
  return {};
}

template <class Attributes, bool kProduct>
Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const int64_t batch = x.elements(0, axis), rows = x[axis], columns = x.elements(axis + 1, x.rank());
  const DType dtype = node.dtype(0);
  auto program = std::make_unique<Program>("scan");
  program->in_place(0);
  constexpr int64_t kShortRow = 32;
  const bool by_row = columns == 1 && rows > kShortRow;
  Step& step = by_row ? program->dispatch(by_type(dtype, Shader::scan_rows_f32, Shader::scan_rows_i32,
                                                  Shader::scan_rows_i64),
                                          static_cast<uint64_t>(batch), cast(device).plan().row_lanes)
                      : program->dispatch_each(by_type(dtype, Shader::scan_columns_f32,
                                                       Shader::scan_columns_i32, Shader::scan_columns_i64),
                                               x.elements() == 0 ? 0 : batch * columns, 64);
  step.loops(by_row ? 2 * ceil_div(rows, cast(device).plan().row_lanes) : rows);
  step.spec(kProduct).spec(attributes.exclusive).spec(attributes.reverse);
  if (by_row)
    step.push(batch).push(rows);
  else
    step.push(batch * columns).push(rows).push(columns);
  step.read(0, in(0)).write(1, out(0));
  return finish(std::move(program));
}

constexpr DTypeSet kTypes{DType::F32, DType::I32, DType::I64};
constexpr KernelRow kRows[] = {
    row<create<op::CumSumAttributes, false>, supports<op::CumSumAttributes>>(OpKind::CumSum, "cum_sum",
                                                                             kTypes),
    row<create<op::CumProdAttributes, true>, supports<op::CumProdAttributes>>(OpKind::CumProd, "cum_prod",
                                                                              kTypes),
};

}  // namespace

std::span<const KernelRow> rows_scan() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
