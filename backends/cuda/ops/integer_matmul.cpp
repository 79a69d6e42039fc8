// MatMulInteger, ConvInteger, QuantizedMatMul and QuantizedConv: GEMMs of 8-bit integers less their zero
// points, accumulated in i32, which the latter two requantize at once.
#include "kernels/integer_matmul.h"

#include <algorithm>
#include <cstring>

#include "backends/cuda/support/gemm_plan.h"
#include "kernels/matmul.h"
#include "runtime/geometry/matmul.h"
#include "runtime/geometry/quantization.h"

namespace librt::cuda {
namespace {

/// Which inputs hold the zero points of A and B; kNone: that operand has none.
struct ZeroInputs {
  static constexpr size_t kNone = ~size_t{0};
  size_t first, second;
};
constexpr ZeroInputs kOfInteger{2, 3}, kOfQuantized{3, ZeroInputs::kNone};
constexpr RequantizeInputs kRequantize{.scale = 2, .bias = 4, .y_scale = 5, .y_zero = 6};

bool is_quantized(const NodeView& node) {
  return node.kind() == OpKind::QuantizedMatMul || node.kind() == OpKind::QuantizedConv;
}
const ZeroInputs& zeros_of(const NodeView& node) {
  return is_quantized(node) ? kOfQuantized : kOfInteger;
}

/// Operands and requantization, without addresses.
IntegerMatmulArguments arguments_of(const NodeView& node) {
  const ZeroInputs& zeros = zeros_of(node);
  const auto operand = [&](size_t i, size_t zero) {
    IntegerOperand made;
    made.is_signed = node.dtype(i) == DType::I8;
    made.zero_stride = node.has(zero) && node.input(zero).elements() != 1 ? 1 : 0;
    return made;
  };
  IntegerMatmulArguments arguments;
  arguments.first = operand(0, zeros.first);
  arguments.second = operand(1, zeros.second);
  if (node.kind() == OpKind::QuantizedMatMul)
    arguments.requantization = requantization_of<op::QuantizedMatMulAttributes>(node, kRequantize);
  else if (node.kind() == OpKind::QuantizedConv)
    arguments.requantization = requantization_of<op::QuantizedConvAttributes>(node, kRequantize);
  return arguments;
}

void bind(IntegerMatmulArguments& a, const ZeroInputs& zeros, const Call& call) {
  a.first.bytes = call.in(0);
  a.second.bytes = call.in(1);
  a.first.zero_point = call.in(zeros.first);
  a.second.zero_point = call.in(zeros.second);
  a.gemm.result = call.out();
  if (a.requantization.to != ElementType::I32) bind_requantization(a.requantization, kRequantize, call);
}

// --- matrices

Result<MatMulGeometry> geometry_of(const NodeView& node) {
  return matmul_geometry(node.shape(0), node.shape(1), {});
}

Status supports_matmul(const CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  return gemm_fits(g.m, g.n, g.k, g.batch.elements());
}

/// Zero points of a matrix: their batch axes, and how many one matrix has.
struct ZeroPoints {
  Shape batch;
  int64_t count = 1;
};
ZeroPoints zero_points(const NodeView& node, size_t i, bool along_rows) {
  ZeroPoints zero;
  if (!node.has(i) || node.input(i).elements() == 1) return zero;
  const Shape& shape = node.shape(i);
  const int rank = shape.rank();
  zero.count = along_rows ? shape[rank - 2] : shape[rank - 1];
  if (rank > 2) zero.batch = Shape(shape.dims().first(static_cast<size_t>(rank - 2)));
  return zero;
}

Result<KernelPtr> create_matmul(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  IntegerMatmulArguments arguments = arguments_of(node);
  const ZeroInputs& zeros = zeros_of(node);
  const ZeroPoints a_zero = zero_points(node, zeros.first, true),
                   b_zero = zero_points(node, zeros.second, false);
  if (a_zero.count == 1) arguments.first.zero_stride = 0;
  if (b_zero.count == 1) arguments.second.zero_stride = 0;
  Gemm& p = arguments.gemm;
  p.m = static_cast<int>(g.m);
  p.n = static_cast<int>(g.n);
  p.k = static_cast<int>(g.k);
  p.matrices = g.batch.elements();
  p.result_row = g.n;
  const auto plan = broadcast_plan<5>(g.batch, {g.a_batch, g.b_batch, g.batch, a_zero.batch, b_zero.batch});
  BroadcastPlan<3> of_matrices;
  BroadcastPlan<2> of_zeros;
  of_matrices.rank = of_zeros.rank = plan.rank;
  of_matrices.extent = of_zeros.extent = plan.extent;
  std::copy_n(plan.stride.begin(), 3, of_matrices.stride.begin());
  std::copy_n(plan.stride.begin() + 3, 2, of_zeros.stride.begin());
  fill_batch<3>(p.batch, of_matrices, {GemmBatch::First, GemmBatch::Second, GemmBatch::Result},
                {g.m * g.k, g.k * g.n, g.m * g.n});
  fill_batch<2>(arguments.zero_batch, of_zeros, {GemmBatch::First, GemmBatch::Second},
                {a_zero.count, b_zero.count});
  return make_kernel([arguments, zeros](const Call& call) {
    IntegerMatmulArguments a = arguments;
    bind(a, zeros, call);
    return matmul_integer(a, call.stream);
  });
}

// --- matrices by cuBLASLt: i8 and a constant B, which is packed transposed together with its column sums;
// the zero points of A and the requantization are a pass over the accumulators

using LibraryMatmul = std::shared_ptr<const CublasLtMatmul>;

/// All rows of all batches are one GEMM. Addresses are left open.
MatMulArguments int8_gemm(const NodeView& node) {
  MatMulArguments arguments{.type = ElementType::I8, .transposed_second = true};
  Gemm& p = arguments.gemm;
  p.k = static_cast<int>(node.shape(1)[0]);
  p.n = static_cast<int>(node.shape(1)[1]);
  p.m = p.k == 0 ? 0 : static_cast<int>(node.input(0).elements() / p.k);
  p.result_row = p.n;
  return arguments;
}

bool is_known_zero(const NodeView& node, size_t i) {
  const auto* bytes = static_cast<const std::byte*>(node.inputs[i].value);
  return bytes != nullptr &&
         std::all_of(bytes, bytes + node.input(i).elements(), [](std::byte b) { return b == std::byte{0}; });
}

Status supports_library(const CudaDevice& device, const NodeView& node) {
  if (device.cublaslt() == nullptr) return device.cublaslt_status();
  RT_TRY(supports_matmul(device, node));
  const ZeroInputs& zeros = zeros_of(node);
  if (node.dtype(1) != DType::I8 || node.inputs[1].value == nullptr || node.shape(1).rank() != 2)
    return unsupported("cuBLASLt: B must be a constant i8 matrix");
  if (node.has(zeros.second) && !is_known_zero(node, zeros.second))
    return unsupported("cuBLASLt: B must have no zero points");
  if (node.input(0).elements() >= int64_t{1} << 30)
    return unsupported("cuBLASLt: an operand of 2^30 bytes or more");
  const MatMulArguments int8_arguments = int8_gemm(node);
  if (node.has(zeros.first) && node.input(zeros.first).elements() != 1 &&
      node.input(zeros.first).elements() != int8_arguments.gemm.m)
    return unsupported("cuBLASLt: A must have one zero point, or one per row");
  RT_TRY(device.activate());
  return device.cublaslt()->plan(int8_arguments, false, false, false).status();
}

Result<KernelPtr> create_library(CudaDevice& device, const NodeView& node) {
  RT_TRY(device.activate());
  const MatMulArguments int8_arguments = int8_gemm(node);
  RT_ASSIGN(const LibraryMatmul planned, device.cublaslt()->plan(int8_arguments, false, false, false));
  const ZeroInputs& zeros = zeros_of(node);
  IntegerMatmulArguments arguments = arguments_of(node);
  arguments.gemm = int8_arguments.gemm;
  const auto m = static_cast<size_t>(int8_arguments.gemm.m), n = static_cast<size_t>(int8_arguments.gemm.n),
             k = static_cast<size_t>(int8_arguments.gemm.k);
  const bool is_unsigned = !arguments.first.is_signed, requantized = is_quantized(node);
  const bool finish = is_unsigned || requantized || node.has(zeros.first);
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 1) & (1u << 1);
  reserve_scratch(requirements, planned->workspace_bytes());
  const size_t bytes = reserve_scratch(requirements, is_unsigned ? m * k : 0);
  const size_t sums = reserve_scratch(requirements, requantized ? m * n * sizeof(int32_t) : 0);
  const size_t column_sums = (n * k + 255) / 256 * 256;
  requirements.packed = column_sums + n * sizeof(int32_t);
  const auto* weight = static_cast<const int8_t*>(node.inputs[1].value);
  return make_kernel(
      [=](const Call& call) {
        IntegerMatmulArguments a = arguments;
        bind(a, zeros, call);
        MatMulArguments b = int8_arguments;
        b.first = a.first.bytes;
        b.second = call.packed();
        b.gemm.partial = call.scratch();
        b.gemm.result = requantized ? call.scratch(sums) : a.gemm.result;
        if (is_unsigned) {
          const auto count = static_cast<int64_t>(m * k);
          if (const cudaError_t error = less_128(b.first, call.scratch(bytes), count, call.stream);
              error != cudaSuccess)
            return error;
          b.first = call.scratch(bytes);
        }
        const cudaError_t error = planned->run(b, call.stream);
        if (error != cudaSuccess || !finish) return error;
        return finish_integer_matmul(a, static_cast<const int32_t*>(b.gemm.result),
                                     call.packed<int32_t>(column_sums), call.stream);
      },
      requirements,
      [=](std::span<std::byte> to) {
        for (size_t column = 0; column < n; ++column) {
          uint32_t sum = 0;
          for (size_t row = 0; row < k; ++row) {
            const int8_t value = weight[row * n + column];
            to[column * k + row] = static_cast<std::byte>(value);
            sum += static_cast<uint32_t>(value);
          }
          std::memcpy(to.data() + column_sums + column * sizeof(sum), &sum, sizeof(sum));
        }
      });
}

// --- convolutions

Result<ConvGeometry> conv_of(const NodeView& node) {
  return conv_geometry(node.shape(0), node.shape(1),
                       as_conv(is_quantized(node) ? as_integer(node.as<op::QuantizedConvAttributes>())
                                                  : node.as<op::ConvIntegerAttributes>()));
}

Status supports_conv(const CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry, conv_of(node));
  return conv_fits(geometry, ConvForm::Forward);
}

