// Matmul: cuBLASLt if available, FMA tiles for every type, tensor cores for 16-bit floats and TF32, and a
// GEMV kernel for a row times a matrix. Long, thin GEMMs are split along k.
#include "kernels/matmul.h"

#include <utility>

#include "backends/cuda/support/gemm_plan.h"
#include "kernels/unary.h"
#include "runtime/geometry/function.h"
#include "runtime/geometry/matmul.h"

namespace librt::cuda {
namespace {

const op::EpilogueAttributes* epilogue_of(const NodeView& node) {
  return node.as<op::MatMulAttributes>().epilogue.get();
}

Result<MatMulGeometry> geometry_of(const NodeView& node) {
  return matmul_geometry(node.shape(0), node.shape(1), node.as<op::MatMulAttributes>());
}

/// Extents of a bias [.., M or 1, N or 1] that broadcasts to the result.
struct BiasPlan {
  Shape batch;
  int64_t rows = 1, columns = 1;
};
BiasPlan bias_plan(const NodeView& node) {
  Shape bias = node.shape(2);
  // The axis that a vector operand lacks is missing in the result and in what broadcasts to it.
  if (node.shape(1).rank() == 1) bias.insert(bias.rank(), 1);
  if (node.shape(0).rank() == 1 && bias.rank() > 0) bias.insert(bias.rank() - 1, 1);
  BiasPlan plan;
  const int rank = bias.rank();
  if (rank >= 1) plan.columns = bias[rank - 1];
  if (rank >= 2) plan.rows = bias[rank - 2];
  if (rank > 2) plan.batch = Shape(bias.dims().first(static_cast<size_t>(rank - 2)));
  return plan;
}

/// Extents, batch, epilogue; the operands as stored. `algorithm` is left open.
MatMulArguments arguments_of(const NodeView& node, const MatMulGeometry& g) {
  const auto* epilogue = epilogue_of(node);
  MatMulArguments arguments;
  arguments.type = element_type(node.dtype(0));
  arguments.transposed_first = g.transpose_a;
  arguments.transposed_second = g.transpose_b;
  Gemm& p = arguments.gemm;
  int64_t m = g.m, matrices = g.batch.elements();
  BiasPlan bias;
  if (epilogue != nullptr && epilogue->has_bias) bias = bias_plan(node);
  p.epilogue.activation = function_call(epilogue);
  p.epilogue.bias_row = bias.rows == 1 ? 0 : bias.columns;
  p.epilogue.bias_column = bias.columns == 1 ? 0 : 1;
  fill_batch<4>(p.batch, broadcast_plan<4>(g.batch, {g.a_batch, g.b_batch, bias.batch, g.batch}),
                {GemmBatch::First, GemmBatch::Second, GemmBatch::Bias, GemmBatch::Result},
                {g.m * g.k, g.k * g.n, bias.rows * bias.columns, g.m * g.n});
  const bool one_bias = bias.batch.elements() == 1 && p.epilogue.bias_row == 0;
  if (matrices > 1 && g.b_batch.elements() == 1 && g.a_batch.elements() == matrices && !g.transpose_a &&
      one_bias && m * matrices < (int64_t{1} << 30)) {
    m *= matrices;  // one matrix for all batches: all their rows make one GEMM
    matrices = 1;
    p.batch = {};
  }
  p.m = static_cast<int>(m);
  p.n = static_cast<int>(g.n);
  p.k = static_cast<int>(g.k);
  p.matrices = matrices;
  p.result_row = g.n;
  return arguments;
}

/// A column is a row of the transposed matmul.
void swap_factors(MatMulArguments& arguments) {
  Gemm& p = arguments.gemm;
  arguments.transposed_second = !arguments.transposed_first;
  arguments.transposed_first = false;
  std::swap(p.m, p.n);
  std::swap(p.epilogue.bias_row, p.epilogue.bias_column);
  for (int i = 0; i < p.batch.rank; ++i)
    std::swap(p.batch.stride[GemmBatch::First][i], p.batch.stride[GemmBatch::Second][i]);
  p.result_row = p.n;
}

Status supports(const CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  return gemm_fits(g.m, g.n, g.k, g.batch.elements());
}

Status supports_vector(const CudaDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  const Gemm p = arguments_of(node, g).gemm;
  if (p.m != 1 && p.n != 1) return unsupported("neither one row nor one column, but ", p.m, " x ", p.n);
  return {};
}

template <MatMulAlgorithm kAlgorithm>
Status supports_tensor(const CudaDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  RT_TRY(tensor_cores_support(device, node.dtype(0)));
  if constexpr (kAlgorithm == MatMulAlgorithm::Tensor128) {
    RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
    RT_TRY(tiles_occupy(device, arguments_of(node, g).gemm, matmul_tile(kAlgorithm)));
  }
  return {};
}

template <MatMulAlgorithm kAlgorithm>
Result<KernelPtr> create(CudaDevice& device, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  MatMulArguments arguments = arguments_of(node, g);
  arguments.algorithm = kAlgorithm;
  const bool swapped = kAlgorithm == MatMulAlgorithm::Vector && arguments.gemm.m != 1;
  if (swapped) swap_factors(arguments);
  Gemm& p = arguments.gemm;
  const MatMulTile tile = matmul_tile(kAlgorithm);
  p.splits = gemm_splits(p, tile.rows, tile.columns, device.facts().multiprocessors);
  Requirements requirements;
  requirements.scratch = gemm_partial_bytes(p);
  const EpilogueInputs inputs = epilogue_inputs(epilogue_of(node), node);
  return make_kernel(
      [arguments, inputs, first = size_t{swapped}](const Call& call) {
        MatMulArguments a = arguments;
        a.first = call.in(first);
        a.second = call.in(1 - first);
        bind_gemm(a.gemm, inputs, call);
        return matmul(a, call.stream);
      },
      requirements);
}

// --- cuBLASLt

using LibraryMatmul = std::shared_ptr<const CublasLtMatmul>;

/// Arguments without the activation, if the library does not compute it: a pass over the result in place then
/// costs less than another GEMM loses. 16-bit results are rounded before it, as in the graph as written.
struct LibraryArguments {
  MatMulArguments gemm;
  FunctionCall pass;  ///< over the result, after the GEMM; Identity: none
};
LibraryArguments library_arguments(const NodeView& node, const MatMulGeometry& g) {
  LibraryArguments arguments{.gemm = arguments_of(node, g), .pass = {}};
  FunctionCall& activation = arguments.gemm.gemm.epilogue.activation;
  if (CublasLt::has_activation(activation.function)) return arguments;
  arguments.pass = with_open_bounds(std::exchange(activation, {}));
  return arguments;
}

Result<LibraryMatmul> library_matmul(const CudaDevice& device, const NodeView& node,
                                     const MatMulArguments& arguments) {
  if (device.cublaslt() == nullptr) return device.cublaslt_status();
  RT_TRY(device.activate());
  const auto* epilogue = epilogue_of(node);
  return device.cublaslt()->plan(arguments, device.tf32(), epilogue != nullptr && epilogue->has_bias,
                                 epilogue != nullptr && epilogue->has_residual);
}

Status supports_library(const CudaDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  return library_matmul(device, node, library_arguments(node, g).gemm).status();
}

Result<KernelPtr> create_library(CudaDevice& device, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  const LibraryArguments arguments = library_arguments(node, g);
  RT_ASSIGN(const LibraryMatmul planned, library_matmul(device, node, arguments.gemm));
  Requirements requirements;
  requirements.scratch = planned->workspace_bytes();
  const EpilogueInputs inputs = epilogue_inputs(epilogue_of(node), node);
  return make_kernel(
      [arguments, inputs, planned, count = node.output(0).elements()](const Call& call) {
        MatMulArguments a = arguments.gemm;
        a.first = call.in(0);
        a.second = call.in(1);
        bind_gemm(a.gemm, inputs, call);
        const cudaError_t error = planned->run(a, call.stream);
        if (error != cudaSuccess || arguments.pass.function == Function::Identity) return error;
        return unary({a.type, arguments.pass, a.gemm.result, a.gemm.result, count}, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_matmul();
std::span<const KernelRow> rows_matmul() {
  static constexpr KernelRow kRows[] = {
      row<create<MatMulAlgorithm::Vector>, supports_vector>(OpKind::MatMul, "matmul.vector", kShortFloats,
                                                            30),
      row<create_library, supports_library>(OpKind::MatMul, "matmul.cublaslt", kShortFloats, 25),
      row<create<MatMulAlgorithm::Tensor128>, supports_tensor<MatMulAlgorithm::Tensor128>>(
          OpKind::MatMul, "matmul.tensor128", kShortFloats, 20),
      row<create<MatMulAlgorithm::Tensor64>, supports_tensor<MatMulAlgorithm::Tensor64>>(
          OpKind::MatMul, "matmul.tensor64", kShortFloats, 15),
      row<create<MatMulAlgorithm::Plain>, supports>(OpKind::MatMul, "matmul.plain", kNumericTypes, 10),
  };
  return kRows;
}

}  // namespace librt::cuda
