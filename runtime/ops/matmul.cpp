// MatMul with NumPy's broadcasting, transposed operands and a fused epilogue.
#include "runtime/geometry/matmul.h"

#include "runtime/ops/epilogue.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_matmul(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::MatMulAttributes>();
  RT_TRY(expect_pair(node, "a", "b", kNumericTypes));
  RT_ASSIGN(const MatMulGeometry geometry, matmul_geometry(node.shape(0), node.shape(1), attributes));
  RT_TRY(check_epilogue(node, attributes.epilogue.get(), node.dtype(0), geometry.result, false));
  return add_output(outputs, node.dtype(0), geometry.result);
}

/// One [K,N] matrix from one [N,K].
template <class T>
void transpose_matrices(std::vector<T>& values, int64_t rows, int64_t columns) {
  const int64_t size = rows * columns;
  if (size == 0) return;
  std::vector<T> transposed(static_cast<size_t>(size));
  for (T* matrix = values.data(); matrix != values.data() + values.size(); matrix += size) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        transposed[static_cast<size_t>(j * rows + i)] = matrix[i * columns + j];
    std::copy(transposed.begin(), transposed.end(), matrix);
  }
}

template <class T>
std::vector<T> matmul(const MatMulGeometry& g, const ConstTensorView& a_view, const ConstTensorView& b_view) {
  std::vector<T> a = load_all<T>(a_view);
  std::vector<T> b = load_all<T>(b_view);
  if (g.transpose_a) transpose_matrices(a, g.k, g.m);
  if (g.transpose_b) transpose_matrices(b, g.n, g.k);
  std::vector<T> y(static_cast<size_t>(g.result.elements()));
  if (y.empty()) return y;
  const int64_t matrices = g.batch.elements();
  for (int64_t batch = 0; batch < matrices; ++batch) {
    const T* a_row = a.data() + g.operand_index(g.a_batch, batch) * g.m * g.k;
    const T* b_matrix = b.data() + g.operand_index(g.b_batch, batch) * g.k * g.n;
    T* y_row = y.data() + batch * g.m * g.n;
    for (int64_t i = 0; i < g.m; ++i, a_row += g.k, y_row += g.n) {
      const T* b_row = b_matrix;
      for (int64_t k = 0; k < g.k; ++k, b_row += g.n) {
        const T factor = a_row[k];
        for (int64_t j = 0; j < g.n; ++j) y_row[j] += factor * b_row[j];
      }
    }
  }
  return y;
}

Status eval_matmul(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::MatMulAttributes>();
  RT_ASSIGN(const MatMulGeometry geometry,
            matmul_geometry(inputs[0].info.shape, inputs[1].info.shape, attributes));
  with_values(inputs[0].info.dtype, [&]<class T>() {
    finish<T>(node, attributes.epilogue.get(), inputs, matmul<T>(geometry, inputs[0], inputs[1]), outputs[0]);
  });
  return {};
}

Cost cost_matmul(const NodeView& node) {
  const auto& attributes = node.as<op::MatMulAttributes>();
  Cost cost{.bytes = input_bytes(node)};
  const auto geometry = matmul_geometry(node.shape(0), node.shape(1), attributes);
  if (!geometry.ok()) return cost;
  const double elements = static_cast<double>(geometry->result.elements());
  cost.bytes += elements * static_cast<double>(size_of(node.dtype(0)));
  cost.flops =
      2 * elements * static_cast<double>(geometry->k) + epilogue_flops(attributes.epilogue.get(), elements);
  return cost;
}

// --- gradient
// -------------------------------------------------------------------------------------------------

ValueId multiply(Emitter& emit, ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
  op::MatMulAttributes attributes;
  attributes.transpose_a = transpose_a;
  attributes.transpose_b = transpose_b;
  return emit.emit(std::move(attributes), {a, b});
}

/// x with an axis of extent 1 before `axis` (rank: after the last).
ValueId insert_axis(Emitter& emit, ValueId x, int axis) {
  const std::vector<Dim> dims = emit.value(x).dims;
  const int rank = static_cast<int>(dims.size());
  const int64_t one[] = {1};
  const auto stretch = [&](int first, int last) {
    op::ShapeAttributes attributes;
    attributes.start = first;
    attributes.end = last;
    return emit.emit(attributes, {x});
  };
  std::vector<ValueId> parts;
  if (axis > 0) parts.push_back(stretch(0, axis));
  parts.push_back(emit.ints(one));
  if (axis < rank) parts.push_back(stretch(axis, rank));
  op::ConcatAttributes along;
  along.axis = 0;
  return emit.reshape(x, emit.emit_many(make_op(along), parts, 1)[0]);
}

/// x [.., C] as [rows, C]; kNoValue where C is not known.
ValueId as_matrix(Emitter& emit, ValueId x) {
  const Dim last = emit.value(x).dims.back();
  if (!last.is_known() || last.extent == 0) return kNoValue;
  const int64_t shape[] = {-1, last.extent};
  return emit.reshape(x, emit.ints(shape));
}

// With Y = A' B' (A' = A or A^T, B' = B or B^T) and G the gradient of Y: dA' = G B'^T, dB' = A'^T G.
// A vector a is the matrix [1,K]; a vector b is [1,K], transposed. Autodiff sums over broadcast batch axes,
// which for a weight b [K,N] and a batched a would first compute one gradient per matrix: there the batch is
// folded into the rows of one GEMM.
void matmul_gradient(GradContext& context) {
  const auto& attributes = context.node.as<op::MatMulAttributes>();
  ValueId grad = epilogue_gradient(context, attributes.epilogue.get());
  if (grad == kNoValue || (!context.needs(0) && !context.needs(1))) return;
  Emitter& emit = context.emit;
  ValueId a = context.input(0), b = context.input(1);
  bool transpose_a = attributes.transpose_a, transpose_b = attributes.transpose_b;
  const int a_rank = emit.value(a).rank(), b_rank = emit.value(b).rank();
  if (b_rank == 1) {
    grad = insert_axis(emit, grad, emit.value(grad).rank());
    b = insert_axis(emit, b, 0);
    transpose_b = true;
  }
  if (grad == kNoValue) return;
  if (a_rank == 1) {
    grad = insert_axis(emit, grad, emit.value(grad).rank() - 1);
    a = insert_axis(emit, a, 0);
    transpose_a = false;
  }
  if (context.needs(0))
    context.set(0, transpose_a ? multiply(emit, b, grad, transpose_b, true)
                               : multiply(emit, grad, b, false, !transpose_b));
  if (!context.needs(1) || !emit.status().ok()) return;
  if (a_rank > 2 && b_rank <= 2 && !transpose_a) {
    const ValueId a_rows = as_matrix(emit, a), grad_rows = as_matrix(emit, grad);
    if (a_rows != kNoValue && grad_rows != kNoValue) {
      a = a_rows;
      grad = grad_rows;
    }
  }
  context.set(1, transpose_b ? multiply(emit, grad, a, true, transpose_a)
                             : multiply(emit, a, grad, !transpose_a, false));
}

}  // namespace

RT_PAGE(MatMul) = {.kind = OpKind::MatMul,
                   .inputs = {2, 4},
                   .infer = infer_matmul,
                   .cost = cost_matmul,
                   .arithmetic = Arithmetic::Matmul,
                   .extents = ExtentRule::Own};

RT_COMPILER_PAGE(MatMul) = {
    .eval = eval_matmul, .gradient = matmul_gradient, .domain = {-1, 1}, .tolerance = {1e-4, 1e-4}};

}  // namespace librt::ops
