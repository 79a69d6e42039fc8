// Optimizer steps, one pass over the parameters of one form. Results may be their own operands.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

enum class StepRule : uint8_t { Sgd, Adam, RmsProp, Adagrad, Adadelta, Lamb, Lion };

inline constexpr int kMaxStates = 3;
/// The most thread blocks that one weight takes, and those of all weights of a launch of Lamb, which has two
/// sums per thread block.
inline constexpr unsigned kMaxStepBlocks = 2048, kMaxLambBlocks = 8 * kMaxStepBlocks;

/// What the weights of a launch have in common. Scalars are passed as device pointers, so that recorded work
/// never changes. Formulas: schema/ops.fbs.
struct StepArguments {
  StepRule rule = StepRule::Sgd;
  bool variant = false;                 ///< Sgd: Nesterov; Adam: decoupled weight decay
  ElementType type = ElementType::F32;  ///< of parameter and gradient: f32, f16, bf16
  const float* learning_rate = nullptr;
  const int32_t* step = nullptr;          ///< counts from 1
  const float* gradient_scale = nullptr;  ///< null: 1
  const bool* skip = nullptr;             ///< null: false; true: everything stays as it is
  float beta1 = 0, beta2 = 0;  ///< beta1, beta2: momentum or the decay rate of the first state; of the second
  float one_minus_beta1 = 1, one_minus_beta2 = 1;  ///< 1 - beta, rounded once
  float log_beta1 = 0, log_beta2 = 0;
  float share = 1;     ///< Sgd: factor of the gradient in the new velocity, after step 1
  float momentum = 0;  ///< RmsProp
  float epsilon = 0, weight_decay = 0;
  bool has[kMaxStates] = {};   ///< which states are present
  float* direction = nullptr;  ///< Lamb with quantized states: memory for as many values as the weight has
  float* squares = nullptr;    ///< Lamb: memory for two values per thread block

  bool operator==(const StepArguments&) const = default;
};

/// Of quantized states in blocks of `size` elements, a multiple of 4 of at most kLargestStateBlock, the last
/// one shorter: each value is codebook[code] times its block's scale.
struct BlockForm {
  bool negative[kMaxStates] = {};  ///< signed: codebook 0; else codebook 1, and values above 0 stay above 0
  const float* codebooks[2] = {};  ///< ascending
  int levels[2] = {};              ///< 2 to 256 values
  int size = 256;

  bool operator==(const BlockForm&) const = default;
};
inline constexpr int64_t kLargestStateBlock = 1024;

/// The weights that a launch updates, all of one form, each independent of the others. It is a parameter of
/// the kernel, so that recorded work needs no device memory for it.
struct StepTable {
  static constexpr int kMostWeights = 80, kMostPointers = 352;
  /// The pointers of a weight: parameter, gradient, then each state up to the last one that is present
  /// (quantized: values and scales). Out of place: as many for the results, null for the gradient.
  static constexpr int kParameter = 0, kGradient = 1, kFirstState = 2;

  int stride = 0;   ///< pointers per weight
  int results = 0;  ///< where those of the results begin; 0: in place
  int weights = 0;
  unsigned first_block[kMostWeights + 1] = {};  ///< of each weight, in the grid
  int64_t count[kMostWeights] = {};
  void* pointers[kMostPointers] = {};

  bool full() const { return weights == kMostWeights || (weights + 1) * stride > kMostPointers; }
  /// The table is not full.
  void add(int64_t elements, unsigned blocks, void* const* operands) {
    for (int i = 0; i < stride; ++i) pointers[weights * stride + i] = operands[i];
    count[weights] = elements;
    first_block[weights + 1] = first_block[weights] + blocks;
    ++weights;
  }
};

/// Thread blocks that one weight takes.
unsigned thread_blocks_of_step(int64_t count);
unsigned thread_blocks_of_step(int64_t count, const BlockForm& form);

/// Lamb: two launches, of at most kMaxLambBlocks.
cudaError_t optimizer_step(const StepArguments& arguments, const StepTable& table, cudaStream_t stream);
/// Lamb: tables of one weight.
cudaError_t blockwise_step(const StepArguments& arguments, const BlockForm& form, const StepTable& table,
                           cudaStream_t stream);

}  // namespace librt::cuda
