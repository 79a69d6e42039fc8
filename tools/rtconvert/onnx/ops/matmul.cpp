// Matrix products.
#include "tools/rtconvert/onnx/node.h"
#include "tools/rtconvert/onnx/shapes.h"

namespace rt::onnx {
namespace {

// Vectors take part as one row or one column, which the result loses again.
ValueId product(NodeContext& c, ValueId a, ValueId b) {
  const int rank_a = c.value(a).rank();
  const int rank_b = c.value(b).rank();
  if (rank_a == 1) a = unsqueeze(c.emit, a, {{0}});
  if (rank_b == 1) b = unsqueeze(c.emit, b, {{1}});
  ValueId y = c.emit.emit(op::MatMulAttributes{}, {a, b});
  const int rank = c.value(y).rank();
  std::vector<int> dropped;
  if (rank_a == 1) dropped.push_back(rank - 2);
  if (rank_b == 1) dropped.push_back(rank - 1);
  return dropped.empty() ? y : squeeze(c.emit, y, dropped);
}

Status matmul(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  if (c.rank(0) == 0 || c.rank(1) == 0) return invalid_model("a scalar is no matrix");
  return c.result(product(c, c.input(0), c.input(1)));
}

Status gemm(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  c.ignore({"broadcast"});
  if (c.rank(0) != 2 || c.rank(1) != 2)
    return invalid_model("expected two matrices, found ranks ", c.rank(0), " and ", c.rank(1));
  const float alpha = c.real("alpha", 1);
  const float beta = c.real("beta", 1);
  op::MatMulAttributes attributes;
  attributes.transpose_a = c.integer("transA", 0) != 0;
  attributes.transpose_b = c.integer("transB", 0) != 0;
  ValueId y = c.emit.emit(std::move(attributes), {c.input(0), c.input(1)});
  if (alpha != 1) y = c.emit.mul(y, c.emit.scalar_like(alpha, y));
  if (!c.has(2) || beta == 0) return c.result(y);
  ValueId addend = c.input(2);
  if (beta != 1) addend = c.emit.mul(addend, c.emit.scalar_like(beta, addend));
  return c.result(c.emit.add(y, addend));
}

constexpr ImportRow kMatmulRows[] = {
    {"", "MatMul", 1, kNewestOpset, matmul},
    {"", "Gemm", 1, kNewestOpset, gemm},
};

}  // namespace

std::span<const ImportRow> rows_matmul() {
  return kMatmulRows;
}

}  // namespace rt::onnx
