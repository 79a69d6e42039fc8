#include "backends/cpu/simd/recurrent.h"

#include "backends/cpu/simd/functions.h"
#include "backends/cpu/simd/loops.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

constexpr int kUnits = static_cast<int>(RecurrentLoops::kUnits);

// --- GEMM
// -----------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
constexpr int kLanes = 16, kMostRows = 6, kMostGroups = 4;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kMostRows = 4, kMostGroups = 1;
#else
constexpr int kLanes = 4, kMostRows = 2, kMostGroups = 1;
#endif
constexpr int kStepsAhead = 16;
using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

RT_INLINE Vector load(const float* x) {
  return *reinterpret_cast<const Vector*>(x);
}
RT_INLINE void add_to(float* y, Vector x) {
  *reinterpret_cast<Vector*>(y) += x;
}

/// Accumulators stay in registers; kUnroll sets of them where one set would be bound by FMA latency. Each
/// step prefetches one line of what comes next, at `ahead`; a single row passes b so fast that it prefetches
/// b itself.
template <int kVectors, int kRows, int kUnroll>
void tile(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
          int64_t y_stride, const float* ahead) {
  Vector sum[kUnroll][kRows][kVectors] = {};
  const auto step = [&](int64_t n, int set) __attribute__((always_inline)) {
    Vector from_b[kVectors];
    if constexpr (kRows == 1) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; v += kUnits / kLanes)
        __builtin_prefetch(b + (n + kStepsAhead) * b_stride + v * kLanes);
    } else {
      __builtin_prefetch(ahead + n * kUnits);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) from_b[v] = load(b + n * b_stride + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[set][i][v] += a[i * a_stride + n] * from_b[v];
  };
  int64_t n = 0;
  for (; n + kUnroll <= k; n += kUnroll)
#pragma GCC unroll 8
    for (int u = 0; u < kUnroll; ++u) step(n + u, u);
  for (; n < k; ++n) step(n, 0);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
      for (int u = 1; u < kUnroll; ++u) sum[0][i][v] += sum[u][i][v];
      add_to(y + i * y_stride + v * kLanes, sum[0][i][v]);
    }
}

template <int kGroups, int kRows>
void tile_of(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
             int64_t y_stride, const float* ahead) {
  constexpr int kVectors = kGroups * kUnits / kLanes;
  constexpr int kUnroll = kVectors * kRows >= 8 ? 1 : kVectors * kRows >= 3 ? 2 : 4;
  tile<kVectors, kRows, kUnroll>(a, a_stride, b, b_stride, k, y, y_stride, ahead);
}

/// Tiles of at most kMostRows rows, the last two of about the same height: each reads all of b, so that 4 and
/// 4 rows are faster than 6 and 2.
int64_t tile_rows(int64_t left) {
  if (left <= kMostRows) return left;
  return left >= 2 * kMostRows ? kMostRows : (left + 1) / 2;
}

constexpr int at_most(int rows) {
  return rows < kMostRows ? rows : kMostRows;
}

template <int kGroups>
void product_of(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
                int64_t y_stride, int64_t rows) {
  static constexpr decltype(&tile_of<kGroups, 1>) kTiles[] = {
      &tile_of<kGroups, 1>,          &tile_of<kGroups, 2>,          &tile_of<kGroups, at_most(3)>,
      &tile_of<kGroups, at_most(4)>, &tile_of<kGroups, at_most(5)>, &tile_of<kGroups, at_most(6)>};
  static_assert(kMostRows <= 6);
  const float* ahead = b + k * b_stride;  // the next part or panel follows this one
  for (int64_t row = 0; row < rows; ahead += k * kUnits) {
    const int64_t now = tile_rows(rows - row);
    kTiles[now - 1](a + row * a_stride, a_stride, b, b_stride, k, y + row * y_stride, y_stride, ahead);
    row += now;
  }
}

void matmul_part(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
                 int64_t y_stride, int64_t rows, int64_t groups) {
  while (groups > 0) {
    const int64_t now = groups < kMostGroups ? groups : kMostGroups;
    if (now == 1) product_of<1>(a, a_stride, b, b_stride, k, y, y_stride, rows);
    if constexpr (kMostGroups > 1) {
      if (now == 2) product_of<2>(a, a_stride, b, b_stride, k, y, y_stride, rows);
      if (now == 3) product_of<3>(a, a_stride, b, b_stride, k, y, y_stride, rows);
      if (now == 4) product_of<4>(a, a_stride, b, b_stride, k, y, y_stride, rows);
    }
    b += now * kUnits;
    y += now * kUnits;
    groups -= now;
  }
}

