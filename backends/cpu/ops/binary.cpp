// Elementwise functions of two operands with broadcasting: arithmetic, comparisons, logic.
//
// Integer division and modulo by zero give 0, and the one overflow of division (minimum / -1) wraps: a kernel
// can neither return an error nor trap. Integer sums, differences, products and powers wrap.
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/elementwise_layouts.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/geometry/broadcast.h"
#include "runtime/geometry/in_place.h"

namespace librt::cpu {
namespace {

using Plan = BroadcastPlan<2>;

Plan plan_of(const NodeView& node) {
  return broadcast_plan<2>(node.output(0).shape, {node.shape(0), node.shape(1)});
}

/// Which operands advance along the innermost dimension.
Advance advance_of(const Plan& plan) noexcept {
  if (plan.inner_stride(0) == 0 && plan.inner_stride(1) != 0) return Advance::Second;
  return plan.inner_stride(1) == 0 ? Advance::First : Advance::Both;
}

/// In place over the operand that has the result's shape and dtype.
Requirements over_operand(const NodeView& node) {
  const auto operand = operand_like_result(node);
  return operand ? in_place(*operand) : Requirements{};
}

/// loop(a, b, y, n) over the whole result; A, B, Y are element types, the strides come from the plan.
template <class A, class Y, class Loop>
KernelPtr make_loop(const NodeView& node, int64_t work, Loop loop, const Layouts& layouts = {}) {
  const Plan plan = plan_of(node);
  const int64_t n = node.output(0).elements();
  return make_kernel(
      [=](const Call& call) noexcept {
        const A* a = call.in<A>(0);
        const A* b = call.in<A>(1);
        Y* y = call.out<Y>();
        parallel_for(n, work, 64, [&](int64_t begin, int64_t end) noexcept {
          for_each_run(plan, begin, end,
                       [&](int64_t first, const std::array<int64_t, 2>& offset, int64_t count) {
                         loop(a + offset[0], b + offset[1], y + first, count);
                       });
        });
      },
      over_operand(node), layouts);
}

/// n results from operands with strides of step_a and step_b elements: type-erased, so that all dtypes
/// without vector loops share one kernel.
using ErasedLoop = void (*)(const std::byte* a, const std::byte* b, std::byte* y, int64_t n, int64_t step_a,
                            int64_t step_b);

template <class T, class Y, Y (*kFunction)(T, T) noexcept>
void erased(const std::byte* a, const std::byte* b, std::byte* y, int64_t n, int64_t step_a, int64_t step_b) {
  const auto* first = reinterpret_cast<const T*>(a);
  const auto* second = reinterpret_cast<const T*>(b);
  auto* result = reinterpret_cast<Y*>(y);
  if (step_a == 1 && step_b == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = kFunction(first[i], second[i]);
  } else if (step_b == 0 && step_a == 1) {
    const T repeated = *second;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = kFunction(first[i], repeated);
  } else if (step_a == 0 && step_b == 1) {
    const T repeated = *first;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = kFunction(repeated, second[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) result[i] = kFunction(first[i * step_a], second[i * step_b]);
  }
}

KernelPtr make_scalar(const NodeView& node, ErasedLoop loop) {
  const Plan plan = plan_of(node);
  const int64_t n = node.output(0).elements();
  const auto size = static_cast<int64_t>(size_of(node.dtype(0)));
  const auto result_size = static_cast<int64_t>(size_of(node.output(0).dtype));
  return make_kernel(
      [=](const Call& call) noexcept {
        const auto *a = call.in<std::byte>(0), *b = call.in<std::byte>(1);
        auto* y = call.out<std::byte>();
        parallel_for(n, 4, 64, [&](int64_t begin, int64_t end) noexcept {
          for_each_run(plan, begin, end,
                       [&](int64_t first, const std::array<int64_t, 2>& offset, int64_t count) {
                         loop(a + offset[0] * size, b + offset[1] * size, y + first * result_size, count,
                              plan.inner_stride(0), plan.inner_stride(1));
                       });
        });
      },
      over_operand(node));
}

template <class T>
T integer_power(T base, T exponent) noexcept {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {  // 1 / base^n, toward zero
      if (base == 1) return 1;
      if (base == -1) return (exponent & 1) != 0 ? T{-1} : T{1};
      return 0;
    }
  }
  // uint64_t arithmetic, because narrow unsigned types are promoted to int, whose overflow is undefined.
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(static_cast<U>(result));
}

template <BinaryFunction kFunction, class T>
T compute(T a, T b) noexcept {
  using enum BinaryFunction;
  if constexpr (std::is_integral_v<T>) {
    const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
    if constexpr (kFunction == Add) return static_cast<T>(wide_a + wide_b);
    if constexpr (kFunction == Sub) return static_cast<T>(wide_a - wide_b);
    if constexpr (kFunction == Mul) return static_cast<T>(wide_a * wide_b);
    if constexpr (kFunction == Pow) return integer_power(a, b);
    if constexpr (kFunction == Minimum) return a < b ? a : b;
    if constexpr (kFunction == Maximum) return a > b ? a : b;
    if constexpr (kFunction == Div || kFunction == Mod || kFunction == ModTruncated) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return kFunction == Div ? static_cast<T>(uint64_t{0} - wide_a) : T{0};
      if constexpr (kFunction == Div) return static_cast<T>(a / b);
      const T rest = static_cast<T>(a % b);
      if constexpr (kFunction == ModTruncated) return rest;
      return rest != 0 && ((rest < 0) != (b < 0)) ? static_cast<T>(rest + b) : rest;
    }
  } else {
    if constexpr (kFunction == Add) return a + b;
    if constexpr (kFunction == Sub) return a - b;
    if constexpr (kFunction == Mul) return a * b;
    if constexpr (kFunction == Div) return a / b;
    if constexpr (kFunction == Pow) return std::pow(a, b);
    if constexpr (kFunction == Minimum) return a < b || std::isnan(a) ? a : b;
    if constexpr (kFunction == Maximum) return a > b || std::isnan(a) ? a : b;
    const T rest = std::fmod(a, b);
    if constexpr (kFunction == ModTruncated) return rest;
    return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
  }
}

/// One block of 16-bit operands, widened to f32; a broadcast operand is widened once per block. Y: uint16_t
/// for results of the operands' dtype, uint8_t for comparisons.
template <class Y, class Loop>
KernelPtr make_halves(const Simd& simd, const NodeView& node, const Loop (&loops)[3]) {
  const Plan plan = plan_of(node);
  const Advance advance = advance_of(plan);
  const auto loop = loops[static_cast<int>(advance)];
  return make_loop<uint16_t, Y>(
      node, 4,
      [=, dtype = node.dtype(0), &simd](const uint16_t* a, const uint16_t* b, Y* y, int64_t n) noexcept {
        float wide_a[kWideBlock], wide_b[kWideBlock];
        for (int64_t i = 0; i < n; i += kWideBlock) {
          const int64_t count = std::min(kWideBlock, n - i);
          const bool move_a = advance != Advance::Second, move_b = advance != Advance::First;
          widen_block(simd, dtype, move_a ? a + i : a, wide_a, move_a ? count : 1);
          widen_block(simd, dtype, move_b ? b + i : b, wide_b, move_b ? count : 1);
          if constexpr (std::is_same_v<Y, uint16_t>) {
            loop(wide_a, wide_b, wide_a, count);
            narrow_block(simd, dtype, wide_a, y + i, count);
          } else {
            loop(wide_a, wide_b, y + i, count);
          }
        }
      });
}

template <BinaryFunction kFunction>
Result<KernelPtr> create_as(CpuDevice& device, const NodeView& node, Producers producers) {
  const DType dtype = node.dtype(0);
  const auto& loops = device.simd().loops<BinaryLoops>().binary[static_cast<int>(kFunction)];
  if (dtype == DType::F32) {
    const auto loop = loops[static_cast<int>(advance_of(plan_of(node)))];
    return make_loop<float, float>(node, kFunction == BinaryFunction::Pow ? 8 : 1, loop,
                                   elementwise_layouts(node, producers));
  }
  if (kHalves.contains(dtype)) return make_halves<uint16_t>(device.simd(), node, loops);
  return make_scalar(node, with_number(dtype, [](auto tag) -> ErasedLoop {
                       using T = typename decltype(tag)::type;
                       return &erased<T, T, compute<kFunction, T>>;
                     }));
}

template <BinaryFunction kFunction>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  if constexpr (kFunction == BinaryFunction::Mod)
    if (node.as<op::ModAttributes>().truncated)
      return create_as<BinaryFunction::ModTruncated>(device, node, producers);
  return create_as<kFunction>(device, node, producers);
}

