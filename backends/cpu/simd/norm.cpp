// Softmax, layer normalization of a row, mean and variance of columns.
#include "backends/cpu/simd/norm.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

RT_INLINE Vector<float> exp_down_lanes(Vector<float> v) {
  return map_lanes(
      v, [](float x) __attribute__((always_inline)) { return exp_down(x); });
}

RT_INLINE Vector<float> exp_lanes(Vector<float> v) {
  return map_lanes(
      v, [](float x) __attribute__((always_inline)) { return exp(x); });
}

/// max first, so that no exponential overflows; then exp(x - max) is stored while it is summed.
template <bool kLogarithm>
void softmax_row(const float* x, float* y, int64_t n) {
  const float most = reduce_row(x, n, -__builtin_inff(), Larger{});
  Vector<float> sums{};
  for_vectors(
      n, [&](auto at) __attribute__((always_inline)) {
        const Vector<float> powers = exp_down_lanes(at.load(x) - most);
        sums += at.padded(powers, 0.0f);
        if (!kLogarithm) at.store(y, powers);
      });
  const float sum = reduced(sums), last = kLogarithm ? log(sum) : 1.0f / sum;
  for_vectors(
      n, [&](auto at) __attribute__((always_inline)) {
        at.store(y, kLogarithm ? (at.load(x) - most) - last : at.load(y) * last);
      });
}

/// Down columns, in chunks of rows: a chunk's exponentials are relative to the running maximum at its end,
/// computed while its rows are in L1, and rescaled to the last maximum when divided by the sum. x is read and
/// y written once. `copy`, if not null, holds the [extent, n] intermediate values, which stay in the caches
/// between the two passes: the rows of x and y, far apart, would not. Floor: 2 passes over memory, 3 where
/// y's lines are read before they are written.
template <bool kLogarithm>
void softmax_columns(const float* x, float* y, int64_t extent, int64_t stride, int64_t n, float* copy,
                     bool past_caches) {
  constexpr int64_t kColumns = Simd::kColumns, kMostChunks = 64, kLeastRows = 16;
  const int64_t shared = (extent + kMostChunks - 1) / kMostChunks;
  const int64_t rows = shared < kLeastRows ? kLeastRows : shared;
  // 0 where nothing was seen, so that -inf - most is not NaN.
  const auto origin = [](float most) __attribute__((always_inline)) {
    return pick(most == -__builtin_inff(), 0.0f, most);
  };
  float most[kColumns], sum[kColumns], chunk_most[kMostChunks][kColumns];
  for (int64_t i = 0; i < n; ++i) {
    most[i] = -__builtin_inff();
    sum[i] = 0;
  }
  float* between = copy != nullptr ? copy : y;
  const int64_t between_stride = copy != nullptr ? n : stride;
  for (int64_t begin = 0, chunk = 0; begin < extent; begin += rows, ++chunk) {
    const int64_t end = begin + rows < extent ? begin + rows : extent;
    float before[kColumns], now[kColumns];
    for (int64_t i = 0; i < n; ++i) before[i] = most[i];
    for (int64_t k = begin; k < end; ++k) {
      const float* row = x + k * stride;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) most[i] = row[i] > most[i] ? row[i] : most[i];
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      chunk_most[chunk][i] = most[i];
      now[i] = origin(most[i]);
      sum[i] *= exp_down(before[i] - now[i]);  // before is -inf while nothing was seen: the factor is 0
    }
    for (int64_t k = begin; k < end; ++k) {
      const float* row = x + k * stride;
      float* out = between + k * between_stride;
      if (kLogarithm) {
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) sum[i] += exp_down(row[i] - now[i]);
        if (copy == nullptr) continue;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) out[i] = row[i];
      } else {
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) {
          const float e = exp_down(row[i] - now[i]);
          out[i] = e;
          sum[i] += e;
        }
      }
    }
  }
  const float* from = kLogarithm && copy == nullptr ? x : between;
  for (int64_t begin = 0, chunk = 0; begin < extent; begin += rows, ++chunk) {
    const int64_t end = begin + rows < extent ? begin + rows : extent;
    float last[kColumns];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      last[i] = kLogarithm ? log(sum[i]) : exp_down(chunk_most[chunk][i] - origin(most[i])) / sum[i];
    for (int64_t k = begin; k < end; ++k) {
      const float* row = from + k * between_stride;
      float line[kColumns];
      float* out = past_caches ? line : y + k * stride;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = kLogarithm ? (row[i] - most[i]) - last[i] : row[i] * last[i];
      if (past_caches) stream_bytes(line, y + k * stride, n * int64_t{sizeof(float)});
    }
  }
  if (past_caches) finish_streams();
}

