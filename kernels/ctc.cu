// One block per sequence; its threads iterate over the positions of the label sequence extended by blanks:
// first all alpha, kept in scratch, then beta from the end, with the gradient at each time. Log space, in
// double. Formulas: runtime/ops/ctc.cpp.
#include "kernels/ctc.h"

#include <algorithm>

#include "kernels/index.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

constexpr int kMaxCtcThreads = 256;

/// Scratch of one sequence: `positions` is 2 max_labels + 1 positions of the extended sequence.
struct CtcScratch {
  double* alpha;    ///< [steps, positions]
  double* beta;     ///< [2, positions]
  double* share;    ///< [positions]
  int64_t* next;    ///< [positions]: the next position of the same label, 0 for none
  int64_t* leader;  ///< [positions]: 1 for the first position of a label

  static constexpr int64_t element_count(int64_t steps, int64_t positions) { return (steps + 5) * positions; }
  RT_DEVICE CtcScratch(void* all, int64_t sequence, int64_t steps, int64_t positions) {
    alpha = static_cast<double*>(all) + sequence * element_count(steps, positions);
    beta = alpha + steps * positions;
    share = beta + 2 * positions;
    next = reinterpret_cast<int64_t*>(share + positions);
    leader = next + positions;
  }
};

RT_DEVICE double log_sum(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  return high == -INFINITY ? high : high + log1p(exp(low - high));
}

template <class T>
struct CtcSequence {
  const CtcArguments& to;
  int64_t n, steps, positions;

  RT_DEVICE CtcSequence(const CtcArguments& arguments, int64_t sequence) : to(arguments), n(sequence) {
    const Indices inputs{to.input_lengths, to.wide_input_lengths},
        labels{to.label_lengths, to.wide_label_lengths};
    steps = max(int64_t{0}, min(inputs[n], to.steps));
    positions = 2 * max(int64_t{0}, min(labels[n], to.max_labels)) + 1;
  }
  RT_DEVICE int64_t symbol(int64_t k) const {
    return k % 2 == 0 ? to.blank : Indices{to.labels, to.wide_labels}[n * to.max_labels + k / 2];
  }
  RT_DEVICE bool valid(int64_t symbol) const { return symbol >= 0 && symbol < to.classes; }
  RT_DEVICE int64_t at(int64_t t, int64_t symbol) const { return (t * to.batch + n) * to.classes + symbol; }
  RT_DEVICE double log_probability(int64_t t, int64_t k) const {
    const int64_t of = symbol(k);
    return valid(of) ? static_cast<double>(to_float(static_cast<const T*>(to.log_probabilities)[at(t, of)]))
                     : -INFINITY;
  }
  /// Whether a path may go from position k past the following blank.
  RT_DEVICE bool skips(int64_t k) const {
    return k + 2 < positions && symbol(k) != to.blank && symbol(k) != symbol(k + 2);
  }

