// Inner loops over contiguous f32 data, compiled once per instruction set and chosen at run time.
//
// Knows: pointers, counts, maths. Must not know: tensors, threads, operators' attributes beyond two scalars.
// The sources of this directory (except simd.cpp) are compiled several times with other flags and another
// value of RT_SIMD_ISA; they therefore use nothing inline from the standard library, because the linker keeps
// only one copy of such a function and it might be the one with instructions that this machine lacks.
#pragma once

#include <cstdint>

namespace librt::cpu {

struct RecurrentLoops;

/// y = f(x). alpha and beta are the operator's attributes: LeakyRelu and Elu slope; HardSigmoid slope and
/// offset; Clip minimum and maximum.
enum class UnaryFunction : uint8_t {
  Abs,
  Neg,
  Exp,
  Log,
  Sqrt,
  Reciprocal,
  Sin,
  Cos,
  Tanh,
  Sigmoid,
  Relu,
  Erf,
  Floor,
  Ceil,
  Round,
  Sign,
  Softplus,
  LeakyRelu,
  Elu,
  HardSigmoid,
  HardSwish,
  Clip,
  Gelu,
  GeluTanh,
  Silu,
  Atan,
  Count
};
enum class BinaryFunction : uint8_t { Add, Sub, Mul, Div, Pow, Minimum, Maximum, Mod, ModTruncated, Count };
enum class CompareFunction : uint8_t { Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Count };
enum class ReduceFunction : uint8_t { Sum, Max, Min, Prod, Count };

/// Which operands of a two-operand loop advance: both, only a (b is a scalar), only b.
enum class Advance : uint8_t { Both = 0, First = 1, Second = 2 };

/// The integer types of quantized values.
enum class IntegerCode : uint8_t { I8, U8, I16, U16, I32, Count };

/// The element types of scans; signed integers use the unsigned ones, whose sums have the same bits.
enum class ScanCode : uint8_t { F32, F64, U32, U64, Count };

/// The parameters of a float format of few bits.
struct FloatFormat {
  int mantissa;  ///< fraction bits
  int exponent;  ///< least exponent of a normal number
  float largest;
  float beyond;  ///< result for larger magnitudes
  float nan;     ///< result for NaN
  bool minus_zero;
};

/// a factor_a + b factor_b + offset, within [low, high].
struct QuantizedSum {
  float factor_a, factor_b, offset, low, high;
};

/// y [rows,n] = x [rows,k] times the transposed weight [n,k] of 8 or 4 bits, in groups along k with a scale
/// each.
struct WeightMatmul {
  const float* x;  ///< for 4 bits: the even elements of each row, then the odd ones
  const uint8_t* weight;
  const float* scale;
  float* y;
  int64_t rows, n, k, group;
};

/// A row of k values quantized to 16 bits, q scale with q = 256 high + low, and a scale for each 32 of them.
/// The even elements of the row are stored apart from the odd ones.
struct SplitRow {
  int8_t *high[2], *low[2];  ///< even, odd: [k/2]
  int32_t* start;            ///< [k/8]: -8 times the sum of eight q, since weights -8..7 are stored as 0..15
  float* scale;              ///< [k/8]
  static constexpr int64_t kBytes = 3;  ///< per element
};

/// Optimizer steps; the formulas are in schema/ops.fbs. LambDirection computes r, into new_p.
enum class StepFunction : uint8_t { Sgd, Adam, RmsProp, Adagrad, Adadelta, LambDirection, Lion, Count };
struct StepParameters {
  float learning_rate, gradient_scale, weight_decay, epsilon;
  float beta1, beta2;              ///< beta1 (or momentum) of the first state; beta2 of the second
  float correction1, correction2;  ///< 1 / (1 - beta^step)
  float momentum;                  ///< RmsProp
  float share;                     ///< Sgd: weight of the gradient in the new velocity
  bool variant;                    ///< Sgd: Nesterov; Adam: decoupled weight decay
};
/// Operands of a step; states that it does not need may be null. New values may be in place.
struct StepOperands {
  const float *p, *g, *states[3];
  float *new_p, *new_states[3];
};

struct WinogradLoops;  // simd/winograd.h
struct AttentionRows;  // simd/attention.h
struct AttentionGradRows;
struct AttentionGradKeys;

/// A result of this many bytes does not stay in the caches until it is read: non-temporal stores save reading
/// its lines first.
inline constexpr int64_t kPastCaches = int64_t{8} << 20;

struct Simd {
  const char* name;               ///< "avx512", "avx2", "baseline"
  const WinogradLoops* winograd;  ///< null where there are too few registers

