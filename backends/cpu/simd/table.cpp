// The table of one instruction set.
#include "backends/cpu/simd/loops.h"

#define RT_TEXT_INNER(name) #name
#define RT_TEXT(name) RT_TEXT_INNER(name)

namespace librt::cpu::RT_SIMD_ISA {

const Simd& table() noexcept;
const Simd& table() noexcept {
  static const Simd kTable = [] {
    Simd filled{};
    filled.name = RT_TEXT(RT_SIMD_ISA);
    fill_unary(filled);
    fill_binary(filled);
    fill_rows(filled);
    fill_scan(filled);
    fill_select(filled);
    fill_norms(filled);
    fill_matmuls(filled);
    fill_convert(filled);
    fill_integer(filled);
    fill_quantized(filled);
    fill_weight_quantized(filled);
    fill_blocks(filled);
    fill_optimizer(filled);
    fill_transpose(filled);
    fill_window(filled);
    fill_winograd(filled);
    fill_random(filled);
    fill_recurrent(filled);
    fill_attention(filled);
    fill_attention_gradient(filled);
    return filled;
  }();
  return kTable;
}

}  // namespace librt::cpu::RT_SIMD_ISA