  /// Positions of equal labels are linked, so that one thread accumulates each label's shares.
  RT_DEVICE void link(const CtcScratch& scratch) const {
    for (int64_t k = threadIdx.x; k < positions; k += blockDim.x) {
      const int64_t own = symbol(k);
      scratch.next[k] = 0;
      scratch.leader[k] = k % 2 == 1 && own != to.blank && valid(own) ? 1 : 0;
      if (scratch.leader[k] == 0) continue;
      for (int64_t j = 1; j < k; j += 2)
        if (symbol(j) == own) scratch.leader[k] = 0;
      for (int64_t j = k + 2; j < positions && scratch.next[k] == 0; j += 2)
        if (symbol(j) == own) scratch.next[k] = j;
    }
  }
  RT_DEVICE void find_alpha(const CtcScratch& scratch) const {
    for (int64_t t = 0; t < steps; ++t) {
      const double* from = scratch.alpha + (t - 1) * positions;
      for (int64_t k = threadIdx.x; k < positions; k += blockDim.x) {
        double sum = t == 0 ? (k < 2 ? 0 : -INFINITY) : from[k];
        if (t > 0 && k >= 1) sum = log_sum(sum, from[k - 1]);
        if (t > 0 && k >= 2 && symbol(k) != to.blank && symbol(k) != symbol(k - 2))
          sum = log_sum(sum, from[k - 2]);
        scratch.alpha[t * positions + k] = sum + log_probability(t, k);
      }
      __syncthreads();
    }
  }
  /// The log probability of all paths.
  RT_DEVICE double total(const CtcScratch& scratch) const {
    if (steps == 0) return positions == 1 ? 0 : -INFINITY;
    const double* last = scratch.alpha + (steps - 1) * positions;
    return positions == 1 ? last[0] : log_sum(last[positions - 2], last[positions - 1]);
  }
  /// beta and the shares of all positions at time t.
  RT_DEVICE void find_shares(const CtcScratch& scratch, int64_t t, double whole) const {
    double* beta = scratch.beta + t % 2 * positions;
    const double* after = scratch.beta + (t + 1) % 2 * positions;
    const bool last = t == steps - 1;
    for (int64_t k = threadIdx.x; k < positions; k += blockDim.x) {
      double sum = last ? (k >= positions - 2 ? 0 : -INFINITY) : after[k];
      if (!last && k + 1 < positions) sum = log_sum(sum, after[k + 1]);
      if (!last && skips(k)) sum = log_sum(sum, after[k + 2]);
      const double own = log_probability(t, k);
      beta[k] = sum + own;
      scratch.share[k] = whole == -INFINITY ? static_cast<double>(NAN)
                         : own == -INFINITY ? 0
                                            : exp(scratch.alpha[t * positions + k] + sum - whole);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kMaxCtcThreads, 2) make_ctc(CtcArguments to) {
  __shared__ double storage[kWarpSize];
  const CtcSequence<T> z(to, blockIdx.x);
  const CtcScratch scratch(to.scratch, blockIdx.x, to.steps, 2 * to.max_labels + 1);
  T* gradient = static_cast<T*>(to.gradient);
  for (int64_t i = threadIdx.x; i < to.steps * to.classes; i += blockDim.x)
    gradient[z.at(i / to.classes, i % to.classes)] = narrow<T>(0.0f);
  z.link(scratch);
  z.find_alpha(scratch);
  __syncthreads();
  const double whole = z.total(scratch);
  const bool dropped = whole == -INFINITY && to.zero_infinity;
  if (threadIdx.x == 0)
    static_cast<T*>(to.loss)[blockIdx.x] = narrow<T>(static_cast<float>(dropped ? 0 : -whole));
  for (int64_t t = z.steps; t-- > 0 && !dropped;) {  // uniform over the block
    z.find_shares(scratch, t, whole);
    __syncthreads();
    double blanks = 0;
    for (int64_t k = threadIdx.x; k < z.positions; k += blockDim.x) {
      if (z.symbol(k) == to.blank) blanks += scratch.share[k];
      if (scratch.leader[k] == 0) continue;
      double sum = scratch.share[k];
      for (int64_t j = scratch.next[k]; j != 0; j = scratch.next[j]) sum += scratch.share[j];
      gradient[z.at(t, z.symbol(k))] = narrow<T>(static_cast<float>(-sum));
    }
    blanks = block_sum(blanks, storage);
    if (threadIdx.x == 0) gradient[z.at(t, to.blank)] = narrow<T>(static_cast<float>(-blanks));
  }
}

}  // namespace

size_t ctc_scratch_bytes(const CtcArguments& arguments) {
  return static_cast<size_t>(arguments.batch *
                             CtcScratch::element_count(arguments.steps, 2 * arguments.max_labels + 1)) *
         sizeof(double);
}

cudaError_t ctc_loss(const CtcArguments& arguments, cudaStream_t stream) {
  const int64_t positions = 2 * arguments.max_labels + 1;
  const auto threads =
      static_cast<unsigned>(std::min<int64_t>(ceil_div(positions, kWarpSize) * kWarpSize, kMaxCtcThreads));
  return with_float(arguments.type, [&](auto tag) {
    return launch(make_ctc<typename decltype(tag)::type>,
                  LaunchConfig{dim3(static_cast<unsigned>(arguments.batch)), dim3(threads), 0, stream},
                  arguments);
  });
}

}  // namespace librt::cuda
