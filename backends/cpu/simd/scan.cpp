// Prefix sums and products of a row. Those within a vector take log2 lanes steps that do not depend on what
// came before; only one addition per vector does.
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

using Floats = Vector<float>;
constexpr int kWidth = kLanes<float>;

template <bool kProduct, class T>
RT_INLINE T join(T a, T b) {
  return kProduct ? a * b : a + b;
}
/// Lane i becomes lane i - kBy (or i + kBy), or what `filling` has there.
template <int kBy, bool kReverse, int... kI>
RT_INLINE Floats shifted(Floats v, Floats filling, std::integer_sequence<int, kI...>) {
  if constexpr (kReverse)
    return __builtin_shufflevector(v, filling, (kI + kBy < kWidth ? kI + kBy : kWidth + kI)...);
  else
    return __builtin_shufflevector(v, filling, (kI >= kBy ? kI - kBy : kWidth + kI)...);
}
template <bool kProduct, bool kReverse, int kBy = 1>
RT_INLINE Floats scan_vector(Floats v, Floats neutral) {
  if constexpr (kBy < kWidth) {
    const Floats sum = join<kProduct>(v, shifted<kBy, kReverse>(v, neutral, Lanes<kWidth>{}));
    return scan_vector<kProduct, kReverse, 2 * kBy>(sum, neutral);
  }
  return v;
}

template <bool kProduct, bool kReverse>
void scan(const float* x, float* y, int64_t n, bool exclusive) {
  constexpr float kNeutral = kProduct ? 1.0f : 0.0f;
  const Floats neutral = Floats{} + kNeutral;
  float total = kNeutral;
  int64_t done = 0;
  for (; done + kWidth <= n; done += kWidth) {
    const int64_t at = kReverse ? n - done - kWidth : done;
    const Floats within = scan_vector<kProduct, kReverse>(load<Floats>(x + at), neutral);
    const Floats first = exclusive ? shifted<1, kReverse>(within, neutral, Lanes<kWidth>{}) : within;
    store(y + at, join<kProduct>(Floats{} + total, first));
    total = join<kProduct>(total, within[kReverse ? 0 : kWidth - 1]);
  }
  for (; done < n; ++done) {
    const int64_t at = kReverse ? n - done - 1 : done;
    const float next = join<kProduct>(total, x[at]);
    y[at] = exclusive ? total : next;
    total = next;
  }
}

template <bool kProduct>
void scan_row(const float* x, float* y, int64_t n, bool exclusive, bool reverse) {
  if (reverse)
    scan<kProduct, true>(x, y, n, exclusive);
  else
    scan<kProduct, false>(x, y, n, exclusive);
}

}  // namespace

void fill_scan(Simd& table) noexcept {
  table.scan_row[0] = &scan_row<false>;
  table.scan_row[1] = &scan_row<true>;
}

}  // namespace rt::cpu::RT_SIMD_ISA
