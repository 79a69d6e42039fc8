// Reshapes, permutations, slices and concatenations of tensors.
#include <algorithm>
#include <limits>

#include "runtime/core/element.h"
#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/opened_batch.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// PyTorch's newer exporter writes the call of each node beside it; its Identity may have been a detach().
bool is_detach(const rt_onnx::NodeProto& node) {
  return std::any_of(node.metadata_props().begin(), node.metadata_props().end(), [](const auto& entry) {
    return entry.key() == "pkg.torch.onnx.fx_node" &&
           entry.value().find("target=torch.ops.aten.detach") != std::string::npos;
  });
}

Status identity(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  if (!is_detach(c.node)) return c.result(c.input(0));
  c.detach_result();
  return c.result(c.emit.emit(op::IdentityAttributes{}, {c.input(0)}));
}

/// The shape of a Reshape with data-dependent entries: a 0, which copies the input's dimension at the same
/// position, is resolved at run time.
ValueId shape_from_data(NodeContext& c, ValueId shape, bool allow_zero) {
  const compiler::Entries entries = c.emit.known_entries(shape);
  std::vector<ValueId> parts;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const auto axis = static_cast<int>(i);
    const bool may_copy = !allow_zero && axis < c.rank();
    if (entries[i] && (*entries[i] != 0 || !may_copy)) {
      parts.push_back(c.emit.ints({&*entries[i], 1}));
      continue;
    }
    const ValueId copied = may_copy ? dims_product(c.emit, c.input(0), axis, axis + 1) : kNoValue;
    const ValueId given = slice(c.emit, shape, 0, at, at + 1);
    const int64_t zero = 0;
    parts.push_back(entries[i] ? copied
                    : may_copy
                        ? c.emit.emit(op::WhereAttributes{},
                                      {c.emit.emit(op::EqualAttributes{}, {given, c.emit.ints({&zero, 1})}),
                                       copied, given})
                        : given);
  }
  return concat_values(c.emit, std::move(parts));
}

/// Whether no entry of a Reshape's shape needs to copy a dimension where it is 0, which depends on extents:
/// the dimension at its position is the same extent; or it is the only entry that is no positive number, and
/// the entries' product is the number of elements. That is 0 with the entry, and a copied dimension that is
/// not 0 would then not fit: an empty tensor stays empty instead.
bool needs_no_copies(NodeContext& c, std::span<const compiler::Extent> entries) {
  compiler::ExtentTable& table = c.emit.extents();
  const std::vector<compiler::Extent>& dims = c.emit.known(c.input(0)).dims;
  compiler::Extent product = compiler::number(1), elements = compiler::number(1);
  size_t others = 0, copies = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const compiler::Extent entry = entries[i];
    if (entry.is_unknown()) return false;
    others += entry.is_constant() && entry.constant > 0 ? 0 : 1;
    copies +=
        entry.is_constant() || table.is_zero(entry).is_constant() || (i < dims.size() && dims[i] == entry)
            ? 0
            : 1;
    product = table.multiply(product, entry);
  }
  if (copies == 0) return true;
  for (const compiler::Extent& dim : dims) elements = table.multiply(elements, dim);
  return others == 1 && !product.is_unknown() && product == elements;
}