template <CompareFunction kFunction, class T>
uint8_t compare(T stored_a, T stored_b) noexcept {
  using enum CompareFunction;
  const auto compared = [](auto a, auto b) -> uint8_t {
    if constexpr (kFunction == Equal) return a == b;
    if constexpr (kFunction == Less) return a < b;
    if constexpr (kFunction == LessOrEqual) return a <= b;
    if constexpr (kFunction == Greater) return a > b;
    return a >= b;
  };
  if constexpr (std::is_same_v<T, Boolean>)
    return compared(stored_a.value != 0, stored_b.value != 0);
  else
    return compared(stored_a, stored_b);
}

template <CompareFunction kFunction>
Result<KernelPtr> create_compare(CpuDevice& device, const NodeView& node, Producers producers) {
  const DType dtype = node.dtype(0);
  if (dtype == DType::F32) {
    const auto& loops = device.simd().loops<BinaryLoops>().compare[static_cast<int>(kFunction)];
    return make_loop<float, uint8_t>(node, 1, loops[static_cast<int>(advance_of(plan_of(node)))],
                                     elementwise_layouts(node, producers));
  }
  if (kHalves.contains(dtype))
    return make_halves<uint8_t>(device.simd(), node,
                                device.simd().loops<BinaryLoops>().compare[static_cast<int>(kFunction)]);
  if (dtype == DType::Bool) return make_scalar(node, &erased<Boolean, uint8_t, compare<kFunction, Boolean>>);
  return make_scalar(node, with_number(dtype, [](auto tag) -> ErasedLoop {
                       using T = typename decltype(tag)::type;
                       return &erased<T, uint8_t, compare<kFunction, T>>;
                     }));
}

