// TensorScatter: writes rows into a cache, in place.
#include "kernels/indexed.h"

#include "backends/cuda/support/gather_scatter.h"
#include "backends/cuda/support/index_space.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::TensorScatterAttributes>();
  const Shape& cache = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, cache.rank());
  const Units units = units_of(node.dtype(0), cache.elements(axis + 1, cache.rank()));
  const TensorScatterArguments arguments{.wide_indices = is_wide(node, 2),
                                         .circular = attributes.circular,
                                         .unit = units.bytes,
                                         .batch = cache[0],
                                         .middle = cache.elements(1, axis),
                                         .positions = cache[axis],
                                         .written = node.shape(1)[axis],
                                         .inner = units.inner};
  return make_kernel(
      [arguments, bytes = node.input(0).bytes()](const Call& call) {
        if (call.in(0) != call.out() && bytes != 0)
          if (const cudaError_t error =
                  cudaMemcpyAsync(call.out(), call.in(0), bytes, cudaMemcpyDeviceToDevice, call.stream))
            return error;
        TensorScatterArguments a = arguments;
        a.update = call.in(1);
        a.write_indices = call.in(2);
        a.cache = call.out();
        return tensor_scatter(a, call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_tensor_scatter();
std::span<const KernelRow> rows_tensor_scatter() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::TensorScatter, "tensor_scatter", kAnyDType)};
  return kRows;
}

}  // namespace librt::cuda
