// GatherElements, GatherND, ScatterElements, ScatterND: flat positions are computed from the indices first,
// then rows are read or written there. Scatters give the same result in every run: without a reduction the
// last of equal indices is selected before anything is written, with one the indices are sorted and the
// updates of equal ones combined in order.
#include <algorithm>

#include "kernels/indexed.h"

#include "backends/cuda/support/gather_scatter.h"
#include "runtime/geometry/indexing.h"

namespace librt::cuda {
namespace {

using op::ScatterReduction;

/// What both kinds of index have in common once the positions are known.
struct Positions {
  int64_t count = 0;  ///< indices or tuples
  int64_t rows = 0;   ///< of the data, of `inner` elements
  int64_t inner = 1;
};

template <class Attributes>
struct Elements {
  ElementPositions arguments;
  Positions positions;

  explicit Elements(const NodeView& node) {
    const Shape& data = node.shape(0);
    const ElementPlan plan =
        element_plan(data, node.shape(1), *normalized_axis(node.as<Attributes>().axis, data.rank()));
    positions = {.count = node.input(1).elements(), .rows = node.input(0).elements()};
    arguments.wide_indices = is_wide(node, 1);
    arguments.rank = plan.rank;
    arguments.axis = plan.axis;
    arguments.count = positions.count;
    std::copy_n(plan.indices.begin(), plan.rank, arguments.index_extents);
    std::copy_n(plan.data.begin(), plan.rank, arguments.data_extents);
  }
  cudaError_t find(const Call& call, uint32_t* to) const {
    ElementPositions a = arguments;
    a.indices = call.in(1);
    return element_positions(a, to, call.stream);
  }
};

template <class Attributes>
struct Tuples {
  TuplePositions arguments;
  Positions positions;

