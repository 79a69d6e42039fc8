// Operators that move elements without computing: copies between index spaces; Pad. Any element type.
#include "kernels/movement.h"

#include <numeric>

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/index_space.h"
#include "runtime/geometry/movement.h"

namespace librt::cuda {
namespace {

using Space = IndexSpace<2>;

/// One copy of a node: elements, source and destination.
struct Copy {
  Space space{.rank = 0};
  int64_t from = 0, to = 0;  ///< first elements

  void add_axis(int64_t extent, int64_t from_stride, int64_t to_stride) {
    space.extents[space.rank] = extent;
    space.strides[0][space.rank] = from_stride;
    space.strides[1][space.rank] = to_stride;
    ++space.rank;
  }
};

/// A copy as a launch: transposed tiles, or the widest units possible.
class CopyLaunch {
 public:
  CopyLaunch(Copy copy, size_t element_bytes) : size_(element_bytes) {
    collapse(copy.space);
    from_ = copy.from * static_cast<int64_t>(size_);
    to_ = copy.to * static_cast<int64_t>(size_);
    empty_ = copy.space.elements() == 0;
    if (empty_) return;
    tiled_ = find_tiles(copy.space);
    if (!tiled_) widen_units(copy.space);
  }

  cudaError_t run(const std::byte* x, std::byte* y, cudaStream_t stream) const noexcept {
    if (empty_) return cudaSuccess;
    if (tiled_) {
      TransposeArguments a = tiles_;
      a.from = x + from_;
      a.to = y + to_;
      return transpose(a, stream);
    }
    CopyArguments a = units_;
    a.from = x + from_;
    a.to = y + to_;
    return strided_copy(a, stream);
  }

 private:
  /// The source is contiguous along one axis and the target along another, and both are long enough for
  /// tiles.
  bool find_tiles(const Space& space) {
    constexpr int64_t kWorthATile = 8;
    int row = -1, column = -1;
    for (int axis = 0; axis < space.rank; ++axis) {
      if (space.strides[0][axis] == 1 && space.strides[1][axis] != 1) column = axis;
      if (space.strides[1][axis] == 1 && space.strides[0][axis] != 1) row = axis;
    }
    if (row < 0 || column < 0 || space.strides[0][row] == 0 || space.extents[row] < kWorthATile ||
        space.extents[column] < kWorthATile)
      return false;
    tiles_ = {};
    tiles_.element_bytes = size_;
    tiles_.rows = space.extents[row];
    tiles_.columns = space.extents[column];
    tiles_.row_stride = space.strides[0][row];
    tiles_.column_stride = space.strides[1][column];
    Copy outer;
    for (int axis = 0; axis < space.rank; ++axis)
      if (axis != row && axis != column)
        outer.add_axis(space.extents[axis], space.strides[0][axis], space.strides[1][axis]);
    collapse(outer.space);
    tiles_.outer = outer.space;
    return true;
  }

  /// Contiguous runs move in units of up to 16 bytes, as far as alignment allows.
  void widen_units(Space space) {
    const int last = space.rank - 1;
    const auto size = static_cast<int64_t>(size_);
    int64_t common = 16 / size;  // elements in one unit
    if (space.strides[0][last] != 1 || space.strides[1][last] != 1) common = 1;
    common = std::gcd(common, space.extents[last]);
    common = std::gcd(common, std::gcd(from_ / size, to_ / size));
    for (int axis = 0; axis < last; ++axis)
      common = std::gcd(common, std::gcd(space.strides[0][axis], space.strides[1][axis]));
    space.extents[last] /= common;
    for (auto& strides : space.strides)
      for (int axis = 0; axis < last; ++axis) strides[axis] /= common;
    units_ = {space, static_cast<size_t>(common * size), nullptr, nullptr};
  }

  size_t size_;
  int64_t from_ = 0, to_ = 0;  ///< bytes
  bool empty_ = false, tiled_ = false;
  TransposeArguments tiles_{};
  CopyArguments units_{};
};

/// One copy from input 0 to output 0.
KernelPtr make_moved(const NodeView& node, const Copy& copy) {
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 1);
  return make_kernel(
      [launch = CopyLaunch(copy, size_of(node.dtype(0)))](const Call& call) {
        return launch.run(call.in<std::byte>(0), call.out<std::byte>(), call.stream);
      },
      requirements);
}

/// Identity and Reshape: a plain byte copy.
Result<KernelPtr> create_identity(CudaDevice&, const NodeView& node) {
  return make_copy(node.input(0).bytes(), known_inputs(node, 1));
}

Result<KernelPtr> create_transpose(CudaDevice&, const NodeView& node) {
  const Shape &x = node.shape(0), &y = node.output(0).shape;
  const auto from = strides_of(x), to = strides_of(y);
  const auto& permutation = node.as<op::TransposeAttributes>().permutation;
  Copy copy;
  for (int i = 0; i < x.rank(); ++i) {
    // An empty permutation reverses the axes.
    const int axis = permutation.empty() ? x.rank() - 1 - i
                                         : *normalized_axis(permutation[static_cast<size_t>(i)], x.rank());
    copy.add_axis(x[axis], from[static_cast<size_t>(axis)], to[static_cast<size_t>(i)]);
  }
  return make_moved(node, copy);
}

Result<KernelPtr> create_concat(CudaDevice&, const NodeView& node) {
  const TensorInfo& result = node.output(0);
  const int axis = *normalized_axis(node.as<op::ConcatAttributes>().axis, result.shape.rank());
  const auto to = strides_of(result.shape);
  std::vector<CopyLaunch> parts;
  int64_t at = 0;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Shape& shape = node.shape(i);
    const auto from = strides_of(shape);
    Copy copy;
    for (int k = 0; k < shape.rank(); ++k)
      copy.add_axis(shape[k], from[static_cast<size_t>(k)], to[static_cast<size_t>(k)]);
    copy.to = at * to[static_cast<size_t>(axis)];
    parts.emplace_back(copy, size_of(result.dtype));
    at += shape[axis];
  }
  return make_kernel([parts = std::move(parts)](const Call& call) {
    for (size_t i = 0; i < parts.size(); ++i)
      if (const cudaError_t error = parts[i].run(call.in<std::byte>(i), call.out<std::byte>(), call.stream);
          error != cudaSuccess)
        return error;
    return cudaSuccess;
  });
}

