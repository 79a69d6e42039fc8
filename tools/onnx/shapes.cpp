#include "tools/onnx/shapes.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace librt::onnx {

Extent Extent::dim(const Emitter& emit, ValueId source, int axis) {
  const Value& value = emit.value(source);
  if (axis >= value.rank()) return of(1);  // only after a failure
  const Dim& dim = value.dims[static_cast<size_t>(axis)];
  if (dim.is_known()) return of(dim.extent);
  return {.number = -1, .source = source, .axis = axis};
}

ValueId concat_values(Emitter& emit, std::vector<ValueId> vectors) {
  if (vectors.size() == 1) return vectors[0];
  return concat(emit, vectors, 0);
}

ValueId shape_vector(Emitter& emit, std::span<const Extent> extents) {
  std::vector<ValueId> parts;
  std::vector<int64_t> numbers;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(emit.ints(numbers));
    numbers.clear();
  };
  for (const Extent& extent : extents) {
    if (extent.is_number()) {
      numbers.push_back(extent.number);
      continue;
    }
    flush();
    op::ShapeAttributes shape;
    shape.start = extent.axis;
    shape.end = extent.axis + 1;
    parts.push_back(emit.emit(shape, {extent.source}));
  }
  flush();
  if (parts.empty()) return emit.ints({});
  return concat_values(emit, std::move(parts));
}

ValueId reshape_to(Emitter& emit, ValueId x, std::span<const Extent> extents) {
  // One unknown entry can be left to Reshape, unless another is 0, which makes it ambiguous.
  std::vector<Extent> entries(extents.begin(), extents.end());
  const auto unknown = [](const Extent& entry) { return !entry.is_number() || entry.number < 0; };
  const auto zero = [](const Extent& entry) { return entry.is_number() && entry.number == 0; };
  if (std::count_if(entries.begin(), entries.end(), unknown) == 1 &&
      std::none_of(entries.begin(), entries.end(), zero))
    *std::find_if(entries.begin(), entries.end(), unknown) = Extent::of(-1);
  return emit.reshape(x, shape_vector(emit, entries));
}

ValueId reshape_to(Emitter& emit, ValueId x, std::initializer_list<int64_t> extents) {
  return emit.reshape(x, emit.ints({extents.begin(), extents.size()}));
}

std::vector<Extent> extents_of(const Emitter& emit, ValueId x) {
  std::vector<Extent> extents;
  if (x == kNoValue) return extents;
  for (int axis = 0; axis < emit.value(x).rank(); ++axis) extents.push_back(Extent::dim(emit, x, axis));
  return extents;
}

ValueId dims_product(Emitter& emit, ValueId x, int first, int last) {
  if (x == kNoValue) return kNoValue;
  int64_t product = 1;
  bool known = true;
  for (int axis = first; axis < last; ++axis) {
    const Dim& dim = emit.value(x).dims[static_cast<size_t>(axis)];
    known = known && dim.is_known();
    if (__builtin_mul_overflow(product, dim.is_known() ? dim.extent : 1, &product)) {
      emit.fail(
          invalid_model("value '", emit.value(x).name, "' is too large: ", dim.extent, " along axis ", axis));
      return kNoValue;
    }
  }
  if (known) return emit.ints({&product, 1});
  op::ShapeAttributes shape;
  shape.start = first;
  shape.end = last;
  op::ReduceProdAttributes reduce;
  reduce.axes = {0};
  return emit.emit(reduce, {emit.emit(shape, {x})});
}

ValueId as_vector(Emitter& emit, ValueId x) {
  if (x == kNoValue) return x;
  if (emit.value(x).dtype != DType::I64) x = emit.cast(x, DType::I64);
  if (x != kNoValue && emit.value(x).rank() != 1) x = reshape_to(emit, x, {-1});
  return x;
}

ValueId as_type(Emitter& emit, ValueId x, DType dtype) {
  return x == kNoValue || emit.value(x).dtype == dtype ? x : emit.cast(x, dtype);
}

ValueId float_values(Emitter& emit, const Shape& shape, std::span<const double> values, DType dtype) {
  const ValueId exact =
      emit.constant({.dtype = DType::F64, .shape = shape}, Blob::copy_of(values.data(), values.size_bytes()));
  return dtype == DType::F64 ? exact : emit.cast(exact, dtype);
}

ValueId take(Emitter& emit, ValueId x, ValueId index, int64_t axis) {
  op::GatherAttributes attributes;
  attributes.axis = axis;
  return emit.emit(attributes, {x, index});
}

ValueId move_first_axis(Emitter& emit, ValueId x, int64_t to) {
  if (x == kNoValue) return x;
  const int rank = emit.value(x).rank();
  const auto axis = normalized_axis(to, rank);
  if (!axis) {
    emit.fail(invalid_argument("axis ", to, " is outside the rank ", rank));
    return kNoValue;
  }
  if (*axis == 0) return x;
  std::vector<int64_t> permutation;
  for (int i = 1; i < rank; ++i) permutation.push_back(i);
  permutation.insert(permutation.begin() + *axis, 0);
  return emit.transpose(x, std::move(permutation));
}

