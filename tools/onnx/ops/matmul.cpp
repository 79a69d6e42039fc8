// Matmuls.
#include <algorithm>

#include "tools/onnx/activations.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

// Vectors become one row or one column, which is squeezed from the result.
ValueId emit_matmul(NodeContext& c, ValueId a, ValueId b, bool transpose_a = false,
                    bool transpose_b = false) {
  const int rank_a = c.value(a).rank();
  const int rank_b = c.value(b).rank();
  if (rank_a == 1) a = unsqueeze(c.emit, a, {{0}});
  if (rank_b == 1) b = unsqueeze(c.emit, b, {{1}});
  op::MatMulAttributes attributes;
  attributes.transpose_a = transpose_a;
  attributes.transpose_b = transpose_b;
  ValueId y = c.emit.emit(std::move(attributes), {a, b});
  const int rank = c.value(y).rank();
  std::vector<int> dropped;
  if (rank_a == 1) dropped.push_back(rank - 2);
  if (rank_b == 1) dropped.push_back(rank - 1);
  return dropped.empty() ? y : squeeze(c.emit, y, dropped);
}

Status matmul(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  if (c.rank(0) == 0 || c.rank(1) == 0) return invalid_model("a scalar is no matrix");
  return c.result(emit_matmul(c, c.input(0), c.input(1)));
}

// alpha a b + beta c
Result<ValueId> scaled_matmul(NodeContext& c) {
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
  if (!c.has(2) || beta == 0) return y;
  ValueId addend = c.input(2);
  if (beta != 1) addend = c.emit.mul(addend, c.emit.scalar_like(beta, addend));
  return c.emit.add(y, addend);
}

Status gemm(NodeContext& c) {
  RT_ASSIGN(const ValueId y, scaled_matmul(c));
  return c.result(y);
}

// The activation given by attributes; parameters from the first absent one on are left out.
Result<ValueId> described_activation(NodeContext& c, ValueId y) {
  std::vector<float> numbers;
  bool all = true;
  for (std::string_view name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    all = all && c.attribute(name) != nullptr;
    const float number = c.real(name, 0);
    if (all) numbers.push_back(number);
  }
  const std::string name = c.string("activation", "");
  // Selu has alpha and gamma.
  if (name == "Selu")
    numbers = {c.real("activation_alpha", 1.67326319f), c.real("activation_gamma", 1.05070102f)};
  return activated(c, y, name, numbers);
}

Status fused_gemm(NodeContext& c) {
  RT_ASSIGN(ValueId y, scaled_matmul(c));
  RT_ASSIGN(y, described_activation(c, y));
  return c.result(y);
}

// Input i as a batch of matrices. `trans_batch`: its rows are along the first axis, before the batch axes; if
// the matrix is transposed as well, that axis is contracted.
ValueId stacked(NodeContext& c, size_t i, bool trans_batch) {
  const int rank = c.rank(i);
  if (!trans_batch || rank < 3) return c.input(i);
  std::vector<int64_t> permutation;
  for (int axis = 1; axis + 1 < rank; ++axis) permutation.push_back(axis);
  permutation.insert(permutation.end(), {0, rank - 1});
  return c.emit.transpose(c.input(i), std::move(permutation));
}

// alpha a b, either of them transposed.
Result<ValueId> transposed_matmul(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  if (c.rank(0) == 0 || c.rank(1) == 0) return invalid_model("a scalar is no matrix");
  const bool transpose_a = c.integer("transA", 0) != 0 && c.rank(0) > 1;
  const bool transpose_b = c.integer("transB", 0) != 0 && c.rank(1) > 1;
  const ValueId a = stacked(c, 0, c.integer("transBatchA", 0) != 0);
  const ValueId b = stacked(c, 1, c.integer("transBatchB", 0) != 0);
  const ValueId y = emit_matmul(c, a, b, transpose_a, transpose_b);
  const float alpha = c.real("alpha", 1);
  return alpha == 1 ? y : c.emit.mul(y, c.emit.scalar_like(alpha, y));
}

Status fused_matmul(NodeContext& c) {
  RT_ASSIGN(const ValueId y, transposed_matmul(c));
  return c.result(y);
}

Status fused_matmul_activation(NodeContext& c) {
  c.ignore({"activation_axis"});
  RT_ASSIGN(ValueId y, transposed_matmul(c));
  RT_ASSIGN(y, described_activation(c, y));
  return c.result(y);
}

// The tanh approximation of Gelu of x weight + bias.
Status gemm_fast_gelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  if (c.rank(0) == 0 || c.rank(1) == 0) return invalid_model("a scalar is no matrix");
  ValueId y = emit_matmul(c, c.input(0), c.input(1));
  if (c.has(2)) y = c.emit.add(y, c.input(2));
  op::GeluAttributes attributes;
  attributes.tanh_approximation = true;
  return c.result(c.emit.emit(attributes, {y}));
}

// Squared distances of all rows of a [M,N] and b [K,N], |a|^2 + |b|^2 - 2 a b, or their roots: [M,K].
Status pairwise_distances(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const std::string metric = c.string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    return cannot("metric '", metric, "'; export with sqeuclidean or euclidean");
  if (c.rank(0) != 2 || c.rank(1) != 2)
    return invalid_model("expected two matrices, found ranks ", c.rank(0), " and ", c.rank(1));
  Emitter& e = c.emit;
  const auto squares = [&](ValueId x) { return e.reduce_sum(e.mul(x, x), {1}); };
  op::MatMulAttributes attributes;
  attributes.transpose_b = true;
  const ValueId product = e.emit(attributes, {c.input(0), c.input(1)});
  const ValueId sums = e.add(squares(c.input(0)), e.transpose(squares(c.input(1)), {1, 0}));
  const ValueId difference = e.sub(sums, e.mul(product, e.scalar_like(2, product)));
  const ValueId distance = e.emit(op::MaximumAttributes{}, {difference, e.scalar_like(0, difference)});
  return c.result(metric == "euclidean" ? e.emit(op::SqrtAttributes{}, {distance}) : distance);
}

constexpr ImportRow kMatmulRows[] = {
    {"", "MatMul", 1, kNewestOpset, matmul},
    {"", "Gemm", 1, kNewestOpset, gemm},
    {"com.microsoft", "FusedGemm", 1, kNewestOpset, fused_gemm},
    {"com.microsoft", "CDist", 1, kNewestOpset, pairwise_distances},
    {"com.microsoft", "FusedMatMul", 1, kNewestOpset, fused_matmul},
    {"com.microsoft", "TransposeMatMul", 1, kNewestOpset, fused_matmul},
    {"com.microsoft", "FusedMatMulActivation", 1, kNewestOpset, fused_matmul_activation},
    {"com.microsoft", "GemmFastGelu", 1, kNewestOpset, gemm_fast_gelu},
};

}  // namespace

std::span<const ImportRow> rows_matmul() {
  return kMatmulRows;
}

}  // namespace librt::onnx
