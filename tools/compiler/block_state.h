// Optimizer states of 8 bits: the codebook that stands behind the codes.
#pragma once

#include <cstdint>
#include <vector>

namespace rt::compiler {

/// Elements that share a scale.
inline constexpr int64_t kStateBlock = 256;
/// States of fewer elements stay in f32, where nothing is to be saved (Dettmers et al. 2022).
inline constexpr int64_t kSmallestBlockState = 4096;

/// The numbers of dynamic 8-bit quantization (Dettmers 2016, Dettmers et al. 2022), ascending: seven decades
/// below 1, each with twice as many evenly spaced numbers as the one below it, and 0. The largest is 1, so
/// that the largest number of a block is kept as it is. Real: 255 numbers, of both signs; else 256 from 0 on.
std::vector<float> dynamic_codebook(bool real);

}  // namespace rt::compiler