Status reshape_input(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const bool allow_zero = c.integer("allowzero", 0) != 0;
  const ValueId shape = as_vector(c.emit, c.input(1));
  if (shape == kNoValue) return {};
  if (const ValueId opened = reshape_with_batch(c, shape, allow_zero); opened != kNoValue)
    return c.result(opened);
  const compiler::Known& wanted = c.emit.known(shape);
  if (!wanted.is_static())
    return cannot("the rank of the result depends on extents; fix the extents with --dim");
  const int64_t rank = wanted.dims[0].constant;
  if (rank == 0) return c.result(c.emit.reshape(c.input(0), c.emit.ints({})));
  const auto& entries = wanted.elements;
  const bool decided =
      wanted.has_elements && (allow_zero ? std::none_of(entries.begin(), entries.end(),
                                                        [](auto entry) { return entry.is_unknown(); })
                                         : needs_no_copies(c, entries));
  if (!decided) return c.result(c.emit.reshape(c.input(0), shape_from_data(c, shape, allow_zero)));
  std::vector<int64_t> zeros;
  for (int64_t i = 0; i < rank && !allow_zero; ++i)
    if (entries[static_cast<size_t>(i)].is_constant(0)) zeros.push_back(i);
  if (zeros.empty()) return c.result(c.emit.reshape(c.input(0), shape));
  std::vector<ValueId> parts;
  const auto known = c.emit.known_value(shape);
  std::vector<Extent> extents;
  for (int64_t i = 0; i < rank; ++i) {
    const bool copies = std::find(zeros.begin(), zeros.end(), i) != zeros.end();
    if (copies && i >= c.rank())
      return invalid_model("entry ", i, " copies a dimension that the input does not have");
    const auto axis = static_cast<int>(i);
    if (known)
      extents.push_back(copies ? Extent::dim(c.emit, c.input(0), axis)
                               : Extent::of(load_integer(known->data, DType::I64, i)));
    else
      parts.push_back(copies ? dims_product(c.emit, c.input(0), axis, axis + 1)
                             : slice(c.emit, shape, 0, i, i + 1));
  }
  return c.result(c.emit.reshape(
      c.input(0), known ? shape_vector(c.emit, extents) : concat_values(c.emit, std::move(parts))));
}

Status reshape_attribute(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  std::vector<Extent> extents;
  for (int64_t number : c.integers("shape")) {
    const auto axis = static_cast<int>(extents.size());
    if (number == 0 && axis >= c.rank()) return invalid_model("entry ", axis, " copies a missing dimension");
    extents.push_back(number == 0 ? Extent::dim(c.emit, c.input(0), axis) : Extent::of(number));
  }
  return c.result(c.emit.reshape(c.input(0), shape_vector(c.emit, extents)));
}

Status flatten(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  int64_t axis = c.integer("axis", 1);
  if (axis < 0) axis += c.rank();
  if (axis < 0 || axis > c.rank()) return invalid_model("axis ", axis, " is outside the rank ", c.rank());
  const ValueId x = c.input(0);
  const auto split_axis = static_cast<int>(axis);
  const auto product = [&](int first, int last) {
    int64_t total = 1;
    for (int i = first; i < last; ++i) {
      if (c.extent(0, i) < 0) return int64_t{-1};
      total *= c.extent(0, i);
    }
    return total;
  };
  const int64_t rows = product(0, split_axis);
  const int64_t columns = product(split_axis, c.rank());
  // One unknown extent is left to Reshape.
  if (rows > 0 || columns > 0 || (rows == 0 && columns == 0))
    return c.result(reshape_to(c.emit, x, {rows, columns}));
  return c.result(c.emit.reshape(x, concat_values(c.emit, {dims_product(c.emit, x, 0, split_axis),
                                                           dims_product(c.emit, x, split_axis, c.rank())})));
}

// The node's axes, from the attribute or, since opset 13, the input; nullopt when it names none.
Result<std::optional<std::vector<int64_t>>> axes_of(NodeContext& c) {
  if (c.opset < 13) {
    RT_TRY(c.expect_inputs(1, 1));
    return c.optional_integers("axes");
  }
  RT_TRY(c.expect_inputs(1, 2));
  if (!c.has(1)) return std::optional<std::vector<int64_t>>();
  RT_ASSIGN(auto axes, c.known_integers(1, "axes"));
  return std::optional(std::move(axes));
}

