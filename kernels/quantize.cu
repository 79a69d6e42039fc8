#include "kernels/quantize.h"

#include "kernels/common.cuh"
#include "kernels/requantize.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kEach = 4;  // elements of a thread

template <class Index>
RT_DEVICE int64_t scale_at(const Scales& scales, Index i) {
  const Index extent = static_cast<Index>(scales.extent), inner = static_cast<Index>(scales.inner);
  const Index row = i / inner, outer = row / extent, at = row - outer * extent;
  return static_cast<int64_t>(outer) * scales.outer_stride +
         static_cast<int64_t>(at / static_cast<Index>(scales.block)) * scales.block_stride +
         static_cast<int64_t>(i - row * inner) * scales.inner_stride;
}
/// The scale index of element i of `count`. Divides only where there are several scales, in 32 bits where
/// that suffices.
RT_DEVICE int64_t scale_of(const Scales& scales, int64_t i, int64_t count) {
  if (scales.outer_stride == 0 && scales.block_stride == 0 && scales.inner_stride == 0) return 0;
  if (count <= 0xffffffffll) return scale_at(scales, static_cast<uint32_t>(i));
  return scale_at(scales, i);
}

template <class From, class Scale, class To>
__global__ void __launch_bounds__(kElementwiseThreads)
    quantize_each(const From* data, To* result, Scales scales, int64_t count) {
  const int64_t first = global_index() * kEach;
  if (first >= count) return;
  const auto from = load_before<kEach>(data, first, count);
  const auto* zero_point = static_cast<const To*>(scales.zero_point);
  Vector<To, kEach> to;
  RT_UNROLL
  for (int i = 0; i < kEach; ++i) {
    const int64_t at = scale_of(scales, min(first + i, count - 1), count);
    // The quotient is rounded to the scale's type.
    const float x = static_cast<float>(widen(from[i]));
    const float quotient = widen(narrow<Scale>(x / widen(static_cast<const Scale*>(scales.scale)[at])));
    const float whole = quotient != quotient ? 0.0f : rintf(quotient);
    const float zero = zero_point == nullptr ? 0.0f : static_cast<float>(zero_point[at]);
    to[i] = narrow<To>(whole + zero);
  }
  store_before(result, to, first, count);
}

template <class From, class Scale, class To>
__global__ void __launch_bounds__(kElementwiseThreads)
    dequantize_each(const From* data, To* result, Scales scales, int64_t count) {
  const int64_t first = global_index() * kEach;
  if (first >= count) return;
  const auto from = load_before<kEach>(data, first, count);
  const auto* zero_point = static_cast<const From*>(scales.zero_point);
  Vector<To, kEach> to;
  RT_UNROLL
  for (int i = 0; i < kEach; ++i) {
    const int64_t at = scale_of(scales, min(first + i, count - 1), count);
    const float scale = widen(static_cast<const Scale*>(scales.scale)[at]);
    if constexpr (sizeof(From) == 4) {  // more bits than a float holds
      const int64_t zero = zero_point == nullptr ? 0 : static_cast<int64_t>(zero_point[at]);
      const auto difference = static_cast<double>(static_cast<int64_t>(from[i]) - zero);
      to[i] = narrow<To>(static_cast<float>(difference * static_cast<double>(scale)));
    } else {
      const int zero = zero_point == nullptr ? 0 : static_cast<int>(zero_point[at]);
      to[i] = narrow<To>(static_cast<float>(static_cast<int>(from[i]) - zero) * scale);
    }
  }
  store_before(result, to, first, count);
}

template <class F>
cudaError_t with_code(ElementType type, F&& f) {
  switch (type) {
    case ElementType::I8: return f(TypeTag<int8_t>{});
    case ElementType::U8: return f(TypeTag<uint8_t>{});
    case ElementType::I16: return f(TypeTag<int16_t>{});
    case ElementType::U16: return f(TypeTag<uint16_t>{});
    default: return cudaErrorInvalidValue;
  }
}

__global__ void __launch_bounds__(kElementwiseThreads) requantize_each(RequantizeArguments a) {
  const int64_t i = global_index();
  if (i >= a.count) return;
  const int64_t channel =
      a.count <= 0xffffffffll ? static_cast<uint32_t>(i) % static_cast<uint32_t>(a.channels) : i % a.channels;
  store_requantized(a.requantization, a.result, i, a.sums[i], channel);
}

template <class T>
RT_DEVICE float zero_of(const QuantizedOperand& x) {
  return static_cast<float>(*static_cast<const T*>(x.zero));
}

/// The quantized sum of two dequantized values, step by step; NaN counts as 0.
template <class Y>
RT_DEVICE Y stepwise_sum(const QuantizedAddArguments& x, float a, float b, float y_zero) {
  const float real =
      activation_value<float>(x.activation.function, a * *x.a.scale + b * *x.b.scale,
                              static_cast<float>(x.activation.alpha), static_cast<float>(x.activation.beta));
  const float quotient = real / *x.y.scale;
  return narrow<Y>((quotient != quotient ? 0.0f : rintf(quotient)) + y_zero);
}

