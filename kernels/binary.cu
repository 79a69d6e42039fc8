// Elementwise functions of two operands with broadcasting. One thread per group of adjacent results: 16 bytes
// of them where every operand is dense or repeated along the last axis, else one. f16 and bf16 are computed
// in f32.
//
// Integer division and modulo by zero give 0, and minimum / -1 wraps; sums, differences, products and powers
// wrap.
#include "kernels/binary.h"

#include "kernels/binary_functions.cuh"
#include "kernels/index_space.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

/// base^exponent modulo 2^64; a negative exponent gives 1 / base^n toward zero.
template <class T>
RT_DEVICE T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return T{1};
      if (base == -1) return (exponent & 1) != 0 ? static_cast<T>(-1) : T{1};
      return T{0};
    }
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <class T>
RT_DEVICE T integer_quotient(BinaryFunction function, T a, T b) {
  if (b == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>)
    if (b == static_cast<T>(-1))
      return function == BinaryFunction::Div ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a)) : T{0};
  if (function == BinaryFunction::Div) return static_cast<T>(a / b);
  const T rest = static_cast<T>(a % b);
  if (function == BinaryFunction::ModTruncated) return rest;
  return rest != T{0} && ((rest < T{0}) != (b < T{0})) ? static_cast<T>(rest + b) : rest;
}

template <class T>
RT_DEVICE T integer_value(BinaryFunction function, T a, T b) {
  const uint64_t wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
  constexpr uint64_t kBits = 8 * sizeof(T);
  switch (function) {
    case BinaryFunction::Add: return static_cast<T>(wide_a + wide_b);
    case BinaryFunction::Sub: return static_cast<T>(wide_a - wide_b);
    case BinaryFunction::Mul: return static_cast<T>(wide_a * wide_b);
    case BinaryFunction::Pow: return integer_power(a, b);
    case BinaryFunction::Minimum: return a < b ? a : b;
    case BinaryFunction::Maximum: return a > b ? a : b;
    case BinaryFunction::And: return static_cast<T>(a != T{0} && b != T{0} ? 1 : 0);
    case BinaryFunction::Or: return static_cast<T>(a != T{0} || b != T{0} ? 1 : 0);
    case BinaryFunction::Xor: return static_cast<T>((a != T{0}) != (b != T{0}) ? 1 : 0);
    case BinaryFunction::BitwiseAnd: return static_cast<T>(a & b);
    case BinaryFunction::BitwiseOr: return static_cast<T>(a | b);
    case BinaryFunction::BitwiseXor: return static_cast<T>(a ^ b);
    case BinaryFunction::ShiftLeft: return wide_b < kBits ? static_cast<T>(wide_a << wide_b) : T{0};
    case BinaryFunction::ShiftRight:
      if (wide_b < kBits) return static_cast<T>(a >> wide_b);
      return a < T{0} ? static_cast<T>(-1) : T{0};
    default: return integer_quotient(function, a, b);
  }
}

struct Arithmetic {
  BinaryFunction function;
  template <class T>
  RT_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return integer_value(function, a, b);
    else
      return narrow<T>(float_value(function, widen(a), widen(b)));
  }
};

struct Comparison {
  CompareFunction function;
  template <class T>
  RT_DEVICE Boolean operator()(T stored_a, T stored_b) const {
    const auto a = widen(stored_a), b = widen(stored_b);
    return Boolean{static_cast<uint8_t>(holds(function, a, b) ? 1 : 0)};
  }
};

/// The `left` remaining elements starting at `from`, or the first one repeated.
template <int kWidth, class T>
RT_DEVICE Packed<T, kWidth> load_group(const T* from, int64_t left, bool repeated) {
  if (!repeated) return load_packed_before<kWidth>(from, 0, left);
  Vector<T, kWidth> vector;
  for (int i = 0; i < kWidth; ++i) vector[i] = *from;
  return packed(vector);
}

template <int kWidth, class T, class Y, class Operation>
__global__ void __launch_bounds__(kElementwiseThreads)
    binary_kernel(Operation operation, IndexSpace<2> space, const T* a, const T* b, Y* y, int64_t count) {
  const int64_t group = global_index(), first = group * kWidth;
  if (first >= count) return;
  const auto offsets = offsets_of(space, group);
  const int last = space.rank - 1;
  const int64_t left = count - first;
  const auto packed_a = load_group<kWidth>(a + offsets[0], left, space.strides[0][last] == 0);
  const auto packed_b = load_group<kWidth>(b + offsets[1], left, space.strides[1][last] == 0);
  const auto from_a = unpacked<T, kWidth>(packed_a), from_b = unpacked<T, kWidth>(packed_b);
  Vector<Y, kWidth> result;
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) result[i] = operation(from_a[i], from_b[i]);
  store_before(y + first, result, 0, left);
}

template <class T, class Y, class Operation>
cudaError_t launch_binary(Operation operation, const BroadcastArguments& x, cudaStream_t stream) {
  const auto config = launch_each(ceil_div(x.count, x.width), stream);
  const auto* a = static_cast<const T*>(x.a);
  const auto* b = static_cast<const T*>(x.b);
  auto* y = static_cast<Y*>(x.y);
  if (x.width == 1)
    return launch(binary_kernel<1, T, Y, Operation>, config, operation, x.space, a, b, y, x.count);
  return launch(binary_kernel<kVectorWidth<T>, T, Y, Operation>, config, operation, x.space, a, b, y,
                x.count);
}

template <int kWidth, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    where_kernel(IndexSpace<3> space, const uint8_t* condition, const T* a, const T* b, T* y, int64_t count) {
  const int64_t group = global_index(), first = group * kWidth;
  if (first >= count) return;
  const auto offsets = offsets_of(space, group);
  const int last = space.rank - 1;
  const int64_t left = count - first;
  const auto packed_condition = load_group<kWidth>(condition + offsets[0], left, space.strides[0][last] == 0);
  const auto packed_a = load_group<kWidth>(a + offsets[1], left, space.strides[1][last] == 0);
  const auto packed_b = load_group<kWidth>(b + offsets[2], left, space.strides[2][last] == 0);
  const auto chosen = unpacked<uint8_t, kWidth>(packed_condition);
  const auto from_a = unpacked<T, kWidth>(packed_a), from_b = unpacked<T, kWidth>(packed_b);
  Vector<T, kWidth> result;
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) result[i] = chosen[i] != 0 ? from_a[i] : from_b[i];
  store_before(y + first, result, 0, left);
}

}  // namespace

cudaError_t binary(BinaryFunction function, ElementType type, const BroadcastArguments& arguments,
                   cudaStream_t stream) {
  return with_number(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_binary<T, T>(Arithmetic{function}, arguments, stream);
  });
}

cudaError_t compare(CompareFunction function, ElementType type, const BroadcastArguments& arguments,
                    cudaStream_t stream) {
  return with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_binary<T, Boolean>(Comparison{function}, arguments, stream);
  });
}

cudaError_t where(const WhereArguments& x, cudaStream_t stream) {
  return with_size(x.element_bytes, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto config = launch_each(ceil_div(x.count, x.width), stream);
    const auto* condition = static_cast<const uint8_t*>(x.condition);
    const auto* a = static_cast<const T*>(x.a);
    const auto* b = static_cast<const T*>(x.b);
    auto* y = static_cast<T*>(x.y);
    if (x.width == 1) return launch(where_kernel<1, T>, config, x.space, condition, a, b, y, x.count);
    return launch(where_kernel<kVectorWidth<T>, T>, config, x.space, condition, a, b, y, x.count);
  });
}

}  // namespace librt::cuda