  using Unary = void (*)(const float* x, float* y, int64_t n, float alpha, float beta);
  using Binary = void (*)(const float* a, const float* b, float* y, int64_t n);
  using Compare = void (*)(const float* a, const float* b, uint8_t* y, int64_t n);
  Unary unary[static_cast<int>(UnaryFunction::Count)];
  Binary binary[static_cast<int>(BinaryFunction::Count)][3];  ///< by Advance
  Compare compare[static_cast<int>(CompareFunction::Count)][3];

  /// The reduction of x[0..n); the neutral element for n = 0.
  float (*reduce_row[static_cast<int>(ReduceFunction::Count)])(const float* x, int64_t n);
  /// y[i] = y[i] op x[i]
  void (*accumulate[static_cast<int>(ReduceFunction::Count)])(float* y, const float* x, int64_t n);

  /// The position of the least [0] or largest [1] element, of equal ones the first [0] or the last [1]; the
  /// first NaN counts as either. 0 < n < 2^31.
  int64_t (*arg_row[2][2])(const float* x, int64_t n);
  /// The same down `extent` rows that are `stride` apart, for n <= kColumns neighbouring columns.
  void (*arg_columns[2][2])(const float* x, int64_t* y, int64_t extent, int64_t stride, int64_t n);

  /// A superset of the k largest (or least) elements of x, as (key << 32 | position) by position; returns its
  /// size. The least keys rank first; NaN is the largest value, -0 is 0. keys and entries have room for n; n
  /// < 2^32.
  int64_t (*top_candidates)(const float* x, int64_t n, int64_t k, bool largest, uint32_t* keys,
                            uint64_t* entries);

  /// y[i] = a sum (or product: [1]) of x[0..i], without x[i] if exclusive, or of x[i..n) if reverse. y may be
  /// x. Integers wrap.
  void (*scan_row[2][static_cast<int>(ScanCode::Count)])(const void* x, void* y, int64_t n, bool exclusive,
                                                         bool reverse);
  /// The same down `extent` rows that are `stride` apart, for any number n of neighbouring columns.
  void (*scan_columns[2][static_cast<int>(ScanCode::Count)])(const void* x, void* y, int64_t extent,
                                                             int64_t stride, int64_t n, bool exclusive,
                                                             bool reverse, bool past_caches);

  /// y = condition ? a : b for elements of 1, 2, 4, 8 bytes; a and b advance or are one element each.
  void (*select[4])(const uint8_t* condition, const void* a, const void* b, void* y, int64_t n,
                    bool a_advances, bool b_advances);

  /// y[i] = sum over k < count of weight[k] x[k][i]
  void (*weighted_sum)(const float* const* x, const float* weight, int64_t count, float* y, int64_t n);
  /// y = y + a x
  void (*axpy)(float* y, const float* x, float a, int64_t n);
  /// y = a x
  void (*scale)(float* y, const float* x, float a, int64_t n);
  /// y[i] = x[i] scale[i] + shift[i]
  void (*scale_shift)(const float* x, float* y, const float* scale, const float* shift, int64_t n);
  /// Adds x [rows, n] to the statistics count, mean and squares (the sum of squares around the mean), column
  /// by column.
  void (*add_moments)(const float* x, int64_t rows, int64_t n, float* count, float* mean, float* squares);
  /// sum_g[i] += g[i]; sum_gx[i] += g[i] (x[i] - mean[i])
  void (*accumulate_products)(float* sum_g, float* sum_gx, const float* g, const float* x, const float* mean,
                              int64_t n);
  /// y[i] = a[i] g[i] + b[i] x[i] + c[i]
  void (*combine)(float* y, const float* g, const float* x, const float* a, const float* b, const float* c,
                  int64_t n);