/// With factors a.scale / y.scale and b.scale / y.scale, an element takes two FMAs: the terms common to all
/// elements and the activation's limits are expressed in steps of y.
template <class A, class B, class Y>
__global__ void __launch_bounds__(kElementwiseThreads) add_quantized(QuantizedAddArguments x) {
  constexpr int kWidth = kVectorWidth<Y>;  // 16 bytes per operand
  const int64_t first = global_index() * kWidth;
  if (first >= x.count) return;
  const auto a = load_before<kWidth>(static_cast<const A*>(x.a.data), first, x.count);
  const auto b = load_before<kWidth>(static_cast<const B*>(x.b.data), first, x.count);
  const float y_scale = *x.y.scale, y_zero = zero_of<Y>(x.y);
  const float a_factor = *x.a.scale / y_scale, b_factor = *x.b.scale / y_scale;
  const float offset = y_zero - zero_of<A>(x.a) * a_factor - zero_of<B>(x.b) * b_factor;
  float low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max();
  if (x.activation.function == Function::Relu) low = fmaxf(low, y_zero);
  if (x.activation.function == Function::Clip) {
    const float least = static_cast<float>(x.activation.alpha) / y_scale + y_zero;
    const float most = static_cast<float>(x.activation.beta) / y_scale + y_zero;
    const float lowest = low;
    low = fminf(fmaxf(least, lowest), high);
    high = fminf(fmaxf(most, lowest), high);
  }
  // Not for scales with which a term is not finite.
  const bool stepwise = !(y_scale > 0) || !(fabsf(a_factor) < INFINITY) || !(fabsf(b_factor) < INFINITY) ||
                        !(fabsf(offset) < INFINITY);
  Vector<Y, kWidth> result;
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    if (stepwise) {
      result[i] = stepwise_sum<Y>(x, static_cast<float>(a[i]) - zero_of<A>(x.a),
                                  static_cast<float>(b[i]) - zero_of<B>(x.b), y_zero);
      continue;
    }
    const float sum =
        fmaf(static_cast<float>(a[i]), a_factor, fmaf(static_cast<float>(b[i]), b_factor, offset));
    result[i] = static_cast<Y>(__float2int_rn(fminf(fmaxf(sum, low), high)));
  }
  store_before(static_cast<Y*>(x.result), result, first, x.count);
}

template <class F>
cudaError_t with_byte(ElementType type, F&& f) {
  return type == ElementType::I8 ? f(TypeTag<int8_t>{}) : f(TypeTag<uint8_t>{});
}

/// One ulp is 2^(exponent of x - mantissa), at least that of the smallest normal.
__global__ void __launch_bounds__(kElementwiseThreads)
    narrow_each(const float* data, float* result, int64_t count, NarrowFormat format) {
  const int64_t i = global_index();
  if (i >= count) return;
  const float x = data[i];
  float y = x;
  if (x != x) {
    result[i] = format.nan ? x : -0.0f;
    return;
  }
  if (fabsf(x) < INFINITY && x != 0) {
    const int exponent = max(ilogbf(x), format.exponent);
    y = ldexpf(rintf(ldexpf(x, format.mantissa - exponent)), exponent - format.mantissa);
  }
  if (fabsf(y) > format.largest) y = copysignf(format.beyond, y);
  result[i] = y == 0 && !format.minus_zero ? 0.0f : y;
}

}  // namespace

cudaError_t quantize(const QuantizeArguments& arguments, cudaStream_t stream) {
  const LaunchConfig config = launch_each(ceil_div(arguments.count, kEach), stream);
  return with_code(arguments.to, [&](auto to_tag) {
    using To = typename decltype(to_tag)::type;
    const auto from = [&](auto from_tag, auto scale_tag) {
      using From = typename decltype(from_tag)::type;
      using Scale = typename decltype(scale_tag)::type;
      return launch(quantize_each<From, Scale, To>, config, static_cast<const From*>(arguments.data),
                    static_cast<To*>(arguments.result), arguments.scales, arguments.count);
    };
    if (arguments.from == ElementType::I32) return from(TypeTag<int32_t>{}, TypeTag<float>{});
    return with_float(arguments.from, [&](auto tag) { return from(tag, tag); });
  });
}

cudaError_t dequantize(const DequantizeArguments& arguments, cudaStream_t stream) {
  const LaunchConfig config = launch_each(ceil_div(arguments.count, kEach), stream);
  const auto from = [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return with_float(arguments.scale, [&](auto scale_tag) {
      using Scale = typename decltype(scale_tag)::type;
      return with_float(arguments.to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        return launch(dequantize_each<From, Scale, To>, config, static_cast<const From*>(arguments.data),
                      static_cast<To*>(arguments.result), arguments.scales, arguments.count);
      });
    });
  };
  return arguments.from == ElementType::I32 ? from(TypeTag<int32_t>{}) : with_code(arguments.from, from);
}

cudaError_t requantize(const RequantizeArguments& arguments, cudaStream_t stream) {
  return launch(requantize_each, launch_each(arguments.count, stream), arguments);
}

cudaError_t quantized_add(const QuantizedAddArguments& x, cudaStream_t stream) {
  const LaunchConfig config = launch_each(ceil_div(x.count, kVectorWidth<uint8_t>), stream);
  return with_byte(x.a.type, [&](auto a) {
    return with_byte(x.b.type, [&](auto b) {
      return with_byte(x.y.type, [&](auto y) {
        return launch(
            add_quantized<typename decltype(a)::type, typename decltype(b)::type, typename decltype(y)::type>,
            config, x);
      });
    });
  });
}

cudaError_t narrow_float(const float* data, float* result, int64_t count, const NarrowFormat& format,
                         cudaStream_t stream) {
  return launch(narrow_each, launch_each(count, stream), data, result, count, format);
}

}  // namespace librt::cuda
