// Reductions of a row.
#include "backends/cpu/simd/reduce.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

float row_sum(const float* x, int64_t n) {
  return reduce_row(x, n, 0.0f, Add{});
}
float row_prod(const float* x, int64_t n) {
  return reduce_row(x, n, 1.0f, Multiply{});
}
/// The compiler's own max reduction drops NaN.
template <bool kMax>
float row_extreme(const float* x, int64_t n) {
  return reduce_row(x, n, kMax ? -__builtin_inff() : __builtin_inff(), Extreme<kMax>{});
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
