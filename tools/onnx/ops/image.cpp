// CenterCropPad and Col2Im: images cut, framed and put together.
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

struct BlockAxis {
  int64_t image, block, stride, dilation, pad_begin, pad_end;
  int64_t windows() const { return (image + pad_begin + pad_end - dilation * (block - 1) - 1) / stride + 1; }
};

Result<std::vector<BlockAxis>> block_axes(NodeContext& c) {
  RT_ASSIGN(const auto image, c.known_integers(1, "image_shape"));
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
    if (!inside(axis.image, 1) || !inside(axis.block, 1) || !inside(axis.stride, 1) ||
        !inside(axis.dilation, 1) || !inside(axis.pad_begin, 0) || !inside(axis.pad_end, 0) ||
        axis.image + axis.pad_begin + axis.pad_end < axis.dilation * (axis.block - 1) + 1)
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

// Adds every element of every block at its position in the image; elements in the padding go to one extra
// position, which is sliced off.
Status col2im(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  if (c.rank() != 3) return invalid_model("expected an input [N, C x block, L], found rank ", c.rank());
  RT_ASSIGN(const std::vector<BlockAxis> axes, block_axes(c));
  int64_t size = 1, block = 1, windows = 1;
  for (const BlockAxis& axis : axes) {
    size *= axis.image;
    block *= axis.block;
    windows *= axis.windows();
    if (size > int64_t{1} << 31 || block * windows > int64_t{1} << 28)
      return cannot("an image or blocks of this size are not supported");
  }
  if (c.extent(0, 1) < 0) return cannot("the number of channels is not known; fix it with --dim");
  if (c.extent(0, 1) % block != 0 || (c.extent(0, 2) >= 0 && c.extent(0, 2) != windows))
    return invalid_model("expected an input [N, C x ", block, ", ", windows, "]");
  const Extent channels = Extent::of(c.extent(0, 1) / block);
  const Extent batch = Extent::dim(c.emit, c.input(0), 0);
  const Extent flat[] = {batch, channels, Extent::of(block * windows)};
  const Extent with_rest[] = {batch, channels, Extent::of(size + 1)};
  const ValueId updates = reshape_to(c.emit, c.input(0), flat);
  op::ScatterAddAttributes attributes;
  attributes.axis = 2;
  const ValueId sums =
      c.emit.emit(attributes, {shape_vector(c.emit, with_rest), c.emit.ints(positions_of(axes)), updates});
  std::vector<Extent> result{batch, channels};
  for (const BlockAxis& axis : axes) result.push_back(Extent::of(axis.image));
  return c.result(reshape_to(c.emit, slice(c.emit, sums, 2, 0, size), result));
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
