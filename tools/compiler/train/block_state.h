// 8-bit optimizer states: the codebook of their block-wise quantization.
#pragma once

#include <cstdint>
#include <vector>

namespace librt::compiler {

/// Elements that share a scale.
inline constexpr int64_t kStateBlock = 256;
/// Smaller states stay in f32: quantizing them saves nothing (Dettmers et al. 2022).
inline constexpr int64_t kSmallestBlockState = 4096;

/// The levels of dynamic 8-bit quantization (Dettmers 2016, Dettmers et al. 2022), ascending: seven decades
/// below 1, each with twice as many evenly spaced levels as the one below it, and 0. The largest is 1, so
/// that the largest value of a block is exact. real: 255 levels, of both signs; else 256, from 0 up.
std::vector<float> dynamic_codebook(bool real);

}  // namespace librt::compiler
