// Four elements per thread. Block-quantized states: a block belongs to adjacent threads, which dequantize it,
// compute the step, the new scale and the new quantized values; thresholds and values of the codebooks are in
// shared memory.
#include "kernels/optimizer.h"

#include <algorithm>

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kEach = 4;
constexpr int kThreads = 256;
static_assert(kLargestStateBlock == kEach * kThreads);
using Four = Vector<float, kEach>;

template <class T>
RT_DEVICE Four load_floats(const void* from, int64_t first, int64_t end) {
  const auto values = load_before<kEach>(static_cast<const T*>(from), first, end);
  Four floats;
  RT_UNROLL
  for (int k = 0; k < kEach; ++k) floats[k] = to_float(values[k]);
  return floats;
}
template <class T>
RT_DEVICE void store_floats(void* to, const Four& floats, int64_t first, int64_t end) {
  Vector<T, kEach> values;
  RT_UNROLL
  for (int k = 0; k < kEach; ++k) values[k] = from_float<T>(floats[k]);
  store_before(static_cast<T*>(to), values, first, end);
}

/// The scalars of this run.
struct StepScalars {
  bool skips;
  float rate, scale, share;
  float correction1 = 1, correction2 = 1;  ///< 1 / (1 - beta^step)

  RT_DEVICE explicit StepScalars(const StepArguments& to)
      : skips(to.skip != nullptr && *to.skip),
        rate(*to.learning_rate),
        scale(to.gradient_scale == nullptr ? 1.0f : *to.gradient_scale),
        share(to.step != nullptr && *to.step == 1 ? 1.0f : to.share) {
    if (to.rule != StepRule::Adam && to.rule != StepRule::Lamb) return;
    const auto steps = static_cast<float>(*to.step);
    // expm1 avoids the cancellation of 1 - beta^step
    correction1 = -1 / expm1f(steps * to.log_beta1);
    correction2 = -1 / expm1f(steps * to.log_beta2);
  }
};

/// One element: returns its direction, p' = p - rate direction; updates the states; decoupled decay changes
/// p.
RT_DEVICE float step_direction(const StepArguments& to, const StepScalars& scalars, float& p, float grad,
                               float& s0, float& s1, float& s2) {
  float g = scalars.scale * grad;
  const bool coupled = to.rule != StepRule::Lamb && to.rule != StepRule::Lion;
  if (to.rule == StepRule::Adam && to.variant)
    p -= scalars.rate * to.weight_decay * p;
  else if (coupled)
    g += to.weight_decay * p;
  switch (to.rule) {
    case StepRule::Sgd:
      if (!to.has[0]) return g;
      s0 = to.beta1 * s0 + scalars.share * g;
      return to.variant ? g + to.beta1 * s0 : s0;
    case StepRule::Adam:
    case StepRule::Lamb: {
      s0 = to.beta1 * s0 + to.one_minus_beta1 * g;
      s1 = to.beta2 * s1 + to.one_minus_beta2 * g * g;
      float variance = s1;
      if (to.has[2]) variance = s2 = Maximum{}(s2, s1);
      const float direction = s0 * scalars.correction1 / (sqrtf(variance * scalars.correction2) + to.epsilon);
      return to.rule == StepRule::Lamb ? direction + to.weight_decay * p : direction;
    }
    case StepRule::RmsProp: {
      s0 = to.beta1 * s0 + to.one_minus_beta1 * g * g;
      float variance = s0;
      if (to.has[1]) {
        s1 = to.beta1 * s1 + to.one_minus_beta1 * g;
        variance = Maximum{}(s0 - s1 * s1, 0.0f);  // rounding may take it below 0
      }
      const float direction = g / (sqrtf(variance) + to.epsilon);
      if (!to.has[2]) return direction;
      s2 = to.momentum * s2 + direction;
      return s2;
    }
    case StepRule::Adagrad: s0 += g * g; return g / (sqrtf(s0) + to.epsilon);
    case StepRule::Adadelta: {
      s0 = to.beta1 * s0 + to.one_minus_beta1 * g * g;
      const float delta = sqrtf(s1 + to.epsilon) / sqrtf(s0 + to.epsilon) * g;
      s1 = to.beta1 * s1 + to.one_minus_beta1 * delta * delta;
      return delta;
    }
    default: {
      const float mixed = to.beta1 * s0 + to.one_minus_beta1 * g;
      s0 = to.beta2 * s0 + to.one_minus_beta2 * g;
      const float sign = mixed > 0 ? 1.0f : mixed < 0 ? -1.0f : mixed;  // 0 and NaN stay
      return sign + to.weight_decay * p;
    }
  }
}