Result<std::vector<int>> normalized(const NodeContext& c, std::span<const int64_t> axes, int rank) {
  std::vector<int> result;
  for (int64_t axis : axes) {
    RT_ASSIGN(const int normal, c.axis(axis, rank));
    result.push_back(normal);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return invalid_model("an axis is named twice");
  return result;
}

Status squeeze_axes(NodeContext& c) {
  RT_ASSIGN(const auto given, axes_of(c));
  std::vector<int> axes;
  if (given) {
    RT_ASSIGN(axes, normalized(c, *given, c.rank()));
  } else {
    // A dynamic extent is not squeezed: the rank of the result cannot depend on it.
    bool open = false;
    for (int axis = 0; axis < c.rank(); ++axis) {
      open = open || c.extent(0, axis) < 0;
      if (c.extent(0, axis) == 1) axes.push_back(axis);
    }
    if (open)
      c.warn(text("node '", c.node.name(),
                  "' (Squeeze) names no axes: axes of dynamic extent are kept, also where a run has 1 there; "
                  "fix the extent with --dim to remove it"));
  }
  for (int axis : axes)
    if (c.extent(0, axis) >= 0 && c.extent(0, axis) != 1)
      return invalid_model("axis ", axis, " has the extent ", c.extent(0, axis), ", expected 1");
  return c.result(squeeze(c.emit, c.input(0), axes));
}

Status unsqueeze_axes(NodeContext& c) {
  RT_ASSIGN(const auto given, axes_of(c));
  if (!given) return invalid_model("axes are missing");
  const int rank = c.rank() + static_cast<int>(given->size());
  if (rank > kMaxRank)
    return cannot("the result has rank ", rank, "; at most ", kMaxRank, " dimensions are supported");
  RT_ASSIGN(const std::vector<int> axes, normalized(c, *given, rank));
  return c.result(unsqueeze(c.emit, c.input(0), axes));
}

Status transpose(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  std::vector<int64_t> permutation = c.integers("perm");
  if (permutation.empty())
    for (int axis = c.rank() - 1; axis >= 0; --axis) permutation.push_back(axis);
  return c.result(c.emit.transpose(c.input(0), std::move(permutation)));
}

Status concatenate(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, std::numeric_limits<size_t>::max()));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", c.opset < 4 ? 1 : 0), c.rank()));
  std::vector<ValueId> operands = c.inputs;
  if (const std::optional<Extent> batch = axis > 0 ? leading_batch(c, operands) : std::nullopt)
    for (ValueId& x : operands) x = with_batch(c, x, 0, *batch);
  return c.result(concat(c.emit, operands, axis));
}

// Splits into parts of sizes[i] along the axis.
Status split_sized(NodeContext& c, int axis, std::span<const int64_t> sizes) {
  if (sizes.size() != c.output_count())
    return invalid_model("expected ", c.output_count(), " sizes, found ", sizes.size());
  ValueId x = c.input(0);
  // A dynamic axis must be as long as the sum of the sizes.
  if (int64_t whole = 0; c.extent(0, axis) < 0) {
    for (const int64_t size : sizes)
      if (size < 0 || __builtin_add_overflow(whole, size, &whole))
        return invalid_model("a negative or huge size");
    x = demand_extent(c.emit, x, axis, c.emit.ints({&whole, 1}));
  }
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || start > std::numeric_limits<int64_t>::max() - size)
      return invalid_model("a negative or huge size");
    c.outputs.push_back(slice(c.emit, x, axis, start, start + size));
    start += size;
  }
  if (c.extent(0, axis) >= 0 && c.extent(0, axis) != start)
    return invalid_model("the sizes add up to ", start, ", the axis has ", c.extent(0, axis));
  return {};
}

// As many equal parts as outputs; the last is smaller if the extent is not divisible (opset 18).
Status split_evenly(NodeContext& c, int axis) {
  const auto count = static_cast<int64_t>(c.output_count());
  const int64_t extent = c.extent(0, axis);
  if (extent >= 0) {
    if (extent % count != 0 && c.opset < 18)
      return invalid_model(extent, " cannot be split into ", count, " parts");
    const int64_t part = (extent + count - 1) / count;
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<int64_t>(extent - i * part, 0, part));
    return split_sized(c, axis, sizes);
  }
  const auto number = [&](int64_t value) { return c.emit.ints({&value, 1}); };
  ValueId x = c.input(0);
  const ValueId whole = dims_product(c.emit, x, axis, axis + 1);
  const ValueId part = c.emit.div(c.opset < 18 ? whole : c.emit.add(whole, number(count - 1)), number(count));
  if (c.opset < 18) x = demand_extent(c.emit, x, axis, c.emit.mul(part, number(count)));  // divisible
  for (int64_t i = 0; i < count; ++i)
    c.outputs.push_back(
        slice_between(c.emit, x, axis, c.emit.mul(part, number(i)), c.emit.mul(part, number(i + 1))));
  return {};
}

