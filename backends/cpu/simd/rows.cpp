// Reductions of a row, column-wise accumulation, and the vector updates used by pooling, resizing and batch
// normalization. `omp simd` reductions let the compiler keep partial sums per lane.
#include "backends/cpu/simd/rows.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

float row_sum(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
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
template <bool kMax>
float row_extreme(const float* x, int64_t n) {
  constexpr int kCount = 64;
  float lane[kCount];
  for (int k = 0; k < kCount; ++k) lane[k] = kMax ? -__builtin_inff() : __builtin_inff();
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) {
#pragma omp simd
    for (int k = 0; k < kCount; ++k) lane[k] = extreme<kMax>(x[i + k], lane[k]);
  }
  for (int k = 0; i < n; ++i, ++k) lane[k] = extreme<kMax>(x[i], lane[k]);
#pragma GCC unroll 8
  for (int half = kCount / 2; half > 0; half /= 2) {
#pragma omp simd
    for (int k = 0; k < half; ++k) lane[k] = extreme<kMax>(lane[k + half], lane[k]);
  }
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
/// The first NaN, if `value` is one.
template <bool kLast>
int64_t find_in_row(const float* x, float value, int64_t n) {
  if (value == value) return find_number<kLast>(x, value, static_cast<int32_t>(n));
  int64_t i = 0;
  while (x[i] == x[i]) ++i;
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
    if (!better && !(kLast && value == best)) continue;
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
      const bool wins = better | (kLast & (value == old));
      best[i] = wins ? value : old;
      position[i] = wins ? number : position[i];
    }
  }
  for (int64_t i = 0; i < n; ++i) y[i] = position[i];
}

void add_to(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}
void multiply_by(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
}
void max_with(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = maximum(x[i], y[i]);
}
void min_with(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = minimum(x[i], y[i]);
}
void axpy(float* y, const float* x, float a, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}
void scale(float* y, const float* x, float a, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];
}
template <int kCount>
RT_INLINE void add_weighted(const float* const* x, const float* weight, bool first, float* y, int64_t n) {
  const float *a = x[0], *b = x[kCount > 1 ? 1 : 0], *c = x[kCount > 2 ? 2 : 0], *d = x[kCount > 3 ? 3 : 0];
  const float wa = weight[0], wb = weight[kCount > 1 ? 1 : 0], wc = weight[kCount > 2 ? 2 : 0],
              wd = weight[kCount > 3 ? 3 : 0];
  const auto sum = [=](int64_t i) __attribute__((always_inline)) {
    float value = wa * a[i];
    if constexpr (kCount > 1) value += wb * b[i];
    if constexpr (kCount > 2) value += wc * c[i];
    if constexpr (kCount > 3) value += wd * d[i];
    return value;
  };
  if (first) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = sum(i);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] += sum(i);
  }
}
/// Four at a time, so that accumulators stay in registers.
void weighted_sum(const float* const* x, const float* weight, int64_t count, float* y, int64_t n) {
  for (int64_t k = 0; k < count; k += 4) {
    switch (count - k) {
      case 1: add_weighted<1>(x + k, weight + k, k == 0, y, n); break;
      case 2: add_weighted<2>(x + k, weight + k, k == 0, y, n); break;
      case 3: add_weighted<3>(x + k, weight + k, k == 0, y, n); break;
      default: add_weighted<4>(x + k, weight + k, k == 0, y, n);
    }
  }
}
void scale_shift(const float* x, float* y, const float* factor, const float* shift, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor[i] + shift[i];
}
void accumulate_products(float* sum_g, float* sum_gx, const float* g, const float* x, const float* mean,
                         int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    sum_g[i] += g[i];
    sum_gx[i] += g[i] * (x[i] - mean[i]);
  }
}
void combine(float* y, const float* g, const float* x, const float* a, const float* b, const float* c,
             int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * g[i] + b[i] * x[i] + c[i];
}

constexpr RowLoops make_loops() {
  RowLoops table{};
  constexpr auto kIndex = [](ReduceFunction function) { return static_cast<int>(function); };
  table.reduce_row[kIndex(ReduceFunction::Sum)] = &row_sum;
  table.reduce_row[kIndex(ReduceFunction::Max)] = &row_extreme<true>;
  table.reduce_row[kIndex(ReduceFunction::Min)] = &row_extreme<false>;
  table.reduce_row[kIndex(ReduceFunction::Prod)] = &row_prod;
  table.accumulate[kIndex(ReduceFunction::Sum)] = &add_to;
  table.accumulate[kIndex(ReduceFunction::Max)] = &max_with;
  table.accumulate[kIndex(ReduceFunction::Min)] = &min_with;
  table.accumulate[kIndex(ReduceFunction::Prod)] = &multiply_by;
  table.arg_row[0][0] = &arg_row<false, false>;
  table.arg_row[0][1] = &arg_row<false, true>;
  table.arg_row[1][0] = &arg_row<true, false>;
  table.arg_row[1][1] = &arg_row<true, true>;
  table.arg_columns[0][0] = &arg_columns<false, false>;
  table.arg_columns[0][1] = &arg_columns<false, true>;
  table.arg_columns[1][0] = &arg_columns<true, false>;
  table.arg_columns[1][1] = &arg_columns<true, true>;
  table.weighted_sum = &weighted_sum;
  table.axpy = &axpy;
  table.scale = &scale;
  table.scale_shift = &scale_shift;
  table.accumulate_products = &accumulate_products;
  table.combine = &combine;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(RowLoops);
