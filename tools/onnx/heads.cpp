#include "tools/onnx/heads.h"

#include "tools/onnx/shapes.h"

namespace librt::onnx {

Result<ValueId> split_heads(Emitter& emit, ValueId x, int64_t heads) {
  if (x == kNoValue) return x;  // only after a failure
  if (heads < 1) return invalid_model("inputs of rank 3 need a number of heads of at least 1, found ", heads);
  if (emit.value(x).rank() != 3)
    return invalid_model("expected rows of heads [B,S,width], found rank ", emit.value(x).rank());
  std::vector<Extent> extents = extents_of(emit, x);
  const int64_t width = extents[2].is_number() ? extents[2].number : -1;
  if (width >= 0 && width % heads != 0)
    return invalid_model("input of width ", width, ": expected a multiple of ", heads, " heads");
  extents[2] = Extent::of(heads);
  extents.push_back(Extent::of(width >= 0 ? width / heads : -1));
  return emit.transpose(reshape_to(emit, x, extents), {0, 2, 1, 3});
}

ValueId merge_heads(Emitter& emit, ValueId x) {
  x = emit.transpose(x, {0, 2, 1, 3});
  std::vector<Extent> extents = extents_of(emit, x);
  if (extents.size() != 4) return kNoValue;
  const bool known = extents[2].is_number() && extents[3].is_number();
  extents[2] = Extent::of(known ? extents[2].number * extents[3].number : -1);
  extents.pop_back();
  return reshape_to(emit, x, extents);
}

ValueId positions_along(Emitter& emit, ValueId x, int axis) {
  const ValueId count = reshape_to(emit, dims_product(emit, x, axis, axis + 1), {});
  return emit.emit(op::RangeAttributes{}, {emit.scalar(0, DType::I64), count, emit.scalar(1, DType::I64)});
}

ValueId columns_for(Emitter& emit, ValueId mask, ValueId key, ShortMask short_mask) {
  if (!emit.status().ok()) return kNoValue;
  const Dim columns = emit.value(mask).dims.back();
  const Dim keys = emit.value(key).dims[2];
  const bool same = columns.is_known()
                        ? columns.extent == 1 || (keys.is_known() && columns.extent == keys.extent)
                        : !keys.is_known() && columns.symbol >= 0 && columns.symbol == keys.symbol;
  if (same) return mask;
  const int axis = emit.value(mask).rank() - 1;
  ValueId at = positions_along(emit, key, 2);
  if (short_mask == ShortMask::RepeatLast) {
    const int64_t one = 1;
    const ValueId last = emit.sub(dims_product(emit, mask, axis, axis + 1), emit.ints({&one, 1}));
    at = emit.emit(op::MinimumAttributes{}, {at, last});
  }
  op::GatherAttributes attributes;
  attributes.axis = axis;
  return emit.emit(attributes, {mask, at});
}

}  // namespace librt::onnx