Status split(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 2));
  if (c.output_count() == 0) return invalid_model("the node has no outputs");
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", 0), c.rank()));
  if (c.opset >= 18 && c.attribute("num_outputs") != nullptr &&
      c.integer("num_outputs", 0) != static_cast<int64_t>(c.output_count()))
    return invalid_model("num_outputs is ", c.integer("num_outputs", 0), ", the node has ", c.output_count());
  if (c.has(1)) {
    const auto sizes = c.known_integers(1, "split");
    if (sizes.ok()) return split_sized(c, axis, *sizes);
    c.outputs = split_by_value(c.emit, c.input(0), axis, as_vector(c.emit, c.input(1)),
                               static_cast<int64_t>(c.output_count()));
    return {};
  }
  if (c.opset < 13)
    if (const auto sizes = c.optional_integers("split"); sizes && !sizes->empty())
      return split_sized(c, axis, *sizes);
  return split_evenly(c, axis);
}

Status slice_of(NodeContext& c, ValueId starts, ValueId ends, std::optional<std::vector<int64_t>> axes,
                std::optional<std::vector<int64_t>> steps) {
  if (starts == kNoValue || ends == kNoValue) return {};
  op::SliceAttributes attributes;
  int64_t count = c.value(starts).dims[0].extent;
  if (count < 0) {
    // Starts that are computed, such as an offset taken out of a list: of one axis unless others are named.
    count = axes ? static_cast<int64_t>(axes->size()) : steps ? static_cast<int64_t>(steps->size()) : 1;
    starts = c.emit.reshape(starts, c.emit.ints({&count, 1}));
    ends = c.emit.reshape(ends, c.emit.ints({&count, 1}));
  }
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < count; ++i) axes->push_back(i);
  }
  for (int64_t axis : *axes) {
    RT_ASSIGN(const int normal, c.axis(axis, c.rank()));
    attributes.axes.push_back(normal);
  }
  attributes.steps = steps ? *steps : std::vector<int64_t>(static_cast<size_t>(count), 1);
  if (static_cast<int64_t>(attributes.axes.size()) != count ||
      attributes.steps.size() != attributes.axes.size())
    return invalid_model("starts, axes and steps have different lengths");
  return c.result(c.emit.emit(std::move(attributes), {c.input(0), starts, ends}));
}

Status slice_attributes(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId starts = c.emit.ints(c.integers("starts"));
  const ValueId ends = c.emit.ints(c.integers("ends"));
  return slice_of(c, starts, ends, c.optional_integers("axes"), std::nullopt);
}

/// Axes known only at run time: every axis is sliced, most of them over their full extent.
Status slice_by_value(NodeContext& c, const std::optional<std::vector<int64_t>>& steps) {
  if (steps && std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step != 1; }))
    return c.not_known(3, "axes beside steps");
  const ValueId axes = as_vector(c.emit, c.input(3));
  op::SliceAttributes attributes;
  for (int axis = 0; axis < c.rank(); ++axis) attributes.axes.push_back(axis);
  attributes.steps.assign(attributes.axes.size(), 1);
  const auto all = [&](size_t i, int64_t otherwise) {
    return entries_by_axis(c.emit, as_vector(c.emit, c.input(i)), axes, c.rank(), otherwise);
  };
  const ValueId starts = all(1, 0);
  const ValueId ends = all(2, std::numeric_limits<int64_t>::max());
  return c.result(c.emit.emit(std::move(attributes), {c.input(0), starts, ends}));
}