  explicit Tuples(const NodeView& node) {
    int batch = 0;
    if constexpr (requires(Attributes a) { a.batch_dimensions; })
      batch = static_cast<int>(node.as<Attributes>().batch_dimensions);
    const TuplePlan plan = tuple_plan(node.shape(0), node.shape(1), batch);
    positions = {.count = plan.tuples, .rows = plan.rows, .inner = plan.inner};
    arguments.wide_indices = is_wide(node, 1);
    arguments.length = plan.length;
    arguments.count = plan.tuples;
    arguments.in_batch = plan.in_batch;
    std::copy_n(plan.extent.begin(), plan.length, arguments.extents);
  }
  cudaError_t find(const Call& call, uint32_t* to) const {
    TuplePositions a = arguments;
    a.indices = call.in(1);
    return tuple_positions(a, to, call.stream);
  }
};

template <class Indexed>
Status supports(const CudaDevice&, const NodeView& node) {
  const Positions positions = Indexed(node).positions;
  return positions_fit(positions.count, positions.rows);
}

size_t position_bytes(int64_t count) {
  return static_cast<size_t>(count) * sizeof(uint32_t);
}

template <class Indexed>
Result<KernelPtr> create_gather(CudaDevice&, const NodeView& node) {
  const Indexed indexed(node);
  const Positions& positions = indexed.positions;
  const Units units = units_of(node.dtype(0), positions.inner);
  Requirements requirements;
  const size_t found = reserve_scratch(requirements, position_bytes(positions.count));
  return make_kernel(
      [=, bytes = node.output(0).bytes()](const Call& call) {
        if (indexed.positions.rows == 0)  // nothing to read; the shape rule allows no indices
          return cudaMemsetAsync(call.out(), 0, bytes, call.stream);
        if (const cudaError_t error = indexed.find(call, call.scratch<uint32_t>(found))) return error;
        return gather_rows({.from = call.in(0),
                            .to = call.out(),
                            .positions = call.scratch<uint32_t>(found),
                            .unit = units.bytes,
                            .count = indexed.positions.count,
                            .inner = units.inner},
                           call.stream);
      },
      requirements);
}

cudaError_t copy_data(const Call& call, size_t bytes) {
  if (call.in(0) == call.out() || bytes == 0) return cudaSuccess;
  return cudaMemcpyAsync(call.out(), call.in(0), bytes, cudaMemcpyDeviceToDevice, call.stream);
}

/// The last of equal indices writes.
template <class Indexed>
KernelPtr make_last(const NodeView& node, const Indexed& indexed) {
  const Units units = units_of(node.dtype(0), indexed.positions.inner);
  Requirements requirements = in_place();
  const size_t found = reserve_scratch(requirements, position_bytes(indexed.positions.count));
  const size_t winners = reserve_scratch(requirements, position_bytes(indexed.positions.rows));
  return make_kernel(
      [=, bytes = node.input(0).bytes()](const Call& call) {
        if (const cudaError_t error = copy_data(call, bytes)) return error;
        if (bytes == 0 || indexed.positions.count == 0) return cudaSuccess;
        if (const cudaError_t error = indexed.find(call, call.scratch<uint32_t>(found))) return error;
        return scatter_rows({.from = call.in(2),
                             .to = call.out(),
                             .positions = call.scratch<uint32_t>(found),
                             .unit = units.bytes,
                             .count = indexed.positions.count,
                             .inner = units.inner},
                            call.scratch<uint32_t>(winners), indexed.positions.rows, call.stream);
      },
      requirements);
}

ScatterFunction function_of(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::Mul: return ScatterFunction::Mul;
    case ScatterReduction::Minimum: return ScatterFunction::Minimum;
    case ScatterReduction::Maximum: return ScatterFunction::Maximum;
    default: return ScatterFunction::Add;
  }
}

template <class Indexed>
KernelPtr make_scatter_reduce(const NodeView& node, const Indexed& indexed, ScatterReduction reduction) {
  const Positions& positions = indexed.positions;
  Requirements requirements = in_place();
  const size_t found = reserve_scratch(requirements, position_bytes(positions.count));
  const SortScratch scratch(requirements,
                            {.type = ElementType::U32, .length = positions.count, .kept = positions.count});
  const ScatterReduceArguments scatter{.type = element_type(node.dtype(0)),
                                       .function = function_of(reduction),
                                       .extent = positions.rows,
                                       .inner = positions.inner,
                                       .count = positions.count};
  return make_kernel(
      [=, bytes = node.input(0).bytes()](const Call& call) {
        if (const cudaError_t error = copy_data(call, bytes)) return error;
        if (bytes == 0 || scatter.count == 0) return cudaSuccess;
        if (const cudaError_t error = indexed.find(call, call.scratch<uint32_t>(found))) return error;
        SortedRows sorted;
        if (const cudaError_t error = scratch.sort(call, call.scratch(found), sorted)) return error;
        ScatterReduceArguments a = scatter;
        a.updates = call.in(2);
        a.result = call.out();
        return scatter_reduce(a, sorted, call.stream);
      },
      requirements);
}

template <class Indexed, class Attributes>
Result<KernelPtr> create_scatter(CudaDevice&, const NodeView& node) {
  const ScatterReduction reduction = node.as<Attributes>().reduction;
  const Indexed indexed(node);
  if (reduction == ScatterReduction::None) return make_last(node, indexed);
  return make_scatter_reduce(node, indexed, reduction);
}

}  // namespace

std::span<const KernelRow> rows_indexed();
std::span<const KernelRow> rows_indexed() {
  using GatherElements = Elements<op::GatherElementsAttributes>;
  using GatherTuples = Tuples<op::GatherNDAttributes>;
  using ScatterElements = Elements<op::ScatterElementsAttributes>;
  using ScatterTuples = Tuples<op::ScatterNDAttributes>;
  static constexpr KernelRow kRows[] = {
      row<create_gather<GatherElements>, supports<GatherElements>>(OpKind::GatherElements, "gather_elements",
                                                                   kAnyDType),
      row<create_gather<GatherTuples>, supports<GatherTuples>>(OpKind::GatherND, "gather_nd", kAnyDType),
      row<create_scatter<ScatterElements, op::ScatterElementsAttributes>, supports<ScatterElements>>(
          OpKind::ScatterElements, "scatter_elements", kAnyDType),
      row<create_scatter<ScatterTuples, op::ScatterNDAttributes>, supports<ScatterTuples>>(
          OpKind::ScatterND, "scatter_nd", kAnyDType),
  };
  return kRows;
}

}  // namespace librt::cuda
