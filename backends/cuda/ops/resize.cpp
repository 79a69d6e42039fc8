// Resize by tables of taps, which the shared geometry computes on the host in double precision.
#include "kernels/resize.h"

#include <cstring>

#include "backends/cuda/kernel.h"
#include "runtime/core/element.h"
#include "runtime/geometry/resize.h"

namespace librt::cuda {
namespace {

Result<ResizeGeometry> geometry_of(const NodeView& node) {
  std::span<const int64_t> sizes;
  if (node.has(1)) sizes = node.ints(1);
  const auto floats = [&](size_t i) {
    if (!node.has(i)) return std::span<const float>();
    return std::span(static_cast<const float*>(node.inputs[i].value),
                     static_cast<size_t>(node.input(i).elements()));
  };
  return resize_geometry(node.shape(0), node.as<op::ResizeAttributes>(), sizes, floats(2), floats(3));
}

Status supports(const CudaDevice&, const NodeView& node) {
  RT_TRY(known_on_host(node, 1, "sizes"));
  RT_TRY(known_on_host(node, 2, "scales"));
  RT_TRY(known_on_host(node, 3, "roi"));
  const Shape& x = node.shape(0);
  if (x.elements(1, x.rank() - 1) >= int64_t{1} << 31) return unsupported("images of 2^31 points or more");
  if (node.as<op::ResizeAttributes>().mode != op::ResizeMode::Nearest &&
      !kShortFloats.contains(node.dtype(0)))
    return unsupported("interpolation of ", name_of(node.dtype(0)));
  return {};
}

/// The taps of all axes one after the other, indices times their axis' stride.
std::vector<ResizeTap> table_of(const ResizeGeometry& geometry, const op::ResizeAttributes& attributes,
                                int missing) {
  std::vector<ResizeTap> taps;
  for (int i = 0; i < missing; ++i) {
    taps.push_back({0, 1});
    taps.resize(static_cast<size_t>((i + 1) * geometry.taps), {0, 0});
  }
  for (int i = 0; i < geometry.rank; ++i) {
    const ResizeTable table = resize_table(geometry.axes[static_cast<size_t>(i)], attributes, geometry.taps);
    int64_t stride = 1;
    for (int k = i + 1; k < geometry.rank; ++k) stride *= geometry.axes[static_cast<size_t>(k)].input;
    for (size_t t = 0; t < table.index.size(); ++t)
      taps.push_back({static_cast<int32_t>(table.index[t] < 0 ? -1 : table.index[t] * stride),
                      static_cast<float>(table.weight[t])});
  }
  return taps;
}

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::ResizeAttributes>();
  RT_ASSIGN(const ResizeGeometry geometry, geometry_of(node));
  const Shape& x = node.shape(0);
  ResizeArguments arguments{.type = element_type(node.dtype(0)),
                            .unit = static_cast<int>(size_of(node.dtype(0))),
                            .extrapolation = attributes.extrapolation,
                            .rank = geometry.rank <= 2   ? 2
                                    : geometry.rank == 3 ? 3
                                                         : kMaxResizeAxes,
                            .taps = geometry.taps,
                            .batch = x[0],
                            .channels = x.back(),
                            .points = x.elements(1, x.rank() - 1)};
  store_element(&arguments.fill, node.dtype(0), 0, static_cast<double>(attributes.extrapolation));
  const int missing = arguments.rank - geometry.rank;
  for (int i = 0; i < arguments.rank; ++i) {
    arguments.outputs[i] = i < missing ? 1 : geometry.axes[static_cast<size_t>(i - missing)].output;
    arguments.results *= arguments.outputs[i];
  }
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 1);
  if (node.output(0).elements() == 0)
    return make_kernel([](const Call&) { return cudaSuccess; }, requirements);
  std::vector<ResizeTap> table = table_of(geometry, attributes, missing);
  requirements.packed = table.size() * sizeof(ResizeTap);
  return make_kernel(
      [arguments, nearest = attributes.mode == op::ResizeMode::Nearest](const Call& call) {
        ResizeArguments a = arguments;
        a.data = call.in(0);
        a.result = call.out();
        a.table = call.packed<ResizeTap>();
        return nearest ? resize_nearest(a, call.stream) : resize_sum(a, call.stream);
      },
      requirements,
      [table = std::move(table)](std::span<std::byte> bytes) {
        std::memcpy(bytes.data(), table.data(), table.size() * sizeof(ResizeTap));
      });
}

}  // namespace

std::span<const KernelRow> rows_resize();
std::span<const KernelRow> rows_resize() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Resize, "resize", kAnyDType)};
  return kRows;
}

}  // namespace librt::cuda
