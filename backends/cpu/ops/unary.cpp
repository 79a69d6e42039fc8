// Elementwise functions of one operand. f32 through the vector loops, 16-bit floats widened block by block,
// other dtypes with plain loops. The result may be in place.
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/unary.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/widen_blocks.h"

namespace librt::cpu {
namespace {

struct UnaryCall {
  UnaryFunction function;
  float alpha = 0, beta = 0;
  double exact_alpha = 0, exact_beta = 0;  ///< the attributes, for f64
};

template <UnaryFunction kFunction>
UnaryCall call_of(const NodeView& node) {
  UnaryCall call{kFunction};
  if constexpr (kFunction == UnaryFunction::LeakyRelu) {
    call.alpha = node.as<op::LeakyReluAttributes>().alpha;
  } else if constexpr (kFunction == UnaryFunction::Elu) {
    call.alpha = node.as<op::EluAttributes>().alpha;
  } else if constexpr (kFunction == UnaryFunction::HardSigmoid) {
    call.alpha = node.as<op::HardSigmoidAttributes>().alpha;
    call.beta = node.as<op::HardSigmoidAttributes>().beta;
  } else if constexpr (kFunction == UnaryFunction::Clip) {
    call.alpha = node.as<op::ClipAttributes>().minimum;
    call.beta = node.as<op::ClipAttributes>().maximum;
  } else if constexpr (kFunction == UnaryFunction::Gelu) {
    if (node.as<op::GeluAttributes>().tanh_approximation) call.function = UnaryFunction::GeluTanh;
  }
  call.exact_alpha = static_cast<double>(call.alpha);
  call.exact_beta = static_cast<double>(call.beta);
  if constexpr (kFunction == UnaryFunction::Clip) {  // f32's largest value means no limit
    constexpr float kMost = std::numeric_limits<float>::max();
    if (call.alpha == -kMost) call.exact_alpha = -std::numeric_limits<double>::infinity();
    if (call.beta == kMost) call.exact_beta = std::numeric_limits<double>::infinity();
  }
  return call;
}

double exact(const UnaryCall& call, double x) noexcept {
  const double a = call.exact_alpha, b = call.exact_beta;
  switch (call.function) {
    case UnaryFunction::Abs: return std::fabs(x);
    case UnaryFunction::Neg: return -x;
    case UnaryFunction::Exp: return std::exp(x);
    case UnaryFunction::Log: return std::log(x);
    case UnaryFunction::Sqrt: return std::sqrt(x);
    case UnaryFunction::Reciprocal: return 1 / x;
    case UnaryFunction::Sin: return std::sin(x);
    case UnaryFunction::Cos: return std::cos(x);
    case UnaryFunction::Tanh: return std::tanh(x);
    case UnaryFunction::Sigmoid: return 1 / (1 + std::exp(-x));
    case UnaryFunction::Relu: return x < 0 ? 0 : x;
    case UnaryFunction::Erf: return std::erf(x);
    case UnaryFunction::Floor: return std::floor(x);
    case UnaryFunction::Ceil: return std::ceil(x);
    case UnaryFunction::Round: return std::nearbyint(x);
    case UnaryFunction::Sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case UnaryFunction::Softplus: return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
    case UnaryFunction::LeakyRelu: return x < 0 ? a * x : x;
    case UnaryFunction::Elu: return x < 0 ? a * std::expm1(x) : x;
    case UnaryFunction::HardSigmoid: return std::fmax(0, std::fmin(1, a * x + b));
    case UnaryFunction::HardSwish: return x * std::fmax(0, std::fmin(1, x / 6 + 0.5));
    case UnaryFunction::Clip: return x < a ? (a < b ? a : b) : x > b ? b : x;
    case UnaryFunction::Gelu: return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
    case UnaryFunction::GeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case UnaryFunction::Silu: return x / (1 + std::exp(-x));
    case UnaryFunction::Atan: return std::atan(x);
    case UnaryFunction::Count: break;
  }
  return x;
}

/// The functions defined for integers: Abs, Neg, Relu, Sign, Clip; rounding leaves them unchanged. Negation
/// wraps.
template <class T>
T integral(const UnaryCall& call, T x) noexcept {
  using Unsigned = std::make_unsigned_t<T>;
  const T negative = static_cast<T>(static_cast<Unsigned>(Unsigned{0} - static_cast<Unsigned>(x)));
  switch (call.function) {
    case UnaryFunction::Abs: return x < T{0} ? negative : x;
    case UnaryFunction::Neg: return negative;
    case UnaryFunction::Relu: return x < T{0} ? T{0} : x;
    case UnaryFunction::Sign: return x > T{0} ? T{1} : x < T{0} ? static_cast<T>(-1) : T{0};
    case UnaryFunction::Clip: {
      const T low = narrow<T>(std::ceil(call.exact_alpha)), high = narrow<T>(std::floor(call.exact_beta));
      const T raised = x < low ? low : x;
      return raised > high ? high : raised;
    }
    default: return x;
  }
}

/// Rough cost of one element in elementary operations, to decide whether threads pay.
int64_t work_of(UnaryFunction function) noexcept {
  switch (function) {
    case UnaryFunction::Abs:
    case UnaryFunction::Neg:
    case UnaryFunction::Relu:
    case UnaryFunction::Clip:
    case UnaryFunction::LeakyRelu: return 1;
    default: return 8;
  }
}

template <class T>
void native_loop(const UnaryCall& call, const std::byte* x, std::byte* y, int64_t n) {
  const auto* in = reinterpret_cast<const T*>(x);
  auto* out = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>)
      out[i] = integral<T>(call, in[i]);
    else
      out[i] = static_cast<T>(exact(call, static_cast<double>(in[i])));
  }
}

