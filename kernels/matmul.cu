// Matmul: tiles for every combination of transposed operands, loaded element by element where rows are not
// multiples of 16 bytes; and vector-matrix products, which read the matrix once and are memory-bound.
#include "kernels/matmul.h"

#include "kernels/gemm.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

/// A dense matrix by its two strides; for rarely used types.
template <class T>
struct StridedOperand {
  using Element = T;
  static constexpr bool kAlongK = true;
  struct Cursor {
    const T* row;
  };
  const T* base;
  int64_t row_stride, k_stride;
  int rows;

  RT_DEVICE void start(int64_t offset) { base += offset; }
  RT_DEVICE Cursor cursor(int row) const { return {row < rows ? base + row * row_stride : nullptr}; }
  RT_DEVICE const T* at(const Cursor& cursor, int k) const {
    return cursor.row == nullptr ? nullptr : cursor.row + k * k_stride;
  }
};

bool starts_aligned(const Gemm& p, GemmBatch::Operand operand, int64_t width) {
  for (int i = 0; i < p.batch.rank; ++i)
    if (p.batch.stride[operand][i] % width != 0) return false;
  return true;
}

/// Whether both operands can be loaded in vectors of 16 bytes.
template <class T>
bool vectors_fit(const MatMulArguments& a) {
  constexpr int64_t kWidth = kVectorWidth<T>;
  const Gemm& p = a.gemm;
  return (a.transposed_first ? p.m : p.k) % kWidth == 0 && (a.transposed_second ? p.k : p.n) % kWidth == 0 &&
         starts_aligned(p, GemmBatch::First, kWidth) && starts_aligned(p, GemmBatch::Second, kWidth);
}

/// f(first, second) with the operands' types.
template <class T, class F>
cudaError_t with_operands(const MatMulArguments& a, F&& f) {
  const Gemm& p = a.gemm;
  const auto *first = static_cast<const T*>(a.first), *second = static_cast<const T*>(a.second);
  const auto with_second = [&](const auto& left) {
    if (a.transposed_second) return f(left, MatrixOperand<T, true>{second, p.k, p.n});
    return f(left, MatrixOperand<T, false>{second, p.n, p.n});
  };
  if (a.transposed_first) return with_second(MatrixOperand<T, false>{first, p.m, p.m});
  return with_second(MatrixOperand<T, true>{first, p.k, p.m});
}

template <class T>
cudaError_t run_strided(const MatMulArguments& a, cudaStream_t stream) {
  const Gemm& p = a.gemm;
  using Operand = StridedOperand<T>;
  const Operand first{static_cast<const T*>(a.first), a.transposed_first ? 1 : p.k,
                      a.transposed_first ? p.m : 1, p.m};
  const Operand second{static_cast<const T*>(a.second), a.transposed_second ? p.k : 1,
                       a.transposed_second ? 1 : p.n, p.n};
  return launch_gemm<PlainGemm<Operand, Operand, 1>>(first, second, p, stream);
}

cudaError_t run_plain(const MatMulArguments& a, cudaStream_t stream) {
  if (a.type != ElementType::F32)
    return with_number(a.type,
                       [&](auto tag) { return run_strided<typename decltype(tag)::type>(a, stream); });
  return launch_plain<4>(a.gemm, vectors_fit<float>(a), stream,
                         [&](auto f) { return with_operands<float>(a, f); });
}

template <class T>
cudaError_t run_tensor(const MatMulArguments& a, cudaStream_t stream) {
  return launch_tensor(a.gemm, vectors_fit<T>(a), a.algorithm == MatMulAlgorithm::Tensor128, stream,
                       [&](auto f) { return with_operands<T>(a, f); });
}

// --- vector times matrix

constexpr int kVectorThreads = 256, kVectorWarps = kVectorThreads / kWarpSize;
constexpr int kColumnLanes = 32, kColumnRows = kVectorThreads / kColumnLanes;

template <class T>
RT_DEVICE void store_sum(const Gemm& p, int64_t matrix, int column, float sum) {
  if (p.splits > 1) {
    static_cast<float*>(p.partial)[(blockIdx.y * p.matrices + matrix) * p.n + column] = sum;
    return;
  }
  const ResultOffsets offsets{batch_offset(p.batch, matrix, GemmBatch::Result),
                              batch_offset(p.batch, matrix, GemmBatch::Bias)};
  store_result<T>(p, offsets, 0, column, sum);
}

