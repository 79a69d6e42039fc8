// Cooperative matrices as GL_NV_cooperative_matrix compiles them, rewritten to VK_KHR_cooperative_matrix,
// which glslang supports from version 13 on only.
//
// Knows: the words of SPIR-V modules, SPV_NV_cooperative_matrix, SPV_KHR_cooperative_matrix. Must not know:
// what a shader computes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace librt::spirv {

/// The module with its cooperative matrices rewritten. A matrix type's use (A, B, accumulator) is derived
/// from the multiply-adds that it takes part in, so one type must not have two uses: the extents of a
/// shader's matrices are specialization constants of their own. Layouts must be literal. On failure the
/// result is empty and `error` has the reason.
std::vector<uint32_t> khr_matrices(std::span<const uint32_t> words, std::string& error);

}  // namespace librt::spirv
