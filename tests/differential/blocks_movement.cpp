// Reshapes, concatenations, gathers, expansion and resizing with computed extents.
#include "tests/differential/blocks.h"

namespace librt::test {

namespace {

std::string concatenated(Generator& g, const Names& parts) {
  return parts.size() == 1 ? parts[0] : g.draft.node("Concat", parts, {{"axis", 0}});
}

bool flatten(Generator& g) {
  const Item* item = g.any(1, 5);
  if (item == nullptr) return false;
  std::string flat;
  switch (g.random.below(4)) {
    case 0: flat = g.draft.node("Flatten", {item->name}, {{"axis", g.random.below(item->rank() + 1)}}); break;
    case 1: flat = g.draft.node("Reshape", {item->name, g.draft.ints({0, -1})}); break;
    case 2: flat = g.draft.node("Reshape", {item->name, g.draft.ints({-1})}); break;
    default: {
      if (item->rank() < 3) return false;
      Extents shape(item->axes() - 1, 0);
      shape[static_cast<size_t>(g.random.below(static_cast<int64_t>(shape.size())))] = -1;
      if (shape.back() != -1) shape = {0, 0, -1};
      flat = g.draft.node("Reshape", {item->name, g.draft.ints(shape)});
    }
  }
  g.give(flat, item->exact);
  return true;
}

bool merge(Generator& g) {  // x.view(b * n, -1), x.view(-1, c)
  const Item* item = g.any(2, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const auto axis = static_cast<size_t>(g.random.below(at.rank() - 1));
  const std::string both =
      g.binary("Mul", g.extent(at.name, axis, at.axes()), g.extent(at.name, axis + 1, at.axes()));
  Names shape;
  for (size_t i = 0; i < at.axes(); ++i) {
    if (i == axis)
      shape.push_back(g.as_list(both));
    else if (i != axis + 1)
      shape.push_back(g.as_list(g.extent(at.name, i, at.axes())));
  }
  if (g.random.chance(40)) shape[g.random.chance(50) ? 0 : shape.size() - 1] = g.draft.ints({-1});
  g.give(g.draft.node("Reshape", {at.name, concatenated(g, shape)}), at.exact);
  return true;
}

bool view_in_groups(Generator& g) {  // x[:, :n // k * k].view(b, n // k, k), or without the crop
  const Item* item = g.any(1, 3);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const int64_t k = g.random.pick<int64_t>({2, 2, 3, 4, 8, 16});
  if (at.least(axis) < k) return false;
  const std::string groups = g.floor_div(g.extent(at.name, axis, at.axes()), k);
  std::string whole = at.name;
  if (g.random.chance(80))
    whole = g.slice(at.name, g.draft.ints({0}), g.as_list(g.times(groups, k)), static_cast<int64_t>(axis));
  Names shape;
  const int64_t form = g.random.below(4);
  for (size_t i = 0; i < at.axes(); ++i) {
    if (i != axis) {
      // 0 copies the extent from the same axis of the operand.
      shape.push_back(i < axis && g.random.chance(30) ? g.draft.ints({0})
                                                      : g.as_list(g.extent(at.name, i, at.axes())));
      continue;
    }
    std::string outer = form == 0 ? g.draft.ints({-1}) : g.as_list(groups), inner = g.draft.ints({k});
    if (form == 1) inner = g.draft.ints({-1});
    if (form == 2) std::swap(outer, inner);
    shape.push_back(outer);
    shape.push_back(inner);
  }
  g.give(g.draft.node("Reshape", {whole, concatenated(g, shape)}), at.exact);
  return true;
}

bool view_as_scalar(Generator& g) {  // x.view(-1, n), x.view(n // 2, -1) with a scalar from elsewhere
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const Scalar n = g.scalar();
  if (n.least() < 1) return false;
  Names shape = {g.as_list(n.name), g.draft.ints({-1})};
  if (g.random.chance(50)) std::swap(shape[0], shape[1]);
  g.give(g.draft.node("Reshape", {at.name, concatenated(g, shape)}), at.exact);
  return true;
}

bool concatenate(Generator& g) {
  const Item* first = g.any(1, 4);
  if (first == nullptr) return false;
  const size_t axis = g.axis_of(*first);
  Names parts = {first->name};
  bool exact = first->exact;
  for (const Item& item : g.tensors())
    if (item.name != first->name && same_dims(*first, item, axis) && parts.size() < 3 &&
        g.random.chance(60)) {
      parts.push_back(item.name);
      exact = exact && item.exact;
    }
  if (parts.size() == 1) parts.push_back(first->name);
  g.give(g.draft.node("Concat", parts, {{"axis", g.spelled(*first, axis)}}), exact);
  return true;
}

bool gather_range(Generator& g) {  // x[:, arange(0, n, step)]
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const Scalar end = g.scalar();
  if (end.least() < 0 || end.most() > at.least(axis)) return false;
  const int64_t step = g.random.pick<int64_t>({1, 2, 3, 16});
  const std::string index = g.draft.node("Range", {g.draft.number(0), end.name, g.draft.number(step)});
  g.give(g.draft.node("Gather", {at.name, index}, {{"axis", static_cast<int64_t>(axis)}}), at.exact);
  return true;
}

bool gather_constant(Generator& g) {
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const size_t axis = g.axis_of(*item);
  Extents index;
  for (int64_t i = g.random.between(1, 4); i > 0; --i)
    index.push_back(g.random.pick<int64_t>({0, 1, -1, -2}));
  g.give(g.draft.node("Gather", {item->name, g.draft.ints(index)}, {{"axis", static_cast<int64_t>(axis)}}),
         item->exact);
  return true;
}

bool positions(Generator& g) {  // arange(n).float(), alone or added to a tensor's axis
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const bool alone = g.random.chance(50);
  const Scalar n = alone ? g.scalar() : Scalar{g.extent(at.name, axis, at.axes()), {0}};
  if (n.most() > 400) return false;
  const std::string range = g.draft.node("Range", {g.draft.number(0), n.name, g.draft.number(1)});
  std::string values = g.draft.node("Cast", {range}, {{"to", kOnnxFloat}});
  if (!alone) {
    Extents after;
    for (size_t i = axis + 1; i < at.axes(); ++i) after.push_back(static_cast<int64_t>(i - axis));
    if (!after.empty()) values = g.unsqueeze(values, after);
    values = g.draft.node("Add", {at.name, values});
  }
  g.give(values, at.exact || alone);
  return true;
}

bool expand(Generator& g) {
  const Item* item = g.any(1, 3);
  if (item == nullptr) return false;
  const Item at = *item;
  const auto axis = static_cast<size_t>(g.random.below(at.rank() + 1));
  const Scalar n = g.scalar();
  if (n.most() > 100) return false;
  const std::string wider = g.unsqueeze(at.name, {static_cast<int64_t>(axis)});
  Names shape;
  for (size_t i = 0; i <= at.axes(); ++i) {
    if (i == axis)
      shape.push_back(g.as_list(n.name));
    else
      shape.push_back(g.random.chance(50) ? g.draft.ints({1}) : g.as_list(g.extent(wider, i, at.axes() + 1)));
  }
  g.give(g.draft.node("Expand", {wider, concatenated(g, shape)}), at.exact);
  return true;
}

bool tile(Generator& g) {
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  if (g.random.chance(50)) {
    Extents repeats(at.axes(), 1);
    repeats[axis] = g.random.between(2, 3);
    g.give(g.draft.node("Tile", {at.name, g.draft.ints(repeats)}), at.exact);
    return true;
  }
  const Scalar n = g.scalar();
  if (n.most() > 30) return false;
  Names repeats(at.axes(), "");
  for (size_t i = 0; i < repeats.size(); ++i) repeats[i] = i == axis ? g.as_list(n.name) : g.draft.ints({1});
  g.give(g.draft.node("Tile", {at.name, concatenated(g, repeats)}), at.exact);
  return true;
}

bool zeros(Generator& g) {  // new_zeros(n, m) + 1.5, a new tensor
  const Scalar n = g.scalar(), m = g.scalar();
  if (n.most() > 100 || m.most() > 100) return false;
  const std::string shape = concatenated(g, {g.as_list(n.name), g.as_list(m.name)});
  const std::string all = g.draft.node("ConstantOfShape", {shape});
  g.give(g.draft.node("Add", {all, g.draft.floats({}, {1.5f})}), true);
  return true;
}

bool resize(Generator& g) {
  const Item* item = g.any(3, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axes = at.axes();
  const bool by_scales = g.random.chance(50), nearest = g.random.chance(60);
  Attributes attributes = {{"mode", nearest ? "nearest" : "linear"},
                           {"coordinate_transformation_mode",
                            g.random.pick<const char*>({"asymmetric", "half_pixel", "align_corners"})}};
  if (nearest) attributes.push_back({"nearest_mode", "floor"});
  if (by_scales) {
    std::vector<float> scales(axes, 1.0f);
    for (size_t i = 2; i < axes; ++i) scales[i] = g.random.pick<float>({2.0f, 0.5f, 1.5f, 3.0f, 0.25f});
    const std::string name = g.draft.floats({static_cast<int64_t>(axes)}, scales);
    g.give(g.draft.node("Resize", {at.name, "", name}, attributes), nearest && at.exact);
    return true;
  }
  std::vector<std::pair<size_t, std::string>> sizes;
  for (size_t i = 2; i < axes; ++i) {
    const std::string n = g.extent(at.name, i, axes);
    switch (g.random.below(4)) {
      case 0: sizes.emplace_back(i, g.draft.ints({g.random.pick<int64_t>({7, 16, 30})})); break;
      case 1: sizes.emplace_back(i, g.as_list(g.times(n, 2))); break;
      case 2: sizes.emplace_back(i, g.as_list(g.ceil_div(n, 2))); break;
      default: sizes.emplace_back(i, g.as_list(g.plus(n, 3))); break;
    }
  }
  g.give(g.draft.node("Resize", {at.name, "", "", g.shape_with(at, sizes)}, attributes), nearest && at.exact);
  return true;
}

bool split(Generator& g) {
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const int64_t spelled = g.spelled(at, axis);
  Names parts;
  if (g.draft.opset >= 18 && g.random.chance(50)) {  // the last part takes the remainder
    const int64_t count = g.random.between(2, 3);
    parts = g.draft.nodes("Split", {at.name}, static_cast<size_t>(count),
                          {{"axis", spelled}, {"num_outputs", count}});
  } else if (g.draft.opset < 18 && at.is_open(axis) && g.random.chance(30)) {  // even extents only
    parts = g.draft.nodes("Split", {at.name}, 2, {{"axis", spelled}});
  } else {
    const std::string n = g.extent(at.name, axis, at.axes());
    const std::string first = g.random.chance(60)
                                  ? g.floor_div(n, 2)
                                  : g.draft.node("Min", {n, g.draft.number(g.random.between(1, 20))});
    const std::string sizes = concatenated(g, {g.as_list(first), g.as_list(g.binary("Sub", n, first))});
    parts = g.draft.nodes("Split", {at.name, sizes}, 2, {{"axis", spelled}});
  }
  for (const std::string& part : parts) g.give(part, at.exact);
  return true;
}

bool squeeze(Generator& g) {
  const Item* item = g.any(1, 5);
  if (item == nullptr) return false;
  for (size_t axis = 0; axis < item->axes(); ++axis)
    if (item->is_fixed(axis) && item->dims[0][axis] == 1) {
      g.give(g.draft.node("Squeeze", {item->name, g.draft.ints({g.spelled(*item, axis)})}), item->exact);
      return true;
    }
  if (item->rank() > 3) return false;
  g.give(g.unsqueeze(item->name, {g.random.below(item->rank() + 1)}), item->exact);
  return true;
}

bool transpose(Generator& g) {
  const Item* item = g.any(2, 5);
  if (item == nullptr) return false;
  Extents order;
  for (int i = 0; i < item->rank(); ++i) order.push_back(i);
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<size_t>(g.random.below(static_cast<int64_t>(i) + 1))]);
  g.give(g.draft.node("Transpose", {item->name}, {{"perm", order}}), item->exact);
  return true;
}

bool depth_to_space(Generator& g) {
  const Item* item = g.any(4, 4);
  if (item == nullptr) return false;
  if (g.random.chance(40))
    g.give(g.draft.node("SpaceToDepth", {item->name}, {{"blocksize", 2}}), item->exact);
  else if (item->is_fixed(1) && item->dims[0][1] % 4 == 0)
    g.give(g.draft.node("DepthToSpace", {item->name}, {{"blocksize", 2}}), item->exact);
  else
    return false;
  return true;
}

}  // namespace

std::vector<Block> movement_blocks() {
  return {{"flatten", 5, flatten},
          {"merge", 5, merge},
          {"view_in_groups", 7, view_in_groups},
          {"view_as_scalar", 3, view_as_scalar},
          {"concatenate", 6, concatenate},
          {"gather_range", 5, gather_range},
          {"gather_constant", 3, gather_constant},
          {"positions", 6, positions},
          {"expand", 5, expand},
          {"tile", 3, tile},
          {"zeros", 3, zeros},
          {"resize", 5, resize},
          {"split", 6, split},
          {"squeeze", 4, squeeze},
          {"transpose", 4, transpose},
          {"depth_to_space", 2, depth_to_space}};
}

}  // namespace librt::test