ValueId counted_from_start(Emitter& emit, ValueId axes, int rank) {
  if (axes == kNoValue) return axes;
  if (emit.value(axes).dtype != DType::I64) axes = emit.cast(axes, DType::I64);
  const ValueId negative = emit.emit(op::LessAttributes{}, {axes, emit.scalar(0, DType::I64)});
  return emit.emit(op::WhereAttributes{}, {negative, emit.add(axes, emit.scalar(rank, DType::I64)), axes});
}

ValueId entries_by_axis(Emitter& emit, ValueId entries, ValueId axes, int rank, int64_t otherwise) {
  std::vector<int64_t> all(static_cast<size_t>(rank));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const ValueId hits = emit.emit(op::EqualAttributes{}, {reshape_to(emit, emit.ints(all), {rank, 1}),
                                                         counted_from_start(emit, axes, rank)});
  const ValueId taken = emit.emit(op::WhereAttributes{}, {hits, entries, emit.scalar(0, DType::I64)});
  const ValueId count = emit.reduce_sum(emit.cast(hits, DType::I64), {1}, false);
  const ValueId is_named = emit.emit(op::GreaterAttributes{}, {count, emit.scalar(0, DType::I64)});
  return emit.emit(op::WhereAttributes{},
                   {is_named, emit.reduce_sum(taken, {1}, false), emit.ints({&otherwise, 1})});
}

ValueId unsqueeze(Emitter& emit, ValueId x, std::span<const int> axes) {
  if (x == kNoValue) return x;
  std::vector<Extent> extents = extents_of(emit, x);
  for (int axis : axes) extents.insert(extents.begin() + axis, Extent::of(1));
  return reshape_to(emit, x, extents);
}

