// MatMulInteger, ConvInteger, QuantizedMatMul and QuantizedConv: GEMMs of 8-bit integers less their zero
// points, accumulated in i32, which the latter two requantize at once.
#include "kernels/integer_product.h"

#include <algorithm>
#include <cstring>

#include "backends/cuda/product_plan.h"
#include "kernels/matmul.h"
#include "runtime/graph/matmul_geometry.h"
#include "runtime/graph/quantization.h"

namespace rt::cuda {
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
IntegerProductArguments arguments_of(const NodeView& node) {
  const ZeroInputs& zeros = zeros_of(node);
  const auto factor = [&](size_t i, size_t zero) {
    IntegerFactor made;
    made.is_signed = node.dtype(i) == DType::I8;
    made.zero_stride = node.has(zero) && node.input(zero).elements() != 1 ? 1 : 0;
    return made;
  };
  IntegerProductArguments arguments;
  arguments.first = factor(0, zeros.first);
  arguments.second = factor(1, zeros.second);
  if (node.kind() == OpKind::QuantizedMatMul)
    arguments.requantization = requantization_of<op::QuantizedMatMulAttributes>(node, kRequantize);
  else if (node.kind() == OpKind::QuantizedConv)
    arguments.requantization = requantization_of<op::QuantizedConvAttributes>(node, kRequantize);
  return arguments;
}

void bind(IntegerProductArguments& a, const ZeroInputs& zeros, const Call& call) {
  a.first.bytes = call.in(0);
  a.second.bytes = call.in(1);
  a.first.zero_point = call.in(zeros.first);
  a.second.zero_point = call.in(zeros.second);
  a.product.result = call.out();
  if (a.requantization.to != ElementType::I32) bind_requantization(a.requantization, kRequantize, call);
}

// --- matrices

Result<MatMulGeometry> geometry_of(const NodeView& node) {
  return matmul_geometry(node.shape(0), node.shape(1), {});
}

Status supports_matmul(const CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  return product_fits(g.m, g.n, g.k, g.batch.elements());
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
  IntegerProductArguments arguments = arguments_of(node);
  const ZeroInputs& zeros = zeros_of(node);
  const ZeroPoints a_zero = zero_points(node, zeros.first, true),
                   b_zero = zero_points(node, zeros.second, false);
  if (a_zero.count == 1) arguments.first.zero_stride = 0;
  if (b_zero.count == 1) arguments.second.zero_stride = 0;
  Product& p = arguments.product;
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
  fill_batch<3>(p.batch, of_matrices, {ProductBatch::First, ProductBatch::Second, ProductBatch::Result},
                {g.m * g.k, g.k * g.n, g.m * g.n});
  fill_batch<2>(arguments.zero_batch, of_zeros, {ProductBatch::First, ProductBatch::Second},
                {a_zero.count, b_zero.count});
  return make_kernel([arguments, zeros](const Call& call) {
    IntegerProductArguments a = arguments;
    bind(a, zeros, call);
    return matmul_integer(a, call.stream);
  });
}

// --- matrices by cuBLASLt: i8 and a constant B, which is packed transposed together with its column sums;
// the zero points of A and the requantization are a pass over the accumulators

using LibraryProduct = std::shared_ptr<const CublasLtProduct>;

/// All rows of all batches are one GEMM. Addresses are left open.
MatMulArguments product_of_bytes(const NodeView& node) {
  MatMulArguments arguments{.type = ElementType::I8, .transposed_second = true};
  Product& p = arguments.product;
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
  const MatMulArguments product = product_of_bytes(node);
  if (node.has(zeros.first) && node.input(zeros.first).elements() != 1 &&
      node.input(zeros.first).elements() != product.product.m)
    return unsupported("cuBLASLt: A must have one zero point, or one per row");
  RT_TRY(device.activate());
  return device.cublaslt()->plan(product, false, false, false).status();
}

Result<KernelPtr> create_library(CudaDevice& device, const NodeView& node) {
  RT_TRY(device.activate());
  const MatMulArguments of_bytes = product_of_bytes(node);
  RT_ASSIGN(const LibraryProduct product, device.cublaslt()->plan(of_bytes, false, false, false));
  const ZeroInputs& zeros = zeros_of(node);
  IntegerProductArguments arguments = arguments_of(node);
  arguments.product = of_bytes.product;
  const auto m = static_cast<size_t>(of_bytes.product.m), n = static_cast<size_t>(of_bytes.product.n),
             k = static_cast<size_t>(of_bytes.product.k);
  const bool is_unsigned = !arguments.first.is_signed, requantized = is_quantized(node);
  const bool finish = is_unsigned || requantized || node.has(zeros.first);
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 1) & (1u << 1);
  book_scratch(requirements, product->workspace_bytes());
  const size_t bytes = book_scratch(requirements, is_unsigned ? m * k : 0);
  const size_t sums = book_scratch(requirements, requantized ? m * n * sizeof(int32_t) : 0);
  const size_t column_sums = (n * k + 255) / 256 * 256;
  requirements.packed = column_sums + n * sizeof(int32_t);
  const auto* weight = static_cast<const int8_t*>(node.inputs[1].value);
  return make_kernel(
      [=](const Call& call) {
        IntegerProductArguments a = arguments;
        bind(a, zeros, call);
        MatMulArguments b = of_bytes;
        b.first = a.first.bytes;
        b.second = call.packed();
        b.product.partial = call.scratch();
        b.product.result = requantized ? call.scratch(sums) : a.product.result;
        if (is_unsigned) {
          const auto count = static_cast<int64_t>(m * k);
          if (const cudaError_t error = less_128(b.first, call.scratch(bytes), count, call.stream);
              error != cudaSuccess)
            return error;
          b.first = call.scratch(bytes);
        }
        const cudaError_t error = product->run(b, call.stream);
        if (error != cudaSuccess || !finish) return error;
        return finish_integer_product(a, static_cast<const int32_t*>(b.product.result),
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
  IntegerProductArguments arguments = arguments_of(node);
  arguments.product = conv_product(windows, ConvForm::Forward);
  arguments.zero_batch.rank = 1;
  arguments.zero_batch.extent[0] = windows.groups;
  arguments.zero_batch.stride[ProductBatch::Second][0] = arguments.second.zero_stride * windows.group_out();
  return make_kernel([arguments, windows, zeros = zeros_of(node)](const Call& call) {
    IntegerProductArguments a = arguments;
    bind(a, zeros, call);
    return conv_integer(a, windows, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_integer_product();
std::span<const KernelRow> rows_integer_product() {
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

}  // namespace rt::cuda