Result<KernelPtr> create_conv(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry, conv_of(node));
  RT_ASSIGN(const ConvWindows windows, conv_windows(geometry));
  IntegerMatmulArguments arguments = arguments_of(node);
  arguments.gemm = conv_gemm(windows, ConvForm::Forward);
  arguments.zero_batch.rank = 1;
  arguments.zero_batch.extent[0] = windows.groups;
  arguments.zero_batch.stride[GemmBatch::Second][0] = arguments.second.zero_stride * windows.group_out();
  return make_kernel([arguments, windows, zeros = zeros_of(node)](const Call& call) {
    IntegerMatmulArguments a = arguments;
    bind(a, zeros, call);
    return conv_integer(a, windows, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_integer_matmul();
std::span<const KernelRow> rows_integer_matmul() {
  constexpr DTypeSet kBytes{DType::U8, DType::I8};
  static constexpr KernelRow kRows[] = {
      row<create_library, supports_library>(OpKind::MatMulInteger, "matmul_integer.cublaslt", kBytes, 10),
      row<create_library, supports_library>(OpKind::QuantizedMatMul, "quantized_matmul.cublaslt", kBytes, 10),
      row<create_matmul, supports_matmul>(OpKind::MatMulInteger, "matmul_integer", kBytes),
      row<create_matmul, supports_matmul>(OpKind::QuantizedMatMul, "quantized_matmul", kBytes),
      row<create_conv, supports_conv>(OpKind::ConvInteger, "conv_integer", kBytes),
      row<create_conv, supports_conv>(OpKind::QuantizedConv, "quantized_conv", kBytes),
  };
  return kRows;
}

}  // namespace librt::cuda