/// Sums of squares for Lamb.
struct Squares {
  float parameter = 0, direction = 0;
};
/// Elements [first, first + kEach) before `end`, with their states. Lamb's direction is stored for
/// apply_lamb().
template <class T>
RT_DEVICE void step_four(const StepArguments& to, const StepScalars& scalars, Four (&states)[kMaxStates],
                         int64_t first, int64_t end, Squares& squares) {
  Four parameter = load_floats<T>(to.parameter, first, end);
  if (!scalars.skips) {
    const Four grad = load_floats<T>(to.grad, first, end);
    Four direction;
    RT_UNROLL
    for (int k = 0; k < kEach; ++k) {
      direction[k] =
          step_direction(to, scalars, parameter[k], grad[k], states[0][k], states[1][k], states[2][k]);
      if (to.rule != StepRule::Lamb) {
        parameter[k] -= scalars.rate * direction[k];
      } else if (first + k < end) {
        squares.parameter += parameter[k] * parameter[k];
        squares.direction += direction[k] * direction[k];
      }
    }
    if (to.rule == StepRule::Lamb) return store_before(to.direction, direction, first, end);
  }
  store_floats<T>(to.new_parameter, parameter, first, end);
}

/// Lamb's two sums per thread block.
RT_DEVICE void store_squares(const StepArguments& to, Squares squares) {
  __shared__ float shared[kWarpSize];
  if (to.rule != StepRule::Lamb) return;
  squares.parameter = block_sum(squares.parameter, shared);
  squares.direction = block_sum(squares.direction, shared);
  if (threadIdx.x != 0) return;
  to.squares[2 * blockIdx.x] = squares.parameter;
  to.squares[2 * blockIdx.x + 1] = squares.direction;
}

template <class T>
__global__ void __launch_bounds__(kThreads) step_parameter(StepArguments to, StepStates at) {
  const StepScalars scalars(to);
  Squares squares;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * kEach;
  for (int64_t i = global_index() * kEach; i < to.count; i += stride) {
    Four states[kMaxStates] = {};
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s)
      if (to.has[s]) states[s] = load_before<kEach>(at.now[s], i, to.count);
    step_four<T>(to, scalars, states, i, to.count, squares);
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s)
      if (to.has[s]) store_before(at.next[s], states[s], i, to.count);
  }
  store_squares(to, squares);
}

/// The codebooks, per thread block.
struct Codebooks {
  float values[2][256];
  float tree[2][256];  ///< search tree of thresholds: children of [k] are [2 k] (x below it), [2 k + 1]

  RT_DEVICE void load(const BlockStates& at) {
    for (int c = 0; c < 2; ++c) {
      const float* book = at.codebooks[c];
      const int i = static_cast<int>(threadIdx.x);
      if (book == nullptr) continue;
      values[c][i] = book[min(i, at.levels[c] - 1)];
      int level = 1;
      while (2 * level <= i) level *= 2;
      const int upper = (2 * (i - level) + 1) * (128 / level);
      // No x >= NaN.
      tree[c][i] = i > 0 && upper < at.levels[c] ? 0.5f * (book[upper - 1] + book[upper]) : NAN;
    }
    __syncthreads();
  }
  RT_DEVICE uint8_t quantize(float x, float scale, bool negative) const {
    const float* thresholds = tree[negative ? 0 : 1];
    int node = 1;
    RT_UNROLL
    for (int level = 0; level < 8; ++level) node = 2 * node + (x >= thresholds[node] * scale ? 1 : 0);
    return static_cast<uint8_t>(!negative && x > 0 ? max(node - 256, 1) : node - 256);
  }
};
static_assert(kThreads == 256);

/// The maximum of `value` over groups of `threads` adjacent threads, a power of two; called by all threads.
/// Values that other threads of the group read before the call may be overwritten after it.
RT_DEVICE float group_maximum(float value, int threads, float* shared) {
  for (int distance = min(threads, kWarpSize) / 2; distance > 0; distance /= 2)
    value = Maximum{}(value, __shfl_xor_sync(kFullMask, value, distance));
  if (threads <= kWarpSize) {
    __syncwarp();
    return value;
  }
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, warps = threads / kWarpSize;
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) shared[warp] = value;
  __syncthreads();
  const int first = warp / warps * warps;
  for (int i = 0; i < warps; ++i) value = Maximum{}(value, shared[first + i]);
  return value;
}

