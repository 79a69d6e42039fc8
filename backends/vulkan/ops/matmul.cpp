// MatMul: register tiles, all four combinations of transposed operands read in place where their rows are
// whole vec4s, batches with broadcasting, the epilogue.
#include <algorithm>

#include "backends/vulkan/steps/gemm.h"
#include "backends/vulkan/steps/repack.h"

namespace librt::vulkan {
namespace {

struct Factor {
  int64_t rows = 0;     ///< as stored
  int64_t columns = 0;  ///< contiguous
  int64_t matrices = 1;
  std::vector<int64_t> batch_strides;  ///< in matrices
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  bool transposed_a = false, transposed_b = false;
  Factor a, b;
  std::vector<int64_t> batch;  ///< two extents
  int64_t bias_batch = 0, bias_row = 0, bias_column = 0;
  EpiloguePlan epilogue;
};

Shape batch_of(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2)));
}

Result<Problem> describe_problem(const NodeView& node) {
  const auto& attributes = node.as<op::MatMulAttributes>();
  // A vector on the left is a row, on the right a column: one row of the transposed matrix.
  const bool row = node.shape(0).rank() == 1, column = node.shape(1).rank() == 1;
  Shape a = node.shape(0), b = node.shape(1), y = node.output(0).shape;
  if (row) a.insert(0, 1);
  if (column) b.insert(0, 1);
  const auto as_matrices = [&](Shape& shape) {
    if (column) shape.insert(static_cast<int>(shape.rank()), 1);
    if (row && shape.rank() > 0) shape.insert(static_cast<int>(shape.rank()) - 1, 1);
  };
  as_matrices(y);
  Problem problem;
  problem.transposed_a = attributes.transpose_a && !row;
  problem.transposed_b = attributes.transpose_b || column;
  problem.m = y[y.rank() - 2];
  problem.n = y.back();
  problem.k = problem.transposed_a ? a[a.rank() - 2] : a.back();
  problem.a = {a[a.rank() - 2], a.back(), batch_of(a).elements(), {}};
  problem.b = {b[b.rank() - 2], b.back(), batch_of(b).elements(), {}};

  const Shape shapes[] = {batch_of(a), batch_of(b)};
  StridedSpace space = broadcast_space(batch_of(y), shapes);
  if (space.rank() > 2)
    return unsupported("batch dimensions that need ", space.rank(), " axes after collapsing");
  if (space.rank() == 1) {
    space.extents.insert(space.extents.begin(), 1);
    for (auto& strides : space.strides) strides.insert(strides.begin(), 0);
  }
  problem.batch = space.extents;
  problem.a.batch_strides = space.strides[0];
  problem.b.batch_strides = space.strides[1];

  problem.epilogue = plan_epilogue(attributes.epilogue.get(), node, 2);
  if (problem.epilogue.has_bias) {
    Shape bias = node.shape(problem.epilogue.bias);
    as_matrices(bias);
    const int64_t columns = bias.rank() >= 1 ? bias.back() : 1;
    const int64_t rows = bias.rank() >= 2 ? bias[bias.rank() - 2] : 1;
    const int64_t batches = bias.rank() > 2 ? batch_of(bias).elements() : 1;
    const int64_t all = problem.batch[0] * problem.batch[1];
    if (batches != 1 && batches != all)
      return unsupported("a bias that broadcasts over some batch dimensions only");
    problem.bias_column = columns == 1 ? 0 : 1;
    problem.bias_row = rows == 1 ? 0 : columns;
    problem.bias_batch = batches == 1 ? 0 : rows * columns;
  }

  // One weight for all matrices of a batch: the rows of the batch are rows of one taller matmul.
  const int64_t all = problem.batch[0] * problem.batch[1];
  const bool shared_b = problem.b.matrices == 1 && problem.a.matrices == all;
  const bool bias_follows = problem.bias_batch == problem.bias_row * problem.m;
  if (all > 1 && shared_b && !problem.transposed_a && bias_follows) {
    problem.m *= all;
    problem.a.rows *= all;
    problem.a.matrices = 1;
    problem.batch = {1, 1};
    problem.a.batch_strides = {0, 0};
    problem.b.batch_strides = {0, 0};
    problem.bias_batch = 0;
  }
  return problem;
}

/// Padded to `rows` rows of whole vec4s.
GemmOperand load(Program& program, const VulkanDevice& device, const NodeView& node, size_t input,
                 const Factor& factor, int64_t rows, bool transposed) {
  const int64_t columns = round_up4(factor.columns);
  GemmOperand loaded;
  loaded.transposed = transposed;
  loaded.ref = in(input);
  loaded.row_stride = columns / 4;
  loaded.batch_strides.clear();
  for (int64_t stride : factor.batch_strides) loaded.batch_strides.push_back(stride * rows * columns / 4);
  if (columns != factor.columns || rows != factor.rows) {
    const void* constant = node.inputs[input].value;
    loaded.ref = padded_copy(program, device, in(input),
                             {.extents = {factor.matrices, factor.rows, factor.columns},
                              .strides = {factor.rows * factor.columns, factor.columns, 1},
                              .padded_extents = {factor.matrices, rows, columns},
                              .element = size_of(node.dtype(input))},
                             constant);
    if (constant != nullptr) program.replaces(input);
  }
  return loaded;
}

template <bool kMatrices>
Result<KernelPtr> build(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(storable(device, node.dtype(0)));
  RT_ASSIGN(const Problem problem, describe_problem(node));
  if (kMatrices) RT_TRY(matrices_support(device, node.dtype(0), problem.m, problem.n));
  auto program = std::make_unique<Program>("matmul");
  // Along k both operands are padded to whole steps of four, unless k is the outer axis of both.
  const int64_t k = problem.transposed_a && !problem.transposed_b ? problem.k : round_up4(problem.k);
  const GemmOperand a = load(*program, device, node, 0, problem.a, problem.transposed_a ? k : problem.a.rows,
                             problem.transposed_a);
  const GemmOperand b = load(*program, device, node, 1, problem.b, problem.transposed_b ? problem.b.rows : k,
                             problem.transposed_b);
  TiledGemm gemm;
  gemm.dtype = node.dtype(0);
  gemm.matrices = kMatrices;
  gemm.m = problem.m;
  gemm.n = problem.n;
  gemm.k = k;
  gemm.a = a;
  gemm.b = b;
  gemm.batch = problem.batch;
  gemm.bias_batch = problem.bias_batch;
  gemm.bias_row = problem.bias_row;
  gemm.bias_column = problem.bias_column;
  gemm.epilogue = problem.epilogue;
  add_gemm(*program, device, gemm, out(0));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    built_row<build<false>>(OpKind::MatMul, "matmul.tiled", DTypeSet{DType::F32, DType::F16, DType::BF16}, 0),
    built_row<build<true>>(OpKind::MatMul, "matmul.matrices", DTypeSet{DType::F16}, 10),
};

}  // namespace

std::span<const KernelRow> rows_matmul() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
