// Operators that move elements without computing: any dtype, by element size.
#include "runtime/geometry/movement.h"

#include <cstring>
#include <optional>

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/strided_copy.h"

namespace librt::cpu {
namespace {

/// One box copied from input 0 to output 0, starting at these elements.
KernelPtr make_copy(StridedCopy copy, const CpuDevice& device, DType dtype, int64_t from_element = 0) {
  const size_t size = size_of(dtype);
  copy.prepare(size, device.simd());
  const int64_t from_byte = from_element * static_cast<int64_t>(size);
  return make_kernel(
      [=](const Call& call) noexcept { copy.run(call.in<std::byte>(0) + from_byte, call.out<std::byte>()); });
}

/// Identity and Reshape: the bytes are unchanged.
Result<KernelPtr> create_identity(CpuDevice&, const NodeView& node, Producers producers) {
  const auto bytes = static_cast<int64_t>(node.input(0).bytes());
  const bool blocked = node.kind() == OpKind::Identity && !producers.empty() && producers[0] == kBlocked16 &&
                       can_block(node.input(0));
  return make_kernel(
      [=](const Call& call) noexcept {
        const auto* x = call.in<std::byte>(0);
        auto* y = call.out<std::byte>();
        if (x == y) return;
        parallel_for(bytes, 1, 4096, [&](int64_t begin, int64_t end) noexcept {
          std::memcpy(y + begin, x + begin, static_cast<size_t>(end - begin));
        });
      },
      in_place(), {blocked ? kBlocked16 : kDense, 1, 1});
}

Result<KernelPtr> create_transpose(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const auto from = strides_of(x), to = strides_of(node.output(0).shape);
  const auto& permutation = node.as<op::TransposeAttributes>().permutation;
  StridedCopy copy;
  for (int i = 0; i < x.rank(); ++i) {
    // An empty permutation reverses the axes.
    const auto axis = permutation.empty() ? x.rank() - 1 - i
                                          : *normalized_axis(permutation[static_cast<size_t>(i)], x.rank());
    copy.add_axis(x[axis], to[static_cast<size_t>(i)], from[static_cast<size_t>(axis)]);
  }
  return make_copy(copy, device, node.dtype(0));
}

Result<KernelPtr> create_concat(CpuDevice& device, const NodeView& node, Producers) {
  struct Part {
    StridedCopy copy;
    int64_t to_byte = 0;
  };
  const TensorInfo& result = node.output(0);
  const int axis = *normalized_axis(node.as<op::ConcatAttributes>().axis, result.shape.rank());
  const auto to = strides_of(result.shape);
  const auto size = static_cast<int64_t>(size_of(result.dtype));
  std::vector<Part> parts(node.input_count());
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape& shape = node.shape(i);
    const auto from = strides_of(shape);
    for (int k = 0; k < shape.rank(); ++k)
      parts[i].copy.add_axis(shape[k], to[static_cast<size_t>(k)], from[static_cast<size_t>(k)]);
    parts[i].copy.prepare(static_cast<size_t>(size), device.simd());
    parts[i].to_byte = at * to[static_cast<size_t>(axis)] * size;
    at += shape[axis];
  }
  Requirements requirements;
  requirements.joins_in_place = result.shape.elements(0, axis) == 1;
  return make_kernel(
      [parts = std::move(parts)](const Call& call) noexcept {
        for (size_t i = 0; i < parts.size(); ++i) {
          std::byte* place = call.out<std::byte>() + parts[i].to_byte;
          if (call.in<std::byte>(i) != place) parts[i].copy.run(call.in<std::byte>(i), place);
        }
      },
      requirements);
}

Status supports_known(const NodeView& node, size_t first, size_t last, const char* what) {
  for (size_t i = first; i <= last; ++i)
    if (node.has(i) && node.inputs[i].value == nullptr && node.input(i).elements() > 0)
      return unsupported(what, " must be known when the kernel is created");
  return {};
}
Status supports_slice(const CpuDevice&, const NodeView& node) {
  return supports_known(node, 1, 2, "the starts and ends of a Slice");
}
Status supports_tile(const CpuDevice&, const NodeView& node) {
  return supports_known(node, 1, 1, "the repeats of a Tile");
}

/// Starts are clamped as in ONNX; the extents are those of the shape rule.
Result<KernelPtr> create_slice(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const Shape& y = node.output(0).shape;
  const auto from = strides_of(x), to = strides_of(y);
  const auto& attributes = node.as<op::SliceAttributes>();
  const auto starts = node.ints(1);
  std::array<int64_t, kMaxRank> start{}, step{};
  step.fill(1);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis =
        attributes.axes.empty() ? static_cast<int>(i) : *normalized_axis(attributes.axes[i], x.rank());
    const auto k = static_cast<size_t>(axis);
    if (i < attributes.steps.size()) step[k] = attributes.steps[i];
    const int64_t extent = x[axis];
    const int64_t wanted = starts[i] < 0 ? starts[i] + extent : starts[i];
    start[k] = std::clamp<int64_t>(wanted, 0, step[k] < 0 ? extent - 1 : extent);
  }
  StridedCopy copy;
  int64_t first = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    copy.add_axis(y[i], to[k], from[k] * step[k]);
    first += start[k] * from[k];
  }
  return make_copy(copy, device, node.dtype(0), y.elements() == 0 ? 0 : first);
}