/// Several tiles of rows reuse a part of b that stays in L1.
void matmul(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
            int64_t y_stride, int64_t rows, int64_t groups) {
  constexpr int64_t kPart = 96;
  if (rows <= kMostRows || k <= kPart + kPart / 2)
    return matmul_part(a, a_stride, b, b_stride, k, y, y_stride, rows, groups);
  for (int64_t n = 0; n < k; n += kPart)
    matmul_part(a + n, a_stride, b + n * b_stride, b_stride, k - n < kPart ? k - n : kPart, y, y_stride, rows,
                groups);
}

// --- cells
// -----------------------------------------------------------------------------------------------

RT_INLINE float bounded(float x, float bound) {
  const float raised = pick(x < -bound, -bound, x);
  return pick(raised > bound, bound, raised);
}

template <Function kFunction>
RT_INLINE void apply(const FunctionCall& call, float bound, const float* in, float* out, int64_t n) {
  const float alpha = call.alpha, beta = call.beta;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = function_value<kFunction>(bounded(in[i], bound), alpha, beta);
}

/// Any activation, after clipping.
void apply(const FunctionCall& call, float clip, const float* in, float* out, int64_t n) {
  const float bound = clip > 0.0f ? clip : __builtin_inff();
  switch (call.function) {
#define RT_APPLY(Name) \
  case Function::Name: return apply<Function::Name>(call, bound, in, out, n)
    RT_APPLY(Relu);
    RT_APPLY(Tanh);
    RT_APPLY(Sigmoid);
    RT_APPLY(Affine);
    RT_APPLY(LeakyRelu);
    RT_APPLY(ThresholdedRelu);
    RT_APPLY(ScaledTanh);
    RT_APPLY(HardSigmoid);
    RT_APPLY(Elu);
    RT_APPLY(Softsign);
    RT_APPLY(Softplus);
#undef RT_APPLY
    default: break;
  }
}

/// A gate's peephole term of the cell's state c: 0 without peepholes, even where c is infinite.
inline float peephole_term(bool any, float peephole, float c) {
  return pick(any, peephole * c, 0.0f);
}

/// kPeepholes stands for CellParameters::peepholes: a choice between values inside of the loop keeps it from
/// being vectorized.
template <bool kPeepholes>
void lstm_plain(const CellBlock& block, const float* peepholes, float* c, float* h) {
  float *i_gate = block.pre, *o_gate = i_gate + block.stride, *f_gate = o_gate + block.stride,
        *g_gate = f_gate + block.stride;
  const auto term = [&](int gate, int j, float state) __attribute__((always_inline)) {
    return kPeepholes ? peepholes[gate * kUnits + j] * state : 0.0f;
  };
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) {
    const float i = sigmoid(i_gate[j] + term(0, j, c[j]));
    const float f = sigmoid(f_gate[j] + term(2, j, c[j]));
    const float g = tanh(g_gate[j]);
    const float now = f * c[j] + i * g;
    const float o = sigmoid(o_gate[j] + term(1, j, now));
    i_gate[j] = i;
    o_gate[j] = o;
    f_gate[j] = f;
    g_gate[j] = g;
    c[j] = now;
    h[j] = o * tanh(now);
  }
}

void lstm(const CellParameters& numbers, const CellBlock& block, const float* peepholes, float* c, float* h) {
  const bool any = numbers.peepholes;
  if (numbers.plain)
    return any ? lstm_plain<true>(block, peepholes, c, h) : lstm_plain<false>(block, peepholes, c, h);
  float *i_gate = block.pre, *o_gate = i_gate + block.stride, *f_gate = o_gate + block.stride,
        *g_gate = f_gate + block.stride;
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) {
    i_gate[j] += peephole_term(any, peepholes[j], c[j]);
    f_gate[j] += peephole_term(any, peepholes[2 * kUnits + j], c[j]);
  }
  apply(numbers.f, numbers.clip, i_gate, i_gate, kUnits);
  apply(numbers.f, numbers.clip, f_gate, f_gate, kUnits);
  apply(numbers.g, numbers.clip, g_gate, g_gate, kUnits);
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) {
    f_gate[j] = pick(numbers.input_forget, 1.0f - i_gate[j], f_gate[j]);
    c[j] = f_gate[j] * c[j] + i_gate[j] * g_gate[j];
    o_gate[j] += peephole_term(any, peepholes[kUnits + j], c[j]);
  }
  apply(numbers.f, numbers.clip, o_gate, o_gate, kUnits);
  apply(numbers.h, numbers.clip, c, h, kUnits);
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) h[j] *= o_gate[j];
}

