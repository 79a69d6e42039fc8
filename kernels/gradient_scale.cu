// A thread block sums over a part of one gradient, which it finds by its index; one block adds these sums.
// The order depends on the gradients' sizes only, so results are reproducible.
#include "kernels/gradient_scale.h"

#include <algorithm>
#include <cfloat>

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/tensor_blocks.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;                          // adjacent elements of a thread
constexpr int64_t kPart = 16 * kThreads * kEach;  // elements of a block
constexpr int64_t kMostParts = 1024;

/// A parameter of the kernel.
struct Table {
  static constexpr int kMost = 180;
  int gradients = 0;
  unsigned first_block[kMost + 1] = {};
  ElementType type[kMost] = {};
  int64_t count[kMost] = {};
  const void* values[kMost] = {};
};
static_assert(sizeof(Table) + 2 * sizeof(void*) <= 4096,
              "what a kernel's parameters may take on every device");

struct SquareOf {
  RT_DEVICE float operator()(float x) const { return x * x; }
};
struct IsNotFinite {
  RT_DEVICE float operator()(float x) const { return fabsf(x) <= FLT_MAX ? 0.0f : 1.0f; }
};

template <class T, class Term>
RT_DEVICE float sum_of_part(const T* values, int64_t count, unsigned block, unsigned blocks, Term term) {
  float sum = 0;
  const int64_t stride = static_cast<int64_t>(blocks) * kThreads * kEach;
  for (int64_t i = (static_cast<int64_t>(block) * kThreads + threadIdx.x) * kEach; i < count; i += stride) {
    const auto four = load_before<kEach>(values, i, count);
    RT_UNROLL
    for (int k = 0; k < kEach; ++k)
      if (i + k < count) sum += term(to_float(four[k]));
  }
  return sum;
}

template <class Term>
__global__ void __launch_bounds__(kThreads) sum_parts(const __grid_constant__ Table table, float* partial) {
  __shared__ float shared[kWarpSize];
  const auto [gradient, block, blocks] = tensor_block(table, table.gradients);
  const void* values = table.values[gradient];
  const int64_t count = table.count[gradient];
  float sum = 0;
  switch (table.type[gradient]) {
    case ElementType::F16:
      sum = sum_of_part(static_cast<const __half*>(values), count, block, blocks, Term{});
      break;
    case ElementType::BF16:
      sum = sum_of_part(static_cast<const __nv_bfloat16*>(values), count, block, blocks, Term{});
      break;
    default: sum = sum_of_part(static_cast<const float*>(values), count, block, blocks, Term{});
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    add_parts(const float* partial, int64_t parts, float* norm, bool* finite) {
  __shared__ float shared[kWarpSize];
  float sum = 0;
  for (int64_t i = threadIdx.x; i < parts; i += kThreads) sum += partial[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x != 0) return;
  if (norm != nullptr) *norm = sqrtf(sum);
  if (finite != nullptr) *finite = sum == 0;
}

}  // namespace

int64_t partial_sums(int64_t count) {
  return std::min(ceil_div(count, kPart), kMostParts);
}

cudaError_t over_gradients(const GradientsArguments& to, cudaStream_t stream) {
  int64_t parts = 0;
  for (size_t first = 0; first < to.gradients.size(); first += Table::kMost) {
    Table table;
    for (const auto& gradient :
         to.gradients.subspan(first, std::min(to.gradients.size() - first, size_t{Table::kMost}))) {
      const int i = table.gradients++;
      table.values[i] = gradient.values;
      table.count[i] = gradient.count;
      table.type[i] = gradient.type;
      table.first_block[i + 1] = table.first_block[i] + static_cast<unsigned>(partial_sums(gradient.count));
    }
    const unsigned blocks = table.first_block[table.gradients];
    const LaunchConfig config{dim3(blocks), dim3(kThreads), 0, stream};
    const cudaError_t error = launch(to.norm != nullptr ? sum_parts<SquareOf> : sum_parts<IsNotFinite>,
                                     config, table, to.partial + parts);
    if (error != cudaSuccess) return error;
    parts += blocks;
  }
  return launch(add_parts, {dim3(1), dim3(kThreads), 0, stream}, to.partial, parts, to.norm, to.finite);
}

}  // namespace librt::cuda
