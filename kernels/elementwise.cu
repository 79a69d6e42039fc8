// Chains of element-wise functions. One thread per group of adjacent results, as in binary.cu: it loads its
// part of every input, and runs the steps, which are the same for the whole grid, on registers. Which
// function a step computes and which registers it reads are chosen at run time by branches that no thread
// takes alone.
#include "kernels/elementwise.h"

#include "kernels/binary_functions.cuh"
#include "kernels/functions.cuh"
#include "kernels/index_space.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

template <int kWidth>
using Group = Vector<float, kWidth>;

/// The thread's elements of one input.
template <int kWidth, class T>
RT_DEVICE Vector<T, kWidth> load_input(const void* from, int64_t offset, bool repeated, bool is_bool,
                                       int64_t left) {
  Vector<T, kWidth> loaded;
  if (is_bool) {
    const auto* bytes = static_cast<const uint8_t*>(from) + offset;
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i)
      loaded[i] = narrow<T>(i < left && bytes[repeated ? 0 : i] != 0 ? 1.0f : 0.0f);
    return loaded;
  }
  const T* elements = static_cast<const T*>(from) + offset;
  if (!repeated) return load_before<kWidth>(elements, 0, left);
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) loaded[i] = *elements;
  return loaded;
}

template <int kWidth>
RT_DEVICE void apply_function(Function function, Group<kWidth>& x, float alpha, float beta) {
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) x[i] = function_value(function, x[i], alpha, beta);
}

template <int kWidth, class T>
__global__ void __launch_bounds__(kElementwiseThreads) chain_kernel(ElementwiseArguments chain) {
  const int64_t group = global_index(), first = group * kWidth;
  if (first >= chain.count) return;
  const auto offsets = offsets_of(chain.space, group);
  const int last = chain.space.rank - 1;
  const int64_t left = chain.count - first;
  Vector<T, kWidth> inputs[kMostChainInputs];
  RT_UNROLL
  for (int k = 0; k < kMostChainInputs; ++k)
    if (k < chain.inputs)
      inputs[k] = load_input<kWidth, T>(chain.x[k], offsets[k], chain.space.strides[k][last] == 0,
                                        chain.is_bool[k], left);
  Group<kWidth> previous{}, saved[kChainSaved]{};
  // Registers cannot be indexed at run time: every one is compared with the number.
  const auto operand = [&](int number) {
    Group<kWidth> x = previous;
    RT_UNROLL
    for (int k = 0; k < kMostChainInputs; ++k)
      if (k == number) {
        RT_UNROLL
        for (int i = 0; i < kWidth; ++i) x[i] = widen(inputs[k][i]);
      }
    RT_UNROLL
    for (int k = 0; k < kChainSaved; ++k)
      if (k + kChainPrevious + 1 == number) x = saved[k];
    return x;
  };
  for (int s = 0; s < chain.steps; ++s) {
    const ChainStep step = chain.step[s];
    Group<kWidth> a = operand(step.operands[0]);
    if (step.form == ChainStep::Form::Unary) {
      apply_function(static_cast<Function>(step.function), a, step.alpha, step.beta);
    } else {
      const Group<kWidth> b = operand(step.operands[1]);
      if (step.form == ChainStep::Form::Binary) {
        RT_UNROLL
        for (int i = 0; i < kWidth; ++i)
          a[i] = float_value(static_cast<BinaryFunction>(step.function), a[i], b[i]);
      } else if (step.form == ChainStep::Form::Compare) {
        RT_UNROLL
        for (int i = 0; i < kWidth; ++i)
          a[i] = holds(static_cast<CompareFunction>(step.function), a[i], b[i]) ? 1.0f : 0.0f;
      } else {
        const Group<kWidth> c = operand(step.operands[2]);
        RT_UNROLL
        for (int i = 0; i < kWidth; ++i) a[i] = a[i] != 0.0f ? b[i] : c[i];
      }
    }
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i) previous[i] = widen(narrow<T>(a[i]));
    RT_UNROLL
    for (int k = 0; k < kChainSaved; ++k)
      if (k == step.save) saved[k] = previous;
  }
  Vector<T, kWidth> result;
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) result[i] = narrow<T>(previous[i]);
  store_before(static_cast<T*>(chain.y) + first, result, 0, left);
}

template <class T>
cudaError_t launch_chain(const ElementwiseArguments& x, cudaStream_t stream) {
  const auto config = launch_each(ceil_div(x.count, x.width), stream);
  if (x.width == 1) return launch(chain_kernel<1, T>, config, x);
  return launch(chain_kernel<kVectorWidth<T>, T>, config, x);
}

}  // namespace

cudaError_t elementwise(const ElementwiseArguments& arguments, cudaStream_t stream) {
  switch (arguments.type) {
    case ElementType::F16: return launch_chain<__half>(arguments, stream);
    case ElementType::BF16: return launch_chain<__nv_bfloat16>(arguments, stream);
    default: return launch_chain<float>(arguments, stream);
  }
}

}  // namespace librt::cuda