void gru_gates(const CellParameters& numbers, const CellBlock& block, const float* h, float* reset) {
  float *z = block.pre, *r = block.pre + block.stride;
  if (numbers.plain) {
#pragma omp simd
    for (int j = 0; j < kUnits; ++j) {
      z[j] = sigmoid(z[j]);
      r[j] = sigmoid(r[j]);
      reset[j] = r[j] * h[j];
    }
    return;
  }
  apply(numbers.f, numbers.clip, z, z, kUnits);
  apply(numbers.f, numbers.clip, r, r, kUnits);
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) reset[j] = r[j] * h[j];
}

void gru(const CellParameters& numbers, const CellBlock& block, const float* recurrent, const float* h,
         float* y) {
  float *z = block.pre, *r = block.pre + block.stride, *gate = r + block.stride;
  if (recurrent != nullptr) {
#pragma omp simd
    for (int j = 0; j < kUnits; ++j) gate[j] += r[j] * recurrent[j];
  }
  if (numbers.plain) {
#pragma omp simd
    for (int j = 0; j < kUnits; ++j) gate[j] = tanh(gate[j]);
  } else {
    apply(numbers.g, numbers.clip, gate, gate, kUnits);
  }
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) y[j] = (1.0f - z[j]) * gate[j] + z[j] * h[j];
}

void rnn(const CellParameters& numbers, const float* pre, float* h, int64_t n) {
  apply(numbers.f, numbers.clip, pre, h, n);
}

// --- backwards
// -----------------------------------------------------------------------------------------------

/// f'(x), where y is f(x); 0 beyond the clip bound.
void apply_slope(const FunctionCall& call, float clip, const float* in, const float* values, float* out,
                 int64_t n) {
  const float bound = clip > 0.0f ? clip : __builtin_inff(), alpha = call.alpha, beta = call.beta;
#define RT_SLOPE(expression)                                \
  _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {     \
    const float x = in[i];                                  \
    [[maybe_unused]] const float y = values[i];             \
    out[i] = pick(absolute(x) > bound, 0.0f, (expression)); \
  }                                                         \
  return
  switch (call.function) {
    case Function::Relu: RT_SLOPE(pick(x > 0.0f, 1.0f, 0.0f));
    case Function::Tanh: RT_SLOPE(1.0f - y * y);
    case Function::Sigmoid: RT_SLOPE(y * (1.0f - y));
    case Function::Affine: RT_SLOPE(alpha);
    case Function::LeakyRelu: RT_SLOPE(pick(x < 0.0f, alpha, 1.0f));
    case Function::ThresholdedRelu: RT_SLOPE(pick(x > alpha, 1.0f, 0.0f));
    case Function::ScaledTanh: RT_SLOPE(alpha * beta * (1.0f - tanh(beta * x) * tanh(beta * x)));
    case Function::HardSigmoid: RT_SLOPE(pick((y > 0.0f) & (y < 1.0f), alpha, 0.0f));
    case Function::Elu: RT_SLOPE(pick(x < 0.0f, y + alpha, 1.0f));
    case Function::Softsign: RT_SLOPE(1.0f / ((1.0f + absolute(x)) * (1.0f + absolute(x))));
    case Function::Softplus: RT_SLOPE(sigmoid(x));
    default: break;
  }
#undef RT_SLOPE
}

/// A gate's pre-activation, value and derivative.
struct Gate {
  float x[kUnits], y[kUnits], slope[kUnits];

  void set(const FunctionCall& call, float clip, const float* pre, const float* peephole, const float* c) {
#pragma omp simd
    for (int j = 0; j < kUnits; ++j) x[j] = pre[j] + peephole[j] * c[j];
    finish(call, clip);
  }
  void set(const FunctionCall& call, float clip, const float* pre) {
#pragma omp simd
    for (int j = 0; j < kUnits; ++j) x[j] = pre[j];
    finish(call, clip);
  }
  void finish(const FunctionCall& call, float clip) {
    apply(call, clip, x, y, kUnits);
    apply_slope(call, clip, x, y, slope, kUnits);
  }
};

void lstm_state(const CellParameters& numbers, const CellBack& block, const float* peepholes, float* c) {
  float pre[4 * kUnits], h[kUnits];
  for (int q = 0; q < 4; ++q)
    for (int j = 0; j < kUnits; ++j) pre[q * kUnits + j] = block.pre[q * kUnits + j];
  lstm(numbers, {pre, kUnits}, peepholes, c, h);
}