/// `threads` per block of states, a power of two.
template <class T>
__global__ void __launch_bounds__(kThreads) step_blocks(StepArguments to, BlockStates at, int threads) {
  __shared__ Codebooks codebooks;
  __shared__ float shared[kWarpSize];
  codebooks.load(at);
  const StepScalars scalars(to);
  Squares squares;
  const int together = kThreads / threads;
  const int slot = static_cast<int>(threadIdx.x) / threads, lane = static_cast<int>(threadIdx.x) % threads;
  const int64_t blocks = ceil_div(to.count, at.size);
  for (int64_t group = blockIdx.x; group * together < blocks; group += gridDim.x) {
    const int64_t block = group * together + slot, begin = block * at.size;
    const int64_t end = min(begin + at.size, to.count), i = begin + kEach * lane;
    Four states[kMaxStates] = {};
    Vector<uint8_t, kEach> quantized[kMaxStates];
    float scales[kMaxStates];
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s) {
      if (!to.has[s]) continue;
      quantized[s] = load_before<kEach>(at.quantized[s], i, end);
      scales[s] = block < blocks ? at.scales[s][block] : 0.0f;
      const float* book = codebooks.values[at.negative[s] ? 0 : 1];
      RT_UNROLL
      for (int k = 0; k < kEach; ++k) states[s][k] = book[quantized[s][k]] * scales[s];
    }
    step_four<T>(to, scalars, states, i, end, squares);
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s) {
      if (!to.has[s]) continue;
      if (!scalars.skips) {
        float largest = 0;
        RT_UNROLL
        for (int k = 0; k < kEach; ++k)
          if (i + k < end) largest = Maximum{}(largest, fabsf(states[s][k]));
        scales[s] = group_maximum(largest, threads, shared);
        RT_UNROLL
        for (int k = 0; k < kEach; ++k)
          quantized[s][k] = codebooks.quantize(states[s][k], scales[s], at.negative[s]);
      } else {
        __syncthreads();  // other threads of the group still read the scale
      }
      store_before(at.next_quantized[s], quantized[s], i, end);
      if (lane == 0 && block < blocks) at.next_scales[s][block] = scales[s];
    }
  }
  store_squares(to, squares);
}

/// p' = p - rate ratio direction, ratio = |p| / |direction|.
template <class T>
__global__ void __launch_bounds__(kThreads) apply_lamb(StepArguments to, int sums) {
  __shared__ float shared[kWarpSize];
  const StepScalars scalars(to);
  if (scalars.skips) return;  // the first pass has stored p
  Squares squares;
  for (int i = static_cast<int>(threadIdx.x); i < sums; i += kThreads) {
    squares.parameter += to.squares[2 * i];
    squares.direction += to.squares[2 * i + 1];
  }
  const float parameter = block_sum(squares.parameter, shared),
              direction = block_sum(squares.direction, shared);
  const float ratio = parameter > 0 && direction > 0 ? sqrtf(parameter) / sqrtf(direction) : 1.0f;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * kEach;
  for (int64_t i = global_index() * kEach; i < to.count; i += stride) {
    Four p = load_floats<T>(to.parameter, i, to.count);
    const Four step = load_before<kEach>(to.direction, i, to.count);
    RT_UNROLL
    for (int k = 0; k < kEach; ++k) p[k] -= ratio * scalars.rate * step[k];
    store_floats<T>(to.new_parameter, p, i, to.count);
  }
}

LaunchConfig config_of(int64_t groups, cudaStream_t stream) {
  return {dim3(static_cast<unsigned>(std::min(groups, int64_t{kMaxStepBlocks}))), dim3(kThreads), 0, stream};
}

template <class T>
cudaError_t finish_step(const StepArguments& to, const LaunchConfig& first, cudaStream_t stream) {
  if (to.rule != StepRule::Lamb) return cudaSuccess;
  return launch(apply_lamb<T>, config_of(ceil_div(to.count, kEach * kThreads), stream), to,
                static_cast<int>(first.grid.x));
}

}  // namespace

cudaError_t optimizer_step(const StepArguments& arguments, const StepStates& states, cudaStream_t stream) {
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const LaunchConfig config = config_of(ceil_div(arguments.count, kEach * kThreads), stream);
    const cudaError_t error = launch(step_parameter<T>, config, arguments, states);
    return error != cudaSuccess ? error : finish_step<T>(arguments, config, stream);
  });
}

cudaError_t blockwise_step(const StepArguments& arguments, const BlockStates& states, cudaStream_t stream) {
  int threads = 1;
  while (threads * kEach < states.size) threads *= 2;
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t blocks = ceil_div(arguments.count, states.size);
    const LaunchConfig config = config_of(ceil_div(blocks, kThreads / threads), stream);
    const cudaError_t error = launch(step_blocks<T>, config, arguments, states, threads);
    return error != cudaSuccess ? error : finish_step<T>(arguments, config, stream);
  });
}

}  // namespace librt::cuda
