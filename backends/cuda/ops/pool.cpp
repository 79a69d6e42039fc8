// Pools and their gradients, in up to three spatial dimensions.
#include "kernels/pool.h"

#include "backends/cuda/kernel.h"
#include "runtime/geometry/windows.h"

namespace librt::cuda {
namespace {

Status small_samples(const PoolGeometry& geometry) {
  constexpr int64_t kMax = (int64_t{1} << 31) - 1;
  int64_t input = geometry.channels, output = geometry.channels;
  for (const WindowAxis& axis : geometry.axes) {
    if (axis.pad_begin > kMax / 4 || axis.reach() > kMax / 4)
      return unsupported("windows or padding of 2^29 positions or more");
    if (input > 0 && axis.input > kMax / input) return unsupported("samples of 2^31 elements or more");
    if (output > 0 && axis.output > kMax / output)
      return unsupported("results of 2^31 elements or more in a sample");
    input *= axis.input;
    output *= axis.output;
  }
  return {};
}

PoolExtents extents_of(const PoolGeometry& geometry, bool count_include_pad) {
  PoolExtents windows;
  windows.batch = geometry.batch;
  windows.channels = static_cast<int>(geometry.channels);
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    const WindowAxis& axis = geometry.axes[static_cast<size_t>(i)];
    windows.input[i] = static_cast<int>(axis.input);
    windows.output[i] = static_cast<int>(axis.output);
    windows.kernel[i] = static_cast<int>(axis.kernel);
    windows.stride[i] = static_cast<int>(axis.stride);
    windows.pad[i] = static_cast<int>(axis.pad_begin);
    windows.dilation[i] = static_cast<int>(axis.dilation);
    windows.count_first[i] = count_include_pad ? -windows.pad[i] : 0;
    windows.count_last[i] = static_cast<int>(axis.input + (count_include_pad ? axis.pad_end : 0));
  }
  return windows;
}

template <class Attributes>
Result<PoolGeometry> geometry_of(const NodeView& node) {
  if constexpr (std::is_same_v<Attributes, op::AveragePoolGradAttributes>) {
    RT_TRY(known_on_host(node, 0, "input_shape"));
    return pool_geometry(Shape(node.ints(0)), node.as<Attributes>());
  } else {
    return pool_geometry(node.shape(0), node.as<Attributes>());
  }
}

template <class Attributes>
Status supports(const CudaDevice&, const NodeView& node) {
  constexpr bool kAverageGrad = std::is_same_v<Attributes, op::AveragePoolGradAttributes>;
  if (kAverageGrad && !is_float(node.dtype(1)))
    return unsupported("no kernel for gradients of ", name_of(node.dtype(1)));
  RT_ASSIGN(const PoolGeometry geometry, geometry_of<Attributes>(node));
  return small_samples(geometry);
}

template <class Attributes>
bool counts_padding(const NodeView& node) {
  if constexpr (requires(const Attributes& attributes) { attributes.count_include_pad; })
    return node.as<Attributes>().count_include_pad;
  else
    return false;
}

using Launcher = cudaError_t (*)(const PoolArguments&, cudaStream_t);

/// kData: the input whose type selects the pool's type.
template <class Attributes, Launcher kLaunch, size_t kData = 0>
Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const PoolGeometry geometry, geometry_of<Attributes>(node));
  PoolArguments arguments;
  arguments.type = element_type(node.dtype(kData));
  arguments.windows = extents_of(geometry, counts_padding<Attributes>(node));
  Requirements requirements;
  if constexpr (std::is_same_v<Attributes, op::MaxPoolIndicesAttributes>)
    arguments.column_major = node.as<Attributes>().column_major;
  if constexpr (std::is_same_v<Attributes, op::MaxPoolGradAttributes>)
    requirements.scratch = static_cast<size_t>(geometry.output_shape().elements()) * sizeof(int32_t);
  if constexpr (std::is_same_v<Attributes, op::AveragePoolGradAttributes>) requirements.replaced_inputs = 1;
  return make_kernel(
      [arguments](const Call& call) {
        PoolArguments a = arguments;
        a.x = call.in(0);
        a.grad = call.in(1);
        a.y = call.out();
        a.where = call.scratch<int32_t>();
        return kLaunch(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_pool();
std::span<const KernelRow> rows_pool() {
#define RT_POOL(Name, name, dtypes, ...) \
  row<create<op::Name##Attributes, __VA_ARGS__>, supports<op::Name##Attributes>>(OpKind::Name, name, dtypes)
  static constexpr KernelRow kRows[] = {
      RT_POOL(MaxPool, "max_pool", kNumericTypes, max_pool),
      RT_POOL(MaxPoolIndices, "max_pool_indices", kNumericTypes, max_pool_indices),
      RT_POOL(AveragePool, "average_pool", kFloats, average_pool),
      RT_POOL(MaxPoolGrad, "max_pool_grad", kFloats, max_pool_grad),
      RT_POOL(AveragePoolGrad, "average_pool_grad", DTypeSet{DType::I64}, average_pool_grad, 1),
  };
#undef RT_POOL
  return kRows;
}

}  // namespace librt::cuda