template <bool kCoupled>
void lstm_back_of(const CellParameters& numbers, const CellBack& block, const float* peepholes,
                  const float* c, float* grad_c, float* grad_peepholes) {
  Gate i, o, f, g, state;
  i.set(numbers.f, numbers.clip, block.pre, peepholes, block.before);
  o.set(numbers.f, numbers.clip, block.pre + kUnits, peepholes + kUnits, c);
  f.set(numbers.f, numbers.clip, block.pre + 2 * kUnits, peepholes + 2 * kUnits, block.before);
  g.set(numbers.g, numbers.clip, block.pre + 3 * kUnits);
  state.set(numbers.h, numbers.clip, c);
  float *grad_i = block.grad, *grad_o = grad_i + block.stride, *grad_f = grad_o + block.stride,
        *grad_g = grad_f + block.stride;
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) {
    const float before = block.before[j], forget = pick(kCoupled, 1.0f - i.y[j], f.y[j]);
    const float to_o = block.grad_h[j] * state.y[j] * o.slope[j];
    const float to_c = grad_c[j] + block.grad_h[j] * o.y[j] * state.slope[j] + to_o * peepholes[kUnits + j];
    const float to_i = to_c * pick(kCoupled, g.y[j] - before, g.y[j]) * i.slope[j];
    const float to_f = pick(kCoupled, 0.0f, to_c * before * f.slope[j]);
    grad_i[j] = to_i;
    grad_o[j] = to_o;
    grad_f[j] = to_f;
    grad_g[j] = to_c * i.y[j] * g.slope[j];
    grad_peepholes[j] += to_i * before;
    grad_peepholes[kUnits + j] += to_o * c[j];
    grad_peepholes[2 * kUnits + j] += to_f * before;
    grad_c[j] = to_c * forget + to_i * peepholes[j] + to_f * peepholes[2 * kUnits + j];
  }
}

void lstm_back(const CellParameters& numbers, const CellBack& block, const float* peepholes, const float* c,
               float* grad_c, float* grad_peepholes) {
  const auto back = numbers.input_forget ? &lstm_back_of<true> : &lstm_back_of<false>;
  back(numbers, block, peepholes, c, grad_c, grad_peepholes);
}

void gru_reset(const CellParameters& numbers, const float* pre, float* reset) {
  apply(numbers.f, numbers.clip, pre, reset, kUnits);
}

void gru_back(const CellParameters& numbers, const CellBack& block, const float* recurrent,
              const float* reset, float* grad_matmul) {
  Gate z, gate;
  float sum[kUnits];
#pragma omp simd
  for (int j = 0; j < kUnits; ++j)
    sum[j] = block.pre[2 * kUnits + j] + (recurrent == nullptr ? 0.0f : reset[j] * recurrent[j]);
  z.set(numbers.f, numbers.clip, block.pre);
  gate.set(numbers.g, numbers.clip, sum);
  float *grad_z = block.grad, *grad_gate = block.grad + 2 * block.stride;
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) {
    grad_z[j] = block.grad_h[j] * (block.before[j] - gate.y[j]) * z.slope[j];
    grad_gate[j] = block.grad_h[j] * (1.0f - z.y[j]) * gate.slope[j];
    grad_matmul[j] = grad_gate[j] * (recurrent == nullptr ? 1.0f : reset[j]);
    block.grad_h[j] *= z.y[j];
  }
}

template <bool kLinear>
void gru_reset_back_of(const CellParameters& numbers, const CellBack& block, const float* recurrent,
                       const float* reset, const float* through) {
  Gate r;
  r.set(numbers.f, numbers.clip, block.pre + kUnits);
  float *grad_r = block.grad + block.stride, *grad_gate = grad_r + block.stride;
#pragma omp simd
  for (int j = 0; j < kUnits; ++j) {
    const float to_r = kLinear ? grad_gate[j] * recurrent[j] : through[j] * block.before[j];
    grad_r[j] = to_r * r.slope[j];
    block.grad_h[j] += through[j] * (kLinear ? 1.0f : reset[j]);
  }
}

void gru_reset_back(const CellParameters& numbers, const CellBack& block, const float* recurrent,
                    const float* reset, const float* through) {
  const auto back = recurrent != nullptr ? &gru_reset_back_of<true> : &gru_reset_back_of<false>;
  back(numbers, block, recurrent, reset, through);
}

void rnn_back(const CellParameters& numbers, const float* pre, const float* grad_h, float* grad, int64_t n) {
  for (int64_t at = 0; at < n; at += kUnits) {
    Gate gate;
    gate.set(numbers.f, numbers.clip, pre + at);
#pragma omp simd
    for (int j = 0; j < kUnits; ++j) grad[at + j] = grad_h[at + j] * gate.slope[j];
  }
}

constexpr RecurrentLoops make_loops() {
  return {&matmul,    &lstm,     &gru_gates,      &gru,     &rnn, &lstm_state, &lstm_back,
          &gru_reset, &gru_back, &gru_reset_back, &rnn_back};
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(RecurrentLoops);