/// The matrix is stored [N,K]: one warp per result.
template <class T, int kWidth>
__global__ void __launch_bounds__(kVectorThreads) row_times_rows(const T* row, const T* matrix, Gemm p) {
  const unsigned groups = (p.n + kVectorWarps - 1) / kVectorWarps;
  const int64_t z = blockIdx.x / groups;
  const int column =
      static_cast<int>(blockIdx.x % groups) * kVectorWarps + static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int part = ((p.k + p.splits - 1) / p.splits + kWidth - 1) / kWidth * kWidth;
  const int begin = static_cast<int>(blockIdx.y) * part, end = begin + part < p.k ? begin + part : p.k;
  float sum = 0;
  if (column < p.n) {
    const T* a = row + batch_offset(p.batch, z, GemmBatch::First);
    const T* b = matrix + batch_offset(p.batch, z, GemmBatch::Second) + static_cast<int64_t>(column) * p.k;
    for (int k = begin + lane * kWidth; k < end; k += kWarpSize * kWidth) {
      const auto x = load_vector<kWidth>(a + k), y = load_vector<kWidth>(b + k);
      RT_UNROLL
      for (int i = 0; i < kWidth; ++i) sum += to_float(x[i]) * to_float(y[i]);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0 && column < p.n) store_sum<T>(p, z, column, sum);
}

/// The matrix is stored [K,N]: adjacent lanes have adjacent columns, kWidth each.
template <class T, int kWidth>
__global__ void __launch_bounds__(kVectorThreads) row_times_columns(const T* row, const T* matrix, Gemm p) {
  __shared__ float shared[kColumnRows][kColumnLanes * kWidth];
  constexpr int kColumns = kColumnLanes * kWidth;
  const unsigned groups = (p.n + kColumns - 1) / kColumns;
  const int64_t z = blockIdx.x / groups;
  const int first = static_cast<int>(blockIdx.x % groups) * kColumns;
  const int lane = static_cast<int>(threadIdx.x) % kColumnLanes,
            line = static_cast<int>(threadIdx.x) / kColumnLanes;
  const int part = (p.k + p.splits - 1) / p.splits;
  const int begin = static_cast<int>(blockIdx.y) * part, end = begin + part < p.k ? begin + part : p.k;
  float sums[kWidth] = {};
  if (first + lane * kWidth < p.n) {
    const T* a = row + batch_offset(p.batch, z, GemmBatch::First);
    const T* b = matrix + batch_offset(p.batch, z, GemmBatch::Second) + first + lane * kWidth;
    for (int k = begin + line; k < end; k += kColumnRows) {
      const float factor = to_float(a[k]);
      const auto values = load_vector<kWidth>(b + static_cast<int64_t>(k) * p.n);
      RT_UNROLL
      for (int i = 0; i < kWidth; ++i) sums[i] += factor * to_float(values[i]);
    }
  }
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) shared[line][lane * kWidth + i] = sums[i];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < kColumns && first + c < p.n; c += kVectorThreads) {
    float sum = 0;
    RT_UNROLL
    for (int i = 0; i < kColumnRows; ++i) sum += shared[i][c];
    store_sum<T>(p, z, first + c, sum);
  }
}

template <class T>
cudaError_t run_vector(const MatMulArguments& a, cudaStream_t stream) {
  constexpr int kWidth = kVectorWidth<T>;
  const Gemm& p = a.gemm;
  const auto *first = static_cast<const T*>(a.first), *second = static_cast<const T*>(a.second);
  const bool vectors = (a.transposed_second ? p.k : p.n) % kWidth == 0 &&
                       starts_aligned(p, GemmBatch::Second, kWidth) &&
                       (!a.transposed_second || starts_aligned(p, GemmBatch::First, kWidth));
  const int columns = a.transposed_second ? kVectorWarps : kColumnLanes * (vectors ? kWidth : 1);
  const LaunchConfig config{
      dim3(static_cast<unsigned>(ceil_div(p.n, columns) * p.matrices), static_cast<unsigned>(p.splits)),
      dim3(kVectorThreads), 0, stream};
  const auto kernel = a.transposed_second
                          ? (vectors ? row_times_rows<T, kWidth> : row_times_rows<T, 1>)
                          : (vectors ? row_times_columns<T, kWidth> : row_times_columns<T, 1>);
  const cudaError_t error = launch(kernel, config, first, second, p);
  if (error != cudaSuccess || p.splits == 1) return error;
  return launch_combine_splits<T>(p, stream);
}

}  // namespace

MatMulTile matmul_tile(MatMulAlgorithm algorithm) {
  switch (algorithm) {
    case MatMulAlgorithm::Tensor128: return {128, 64};
    case MatMulAlgorithm::Vector: return {1, kColumnLanes};
    default: return {PlainTile::kRows, PlainTile::kColumns};
  }
}

cudaError_t matmul(const MatMulArguments& a, cudaStream_t stream) {
  switch (a.algorithm) {
    case MatMulAlgorithm::Vector:
      return with_float(a.type,
                        [&](auto tag) { return run_vector<typename decltype(tag)::type>(a, stream); });
    case MatMulAlgorithm::Tensor64:
    case MatMulAlgorithm::Tensor128:
      return with_float(a.type,
                        [&](auto tag) { return run_tensor<typename decltype(tag)::type>(a, stream); });
    case MatMulAlgorithm::Plain: break;
  }
  return run_plain(a, stream);
}

}  // namespace librt::cuda
