// Gather and its gradient ScatterAdd along one axis. ScatterAdd sorts the indices and sums the updates of
// equal ones in their order, so that results are the same in every run.
#include "kernels/gather.h"

#include "backends/cuda/support/gather_scatter.h"

namespace librt::cuda {
namespace {

struct Blocks {
  int64_t outer, extent, inner;
  Blocks(const Shape& shape, int64_t axis_attribute) {
    const int axis = *normalized_axis(axis_attribute, shape.rank());
    outer = shape.elements(0, axis);
    extent = shape[axis];
    inner = shape.elements(axis + 1, shape.rank());
  }
};

Result<KernelPtr> create_gather(CudaDevice&, const NodeView& node) {
  const Blocks blocks(node.shape(0), node.as<op::GatherAttributes>().axis);
  const Units units = units_of(node.dtype(0), blocks.inner);
  const GatherArguments arguments{.unit = units.bytes,
                                  .wide_indices = is_wide(node, 1),
                                  .outer = blocks.outer,
                                  .extent = blocks.extent,
                                  .inner = units.inner,
                                  .count = node.input(1).elements()};
  return make_kernel([arguments](const Call& call) {
    GatherArguments a = arguments;
    a.data = call.in(0);
    a.indices = call.in(1);
    a.result = call.out();
    return gather(a, call.stream);
  });
}

Status supports_scatter(const CudaDevice&, const NodeView& node) {
  const Blocks blocks(node.output(0).shape, node.as<op::ScatterAddAttributes>().axis);
  return positions_fit(node.input(1).elements(), blocks.extent);
}

Result<KernelPtr> create_scatter(CudaDevice&, const NodeView& node) {
  const Blocks blocks(node.output(0).shape, node.as<op::ScatterAddAttributes>().axis);
  const int64_t count = node.input(1).elements();
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 0) & 1u;
  const size_t positions = reserve_scratch(requirements, static_cast<size_t>(count) * sizeof(uint32_t));
  const SortScratch scratch(requirements, {.type = ElementType::U32, .length = count, .kept = count});
  const ScatterReduceArguments scatter{.type = element_type(node.dtype(2)),
                                       .outer = blocks.outer,
                                       .extent = blocks.extent,
                                       .inner = blocks.inner,
                                       .count = count};
  return make_kernel(
      [=, wide = is_wide(node, 1), bytes = node.output(0).bytes()](const Call& call) {
        if (const cudaError_t error = cudaMemsetAsync(call.out(), 0, bytes, call.stream)) return error;
        if (count == 0 || bytes == 0) return cudaSuccess;
        if (const cudaError_t error = resolve_indices({.indices = call.in(1),
                                                       .positions = call.scratch<uint32_t>(positions),
                                                       .wide_indices = wide,
                                                       .extent = blocks.extent,
                                                       .count = count},
                                                      call.stream))
          return error;
        SortedRows sorted;
        if (const cudaError_t error = scratch.sort(call, call.scratch(positions), sorted)) return error;
        ScatterReduceArguments a = scatter;
        a.updates = call.in(2);
        a.result = call.out();
        return scatter_reduce(a, sorted, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_gather();
std::span<const KernelRow> rows_gather() {
  static constexpr KernelRow kRows[] = {
      row<create_gather>(OpKind::Gather, "gather", kAnyDType),
      row<create_scatter, supports_scatter>(OpKind::ScatterAdd, "scatter_add", DTypeSet{DType::I64}),
  };
  return kRows;
}

}  // namespace librt::cuda