  /// y[j] = sum over i of a[i] b[i * stride + j], j < n, i < k.
  void (*vector_matrix)(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n);
  /// y[j] = sum over i of b[j * stride + i] a[i].
  void (*matrix_vector)(const float* b, int64_t stride, const float* a, float* y, int64_t n, int64_t k);

  /// y = exp(x - max) / sum, or its logarithm.
  void (*softmax_row)(const float* x, float* y, int64_t n, bool logarithm);
  /// The same (its logarithm: [1]) down `extent` rows that are `stride` apart, for n <= kColumns neighbouring
  /// columns. y may be x. copy: null, or a buffer for them all, where they fit into the caches. past_caches:
  /// y is too large for them.
  void (*softmax_columns[2])(const float* x, float* y, int64_t extent, int64_t stride, int64_t n, float* copy,
                             bool past_caches);
  /// y = (x - mean) / sqrt(variance + epsilon) [scale] [+ bias]; scale and bias may be null.
  void (*layer_norm_row)(const float* x, float* y, int64_t n, const float* scale, const float* bias,
                         float epsilon);

  void (*f16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_f16)(const float* x, uint16_t* y, int64_t n);
  void (*bf16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_bf16)(const float* x, uint16_t* y, int64_t n);
  /// Toward zero, saturated, NaN to 0.
  void (*f32_to_i8)(const float* x, int8_t* y, int64_t n);
  void (*f32_to_u8)(const float* x, uint8_t* y, int64_t n);
  void (*f32_to_i16)(const float* x, int16_t* y, int64_t n);
  void (*f32_to_u16)(const float* x, uint16_t* y, int64_t n);

  /// y = saturate(round(x / scale) + zero), of f32 and of i32 accumulators; no I32 result. zero may be null;
  /// with `each`, scale, inverse and zero advance with x. inverse: 1 / scale, all of them normal floats, or
  /// null.
  using Quantize = void (*)(const void* x, const float* scale, const float* inverse, const void* zero,
                            void* y, int64_t n, bool each);
  Quantize quantize[static_cast<int>(IntegerCode::Count)];
  Quantize quantize_sums[static_cast<int>(IntegerCode::Count)];
  /// x = (y - zero) scale
  void (*dequantize[static_cast<int>(IntegerCode::Count)])(const void* x, const float* scale,
                                                           const void* zero, float* y, int64_t n, bool each);
  void (*narrow_float)(const float* x, float* y, int64_t n, const FloatFormat& format);

  // Of 8-bit integers, [0] signed and [1] unsigned; sums wrap in 32 bits.
  int32_t (*sum_row[2])(const void* x, int64_t n);
  /// y += factor x
  void (*multiply_add[2])(int32_t* y, const void* x, int32_t factor, int64_t n);
  /// The sum of (x - x_zero) (w - w_zero), by the types of x and of w.
  int32_t (*dot[2][2])(const void* x, const void* w, int32_t x_zero, int32_t w_zero, int64_t n);
  /// y += factor_a a + factor_b b
  void (*combine_integers)(int32_t* y, const int32_t* a, int32_t factor_a, const int32_t* b, int32_t factor_b,
                           int64_t n);
  /// y = x - 128
  void (*flip_signs)(const uint8_t* x, int8_t* y, int64_t n);