/// Steps known only at run time: the positions of each axis as a Range, which refuses a step of 0.
Status slice_by_steps(NodeContext& c) {
  Emitter& e = c.emit;
  ValueId bounds[] = {as_vector(e, c.input(1)), as_vector(e, c.input(2)), as_vector(e, c.input(4))};
  std::vector<int64_t> axes;
  if (c.has(3)) {
    RT_ASSIGN(axes, c.known_integers(3, "axes beside steps"));
  } else {
    int64_t count = 1;  // where nothing says how many: as for starts that are computed
    for (const ValueId bound : bounds)
      if (bound != kNoValue) count = std::max(count, c.value(bound).dims[0].extent);
    for (int64_t i = 0; i < std::min<int64_t>(count, kMaxRank); ++i) axes.push_back(i);
  }
  const auto count = static_cast<int64_t>(axes.size());
  for (ValueId& bound : bounds) {
    if (bound == kNoValue) return {};
    const int64_t found = c.value(bound).dims[0].extent;
    if (found < 0) bound = e.reshape(bound, e.ints({&count, 1}));
    if (found >= 0 && found != count)
      return invalid_model("starts, ends, axes and steps have different lengths");
  }
  ValueId x = c.input(0);
  const ValueId zero = e.scalar(0, DType::I64), minus_one = e.scalar(-1, DType::I64);
  const auto pick = [&](ValueId condition, ValueId yes, ValueId no) {
    return e.emit(op::WhereAttributes{}, {condition, yes, no});
  };
  const auto is_less = [&](ValueId a, ValueId b) { return e.emit(op::LessAttributes{}, {a, b}); };
  for (size_t i = 0; i < axes.size(); ++i) {
    RT_ASSIGN(const int axis, c.axis(axes[i], c.rank()));
    const auto entry = [&](ValueId vector) {
      const auto at = static_cast<int64_t>(i);
      return reshape_to(e, slice(e, vector, 0, at, at + 1), {});
    };
    const ValueId extent = reshape_to(e, dims_product(e, c.input(0), axis, axis + 1), {});
    const ValueId step = entry(bounds[2]), backward = is_less(step, zero);
    // ONNX, Slice: negative bounds count from the end; then starts are in [0, extent] or, for negative steps,
    // [0, extent - 1], and ends in [0, extent] or [-1, extent - 1].
    const ValueId last = pick(backward, e.add(extent, minus_one), extent);
    const auto bound = [&](ValueId vector, ValueId lowest) {
      const ValueId given = entry(vector);
      const ValueId counted = pick(is_less(given, zero), e.add(given, extent), given);
      const ValueId raised = e.emit(op::MaximumAttributes{}, {counted, lowest});
      return e.emit(op::MinimumAttributes{}, {raised, last});
    };
    const ValueId start = bound(bounds[0], zero), end = bound(bounds[1], pick(backward, minus_one, zero));
    x = take(e, x, e.emit(op::RangeAttributes{}, {start, end, step}), axis);
  }
  return c.result(x);
}

Status slice_inputs(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 5));
  std::optional<std::vector<int64_t>> axes;
  std::optional<std::vector<int64_t>> steps;
  if (c.has(4)) {
    auto known = c.known_integers(4, "steps");
    if (!known.ok() && known.status().code() == Code::Unsupported) return slice_by_steps(c);
    RT_ASSIGN(steps, std::move(known));
  }
  if (c.has(3)) {
    auto known = c.known_integers(3, "axes");
    if (!known.ok() && known.status().code() == Code::Unsupported) return slice_by_value(c, steps);
    RT_ASSIGN(axes, std::move(known));
  }
  return slice_of(c, as_vector(c.emit, c.input(1)), as_vector(c.emit, c.input(2)), std::move(axes),
                  std::move(steps));
}

Result<op::PadMode> pad_mode(NodeContext& c) {
  const std::string mode = c.string("mode", "constant");
  if (mode == "constant") return op::PadMode::Constant;
  if (mode == "reflect") return op::PadMode::Reflect;
  if (mode == "edge") return op::PadMode::Edge;
  if (mode == "wrap") return op::PadMode::Wrap;
  return invalid_model("mode: expected constant, reflect, edge or wrap, found ", mode);
}