struct RowStatistics {
  float mean, inverse;
};
/// The sum of x - around, or of its square.
template <bool kSquares>
RT_INLINE float sum_around(const float* x, int64_t n, float around) {
  return reduce_row(
      n, 0.0f, Add{}, [=](auto at) __attribute__((always_inline)) {
        const Vector<float> v = at.load(x) - around;
        return kSquares ? v * v : v;
      });
}
/// Two passes over the row in cache: the mean, as the sum around the first value, because a sum of values far
/// from 0 loses the digits in which they differ; then the squares around it, to avoid cancellation.
RT_INLINE RowStatistics row_statistics(const float* x, int64_t n, float epsilon, bool centered) {
  float mean = 0;
  if (centered && n > 0) {
    // The mean of values with an infinity is infinite, not infinity - infinity.
    const float origin = x[0] - x[0] == 0 ? x[0] : 0.0f;
    mean = origin + sum_around<false>(x, n, origin) / static_cast<float>(n);
  }
  const float squares = sum_around<true>(x, n, mean);
  return {mean, 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon)};
}

/// y = (x - mean) inverse [scale] [+ bias]
template <bool kScale, bool kBias>
RT_INLINE void normalize(const float* x, float* y, int64_t n, const RowStatistics& statistics,
                         const float* scale, const float* bias) {
  for_vectors(
      n, [&](auto at) __attribute__((always_inline)) {
        Vector<float> v = (at.load(x) - statistics.mean) * statistics.inverse;
        if constexpr (kScale) v *= at.load(scale);
        if constexpr (kBias) v += at.load(bias);
        at.store(y, v);
      });
}

void layer_norm_row(const float* x, float* y, int64_t n, const float* scale, const float* bias,
                    float epsilon) {
  const RowStatistics statistics = row_statistics(x, n, epsilon, true);
  if (scale != nullptr && bias != nullptr)
    normalize<true, true>(x, y, n, statistics, scale, bias);
  else if (scale != nullptr)
    normalize<true, false>(x, y, n, statistics, scale, bias);
  else if (bias != nullptr)
    normalize<false, true>(x, y, n, statistics, scale, bias);
  else
    normalize<false, false>(x, y, n, statistics, scale, bias);
}

template <bool kLogarithm>
void softmax_grad_row(const float* y, const float* g, float* grad, int64_t n) {
  const float sum = reduce_row(
      n, 0.0f, Add{}, [=](auto at) __attribute__((always_inline)) {
        return kLogarithm ? at.load(g) : at.load(g) * at.load(y);
      });
  for_vectors(
      n, [=](auto at) __attribute__((always_inline)) {
        const Vector<float> slope = at.load(g), result = at.load(y);
        at.store(grad, kLogarithm ? slope - exp_lanes(result) * sum : result * (slope - sum));
      });
}

void softmax_grad_columns(const float* y, const float* g, float* grad, int64_t extent, int64_t stride,
                          int64_t n, bool logarithm) {
  float sum[Simd::kColumns] = {};
  for (int64_t k = 0; k < extent; ++k) {
    const float *row = y + k * stride, *from = g + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] += logarithm ? from[i] : from[i] * row[i];
  }
  for (int64_t k = 0; k < extent; ++k) {
    const float *row = y + k * stride, *from = g + k * stride;
    float* to = grad + k * stride;
    if (logarithm) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = from[i] - exp(row[i]) * sum[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = row[i] * (from[i] - sum[i]);
    }
  }
}

void rms_norm_row(const float* x, float* y, int64_t n, const float* scale, float epsilon) {
  const RowStatistics statistics = row_statistics(x, n, epsilon, false);
  if (scale != nullptr)
    normalize<true, false>(x, y, n, statistics, scale, nullptr);
  else
    normalize<false, false>(x, y, n, statistics, scale, nullptr);
}

/// With s = g scale: grad = (s - (mean(s) + z mean(s z))) / deviation, without mean(s) unless centered.
/// Floor: x and g are read from memory once; the other passes find them in L1 or L2.
template <bool kScale>
RT_INLINE void layer_norm_grad(const float* x, const float* g, float* grad, int64_t n, const float* scale,
                               float epsilon, bool centered, float* sum_scale, float* sum_bias) {
  const RowStatistics statistics = row_statistics(x, n, epsilon, centered);
  const float middle = statistics.mean, factor = statistics.inverse;
  const auto slope = [=](auto at) __attribute__((always_inline)) {
    return kScale ? at.load(g) * at.load(scale) : at.load(g);
  };
  const auto normal = [=](auto at) __attribute__((always_inline)) {
    return (at.load(x) - middle) * factor;
  };
  Vector<float> first{}, second{};
  for_vectors(
      n, [&](auto at) __attribute__((always_inline)) {
        const Vector<float> z = normal(at), s = slope(at);
        first += at.padded(s, 0.0f);
        second += at.padded(s * z, 0.0f);
        at.store(sum_scale, at.load(sum_scale) + at.load(g) * z);
        at.store(sum_bias, at.load(sum_bias) + at.load(g));
      });
  const float of_mean = centered ? reduced(first) / static_cast<float>(n) : 0.0f;
  const float of_product = reduced(second) / static_cast<float>(n);
  for_vectors(
      n, [=](auto at) __attribute__((always_inline)) {
        at.store(grad, (slope(at) - (of_mean + normal(at) * of_product)) * factor);
      });
}