template <BinaryFunction kFunction>
Result<KernelPtr> create_gradient(CpuDevice& device, const NodeView& node, Producers producers) {
  const auto& loops = device.simd().loops<BinaryLoops>().binary[static_cast<int>(kFunction)];
  if (kHalves.contains(node.dtype(0))) return make_halves<uint16_t>(device.simd(), node, loops);
  const int64_t work = kFunction == BinaryFunction::ReluGrad ? 1 : 8;
  return make_loop<float, float>(node, work, loops[static_cast<int>(advance_of(plan_of(node)))],
                                 elementwise_layouts(node, producers));
}
Result<KernelPtr> create_gelu_grad(CpuDevice& device, const NodeView& node, Producers producers) {
  return node.as<op::GeluGradAttributes>().tanh_approximation
             ? create_gradient<BinaryFunction::GeluTanhGrad>(device, node, producers)
             : create_gradient<BinaryFunction::GeluGrad>(device, node, producers);
}

template <BinaryFunction kLogic>
uint8_t logic(uint8_t a, uint8_t b) noexcept {
  const auto x = static_cast<uint8_t>(a != 0 ? 1 : 0), y = static_cast<uint8_t>(b != 0 ? 1 : 0);
  if constexpr (kLogic == BinaryFunction::And) return x & y;
  if constexpr (kLogic == BinaryFunction::Or) return x | y;
  return x ^ y;
}

template <BinaryFunction kLogic>
Result<KernelPtr> create_logic(CpuDevice&, const NodeView& node, Producers) {
  return make_scalar(node, &erased<uint8_t, uint8_t, logic<kLogic>>);
}

