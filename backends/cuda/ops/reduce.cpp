// Reductions over any axes, ArgMax and ArgMin.
#include "kernels/reduce.h"

#include "backends/cuda/kernel.h"
#include "runtime/geometry/reduction.h"

namespace librt::cuda {
namespace {

Axes axes_of(int rank, const std::array<int64_t, kMaxRank>& extents,
             const std::array<int64_t, kMaxRank>& strides) {
  static_assert(kMaxAxes >= kMaxRank);
  Axes axes;
  axes.rank = rank;
  for (int i = 0; i < rank; ++i) {
    axes.extent[i] = extents[static_cast<size_t>(i)];
    axes.stride[i] = strides[static_cast<size_t>(i)];
  }
  return axes;
}

template <class Attributes, ReduceFunction kFunction, bool kMean = false>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const ReductionPlan plan = reduction_plan(node.shape(0), node.as<Attributes>().axes);
  ReduceArguments arguments;
  arguments.type = element_type(node.dtype(0));
  arguments.function = kFunction;
  arguments.mean = kMean;
  arguments.inner_reduced = plan.inner_reduced;
  arguments.outputs = plan.outputs;
  arguments.count = plan.count;
  arguments.kept = axes_of(plan.kept_rank, plan.kept, plan.kept_stride);
  arguments.reduced = axes_of(plan.reduced_rank, plan.reduced, plan.reduced_stride);
  arguments.splits = reduce_splits(arguments);
  Requirements requirements;
  requirements.scratch = reduce_partial_bytes(plan.outputs, arguments.splits);
  return make_kernel(
      [arguments](const Call& call) {
        ReduceArguments a = arguments;
        a.x = call.in(0);
        a.y = call.out();
        a.partial = call.scratch();
        return reduce(a, call.stream);
      },
      requirements);
}

template <class Attributes, bool kSmallest>
Result<KernelPtr> create_arg(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  ArgExtremeArguments arguments;
  arguments.type = element_type(node.dtype(0));
  arguments.outer = x.elements(0, axis);
  arguments.extent = x[axis];
  arguments.inner = x.elements(axis + 1, x.rank());
  arguments.smallest = kSmallest;
  arguments.select_last = attributes.select_last;
  return make_kernel([arguments](const Call& call) {
    ArgExtremeArguments a = arguments;
    a.x = call.in(0);
    a.y = call.out<int64_t>();
    return arg_extreme(a, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_reduce();
std::span<const KernelRow> rows_reduce() {
#define RT_REDUCE(Name, name, ...) \
  row<create<op::Name##Attributes, __VA_ARGS__>>(OpKind::Name, name, kNumericTypes)
  static constexpr KernelRow kRows[] = {
      RT_REDUCE(ReduceSum, "reduce_sum", ReduceFunction::Sum),
      RT_REDUCE(ReduceMean, "reduce_mean", ReduceFunction::Sum, true),
      RT_REDUCE(ReduceMax, "reduce_max", ReduceFunction::Max),
      RT_REDUCE(ReduceMin, "reduce_min", ReduceFunction::Min),
      RT_REDUCE(ReduceProd, "reduce_prod", ReduceFunction::Product),
      row<create_arg<op::ArgMaxAttributes, false>>(OpKind::ArgMax, "arg_max", kAnyDType),
      row<create_arg<op::ArgMinAttributes, true>>(OpKind::ArgMin, "arg_min", kAnyDType),
  };
#undef RT_REDUCE
  return kRows;
}

}  // namespace librt::cuda
