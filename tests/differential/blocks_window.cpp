// Slices, pads, pools, convolutions and unfolding: extents with saturation, rounding and strides.
#include <optional>

#include "tests/differential/blocks.h"

namespace librt::test {

namespace {

int64_t some_bound(Generator& g) {
  return g.random.pick<int64_t>({0,   0,   1,    2,  3,  4,  5,  7,   10,  16,  16,    32,       64,
                                 100, 640, 1000, -1, -2, -3, -5, -16, -32, -64, -1000, kToTheEnd});
}

bool crop(Generator& g) {  // x[:, a:b:step]
  const Item* item = g.any();
  if (item == nullptr) return false;
  const size_t axis = g.axis_of(*item);
  int64_t start = 0, end = kToTheEnd, step = 1;
  switch (g.random.below(4)) {
    case 0: end = some_bound(g); break;
    case 1: start = some_bound(g); break;
    case 2: start = some_bound(g), end = some_bound(g); break;
    default:
      step = g.random.pick<int64_t>({2, 2, 3, 5, 160, -1, -1, -2, -3});
      start = step < 0 ? g.random.pick<int64_t>({-1, kToTheEnd, 20, -3}) : g.random.below(3);
      end = step < 0 ? g.random.pick<int64_t>({std::numeric_limits<int64_t>::min(), -1000, 2})
                     : g.random.pick<int64_t>({kToTheEnd, 16, -1});
  }
  g.give(g.slice(item->name, g.draft.ints({start}), g.draft.ints({end}), g.spelled(*item, axis), step),
         item->exact);
  return true;
}

bool crop_picture(Generator& g) {  // x[..., :a, b:]
  const Item* item = g.any(2, 4);
  if (item == nullptr) return false;
  const int64_t rank = item->rank();
  const std::string starts = g.draft.ints({g.random.below(2), some_bound(g)});
  const std::string ends = g.draft.ints({some_bound(g), kToTheEnd});
  g.give(g.draft.node("Slice", {item->name, starts, ends, g.draft.ints({rank - 2, rank - 1})}), item->exact);
  return true;
}

bool crop_computed(Generator& g) {  // x[:, :n], x[:, n - k:], x[:, n // 2:n]
  const Item* item = g.any();
  if (item == nullptr) return false;
  const size_t axis = g.axis_of(*item);
  const Item at = *item;
  std::string start = g.draft.ints({g.random.chance(50) ? 0 : some_bound(g)});
  std::string end = g.draft.ints({kToTheEnd});
  const Scalar n = g.scalar();
  switch (g.random.below(3)) {
    case 0: end = g.as_list(n.name); break;
    case 1: start = g.as_list(n.name); break;
    default: start = g.as_list(n.name); end = g.as_list(g.plus(n.name, g.random.pick<int64_t>({1, 5, 16})));
  }
  g.give(g.slice(at.name, start, end, g.spelled(at, axis), g.random.chance(15) ? 2 : 1), at.exact);
  return true;
}

bool last_row(Generator& g) {  // x[:, -1]
  const Item* item = g.any();
  if (item == nullptr) return false;
  const size_t axis = g.axis_of(*item);
  const auto at = static_cast<int64_t>(axis);
  std::string row;
  if (g.random.chance(50))
    row = g.draft.node("Gather", {item->name, g.draft.number(g.random.pick<int64_t>({-1, -1, 0, -2}))},
                       {{"axis", at}});
  else
    row = g.draft.node("Squeeze", {g.slice(item->name, g.draft.ints({-1}), g.draft.ints({kToTheEnd}), at),
                                   g.draft.ints({at})});
  g.give(row, item->exact);
  return true;
}

bool neighbours(Generator& g) {  // x[:, 1:] - x[:, :-1]
  const Item* item = g.any();
  if (item == nullptr) return false;
  const auto axis = static_cast<int64_t>(g.axis_of(*item));
  const int64_t by = g.random.pick<int64_t>({1, 1, 2, 16});
  const std::string after = g.slice(item->name, g.draft.ints({by}), g.draft.ints({kToTheEnd}), axis);
  const std::string before = g.slice(item->name, g.draft.ints({0}), g.draft.ints({-by}), axis);
  g.give(g.draft.node("Sub", {after, before}), item->exact);
  return true;
}

bool pad(Generator& g) {
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const size_t axis = g.axis_of(*item), axes = item->axes();
  Extents pads(2 * axes, 0);
  const bool crops = g.random.chance(25);
  pads[axis] = crops ? -g.random.between(1, 4) : g.random.between(0, 4);
  pads[axis + axes] = g.random.pick<int64_t>({0, 1, 3, 8, 40, -2});
  const char* mode = g.random.pick<const char*>({"constant", "constant", "reflect", "edge"});
  g.give(g.draft.node("Pad", {item->name, g.draft.ints(pads)}, {{"mode", mode}}), item->exact);
  return true;
}

bool pad_computed(Generator& g) {  // pad(x, (0, max_length - n))
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const Scalar amount = g.scalar();
  if (amount.most() > 400) return false;
  Names parts;
  for (size_t i = 0; i < 2 * at.axes(); ++i)
    parts.push_back(i == axis + at.axes() ? g.as_list(amount.name) : g.draft.ints({0}));
  g.give(g.draft.node("Pad", {at.name, g.draft.node("Concat", parts, {{"axis", 0}})}), at.exact);
  return true;
}

bool pad_to_multiple(Generator& g) {  // and a view in blocks of it, as windowed attention does
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const int64_t block = g.random.pick<int64_t>({4, 7, 8, 16, 64});
  const std::string n = g.extent(at.name, axis, at.axes());
  std::string missing;
  if (g.random.chance(50))
    missing = g.binary("Sub", g.times(g.ceil_div(n, block), block), n);
  else
    missing = g.draft.node(
        "Mod", {g.binary("Sub", g.draft.number(block), g.draft.node("Mod", {n, g.draft.number(block)})),
                g.draft.number(block)});
  Names parts;
  for (size_t i = 0; i < 2 * at.axes(); ++i)
    parts.push_back(i == axis + at.axes() ? g.as_list(missing) : g.draft.ints({0}));
  const std::string padded = g.draft.node("Pad", {at.name, g.draft.node("Concat", parts, {{"axis", 0}})});
  if (g.random.chance(30) || at.rank() > 3) {
    g.give(padded, at.exact);
    return true;
  }
  Names shape;
  for (size_t i = 0; i < at.axes(); ++i) {
    if (i != axis) {
      shape.push_back(g.as_list(g.extent(at.name, i, at.axes())));
      continue;
    }
    shape.push_back(g.random.chance(50) ? g.draft.ints({-1})
                                        : g.as_list(g.floor_div(g.extent(padded, axis, at.axes()), block)));
    shape.push_back(g.draft.ints({block}));
  }
  const std::string view = g.draft.node("Reshape", {padded, g.draft.node("Concat", shape, {{"axis", 0}})});
  const auto inner = static_cast<int64_t>(axis);
  if (g.random.chance(50))
    g.give(g.reduce("ReduceMax", view, {inner + (g.random.chance(50) ? 1 : 0)}, false), at.exact);
  else
    g.give(view, at.exact);
  return true;
}

// Reshapes [.., n] or [.., h, w] to [b, channels, ..] for pools and convolutions: one channel if it would be
// dynamic.
std::string as_picture(Generator& g, const Item& item, int spatial, int64_t& channels) {
  const int rank = item.rank();
  if (rank == spatial + 2 && item.is_fixed(1)) {
    channels = item.dims[0][1];
    return item.name;
  }
  channels = 1;
  if (rank == spatial + 1) return g.unsqueeze(item.name, {1});
  if (rank == spatial) return g.unsqueeze(item.name, {0, 1});
  return "";
}

bool pool(Generator& g) {
  const int spatial = g.random.chance(60) ? 1 : 2;
  const Item* item = g.any(spatial, spatial + 2);
  if (item == nullptr) return false;
  int64_t channels = 0;
  const std::string picture = as_picture(g, *item, spatial, channels);
  if (picture.empty()) return false;
  if (g.random.chance(15)) {
    g.give(g.draft.node(g.random.pick<const char*>({"GlobalAveragePool", "GlobalMaxPool"}), {picture}),
           false);
    return true;
  }
  const bool average = g.random.chance(40);
  Extents kernel, strides, pads, dilations;
  for (int i = 0; i < spatial; ++i) {
    kernel.push_back(g.random.between(1, 4));
    strides.push_back(g.random.pick<int64_t>({1, 2, 2, 3, 4, 16}));
    dilations.push_back(average || g.random.chance(70) ? 1 : 2);
  }
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}};
  if (!average) attributes.push_back({"dilations", dilations});
  if (g.random.chance(25)) {
    attributes.push_back({"auto_pad", g.random.pick<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"})});
  } else {
    for (int i = 0; i < 2 * spatial; ++i)
      pads.push_back(g.random.below(kernel[static_cast<size_t>(i % spatial)]));
    attributes.push_back({"pads", pads});
    attributes.push_back({"ceil_mode", g.random.chance(40) ? 1 : 0});
  }
  if (average) attributes.push_back({"count_include_pad", g.random.chance(50) ? 1 : 0});
  g.give(g.draft.node(average ? "AveragePool" : "MaxPool", {picture}, attributes), !average && item->exact);
  return true;
}

/// The input of a convolution: an item as a picture of one or two spatial axes and few channels.
struct Convolved {
  std::string picture;
  int spatial = 1;
  int64_t channels = 0;
  bool exact = false;
};
std::optional<Convolved> convolved(Generator& g) {
  Convolved made{.spatial = g.random.chance(60) ? 1 : 2};
  const Item* item = g.any(made.spatial, made.spatial + 2);
  if (item == nullptr) return std::nullopt;
  made.exact = item->exact;
  made.picture = as_picture(g, *item, made.spatial, made.channels);
  if (made.picture.empty() || made.channels < 1 || made.channels > 8) return std::nullopt;
  return made;
}

bool convolution(Generator& g) {
  const auto input = convolved(g);
  if (!input) return false;
  const auto& [picture, spatial, channels, exact] = *input;
  const int64_t filters = g.random.between(1, 3);
  Extents dims = {filters, channels}, kernel, strides, pads, dilations;
  for (int i = 0; i < spatial; ++i) {
    const int64_t size = g.random.pick<int64_t>({1, 2, 3, 3, 5});
    kernel.push_back(size);
    dims.push_back(size);
    strides.push_back(spatial == 1 ? g.random.pick<int64_t>({1, 1, 2, 3, 5, 10, 16, 160})
                                   : g.random.pick<int64_t>({1, 1, 2, 3}));
    dilations.push_back(g.random.chance(75) ? 1 : 2);
  }
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}};
  if (g.random.chance(20)) {
    attributes.push_back({"auto_pad", g.random.pick<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"})});
  } else {
    for (int i = 0; i < 2 * spatial; ++i) pads.push_back(g.random.below(3));
    attributes.push_back({"pads", pads});
  }
  Names inputs = {picture, g.weights(dims)};
  if (g.random.chance(40)) inputs.push_back(g.weights({filters}));
  g.give(g.draft.node("Conv", inputs, attributes), exact);
  return true;
}

bool transposed_convolution(Generator& g) {
  const auto input = convolved(g);
  if (!input) return false;
  const auto& [picture, spatial, channels, exact] = *input;
  Extents dims = {channels, g.random.between(1, 3)}, strides, pads, more;
  for (int i = 0; i < spatial; ++i) {
    dims.push_back(g.random.between(1, 4));
    strides.push_back(g.random.between(1, 3));
    more.push_back(g.random.below(strides.back()));
  }
  for (int i = 0; i < 2 * spatial; ++i) pads.push_back(g.random.below(2));
  g.give(g.draft.node("ConvTranspose", {picture, g.weights(dims)},
                      {{"strides", strides}, {"pads", pads}, {"output_padding", more}}),
         exact);
  return true;
}

bool unfold(Generator& g) {  // frames of a window: x[:, arange(frames) * hop + arange(window)]
  const Item* item = g.any(1, 3);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const int64_t window = g.random.between(1, 6), hop = g.random.pick<int64_t>({1, 2, 3, 5, 16});
  if (at.least(axis) < window) return false;
  const std::string n = g.extent(at.name, axis, at.axes());
  const std::string frames = g.plus(g.floor_div(g.plus(n, -window), hop), 1);
  const std::string first =
      g.times(g.draft.node("Range", {g.draft.number(0), frames, g.draft.number(1)}), hop);
  const std::string within =
      g.draft.node("Range", {g.draft.number(0), g.draft.number(window), g.draft.number(1)});
  const std::string index = g.binary("Add", g.unsqueeze(first, {1}), g.unsqueeze(within, {0}));
  g.give(g.draft.node("Gather", {at.name, index}, {{"axis", static_cast<int64_t>(axis)}}), at.exact);
  return true;
}

bool spectrum(Generator& g) {  // frames of a signal [b, n], as stft
  const Item* item = g.any(2, 2);
  if (item == nullptr || item->least(1) < 8) return false;
  const std::string signal = g.unsqueeze(item->name, {2});
  const std::string hop = g.draft.number(g.random.pick<int64_t>({2, 4, 5}));
  g.give(g.draft.node("STFT", {signal, hop, g.weights({8})}, {{"onesided", 1}}), false);
  return true;
}

}  // namespace

std::vector<Block> window_blocks() {
  return {{"crop", 12, crop},
          {"crop_picture", 4, crop_picture},
          {"crop_computed", 8, crop_computed},
          {"last_row", 4, last_row},
          {"neighbours", 4, neighbours},
          {"pad", 5, pad},
          {"pad_computed", 4, pad_computed},
          {"pad_to_multiple", 6, pad_to_multiple},
          {"pool", 8, pool},
          {"convolution", 8, convolution},
          {"transposed_convolution", 4, transposed_convolution},
          {"unfold", 5, unfold},
          {"spectrum", 1, spectrum}};
}

}  // namespace librt::test
