// Inverse trigonometric and hyperbolic functions, composed of Atan, Log and Sqrt without loss of precision
// for small arguments or at the ends of a domain; outside it they are NaN.
#include <numbers>

#include "tools/onnx/node.h"

namespace librt::onnx {
namespace {

/// Short names for the operators in the formulas.
struct Formula {
  Emitter& e;
  ValueId like;

  ValueId number(double value) { return e.scalar_like(value, like); }
  ValueId sqrt(ValueId x) { return e.emit(op::SqrtAttributes{}, {x}); }
  ValueId log(ValueId x) { return e.emit(op::LogAttributes{}, {x}); }
  ValueId atan(ValueId x) { return e.emit(op::AtanAttributes{}, {x}); }
  ValueId abs(ValueId x) { return e.emit(op::AbsAttributes{}, {x}); }
  ValueId sign(ValueId x) { return e.emit(op::SignAttributes{}, {x}); }
  ValueId pick_less(ValueId x, double limit, ValueId below, ValueId otherwise) {
    return e.emit(op::WhereAttributes{},
                  {e.emit(op::LessAttributes{}, {x, number(limit)}), below, otherwise});
  }
  /// log(1 + u), corrected for the rounding of 1 + u where u is small enough for it to matter.
  ValueId log1p(ValueId u) {
    const ValueId sum = e.add(number(1), u);
    const ValueId lost = e.div(e.sub(u, e.sub(sum, number(1))), sum);
    return e.add(log(sum), pick_less(u, 1e8, lost, number(0)));
  }
  /// asinh of a magnitude a: log1p(a + a^2 / (1 + sqrt(1 + a^2))); from 1e4 on, where squares may overflow,
  /// log(2 a).
  ValueId asinh(ValueId a) {
    const ValueId square = e.mul(a, a), one = number(1);
    const ValueId small = log1p(e.add(a, e.div(square, e.add(one, sqrt(e.add(one, square))))));
    return pick_less(a, 1e4, small, e.add(log(a), number(std::numbers::ln2)));
  }
};

using Lowering = ValueId (*)(Formula&, ValueId);

template <Lowering F>
Status lowered(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  Formula formula{c.emit, c.input(0)};
  return c.result(F(formula, c.input(0)));
}

// atan(x / sqrt((1 - x) (1 + x))): pi/2 at 1, by way of infinity
ValueId asin(Formula& f, ValueId x) {
  const ValueId one = f.number(1);
  return f.atan(f.e.div(x, f.sqrt(f.e.mul(f.e.sub(one, x), f.e.add(one, x)))));
}

// 2 atan(sqrt((1 - x) / (1 + x)))
ValueId acos(Formula& f, ValueId x) {
  const ValueId one = f.number(1);
  const ValueId half = f.atan(f.sqrt(f.e.div(f.e.sub(one, x), f.e.add(one, x))));
  return f.e.add(half, half);
}

ValueId asinh(Formula& f, ValueId x) {
  return f.e.mul(f.sign(x), f.asinh(f.abs(x)));
}

// 2 asinh(sqrt((x - 1) / 2))
ValueId acosh(Formula& f, ValueId x) {
  const ValueId half = f.asinh(f.sqrt(f.e.mul(f.e.sub(x, f.number(1)), f.number(0.5))));
  return f.e.add(half, half);
}

// sign(x) log1p(2 |x| / (1 - |x|)) / 2
ValueId atanh(Formula& f, ValueId x) {
  const ValueId a = f.abs(x);
  const ValueId ratio = f.e.div(f.e.add(a, a), f.e.sub(f.number(1), a));
  return f.e.mul(f.e.mul(f.sign(x), f.number(0.5)), f.log1p(ratio));
}

constexpr ImportRow kTrigonometryRows[] = {
    {"", "Acos", 7, kNewestOpset, lowered<acos>},
    {"", "Acosh", 9, kNewestOpset, lowered<acosh>},
    {"", "Asin", 7, kNewestOpset, lowered<asin>},
    {"", "Asinh", 9, kNewestOpset, lowered<asinh>},
    {"", "Atan", 7, kNewestOpset, lowered<[](Formula& f, ValueId x) { return f.atan(x); }>},
    {"", "Atanh", 9, kNewestOpset, lowered<atanh>},
};

}  // namespace

std::span<const ImportRow> rows_trigonometry() {
  return kTrigonometryRows;
}

}  // namespace librt::onnx