Result<KernelPtr> create_expand(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const Shape& y = node.output(0).shape;
  const auto from = strides_of(x), to = strides_of(y);
  StridedCopy copy;
  const int added = y.rank() - x.rank();
  for (int i = 0; i < y.rank(); ++i) {
    const bool repeated = i < added || x[i - added] == 1;
    copy.add_axis(y[i], to[static_cast<size_t>(i)], repeated ? 0 : from[static_cast<size_t>(i - added)]);
  }
  return make_copy(copy, device, node.dtype(0));
}

Result<KernelPtr> create_tile(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const auto from = strides_of(x), to = strides_of(node.output(0).shape);
  StridedCopy copy;
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    copy.add_axis(node.ints(1)[k], to[k] * x[i], 0);
    copy.add_axis(x[i], to[k], from[k]);
  }
  return make_copy(copy, device, node.dtype(0));
}

Status supports_pad(const CpuDevice&, const NodeView& node) {
  return supports_known(node, 1, 1, "the pads of a Pad");
}

/// Positions before and after the input along an axis whose sources are computed once. A table of more would
/// take several times the memory of a result of one axis.
constexpr int64_t kMostEnds = 1024;

/// Rows along the last axis that is padded, of blocks of the axes after it: memcpy where inside the input,
/// else one block at a time.
Result<KernelPtr> create_pad(CpuDevice&, const NodeView& node, Producers) {
  const Shape x_shape = node.shape(0), y = node.output(0).shape;
  const auto mode = node.as<op::PadAttributes>().mode;
  RT_ASSIGN(const PadGeometry geometry, pad_geometry(x_shape, mode, node.ints(1)));
  const bool has_value = node.has(2);
  const auto from = strides_of(x_shape);
  int axis = y.rank() - 1;
  const auto is_padded = [&](int i) {
    const auto k = static_cast<size_t>(i);
    return geometry.before[k] != 0 || geometry.start[k] != 0 || geometry.extent[k] != y[i] ||
           x_shape[i] != y[i];
  };
  while (axis > 0 && !is_padded(axis)) --axis;
  const auto last = static_cast<size_t>(std::max(axis, 0));
  const int64_t extent = axis < 0 ? 1 : y[axis], block = axis < 0 ? 1 : y.elements(axis + 1, y.rank());
  const int64_t inner = extent * block, rows = inner == 0 ? 0 : y.elements() / inner;
  const int64_t before = axis < 0 ? 0 : std::min(geometry.before[last], extent);
  const int64_t inside = axis < 0 ? 1 : std::clamp<int64_t>(geometry.extent[last], 0, extent - before);
  std::vector<int64_t> ends;
  const bool tabled = extent - inside <= kMostEnds;
  for (int64_t i = 0; tabled && i < before; ++i) ends.push_back(pad_source(geometry, mode, axis, i));
  for (int64_t i = before + inside; tabled && i < extent; ++i)
    ends.push_back(pad_source(geometry, mode, axis, i));
  return with_size(size_of(node.dtype(0)), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const Call& call) noexcept {
      const T* x = call.in<T>(0);
      const T value = has_value ? *call.in<T>(2) : T{0};
      T* to = call.out<T>();
      parallel_for(rows, inner, 1, [&](int64_t begin, int64_t end) noexcept {
        // Where the rows along the axis before the padded one begin; -1 outside.
        int64_t base = 0;
        const auto source_of = [&](int i, int64_t at) {
          const auto k = static_cast<size_t>(i);
          const int64_t within = at - geometry.before[k];
          return within >= 0 && within < geometry.extent[k] ? geometry.start[k] + within
                                                            : pad_source(geometry, mode, i, at);
        };
        const int64_t run = axis > 0 ? y[axis - 1] : 1;
        for (int64_t row = begin, at = begin % run; row < end; ++row, ++at) {
          if (at == run) at = 0;
          if (row == begin || at == 0) {
            base = 0;
            int64_t rest = row / run;
            for (int i = axis - 2; i >= 0 && base >= 0; --i) {
              const int64_t source = source_of(i, rest % y[i]);
              base = source < 0 ? -1 : base + source * from[static_cast<size_t>(i)];
              rest /= y[i];
            }
          }
          int64_t offset = base;
          if (axis > 0 && base >= 0) {
            const int64_t source = source_of(axis - 1, at);
            offset = source < 0 ? -1 : base + source * from[last - 1];
          }
          T* out = to + row * inner;
          if (offset < 0) {
            std::fill(out, out + inner, value);
            continue;
          }
          const T* in = x + offset;
          const auto pick = [&](int64_t first, int64_t end_of_part) {
            for (int64_t i = first; i < end_of_part; ++i) {
              const auto entry = static_cast<size_t>(i < before ? i : i - inside);
              const int64_t source = tabled ? ends[entry] : pad_source(geometry, mode, axis, i);
              if (source < 0)
                std::fill(out + i * block, out + (i + 1) * block, value);
              else
                std::copy(in + source * block, in + (source + 1) * block, out + i * block);
            }
          };
          pick(0, before);
          if (inside > 0)
            std::memcpy(out + before * block, in + geometry.start[last] * block,
                        static_cast<size_t>(inside * block) * sizeof(T));
          pick(before + inside, extent);
        }
      });
    });
  });
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
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
