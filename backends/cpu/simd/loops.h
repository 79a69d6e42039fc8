// Functions with which the sources of this directory fill the table of one instruction set.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu::RT_SIMD_ISA {

void fill_unary(Simd& table) noexcept;
void fill_binary(Simd& table) noexcept;
void fill_rows(Simd& table) noexcept;
void fill_scan(Simd& table) noexcept;
void fill_select(Simd& table) noexcept;
void fill_norms(Simd& table) noexcept;
void fill_matmuls(Simd& table) noexcept;
void fill_convert(Simd& table) noexcept;
void fill_integer(Simd& table) noexcept;
void fill_quantized(Simd& table) noexcept;
void fill_weight_quantized(Simd& table) noexcept;
void fill_blocks(Simd& table) noexcept;
void fill_optimizer(Simd& table) noexcept;
void fill_transpose(Simd& table) noexcept;
void fill_window(Simd& table) noexcept;
void fill_winograd(Simd& table) noexcept;
void fill_random(Simd& table) noexcept;
void fill_recurrent(Simd& table) noexcept;
void fill_attention(Simd& table) noexcept;
void fill_attention_gradient(Simd& table) noexcept;

void transpose(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t columns);

}  // namespace librt::cpu::RT_SIMD_ISA
