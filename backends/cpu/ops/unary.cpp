// Elementwise functions of one operand. f32 through the vector loops, 16-bit floats widened block by block,
// other dtypes with plain loops. The result may be in place.
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/unary.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/function_work.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/geometry/function.h"
#include "runtime/geometry/function_value.h"

namespace librt::cpu {
namespace {

/// The functions defined for integers: Abs, Neg, Relu, Sign, Clip; rounding leaves them unchanged. Negation
/// wraps.
template <class T>
T integral(const FunctionCall& call, T x) noexcept {
  using Unsigned = std::make_unsigned_t<T>;
  const T negative = static_cast<T>(static_cast<Unsigned>(Unsigned{0} - static_cast<Unsigned>(x)));
  switch (call.function) {
    case Function::Abs: return x < T{0} ? negative : x;
    case Function::Neg: return negative;
    case Function::Relu: return x < T{0} ? T{0} : x;
    case Function::Sign: return x > T{0} ? T{1} : x < T{0} ? static_cast<T>(-1) : T{0};
    case Function::Clip: {
      const T low = narrow<T>(std::ceil(static_cast<double>(call.alpha))),
              high = narrow<T>(std::floor(static_cast<double>(call.beta)));
      const T raised = x < low ? low : x;
      return raised > high ? high : raised;
    }
    default: return x;
  }
}

/// f64 and integers.
template <class T>
void native_loop(const FunctionCall& call, const std::byte* x, std::byte* y, int64_t n) {
  const auto* in = reinterpret_cast<const T*>(x);
  auto* out = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>)
      out[i] = integral<T>(call, in[i]);
    else
      out[i] = static_cast<T>(function_value(call, static_cast<double>(in[i])));
  }
}

KernelPtr make_native(const FunctionCall& call, DType dtype, int64_t n) {
  using Loop = void (*)(const FunctionCall&, const std::byte*, std::byte*, int64_t);
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

Result<KernelPtr> create_as(const CpuDevice& device, const FunctionCall& call, const TensorInfo& info,
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
  return make_native(with_open_bounds(call), info.dtype, n);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  return create_as(device, function_call(node.node), node.input(0), producers);
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
  static constexpr KernelRow kRows[] = {
#define RT_ROW_Floats(Name) row<create>(OpKind::Name, "unary." #Name, kFloats),
#define RT_ROW_Numbers(Name) row<create>(OpKind::Name, "unary." #Name, kNumericTypes),
#define RT_ROW_Booleans(Name) row<create_not>(OpKind::Name, "unary." #Name, DTypeSet{DType::Bool}),
#define RT_ROW_None(Name)
#define RT_FUNCTION(Name, operands) RT_ROW_##operands(Name)
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
