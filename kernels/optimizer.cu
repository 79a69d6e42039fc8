// Four elements per thread. A thread block finds its weight by its index; how a weight is divided does not
// depend on the other weights of the launch, and so neither do its results. Block-quantized states: a block
// belongs to adjacent threads, which dequantize it, compute the step, the new scale and the new quantized
// values; thresholds and values of the codebooks are in shared memory.
#include "kernels/optimizer.h"

#include <algorithm>

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/tensor_blocks.cuh"
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

/// Of Adam and Lamb, before weight decay.
RT_DEVICE float adam_direction(const StepArguments& to, const StepScalars& scalars, float mean,
                               float variance) {
  return mean * scalars.correction1 / (sqrtf(variance * scalars.correction2) + to.epsilon);
}

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
      const float direction = adam_direction(to, scalars, s0, variance);
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

/// A thread block's weight, and its place among the blocks of that weight.
struct Place {
  int first;  ///< of the weight's pointers
  unsigned block, blocks;
  int64_t count;

  RT_DEVICE explicit Place(const StepTable& table) {
    const TensorBlock at = tensor_block(table, table.weights);
    first = at.tensor * table.stride;
    block = at.block;
    blocks = at.blocks;
    count = table.count[at.tensor];
  }
  template <class X = void>
  RT_DEVICE const X* operand(const StepTable& table, int i) const {
    return static_cast<const X*>(table.pointers[first + i]);
  }
  template <class X = void>
  RT_DEVICE X* result(const StepTable& table, int i) const {
    return static_cast<X*>(table.pointers[first + table.results + i]);
  }
  RT_DEVICE int64_t first_element() const {
    return (static_cast<int64_t>(block) * kThreads + threadIdx.x) * kEach;
  }
  RT_DEVICE int64_t stride() const { return static_cast<int64_t>(blocks) * kThreads * kEach; }
};
/// The parameter and its gradient.
struct Weight {
  const void *parameter, *grad;
  void* new_parameter;
  RT_DEVICE Weight(const StepTable& table, const Place& place)
      : parameter(place.operand(table, StepTable::kParameter)),
        grad(place.operand(table, StepTable::kGradient)),
        new_parameter(place.result(table, StepTable::kParameter)) {}
};

/// Sums of squares for Lamb.
struct Squares {
  float parameter = 0, direction = 0;
};
/// Elements [first, first + kEach) before `end`, with their states. Lamb leaves the parameter to
/// apply_lamb().
template <class T>
RT_DEVICE void step_four(const StepArguments& to, const Weight& weight, const StepScalars& scalars,
                         Four (&states)[kMaxStates], int64_t first, int64_t end, Squares& squares) {
  Four parameter = load_floats<T>(weight.parameter, first, end);
  if (!scalars.skips) {
    const Four grad = load_floats<T>(weight.grad, first, end);
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
    if (to.rule == StepRule::Lamb) {
      if (to.direction != nullptr) store_before(to.direction, direction, first, end);
      return;
    }
  }
  store_floats<T>(weight.new_parameter, parameter, first, end);
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
__global__ void __launch_bounds__(kThreads)
    step_parameters(const __grid_constant__ StepArguments to, const __grid_constant__ StepTable table) {
  const StepScalars scalars(to);
  const Place place(table);
  const Weight weight(table, place);
  Squares squares;
  const int64_t count = place.count, stride = place.stride();
  for (int64_t i = place.first_element(); i < count; i += stride) {
    Four states[kMaxStates] = {};
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s)
      if (to.has[s])
        states[s] = load_before<kEach>(place.operand<float>(table, StepTable::kFirstState + s), i, count);
    step_four<T>(to, weight, scalars, states, i, count, squares);
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s)
      if (to.has[s])
        store_before(place.result<float>(table, StepTable::kFirstState + s), states[s], i, count);
  }
  store_squares(to, squares);
}

/// The codebooks, per thread block.
struct Codebooks {
  float values[2][256];
  float tree[2][256];  ///< search tree of thresholds: children of [k] are [2 k] (x below it), [2 k + 1]