Status pad_attributes(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  op::PadAttributes attributes;
  RT_ASSIGN(attributes.mode, pad_mode(c));
  const ValueId pads = c.emit.ints(c.integers(c.opset < 2 ? "paddings" : "pads"));
  const ValueId fill = c.emit.scalar_like(c.real("value", 0), c.input(0));
  return c.result(c.emit.emit(attributes, {c.input(0), pads, fill}));
}

Status pad_inputs(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  op::PadAttributes attributes;
  RT_ASSIGN(attributes.mode, pad_mode(c));
  ValueId pads = as_vector(c.emit, c.input(1));
  const auto known = c.has(3) ? c.known_integers(3, "axes") : std::vector<int64_t>();
  if (c.has(3) && !known.ok()) {
    const ValueId axes = as_vector(c.emit, c.input(3));
    const ValueId count = dims_product(c.emit, axes, 0, 1);
    std::vector<ValueId> halves;
    for (const bool after : {false, true}) {
      const ValueId zero = c.emit.ints(std::array<int64_t, 1>{0});
      const ValueId end = after ? c.emit.add(count, count) : count;
      halves.push_back(entries_by_axis(c.emit, slice_between(c.emit, pads, 0, after ? count : zero, end),
                                       axes, c.rank(), 0));
    }
    pads = concat_values(c.emit, std::move(halves));
  } else if (c.has(3)) {
    const std::vector<int64_t>& axes = *known;
    const auto count = static_cast<int64_t>(axes.size());
    std::vector<ValueId> entries(2 * static_cast<size_t>(c.rank()), c.emit.ints(std::array<int64_t, 1>{0}));
    for (int64_t i = 0; i < count; ++i) {
      RT_ASSIGN(const int axis, c.axis(axes[static_cast<size_t>(i)], c.rank()));
      entries[static_cast<size_t>(axis)] = slice(c.emit, pads, 0, i, i + 1);
      entries[static_cast<size_t>(axis + c.rank())] = slice(c.emit, pads, 0, count + i, count + i + 1);
    }
    if (!entries.empty()) pads = concat_values(c.emit, std::move(entries));
  }
  const ValueId fill = c.has(2) && c.rank(2) != 0 ? reshape_to(c.emit, c.input(2), {}) : c.input(2);
  if (fill == kNoValue) return c.result(c.emit.emit(attributes, {c.input(0), pads}));
  return c.result(c.emit.emit(attributes, {c.input(0), pads, fill}));
}

Status expand(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  return c.result(c.emit.emit(op::ExpandAttributes{}, {c.input(0), as_vector(c.emit, c.input(1))}));
}

Status tile(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  return c.result(c.emit.emit(op::TileAttributes{}, {c.input(0), as_vector(c.emit, c.input(1))}));
}

Status gather(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  op::GatherAttributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", 0), c.rank()));
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1)}));
}

constexpr ImportRow kMovementRows[] = {
    {"", "Identity", 1, kNewestOpset, identity},
    {"", "Reshape", 1, 4, reshape_attribute},
    {"", "Reshape", 5, kNewestOpset, reshape_input},
    {"", "Flatten", 1, kNewestOpset, flatten},
    {"", "Squeeze", 1, kNewestOpset, squeeze_axes},
    {"", "Unsqueeze", 1, kNewestOpset, unsqueeze_axes},
    {"", "Transpose", 1, kNewestOpset, transpose},
    {"", "Concat", 1, kNewestOpset, concatenate},
    {"", "Split", 2, kNewestOpset, split},
    {"", "Slice", 1, 9, slice_attributes},
    {"", "Slice", 10, kNewestOpset, slice_inputs},
    {"", "Pad", 1, 10, pad_attributes},
    {"", "Pad", 11, kNewestOpset, pad_inputs},
    {"", "Expand", 8, kNewestOpset, expand},
    {"", "Tile", 6, kNewestOpset, tile},
    {"", "Gather", 1, kNewestOpset, gather},
};

}  // namespace

std::span<const ImportRow> rows_movement() {
  return kMovementRows;
}

}  // namespace librt::onnx
