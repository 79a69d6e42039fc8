// Reductions of a row. `omp simd` reductions let the compiler keep partial sums per lane.
#include "backends/cpu/simd/reduce.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// Explicit lanes: a compiler adds the end of a row, which fills no vector, one by one: 77 elements took
/// 0.029 us.
float row_sum(const float* x, int64_t n) {
  constexpr int kCount = 4;
  constexpr int64_t kLane = kLanes<float>;
  Vector<float> sums[kCount] = {};
  int64_t i = 0;
  for (; i + kCount * kLane <= n; i += kCount * kLane)
    for (int k = 0; k < kCount; ++k) sums[k] += load<Vector<float>>(x + i + k * kLane);
  for (; i + kLane <= n; i += kLane) sums[0] += load<Vector<float>>(x + i);
  if (i < n) sums[1] += load_first(x + i, n - i);
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}
float row_prod(const float* x, int64_t n) {
  float product = 1;
#pragma omp simd reduction(* : product)
  for (int64_t i = 0; i < n; ++i) product *= x[i];
  return product;
}
/// Explicit lanes, because the compiler's own max reduction drops NaN.
template <bool kMax>
RT_INLINE float extreme(float a, float b) {
  return kMax ? maximum(a, b) : minimum(a, b);
}
/// lane[0] of the first kFrom lanes, kTo of which remain.
template <bool kMax, int kFrom, int kTo>
RT_INLINE void halve(float* lane) {
#pragma GCC unroll 8
  for (int half = kFrom / 2; half >= kTo; half /= 2) {
#pragma omp simd
    for (int k = 0; k < half; ++k) lane[k] = extreme<kMax>(lane[k + half], lane[k]);
  }
}
template <bool kMax>
float row_extreme(const float* x, int64_t n) {
  constexpr int kWide = 64, kLane = 16;
  if (n < kLane) {
    float best = kMax ? -__builtin_inff() : __builtin_inff();
    for (int64_t i = 0; i < n; ++i) best = extreme<kMax>(x[i], best);
    return best;
  }
  float lane[kWide];
  int64_t i = kLane;
  if (n >= kWide) {
    for (int k = 0; k < kWide; ++k) lane[k] = x[k];
    for (i = kWide; i + kWide <= n; i += kWide) {
#pragma omp simd
      for (int k = 0; k < kWide; ++k) lane[k] = extreme<kMax>(x[i + k], lane[k]);
    }
    halve<kMax, kWide, kLane>(lane);
  } else {
    for (int k = 0; k < kLane; ++k) lane[k] = x[k];
  }
  const auto add = [&](const float* from) __attribute__((always_inline)) {
#pragma omp simd
    for (int k = 0; k < kLane; ++k) lane[k] = extreme<kMax>(from[k], lane[k]);
  };
  for (; i + kLane <= n; i += kLane) add(x + i);
  if (i < n) add(x + n - kLane);  // some of them once more
  halve<kMax, kLane, 1>(lane);
  return lane[0];
}

/// The first or last position of `value`, which x contains.
template <bool kLast>
int64_t find_number(const float* x, float value, int32_t n) {
  int32_t position = kLast ? -1 : n;
  if constexpr (kLast) {
#pragma omp simd reduction(max : position)
    for (int32_t i = 0; i < n; ++i) {
      const int32_t here = x[i] == value ? i : -1;
      position = here > position ? here : position;
    }
  } else {
#pragma omp simd reduction(min : position)
    for (int32_t i = 0; i < n; ++i) {
      const int32_t here = x[i] == value ? i : n;
      position = here < position ? here : position;
    }
  }
  return position;
}
/// The first or last NaN, if `value` is one.
template <bool kLast>
int64_t find_in_row(const float* x, float value, int64_t n) {
  if (value == value) return find_number<kLast>(x, value, static_cast<int32_t>(n));
  int64_t i = kLast ? n - 1 : 0;
  while (x[i] == x[i]) i += kLast ? -1 : 1;
  return i;
}

/// Runs of the row are reduced; only the one that holds the result is searched.
template <bool kMax, bool kLast>
int64_t arg_row(const float* x, int64_t n) {
  constexpr int64_t kRun = 512;
  int64_t run = 0;
  float best = row_extreme<kMax>(x, n < kRun ? n : kRun);
  for (int64_t i = kRun; i < n; i += kRun) {
    const float value = row_extreme<kMax>(x + i, n - i < kRun ? n - i : kRun);
    const bool better = (best == best) & ((value != value) | (kMax ? value > best : value < best));
    const bool equal = (value == best) | ((value != value) & (best != best));
    if (!better && !(kLast && equal)) continue;
    run = i;
    best = value;
  }
  return run + find_in_row<kLast>(x + run, best, n - run < kRun ? n - run : kRun);
}

template <bool kMax, bool kLast>
void arg_columns(const float* x, int64_t* y, int64_t extent, int64_t stride, int64_t n) {
  float best[Simd::kColumns];
  int32_t position[Simd::kColumns];
  for (int64_t i = 0; i < n; ++i) {
    best[i] = x[i];
    position[i] = 0;
  }
  for (int64_t k = 1; k < extent; ++k) {
    const float* row = x + k * stride;
    const auto number = static_cast<int32_t>(k);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float value = row[i], old = best[i];
      const bool better = (old == old) & ((value != value) | (kMax ? value > old : value < old));
      const bool equal = (value == old) | ((value != value) & (old != old));
      const bool wins = better | (kLast & equal);
      best[i] = wins ? value : old;
      position[i] = wins ? number : position[i];
    }
  }
  for (int64_t i = 0; i < n; ++i) y[i] = position[i];
}

constexpr ReduceLoops make_loops() {
  ReduceLoops table{};
  constexpr auto kIndex = [](ReduceFunction function) { return static_cast<int>(function); };
  table.reduce_row[kIndex(ReduceFunction::Sum)] = &row_sum;
  table.reduce_row[kIndex(ReduceFunction::Max)] = &row_extreme<true>;
  table.reduce_row[kIndex(ReduceFunction::Min)] = &row_extreme<false>;
  table.reduce_row[kIndex(ReduceFunction::Prod)] = &row_prod;
  table.arg_row[0][0] = &arg_row<false, false>;
  table.arg_row[0][1] = &arg_row<false, true>;
  table.arg_row[1][0] = &arg_row<true, false>;
  table.arg_row[1][1] = &arg_row<true, true>;
  table.arg_columns[0][0] = &arg_columns<false, false>;
  table.arg_columns[0][1] = &arg_columns<false, true>;
  table.arg_columns[1][0] = &arg_columns<true, false>;
  table.arg_columns[1][1] = &arg_columns<true, true>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(ReduceLoops);