  RT_DEVICE void load(const BlockForm& at) {
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
__global__ void __launch_bounds__(kThreads)
    step_blocks(const __grid_constant__ StepArguments to, const __grid_constant__ BlockForm at,
                const __grid_constant__ StepTable table, int threads) {
  __shared__ Codebooks codebooks;
  __shared__ float shared[kWarpSize];
  codebooks.load(at);
  const StepScalars scalars(to);
  const Place place(table);
  const Weight weight(table, place);
  Squares squares;
  const int together = kThreads / threads;
  const int slot = static_cast<int>(threadIdx.x) / threads, lane = static_cast<int>(threadIdx.x) % threads;
  const int64_t blocks = ceil_div(place.count, at.size);
  for (int64_t group = place.block; group * together < blocks; group += place.blocks) {
    const int64_t block = group * together + slot, begin = block * at.size;
    const int64_t end = min(begin + at.size, place.count), i = begin + kEach * lane;
    Four states[kMaxStates] = {};
    Vector<uint8_t, kEach> quantized[kMaxStates];
    float scales[kMaxStates];
    RT_UNROLL
    for (int s = 0; s < kMaxStates; ++s) {
      if (!to.has[s]) continue;
      const int values = StepTable::kFirstState + 2 * s;
      quantized[s] = load_before<kEach>(place.operand<uint8_t>(table, values), i, end);
      scales[s] = block < blocks ? place.operand<float>(table, values + 1)[block] : 0.0f;
      const float* book = codebooks.values[at.negative[s] ? 0 : 1];
      RT_UNROLL
      for (int k = 0; k < kEach; ++k) states[s][k] = book[quantized[s][k]] * scales[s];
    }
    step_four<T>(to, weight, scalars, states, i, end, squares);
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
      const int values = StepTable::kFirstState + 2 * s;
      store_before(place.result<uint8_t>(table, values), quantized[s], i, end);
      if (lane == 0 && block < blocks) place.result<float>(table, values + 1)[block] = scales[s];
    }
  }
  store_squares(to, squares);
}

/// p' = p - rate ratio direction, ratio = |p| / |direction|. The direction follows from the new states again;
/// quantized ones are rounded, and so the first pass has kept it.
template <class T>
__global__ void __launch_bounds__(kThreads)
    apply_lamb(const __grid_constant__ StepArguments to, const __grid_constant__ StepTable table) {
  __shared__ float shared[kWarpSize];
  const StepScalars scalars(to);
  if (scalars.skips) return;  // the first pass has stored p
  const Place place(table);
  const Weight weight(table, place);
  const float* sums = to.squares + 2 * (blockIdx.x - place.block);
  Squares squares;
  for (unsigned i = threadIdx.x; i < place.blocks; i += kThreads) {
    squares.parameter += sums[2 * i];
    squares.direction += sums[2 * i + 1];
  }
  const float parameter = block_sum(squares.parameter, shared),
              direction = block_sum(squares.direction, shared);
  const float ratio = parameter > 0 && direction > 0 ? sqrtf(parameter) / sqrtf(direction) : 1.0f;
  const int64_t count = place.count, stride = place.stride();
  for (int64_t i = place.first_element(); i < count; i += stride) {
    Four p = load_floats<T>(weight.parameter, i, count);
    Four step;
    if (to.direction != nullptr) {
      step = load_before<kEach>(to.direction, i, count);
    } else {
      const Four mean =
                     load_before<kEach>(place.result<const float>(table, StepTable::kFirstState), i, count),
                 variance = load_before<kEach>(place.result<const float>(table, StepTable::kFirstState + 1),
                                               i, count);
      RT_UNROLL
      for (int k = 0; k < kEach; ++k)
        step[k] = adam_direction(to, scalars, mean[k], variance[k]) + to.weight_decay * p[k];
    }
    RT_UNROLL
    for (int k = 0; k < kEach; ++k) p[k] -= ratio * scalars.rate * step[k];
    store_floats<T>(weight.new_parameter, p, i, count);
  }
}

static_assert(sizeof(StepArguments) + sizeof(BlockForm) + sizeof(StepTable) + sizeof(int) <= 4096,
              "what a kernel's parameters may take on every device");

/// Threads that share a block of quantized states, a power of two.
int threads_of_block(const BlockForm& form) {
  int threads = 1;
  while (threads * kEach < form.size) threads *= 2;
  return threads;
}

unsigned limited(int64_t blocks) {
  return static_cast<unsigned>(std::min(blocks, int64_t{kMaxStepBlocks}));
}

LaunchConfig config_of(const StepTable& table, cudaStream_t stream) {
  return {dim3(table.first_block[table.weights]), dim3(kThreads), 0, stream};
}

template <class T>
cudaError_t finish_step(const StepArguments& to, const StepTable& table, cudaStream_t stream) {
  if (to.rule != StepRule::Lamb) return cudaSuccess;
  return launch(apply_lamb<T>, config_of(table, stream), to, table);
}

}  // namespace

unsigned thread_blocks_of_step(int64_t count) {
  return limited(ceil_div(count, kEach * kThreads));
}
unsigned thread_blocks_of_step(int64_t count, const BlockForm& form) {
  return limited(ceil_div(ceil_div(count, form.size), kThreads / threads_of_block(form)));
}

cudaError_t optimizer_step(const StepArguments& arguments, const StepTable& table, cudaStream_t stream) {
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const cudaError_t error = launch(step_parameters<T>, config_of(table, stream), arguments, table);
    return error != cudaSuccess ? error : finish_step<T>(arguments, table, stream);
  });
}

cudaError_t blockwise_step(const StepArguments& arguments, const BlockForm& form, const StepTable& table,
                           cudaStream_t stream) {
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const cudaError_t error =
        launch(step_blocks<T>, config_of(table, stream), arguments, form, table, threads_of_block(form));
    return error != cudaSuccess ? error : finish_step<T>(arguments, table, stream);
  });
}

}  // namespace librt::cuda
