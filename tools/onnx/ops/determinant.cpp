// Det: Gaussian elimination with partial pivoting, one column per step.
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// Every column becomes some twenty nodes.
constexpr int64_t kMostColumns = 64;

struct Elimination {
  ValueId matrix;       ///< [B,n,n]: what is left to eliminate
  ValueId determinant;  ///< [B,1,1]: signed product of the pivots so far
};

/// Eliminates the first column of a matrix of n columns, and removes it and the pivot row.
Elimination eliminate(Emitter& e, const Elimination& at, int64_t n) {
  const auto part = [&](ValueId x, int64_t axis, int64_t start, int64_t end) {
    return slice(e, x, axis, start, end);
  };
  const ValueId zero = e.scalar_like(0, at.matrix), one = e.scalar_like(1, at.matrix);
  op::ArgMaxAttributes largest;
  largest.axis = 1;
  const ValueId chosen = e.emit(largest, {e.emit(op::AbsAttributes{}, {part(at.matrix, 2, 0, 1)})});
  op::GatherElementsAttributes gather;
  gather.axis = 1;
  const ValueId first = part(at.matrix, 1, 0, 1);
  const ValueId row =
      e.emit(gather, {at.matrix, e.emit(op::ExpandAttributes{}, {chosen, e.shape_of(first)})});
  const ValueId pivot = part(row, 2, 0, 1);
  // Swapping the first row with the pivot row flips the sign.
  const ValueId stays = e.emit(op::EqualAttributes{}, {chosen, e.scalar(0, DType::I64)});
  const ValueId sign = e.emit(op::WhereAttributes{}, {stays, one, e.scalar_like(-1, at.matrix)});
  const ValueId determinant = e.mul(at.determinant, e.mul(sign, pivot));
  if (n == 1) return {kNoValue, determinant};
  std::vector<int64_t> numbers;
  for (int64_t i = 1; i < n; ++i) numbers.push_back(i);
  const ValueId places = reshape_to(e, e.ints(numbers), {1, n - 1, 1});
  const ValueId rows = e.emit(op::WhereAttributes{}, {e.emit(op::EqualAttributes{}, {places, chosen}), first,
                                                      part(at.matrix, 1, 1, n)});
  // A pivot of 0 has a column of zeros below it; the determinant is 0 already.
  const ValueId is_zero = e.emit(op::EqualAttributes{}, {pivot, zero});
  const ValueId divisor = e.emit(op::WhereAttributes{}, {is_zero, one, pivot});
  const ValueId factors = e.div(part(rows, 2, 0, 1), divisor);
  return {e.sub(part(rows, 2, 1, n), e.mul(factors, part(row, 2, 1, n))), determinant};
}

Status determinant(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  if (c.rank() < 2) return invalid_model("expected matrices [..,n,n], found rank ", c.rank());
  const int64_t n = c.extent(0, c.rank() - 1), rows = c.extent(0, c.rank() - 2);
  if (n < 0 && rows < 0) return cannot("the extent of the matrices is not known; fix it with --dim");
  if (n >= 0 && rows >= 0 && n != rows)
    return invalid_model("expected square matrices, found ", rows, " by ", n);
  const int64_t columns = std::max(n, rows);
  if (columns > kMostColumns)
    return cannot("matrices of more than ", kMostColumns, " columns are not supported");
  Emitter& e = c.emit;
  std::vector<Extent> batch = extents_of(e, c.input(0));
  batch.resize(batch.size() - 2);
  op::ConstantOfShapeAttributes ones;
  ones.dtype = static_cast<uint8_t>(c.dtype());
  ones.value = 1;
  if (columns == 0) return c.result(e.emit(ones, {shape_vector(e, batch)}));
  std::vector<ValueId> flat{dims_product(e, c.input(0), 0, c.rank() - 2), e.ints({&columns, 1}),
                            e.ints({&columns, 1})};
  Elimination at{.matrix = e.reshape(c.input(0), concat_values(e, std::move(flat))),
                 .determinant = e.scalar(1, c.dtype())};
  for (int64_t left = columns; left > 0 && e.status().ok(); --left) at = eliminate(e, at, left);
  return c.result(e.reshape(at.determinant, shape_vector(e, batch)));
}

constexpr ImportRow kDeterminantRows[] = {
    {"", "Det", 11, kNewestOpset, determinant},
};

}  // namespace

std::span<const ImportRow> rows_determinant() {
  return kDeterminantRows;
}

}  // namespace librt::onnx