KernelPtr make_native(const UnaryCall& call, DType dtype, int64_t n) {
  using Loop = void (*)(const UnaryCall&, const std::byte*, std::byte*, int64_t);
  const Loop loop =
      with_number(dtype, [](auto tag) -> Loop { return &native_loop<typename decltype(tag)::type>; });
  const auto size = static_cast<int64_t>(size_of(dtype));
  return make_kernel(
      [=](const Call& operands) noexcept {
        parallel_for(n, 8, 64, [&](int64_t begin, int64_t end) noexcept {
          loop(call, operands.in<std::byte>(0) + begin * size, operands.out<std::byte>() + begin * size,
               end - begin);
        });
      },
      in_place());
}

Result<KernelPtr> create_as(const CpuDevice& device, const UnaryCall& call, const TensorInfo& info,
                            Producers producers) {
  const int64_t n = info.elements();
  const Simd& simd = device.simd();
  const auto loop = simd.loops<UnaryLoops>().unary[static_cast<int>(call.function)];
  const int64_t work = work_of(call.function);
  if (info.dtype == DType::F32) {
    const bool blocked = !producers.empty() && producers[0] == kBlocked16 && can_block(info);
    return make_kernel(
        [=](const Call& operands) noexcept {
          const float* x = operands.in<float>(0);
          float* y = operands.out<float>();
          parallel_for(n, work, 64, [&](int64_t begin, int64_t end) noexcept {
            loop(x + begin, y + begin, end - begin, call.alpha, call.beta);
          });
        },
        in_place(), {blocked ? kBlocked16 : kDense, 1, 1});
  }
  if (kHalves.contains(info.dtype)) {
    return make_kernel(
        [=, dtype = info.dtype, &simd](const Call& operands) noexcept {
          const uint16_t* x = operands.in<uint16_t>(0);
          uint16_t* y = operands.out<uint16_t>();
          parallel_for(n, work + 2, 64, [&](int64_t begin, int64_t end) noexcept {
            float wide[kWideBlock];
            for (int64_t i = begin; i < end; i += kWideBlock) {
              const int64_t count = std::min(kWideBlock, end - i);
              widen_block(simd, dtype, x + i, wide, count);
              loop(wide, wide, count, call.alpha, call.beta);
              narrow_block(simd, dtype, wide, y + i, count);
            }
          });
        },
        in_place());
  }
  return make_native(call, info.dtype, n);
}

template <UnaryFunction kFunction>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  return create_as(device, call_of<kFunction>(node), node.input(0), producers);
}

Result<KernelPtr> create_not(CpuDevice&, const NodeView& node, Producers) {
  const int64_t n = node.input(0).elements();
  return make_kernel(
      [=](const Call& operands) noexcept {
        const uint8_t* x = operands.in<uint8_t>(0);
        uint8_t* y = operands.out<uint8_t>();
        parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
          const uint8_t* from = x;
          uint8_t* to = y;
#pragma omp simd
          for (int64_t i = begin; i < end; ++i) to[i] = from[i] == 0 ? 1 : 0;
        });
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_unary();
std::span<const KernelRow> rows_unary() {
#define RT_UNARY(Name, name, dtypes) row<create<UnaryFunction::Name>>(OpKind::Name, name, dtypes)
  static constexpr KernelRow kRows[] = {
      RT_UNARY(Abs, "abs", kNumericTypes),
      RT_UNARY(Neg, "neg", kNumericTypes),
      RT_UNARY(Exp, "exp", kFloats),
      RT_UNARY(Log, "log", kFloats),
      RT_UNARY(Sqrt, "sqrt", kFloats),
      RT_UNARY(Reciprocal, "reciprocal", kFloats),
      RT_UNARY(Sin, "sin", kFloats),
      RT_UNARY(Cos, "cos", kFloats),
      RT_UNARY(Tanh, "tanh", kFloats),
      RT_UNARY(Sigmoid, "sigmoid", kFloats),
      RT_UNARY(Relu, "relu", kNumericTypes),
      RT_UNARY(Erf, "erf", kFloats),
      RT_UNARY(Floor, "floor", kFloats),
      RT_UNARY(Ceil, "ceil", kFloats),
      RT_UNARY(Round, "round", kFloats),
      RT_UNARY(Sign, "sign", kNumericTypes),
      RT_UNARY(Softplus, "softplus", kFloats),
      RT_UNARY(LeakyRelu, "leaky_relu", kFloats),
      RT_UNARY(Elu, "elu", kFloats),
      RT_UNARY(HardSigmoid, "hard_sigmoid", kFloats),
      RT_UNARY(HardSwish, "hard_swish", kFloats),
      RT_UNARY(Clip, "clip", kNumericTypes),
      RT_UNARY(Gelu, "gelu", kFloats),
      RT_UNARY(Silu, "silu", kFloats),
      RT_UNARY(Atan, "atan", kFloats),
      row<create_not>(OpKind::Not, "not", DTypeSet{DType::Bool}),
  };
#undef RT_UNARY
  return kRows;
}

}  // namespace librt::cpu
