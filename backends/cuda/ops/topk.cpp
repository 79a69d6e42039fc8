// TopK by sorting.
#include "kernels/topk.h"

#include "backends/cuda/support/gather_scatter.h"

namespace librt::cuda {
namespace {

Status supports(const CudaDevice&, const NodeView& node) {
  return positions_fit(node.input(0).elements(), 0);
}

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::TopKAttributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const int64_t inner = x.elements(axis + 1, x.rank());
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 1);
  const SortScratch scratch(requirements, {.type = element_type(node.dtype(0)),
                                           .rows = x.elements(0, axis) * inner,
                                           .length = x[axis],
                                           .inner = inner,
                                           .kept = node.output(0).shape[axis],
                                           .largest = attributes.largest});
  return make_kernel(
      [scratch, unit = static_cast<int>(size_of(node.dtype(0)))](const Call& call) {
        SortedRows sorted;
        if (const cudaError_t error = scratch.sort(call, call.in(0), sorted)) return error;
        return topk({.data = call.in(0),
                     .values = call.out(0),
                     .positions = call.out<int64_t>(1),
                     .unit = unit,
                     .rows = scratch.rows},
                    sorted, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_topk();
std::span<const KernelRow> rows_topk() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::TopK, "topk", kNumericTypes)};
  return kRows;
}

}  // namespace librt::cuda