Status supports_slice(const CudaDevice&, const NodeView& node) {
  RT_TRY(known_on_host(node, 1, "the starts of a Slice"));
  return known_on_host(node, 2, "the ends of a Slice");
}
Result<KernelPtr> create_slice(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const SliceGeometry slice,
            slice_geometry(node.shape(0), node.as<op::SliceAttributes>(), node.ints(1), node.ints(2)));
  const auto from = strides_of(node.shape(0)), to = strides_of(slice.result);
  Copy copy;
  for (int i = 0; i < slice.result.rank(); ++i) {
    const auto axis = static_cast<size_t>(i);
    copy.from += slice.start[axis] * from[axis];
    copy.add_axis(slice.result[i], slice.step[axis] * from[axis], to[axis]);
  }
  return make_moved(node, copy);
}

Result<KernelPtr> create_expand(CudaDevice&, const NodeView& node) {
  const Shape& y = node.output(0).shape;
  Copy copy;
  copy.space = index_space(broadcast_plan<2>(y, {node.shape(0), y}));
  return make_moved(node, copy);
}

Status supports_tile(const CudaDevice&, const NodeView& node) {
  int axes = 0;  // a repeated axis is two
  for (int i = 0; i < node.shape(0).rank(); ++i) {
    const int64_t x = node.shape(0)[i], y = node.output(0).shape[i];
    axes += (x != 1 ? 1 : 0) + (x != y ? 1 : 0);
  }
  if (axes <= kMaxAxes) return {};
  return unsupported("tiling needs ", axes, " axes, ", kMaxAxes, " are supported");
}
Result<KernelPtr> create_tile(CudaDevice&, const NodeView& node) {
  const Shape &x = node.shape(0), &y = node.output(0).shape;
  const auto from = strides_of(x), to = strides_of(y);
  Copy copy;
  for (int i = 0; i < x.rank(); ++i) {
    const auto axis = static_cast<size_t>(i);
    if (x[i] != y[i]) copy.add_axis(x[i] == 0 ? 0 : y[i] / x[i], 0, to[axis] * x[i]);
    if (x[i] != 1) copy.add_axis(x[i], from[axis], to[axis]);
  }
  return make_moved(node, copy);
}

Status supports_pad(const CudaDevice&, const NodeView& node) {
  return known_on_host(node, 1, "the pads of a Pad");
}
Result<KernelPtr> create_pad(CudaDevice&, const NodeView& node) {
  static_assert(static_cast<int>(PadMode::Reflect) == static_cast<int>(op::PadMode::Reflect) &&
                static_cast<int>(PadMode::Edge) == static_cast<int>(op::PadMode::Edge) &&
                static_cast<int>(PadMode::Wrap) == static_cast<int>(op::PadMode::Wrap));
  const op::PadMode mode = node.as<op::PadAttributes>().mode;
  RT_ASSIGN(const PadGeometry geometry, pad_geometry(node.shape(0), mode, node.ints(1)));
  const auto from = strides_of(node.shape(0));
  PadArguments arguments{};
  arguments.mode = static_cast<PadMode>(mode);
  arguments.element_bytes = size_of(node.dtype(0));
  arguments.rank = geometry.result.rank();
  arguments.count = geometry.result.elements();
  int64_t start = 0;
  for (int i = 0; i < geometry.result.rank(); ++i) {
    const auto axis = static_cast<size_t>(i);
    arguments.extents[axis] = geometry.result[i];
    arguments.before[axis] = geometry.before[axis];
    arguments.limits[axis] = geometry.extent[axis];
    arguments.strides[axis] = from[axis];
    start += geometry.start[axis] * from[axis];
  }
  const int64_t start_byte = start * static_cast<int64_t>(arguments.element_bytes);
  Requirements requirements;
  requirements.replaced_inputs = node.has(1) ? 1u << 1 : 0;
  return make_kernel(
      [=](const Call& call) {
        PadArguments a = arguments;
        a.x = call.in<std::byte>(0) + start_byte;
        a.value = call.in(2);
        a.y = call.out();
        return pad(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_movement();
std::span<const KernelRow> rows_movement() {
  static constexpr KernelRow kRows[] = {
      row<create_identity>(OpKind::Identity, "identity", kAnyDType),
      row<create_identity>(OpKind::Reshape, "reshape", kAnyDType),
      row<create_transpose>(OpKind::Transpose, "transpose", kAnyDType),
      row<create_concat>(OpKind::Concat, "concat", kAnyDType),
      row<create_slice, supports_slice>(OpKind::Slice, "slice", kAnyDType),
      row<create_pad, supports_pad>(OpKind::Pad, "pad", kAnyDType),
      row<create_expand>(OpKind::Expand, "expand", kAnyDType),
      row<create_tile, supports_tile>(OpKind::Tile, "tile", kAnyDType),
  };
  return kRows;
}

}  // namespace librt::cuda