ValueId squeeze(Emitter& emit, ValueId x, std::span<const int> axes) {
  if (x == kNoValue) return x;
  std::vector<Extent> extents;
  for (int axis = 0; axis < emit.value(x).rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      extents.push_back(Extent::dim(emit, x, axis));
  const bool ones = std::all_of(axes.begin(), axes.end(), [&](int axis) {
    return emit.value(x).dims[static_cast<size_t>(axis)].extent == 1;
  });
  // If an axis is not known to be 1, every extent is given, so that a run with another extent fails.
  return ones ? reshape_to(emit, x, extents) : emit.reshape(x, shape_vector(emit, extents));
}

ValueId slice(Emitter& emit, ValueId x, int64_t axis, int64_t start, int64_t end) {
  const ValueId first = emit.ints({&start, 1});
  return slice_between(emit, x, axis, first, emit.ints({&end, 1}));
}

ValueId slice_between(Emitter& emit, ValueId x, int64_t axis, ValueId start, ValueId end) {
  op::SliceAttributes attributes;
  attributes.axes = {axis};
  attributes.steps = {1};
  return emit.emit(std::move(attributes), {x, start, end});
}

ValueId demand_extent(Emitter& emit, ValueId x, int64_t axis, ValueId extent) {
  if (x == kNoValue) return x;
  const std::vector<Extent> extents = extents_of(emit, x);
  const auto before = std::span(extents).first(static_cast<size_t>(axis));
  const auto after = std::span(extents).subspan(static_cast<size_t>(axis) + 1);
  std::vector<ValueId> parts;
  if (!before.empty()) parts.push_back(shape_vector(emit, before));
  parts.push_back(extent);
  if (!after.empty()) parts.push_back(shape_vector(emit, after));
  return emit.reshape(x, concat_values(emit, std::move(parts)));
}

namespace {

/// Whether all entries of an integer vector are proven to be at least 0.
bool is_nonnegative(compiler::Builder& emit, ValueId entries) {
  if (!emit.status().ok()) return false;  // there may be no such value
  const compiler::Known& known = emit.known(entries);
  return known.has_elements &&
         std::all_of(known.elements.begin(), known.elements.end(), [&](compiler::Extent entry) {
           return !entry.is_unknown() && emit.extents().is_nonnegative(entry);
         });
}

/// As slice_between() of an axis that ends at `whole`, but refused where `end` is before `start`.
ValueId part_between(Emitter& emit, ValueId x, int64_t axis, ValueId start, ValueId end, ValueId whole) {
  if (!emit.status().ok()) return kNoValue;  // there may be no such value
  const int rank = emit.value(x).rank();
  const int64_t zero = 0;
  std::vector<ValueId> pads(2 * static_cast<size_t>(rank), emit.ints({&zero, 1}));
  pads[static_cast<size_t>(axis)] = emit.sub(pads[0], start);
  pads[static_cast<size_t>(axis + rank)] = emit.sub(end, whole);
  return emit.emit(op::PadAttributes{}, {x, concat_values(emit, std::move(pads))});
}

}  // namespace

ValueId counting(compiler::Builder& emit, ValueId count) {
  if (count == kNoValue) return count;
  if (is_nonnegative(emit, count))
    return emit.emit(op::RangeAttributes{}, {emit.scalar(0, DType::I64), count, emit.scalar(1, DType::I64)});
  // A Range would be empty.
  const int64_t one = 1;
  op::ConstantOfShapeAttributes ones;
  ones.dtype = static_cast<uint8_t>(DType::I64);
  ones.value = 1;
  op::CumSumAttributes sums;
  sums.exclusive = true;
  return emit.emit(sums, {emit.emit(ones, {emit.reshape(count, emit.ints({&one, 1}))})});
}

std::vector<ValueId> split_by_value(compiler::Builder& emit, ValueId x, int64_t axis, ValueId sizes,
                                    int64_t count) {
  const std::vector<ValueId> none(static_cast<size_t>(count), kNoValue);
  if (x == kNoValue || sizes == kNoValue) return none;
  const Dim length = emit.value(sizes).dims[0];
  if (length.is_known() && length.extent != count)
    emit.fail(invalid_model("expected ", count, " sizes to split into, found ", length.extent));
  else if (!length.is_known())
    sizes = demand_extent(emit, sizes, 0, emit.ints({&count, 1}));
  if (!emit.status().ok()) return none;
  const bool is_ordered = is_nonnegative(emit, sizes);
  std::vector<ValueId> parts, ends;
  const int64_t zero = 0;
  ValueId end = emit.ints({&zero, 1});
  for (int64_t i = 0; i < count; ++i) {
    ends.push_back(end);
    end = emit.add(end, slice(emit, sizes, 0, i, i + 1));
  }
  ends.push_back(end);
  x = demand_extent(emit, x, axis, end);
  if (x == kNoValue) return none;
  for (size_t i = 0; i + 1 < ends.size(); ++i)
    parts.push_back(is_ordered ? slice_between(emit, x, axis, ends[i], ends[i + 1])
                               : part_between(emit, x, axis, ends[i], ends[i + 1], ends.back()));
  return parts;
}

ValueId concat(Emitter& emit, std::span<const ValueId> parts, int64_t axis) {
  op::ConcatAttributes attributes;
  attributes.axis = axis;
  return emit.emit_many(make_op(std::move(attributes)), parts, 1)[0];
}

ValueId to_channels_last(Emitter& emit, ValueId x) {
  if (x == kNoValue) return x;
  const int rank = emit.value(x).rank();
  if (rank < 3) return x;
  std::vector<int64_t> permutation = {0};
  for (int axis = 2; axis < rank; ++axis) permutation.push_back(axis);
  permutation.push_back(1);
  return emit.transpose(x, std::move(permutation));
}

ValueId to_channels_first(Emitter& emit, ValueId x) {
  if (x == kNoValue) return x;
  const int rank = emit.value(x).rank();
  if (rank < 3) return x;
  std::vector<int64_t> permutation = {0, rank - 1};
  for (int axis = 1; axis + 1 < rank; ++axis) permutation.push_back(axis);
  return emit.transpose(x, std::move(permutation));
}

namespace {

Blob transposed_bytes(const Value& value, const Shape& from, const Shape& to,
                      std::span<const int64_t> permutation) {
  const size_t size = size_of(value.dtype);
  std::vector<std::byte> bytes(value.data.size);
  const auto strides = strides_of(from);
  std::array<int64_t, kMaxRank> index{};
  const int rank = to.rank();
  int64_t source = 0;
  for (size_t at = 0; at < bytes.size(); at += size) {
    std::memcpy(bytes.data() + at, value.data.data + static_cast<size_t>(source) * size, size);
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      const int64_t stride = strides[static_cast<size_t>(permutation[a])];
      source += stride;
      if (++index[a] < to[axis]) break;
      source -= stride * to[axis];
      index[a] = 0;
    }
  }
  return Blob::own(std::move(bytes));
}

}  // namespace

ValueId transposed(compiler::Builder& builder, ValueId x, std::vector<int64_t> permutation) {
  if (x == kNoValue) return x;
  const Value& value = builder.value(x);
  if (value.role != Role::Constant) return builder.transpose(x, std::move(permutation));
  const TensorInfo from = value.info();
  TensorInfo to{.dtype = value.dtype, .shape = {}};
  for (int64_t axis : permutation) to.shape.push_back(from.shape[static_cast<int>(axis)]);
  Blob data = transposed_bytes(value, from.shape, to.shape, permutation);
  std::string name = value.name;
  // A weight shared by several nodes stays one constant, so that training does not split it.
  if (!name.empty())
    if (const ValueId same = builder.find_constant(name, to, data); same != kNoValue) return same;
  const ValueId id = builder.constant(to, std::move(data));
  if (id != kNoValue) builder.graph()[id].name = std::move(name);
  return id;
}

}  // namespace librt::onnx
