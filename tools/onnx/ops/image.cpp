// CenterCropPad and Col2Im: images cut, framed and put together.
#include <array>
#include <numeric>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

// Each axis is cut or padded in the middle; of an odd number, the smaller half goes to the front.
Status center_crop_pad(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  std::vector<int64_t> axes;
  if (const auto given = c.optional_integers("axes")) {
    axes = *given;
  } else {
    axes.resize(static_cast<size_t>(c.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.empty()) return c.result(c.input(0));
  const ValueId none = c.emit.ints(std::array<int64_t, 1>{0}), two = c.emit.ints(std::array<int64_t, 1>{2});
  std::vector<ValueId> dims;
  for (int64_t& axis : axes) {
    RT_ASSIGN(axis, c.axis(axis, c.rank()));
    dims.push_back(dims_product(c.emit, c.input(0), static_cast<int>(axis), static_cast<int>(axis) + 1));
  }
  // Negative pads cut; those of a size below 0 are refused.
  const ValueId added = c.emit.sub(as_vector(c.emit, c.input(1)), concat_values(c.emit, std::move(dims)));
  const ValueId before = c.emit.div(added, two), after = c.emit.sub(added, before);
  std::vector<ValueId> pads(2 * static_cast<size_t>(c.rank()), none);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const auto axis = static_cast<size_t>(axes[i]);
    pads[axis] = slice(c.emit, before, 0, at, at + 1);
    pads[axis + static_cast<size_t>(c.rank())] = slice(c.emit, after, 0, at, at + 1);
  }
  return c.result(c.emit.emit(op::PadAttributes{}, {c.input(0), concat_values(c.emit, std::move(pads))}));
}

// --- Col2Im

struct BlockAxis {
  int64_t image;  ///< below 0: known at run time
  int64_t block, stride, dilation, pad_begin, pad_end;
  int64_t windows() const { return (image + pad_begin + pad_end - reach()) / stride + 1; }
  int64_t reach() const { return dilation * (block - 1) + 1; }
};

Result<std::vector<BlockAxis>> block_axes(NodeContext& c, std::span<const int64_t> image) {
  RT_ASSIGN(const auto block, c.known_integers(2, "block_shape"));
  const size_t count = image.size();
  const auto numbers = [&](std::string_view name, size_t size, int64_t otherwise) {
    std::vector<int64_t> list = c.integers(name);
    if (list.empty()) list.assign(size, otherwise);
    return list;
  };
  const auto strides = numbers("strides", count, 1), dilations = numbers("dilations", count, 1),
             pads = numbers("pads", 2 * count, 0);
  if (block.size() != count || strides.size() != count || dilations.size() != count ||
      pads.size() != 2 * count)
    return invalid_model("expected block_shape, strides, dilations and pads for ", count, " axes");
  std::vector<BlockAxis> axes;
  constexpr int64_t kLargest = int64_t{1} << 31;
  for (size_t i = 0; i < count; ++i) {
    axes.push_back({image[i], block[i], strides[i], dilations[i], pads[i], pads[i + count]});
    const auto inside = [](int64_t x, int64_t least) { return x >= least && x < kLargest; };
    const BlockAxis& axis = axes.back();
    if (!inside(axis.block, 1) || !inside(axis.stride, 1) || !inside(axis.dilation, 1) ||
        !inside(axis.pad_begin, 0) || !inside(axis.pad_end, 0))
      return invalid_model("axis ", i,
                           ": expected a block, stride and dilation of at least 1, and pads of 0 or more");
    if (axis.image >= 0 &&
        (!inside(axis.image, 1) || axis.image + axis.pad_begin + axis.pad_end < axis.reach()))
      return invalid_model("axis ", i, ": expected a block that fits into the padded image");
  }
  return axes;
}

/// For every element of the block, for every window: the flat position in the image, or the image's size for
/// one in the padding.
std::vector<int64_t> positions_of(std::span<const BlockAxis> axes) {
  int64_t size = 1;
  for (const BlockAxis& axis : axes) size *= axis.image;
  std::vector<int64_t> positions{0};
  // BlockAxis by axis: positions[tap, window] of the axes so far.
  int64_t taps = 1, windows = 1;
  for (const BlockAxis& axis : axes) {
    const int64_t count = axis.windows();
    std::vector<int64_t> next(static_cast<size_t>(taps * axis.block * windows * count));
    for (int64_t i = 0; i < static_cast<int64_t>(next.size()); ++i) {
      const int64_t w = i % count, window = i / count % windows, t = i / count / windows % axis.block,
                    tap = i / count / windows / axis.block;
      const int64_t at = w * axis.stride - axis.pad_begin + t * axis.dilation;
      const int64_t before = positions[static_cast<size_t>(tap * windows + window)];
      next[static_cast<size_t>(i)] = before < 0 || at < 0 || at >= axis.image ? -1 : before * axis.image + at;
    }
    positions = std::move(next);
    taps *= axis.block;
    windows *= count;
  }
  for (int64_t& position : positions)
    if (position < 0) position = size;
  return positions;
}

/// What becomes of blocks: i64 vectors, the extents of one element.
struct Placement {
  ValueId positions = kNoValue;  ///< as positions_of()
  ValueId windows = kNoValue;    ///< their number
  ValueId size = kNoValue;       ///< of the image
};

Result<Placement> known_placement(NodeContext& c, std::span<const BlockAxis> axes) {
  int64_t size = 1, block = 1, windows = 1;
  for (const BlockAxis& axis : axes) {
    size *= axis.image;
    block *= axis.block;
    windows *= axis.windows();
    if (size > int64_t{1} << 31 || block * windows > int64_t{1} << 28)
      return cannot("an image or blocks of this size are not supported");
  }
  if (c.extent(0, 2) >= 0 && c.extent(0, 2) != windows)
    return invalid_model("expected an input [N, C x ", block, ", ", windows, "]");
  return Placement{c.emit.ints(positions_of(axes)), c.emit.ints({&windows, 1}), c.emit.ints({&size, 1})};
}

/// The same where the image's extents, an i64 vector, are known only at run time.
Result<Placement> open_placement(NodeContext& c, ValueId image, std::span<const BlockAxis> axes) {
  Emitter& e = c.emit;
  const size_t count = axes.size();
  if (2 * count > kMaxRank) return cannot(count, " axes of unknown extents are not supported");
  const auto scalar = [&](int64_t value) { return e.scalar(static_cast<double>(value), DType::I64); };
  ValueId position = kNoValue, is_inside = kNoValue, windows = kNoValue, size = kNoValue;
  for (size_t i = 0; i < count; ++i) {
    const BlockAxis& axis = axes[i];
    const ValueId extent =
        reshape_to(e, slice(e, image, 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1), {});
    // 0 where the block does not fit.
    const ValueId room = e.add(extent, scalar(axis.pad_begin + axis.pad_end - axis.reach() + axis.stride));
    const ValueId along = e.div(e.emit(op::MaximumAttributes{}, {room, scalar(0)}), scalar(axis.stride));
    const ValueId steps =
        e.mul(e.emit(op::RangeAttributes{}, {scalar(0), along, scalar(1)}), scalar(axis.stride));
    std::vector<int64_t> taps;
    for (int64_t tap = 0; tap < axis.block; ++tap) taps.push_back(tap * axis.dilation - axis.pad_begin);
    std::vector<int64_t> by_tap(2 * count, 1), by_window(2 * count, 1);
    by_tap[i] = axis.block;
    by_window[count + i] = -1;
    const ValueId at = e.add(e.reshape(e.ints(taps), e.ints(by_tap)), e.reshape(steps, e.ints(by_window)));
    const ValueId inside =
        e.emit(op::AndAttributes{}, {e.emit(op::GreaterOrEqualAttributes{}, {at, scalar(0)}),
                                     e.emit(op::LessAttributes{}, {at, extent})});
    is_inside = i == 0 ? inside : e.emit(op::AndAttributes{}, {is_inside, inside});
    position = i == 0 ? at : e.add(e.mul(position, extent), at);
    windows = i == 0 ? along : e.mul(windows, along);
    size = i == 0 ? extent : e.mul(size, extent);
  }
  const ValueId all = e.emit(op::WhereAttributes{}, {is_inside, position, size});
  return Placement{reshape_to(e, all, {-1}), as_vector(e, windows), as_vector(e, size)};
}

// Adds every element of every block at its position in the image; elements in the padding go to one extra
// position, which is sliced off.
Status col2im(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  if (c.rank() != 3) return invalid_model("expected an input [N, C x block, L], found rank ", c.rank());
  if (c.rank(1) != 1 || c.extent(1, 0) < 1)
    return invalid_model("image_shape: expected a vector of known length, found rank ", c.rank(1));
  const ValueId image = as_vector(c.emit, c.input(1));
  std::vector<int64_t> extents(static_cast<size_t>(c.extent(1, 0)), -1);
  const bool known = c.emit.known_value(image).has_value();
  if (known) {
    RT_ASSIGN(extents, c.known_integers(1, "image_shape"));
  }
  RT_ASSIGN(const std::vector<BlockAxis> axes, block_axes(c, extents));
  int64_t block = 1;
  for (const BlockAxis& axis : axes) {
    block *= axis.block;
    if (block > int64_t{1} << 28) return cannot("blocks of this size are not supported");
  }
  if (c.extent(0, 1) < 0) return cannot("the number of channels is not known; fix it with --dim");
  if (c.extent(0, 1) % block != 0) return invalid_model("expected an input [N, C x ", block, ", L]");
  RT_ASSIGN(const Placement placement, known ? known_placement(c, axes) : open_placement(c, image, axes));
  const int64_t channels = c.extent(0, 1) / block, one = 1;
  const ValueId rows =
      concat_values(c.emit, {dims_product(c.emit, c.input(0), 0, 1), c.emit.ints({&channels, 1})});
  // A run fails where the number of windows is another.
  const ValueId all = c.emit.mul(placement.windows, c.emit.ints({&block, 1}));
  const ValueId updates = c.emit.reshape(c.input(0), concat_values(c.emit, {rows, all}));
  op::ScatterAddAttributes attributes;
  attributes.axis = 2;
  const ValueId with_rest = c.emit.add(placement.size, c.emit.ints({&one, 1}));
  const ValueId sums =
      c.emit.emit(attributes, {concat_values(c.emit, {rows, with_rest}), placement.positions, updates});
  const int64_t zero = 0;
  const ValueId inside = slice_between(c.emit, sums, 2, c.emit.ints({&zero, 1}), placement.size);
  return c.result(c.emit.reshape(inside, concat_values(c.emit, {rows, image})));
}

constexpr ImportRow kImageRows[] = {
    {"", "CenterCropPad", 18, kNewestOpset, center_crop_pad},
    {"", "Col2Im", 18, kNewestOpset, col2im},
};

}  // namespace

std::span<const ImportRow> rows_image() {
  return kImageRows;
}

}  // namespace librt::onnx
