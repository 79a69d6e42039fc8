// Picking by condition, of elements of every size.
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

template <class T>
void select_elements(const uint8_t* condition, const void* yes, const void* no, void* result, int64_t n,
                     bool a_advances, bool b_advances) {
  const auto *a = static_cast<const T*>(yes), *b = static_cast<const T*>(no);
  auto* y = static_cast<T*>(result);
  if (a_advances && b_advances) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T first = a[i], second = b[i];
      y[i] = condition[i] != 0 ? first : second;
    }
  } else if (a_advances) {
    const T second = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T first = a[i];
      y[i] = condition[i] != 0 ? first : second;
    }
  } else if (b_advances) {
    const T first = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T second = b[i];
      y[i] = condition[i] != 0 ? first : second;
    }
  } else {
    const T first = *a, second = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = condition[i] != 0 ? first : second;
  }
}

}  // namespace

void fill_select(Simd& table) noexcept {
  table.select[0] = &select_elements<uint8_t>;
  table.select[1] = &select_elements<uint16_t>;
  table.select[2] = &select_elements<uint32_t>;
  table.select[3] = &select_elements<uint64_t>;
}

}  // namespace rt::cpu::RT_SIMD_ISA