void layer_norm_grad_row(const float* x, const float* g, float* grad, int64_t n, const float* scale,
                         float epsilon, bool centered, float* sum_scale, float* sum_bias) {
  if (scale != nullptr)
    layer_norm_grad<true>(x, g, grad, n, scale, epsilon, centered, sum_scale, sum_bias);
  else
    layer_norm_grad<false>(x, g, grad, n, scale, epsilon, centered, sum_scale, sum_bias);
}

/// sum[i] over the rows of x[r stride + i] - around[i], or of its square, i < kCount lanes.
template <bool kSquares, class V, int kCount>
RT_INLINE void column_sums(const float* x, int64_t rows, int64_t stride, const float* around, float* sum) {
  constexpr int kWidth = sizeof(V) / sizeof(float);
  V total[kCount] = {}, middle[kCount];
  for (int k = 0; k < kCount; ++k) middle[k] = load<V>(around + k * kWidth);
  for (int64_t r = 0; r < rows; ++r)
    for (int k = 0; k < kCount; ++k) {
      const V value = load<V>(x + r * stride + k * kWidth) - middle[k];
      total[k] += kSquares ? value * value : value;
    }
  for (int k = 0; k < kCount; ++k) store(sum + k * kWidth, total[k]);
}
template <bool kSquares>
RT_INLINE void all_column_sums(const float* x, int64_t rows, int64_t stride, int64_t n, const float* around,
                               float* sum) {
  using V = Vector<float>;
  constexpr int kWidth = kLanes<float>, kCount = 4;
  int64_t i = 0;
  for (; i + kCount * kWidth <= n; i += kCount * kWidth)
    column_sums<kSquares, V, kCount>(x + i, rows, stride, around + i, sum + i);
  for (; i + kWidth <= n; i += kWidth) column_sums<kSquares, V, 1>(x + i, rows, stride, around + i, sum + i);
  for (; i + 4 <= n; i += 4)
    column_sums<kSquares, Vector<float, 16>, 1>(x + i, rows, stride, around + i, sum + i);
  for (; i < n; ++i) {
    float total = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const float value = x[r * stride + i] - around[i];
      total += kSquares ? value * value : value;
    }
    sum[i] = total;
  }
}

/// Blocks that stay in L2 are summed around their first row, because a sum of many values far from 0 loses
/// their last digits, then squared around their own mean, to avoid cancellation; means and squares of two
/// sets are combined as by Chan, Golub and LeVeque (1979). Floor: x is read once.
void add_moments(const float* x, int64_t rows, int64_t n, float* count, float* mean, float* squares) {
  constexpr int64_t kBlock = 32768, kRun = 256;
  if (n == 0) return;
  const int64_t most = kBlock / n < 8 ? 8 : kBlock / n;
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t now = rows - row < most ? rows - row : most;
    const auto added = static_cast<float>(now);
    for (int64_t first = 0; first < n; first += kRun) {
      const int64_t run = n - first < kRun ? n - first : kRun;
      float origin[kRun], block_mean[kRun], block_squares[kRun];
      const float* from = x + row * n + first;
      // The mean of values with an infinity is infinite, not infinity - infinity.
      for (int64_t i = 0; i < run; ++i) origin[i] = from[i] - from[i] == 0 ? from[i] : 0;
      all_column_sums<false>(from, now, n, run, origin, block_mean);
      for (int64_t i = 0; i < run; ++i) block_mean[i] = origin[i] + block_mean[i] / added;
      all_column_sums<true>(from, now, n, run, block_mean, block_squares);
#pragma omp simd
      for (int64_t i = 0; i < run; ++i) {
        const float before = count[first + i], share = added / (before + added);
        const float difference = block_mean[i] - mean[first + i];
        count[first + i] = before + added;
        mean[first + i] += difference * share;
        squares[first + i] += block_squares[i] + difference * difference * before * share;
      }
    }
  }
}

constexpr NormLoops make_loops() {
  NormLoops table{};
  table.softmax_row[0] = &softmax_row<false>;
  table.softmax_row[1] = &softmax_row<true>;
  table.softmax_columns[0] = &softmax_columns<false>;
  table.softmax_columns[1] = &softmax_columns<true>;
  table.layer_norm_row = &layer_norm_row;
  table.softmax_grad_row[0] = &softmax_grad_row<false>;
  table.softmax_grad_row[1] = &softmax_grad_row<true>;
  table.softmax_grad_columns = &softmax_grad_columns;
  table.rms_norm_row = &rms_norm_row;
  table.layer_norm_grad_row = &layer_norm_grad_row;
  table.add_moments = &add_moments;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(NormLoops);