template <BinaryFunction kBits, class T>
T bits(T a, T b) noexcept {
  if constexpr (kBits == BinaryFunction::BitwiseAnd) return static_cast<T>(a & b);
  if constexpr (kBits == BinaryFunction::BitwiseOr) return static_cast<T>(a | b);
  if constexpr (kBits == BinaryFunction::BitwiseXor) return static_cast<T>(a ^ b);
  constexpr uint64_t kWidth = 8 * sizeof(T);
  const auto count = static_cast<uint64_t>(b);
  if constexpr (kBits == BinaryFunction::ShiftLeft)
    return count < kWidth ? static_cast<T>(static_cast<uint64_t>(a) << count) : T{0};
  if (count < kWidth) return static_cast<T>(a >> count);
  return a < T{0} ? static_cast<T>(-1) : T{0};
}

template <BinaryFunction kBits>
KernelPtr make_bits(const NodeView& node) {
  return make_scalar(node, with_number(node.dtype(0), [](auto tag) -> ErasedLoop {
                       using T = typename decltype(tag)::type;
                       if constexpr (std::is_integral_v<T>)
                         return &erased<T, T, bits<kBits, T>>;
                       else
                         return nullptr;  // the kernel rows list integers only
                     }));
}

template <BinaryFunction kBits>
Result<KernelPtr> create_bits(CpuDevice&, const NodeView& node, Producers) {
  return make_bits<kBits>(node);
}
Result<KernelPtr> create_shift(CpuDevice&, const NodeView& node, Producers) {
  return node.as<op::BitShiftAttributes>().left ? make_bits<BinaryFunction::ShiftLeft>(node)
                                                : make_bits<BinaryFunction::ShiftRight>(node);
}

}  // namespace

std::span<const KernelRow> rows_binary();
std::span<const KernelRow> rows_binary() {
#define RT_BINARY(Name, name) row<create<BinaryFunction::Name>>(OpKind::Name, name, kNumericTypes)
#define RT_COMPARE(Name, name) row<create_compare<CompareFunction::Name>>(OpKind::Name, name, kAnyDType)
#define RT_LOGIC(Name, name) \
  row<create_logic<BinaryFunction::Name>>(OpKind::Name, name, DTypeSet{DType::Bool})
  static constexpr KernelRow kRows[] = {
      RT_BINARY(Add, "add"),
      RT_BINARY(Sub, "sub"),
      RT_BINARY(Mul, "mul"),
      RT_BINARY(Div, "div"),
      RT_BINARY(Pow, "pow"),
      RT_BINARY(Minimum, "minimum"),
      RT_BINARY(Maximum, "maximum"),
      RT_BINARY(Mod, "mod"),
      row<create_gelu_grad>(OpKind::GeluGrad, "gelu_grad", kHalves | DTypeSet{DType::F32}),
      row<create_gradient<BinaryFunction::SiluGrad>>(OpKind::SiluGrad, "silu_grad",
                                                     kHalves | DTypeSet{DType::F32}),
      row<create_gradient<BinaryFunction::ReluGrad>>(OpKind::ReluGrad, "relu_grad",
                                                     kHalves | DTypeSet{DType::F32}),
      RT_COMPARE(Equal, "equal"),
      RT_COMPARE(Less, "less"),
      RT_COMPARE(LessOrEqual, "less_or_equal"),
      RT_COMPARE(Greater, "greater"),
      RT_COMPARE(GreaterOrEqual, "greater_or_equal"),
      RT_LOGIC(And, "and"),
      RT_LOGIC(Or, "or"),
      RT_LOGIC(Xor, "xor"),
      row<create_bits<BinaryFunction::BitwiseAnd>>(OpKind::BitwiseAnd, "bitwise_and", kIntegers),
      row<create_bits<BinaryFunction::BitwiseOr>>(OpKind::BitwiseOr, "bitwise_or", kIntegers),
      row<create_bits<BinaryFunction::BitwiseXor>>(OpKind::BitwiseXor, "bitwise_xor", kIntegers),
      row<create_shift>(OpKind::BitShift, "bit_shift", kIntegers),
  };
#undef RT_BINARY
#undef RT_COMPARE
#undef RT_LOGIC
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