  /// y = round(a factor_a + b factor_b + offset) within [low, high]; by the types of a, b and y.
  void (*add_quantized[2][2][2])(const void* a, const void* b, void* y, int64_t n, const QuantizedSum& sum);
  /// y = max(y, x)
  void (*quantized_max[2])(void* y, const void* x, int64_t n);
  /// Columns [begin, end), of weights of 8 and of 4 bits.
  void (*weight_matmul[2])(const WeightMatmul& matmul, int64_t begin, int64_t end);
  /// y [n,k]: the weights of columns [begin, end) in f32.
  void (*widen_weights[2])(const WeightMatmul& matmul, float* y, int64_t begin, int64_t end);
  /// One row with 4-bit weights where k is a multiple of 128 and the group is 32, 64 or such a multiple: x,
  /// as WeightMatmul has it, is split first. Null where the CPU has no 8-bit dot products (VNNI).
  void (*split_row)(const float* x, int64_t k, const SplitRow& row);
  void (*weight_row)(const WeightMatmul& matmul, const SplitRow& row, float* y, int64_t begin, int64_t end);
  /// y[i] = table[x[i]], of 256 elements of 1, 2, 4, 8 bytes.
  void (*look_up[4])(const uint8_t* x, const void* table, void* y, int64_t n);
  /// The largest |x[i]|, NaN where one is NaN; 0 without any.
  float (*largest_magnitude)(const float* x, int64_t n);
  /// Quantizes x to how many of 255 ascending thresholds it reaches; keep_positive: at least 1 where x > 0.
  /// `tree` times the scale is the binary search tree of the thresholds: [1] is the root, the children of [k]
  /// are [2 k] for values that do not reach it and [2 k + 1] for those that do.
  void (*quantize_block)(const float* x, const float* tree, float scale, uint8_t* codes, int64_t n,
                         bool keep_positive);
  /// y = codebook[code] scale, with a codebook of 256 values
  void (*dequantize_block)(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n);

  /// Elements [begin, end) of an optimizer step.
  void (*optimizer_step[static_cast<int>(StepFunction::Count)])(const StepOperands& operands, int64_t begin,
                                                                int64_t end, const StepParameters& numbers);

  /// y[j * y_stride + i] = x[i * x_stride + j] for i < rows, j < columns, of elements of 1, 2, 4, 8 bytes.
  /// past_caches: y is too large for them and is written with non-temporal stores.
  void (*transpose[4])(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows,
                       int64_t columns, bool past_caches);
  /// Copies with non-temporal stores. Other threads may read y after finish_streams().
  void (*stream_copy)(const void* x, void* y, int64_t bytes);
  void (*finish_streams)();

  /// y[o width + c] = a sum [0] or the maximum [1] over k < taps of x[(o stride + k dilation) width + c], o <
  /// n; taps > 0. A NaN is the maximum.
  void (*pool_row[2])(const float* x, float* y, int64_t n, int64_t width, int64_t stride, int64_t taps,
                      int64_t dilation);
  /// grad[offsets[k] + i] += g[i] for the first k < count where x[offsets[k] + i] is largest; a NaN is.
  void (*max_gradient)(const float* x, const float* g, float* grad, const int64_t* offsets, int64_t count,
                       int64_t n);
  /// y[i] = sum over t < taps of weight[t n + i] x[index[t n + i]]; terms of weight 0 are skipped, also for
  /// NaN.
  void (*resize_row)(const float* x, const int32_t* index, const float* weight, int64_t taps, float* y,
                     int64_t n);

  /// The 4 kRandomBlocks values of Philox blocks index.. : uniform in [0, 1), or normal [1].
  void (*random[2])(uint64_t seed, uint64_t counter, uint64_t index, float* y);

  const RecurrentLoops* recurrent;  ///< recurrent.h
  void (*attention)(const AttentionRows& task);
  void (*attention_grad_rows)(const AttentionGradRows& task);
  void (*attention_grad_keys)(const AttentionGradKeys& task);

  static constexpr int64_t kColumns = 128;
  static constexpr int kRandomBlocks = 16;
};

/// The widest instruction set that this machine runs. RT_CPU_ISA=baseline|avx2|avx512 in the environment
/// selects a narrower one.
const Simd& best_simd() noexcept;
/// Every instruction set that this machine runs, widest first, for tests.
int available_simd(const Simd* (&sets)[3]) noexcept;

}  // namespace librt::cpu
