// Comparisons and logic of two inputs with NumPy's broadcasting: the result is bool. Comparing with NaN is
// false.
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

/// The order of a and b; Unordered when one is NaN.
enum class Order { Less, Equal, Greater, Unordered };

template <class T>
constexpr Order order_of(T a, T b) {
  return a < b ? Order::Less : a > b ? Order::Greater : a == b ? Order::Equal : Order::Unordered;
}

Order order_at(const ConstTensorView& a, int64_t i, const ConstTensorView& b, int64_t j) {
  const DType dtype = a.info.dtype;
  if (is_float(dtype)) return order_of(load(a, i), load(b, j));
  const int64_t x = load_integer(a.data, dtype, i);
  const int64_t y = load_integer(b.data, dtype, j);
  return dtype == DType::U64 ? order_of(static_cast<uint64_t>(x), static_cast<uint64_t>(y)) : order_of(x, y);
}

constexpr DTypeSet numbers() {
  return kNumericTypes;
}
constexpr DTypeSet any() {
  return kAnyDType;
}
constexpr DTypeSet only_bool() {
  return DTypeSet{DType::Bool};
}

template <DTypeSet (*Allowed)()>
Status infer_predicate(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return infer_pair(node, outputs, Allowed(), DType::Bool);
}

/// Calls holds(i, j) with the elements of a and b.
template <class F>
Status compare(std::span<const ConstTensorView> inputs, const TensorView& y, F&& holds) {
  const std::array<Shape, 2> shapes{inputs[0].info.shape, inputs[1].info.shape};
  return for_each_broadcast(y.info.shape, shapes, [&](int64_t i, const std::array<int64_t, 2>& at) {
    store_integer(y.data, DType::Bool, i, holds(at[0], at[1]));
  });
}

Status compare_order(std::span<const ConstTensorView> inputs, const TensorView& y, bool (*holds)(Order)) {
  return compare(inputs, y,
                 [&](int64_t i, int64_t j) { return holds(order_at(inputs[0], i, inputs[1], j)); });
}

Status compare_logic(std::span<const ConstTensorView> inputs, const TensorView& y,
                     bool (*holds)(bool, bool)) {
  return compare(inputs, y, [&](int64_t i, int64_t j) {
    return holds(load_integer(inputs[0].data, DType::Bool, i) != 0,
                 load_integer(inputs[1].data, DType::Bool, j) != 0);
  });
}

template <bool (*Holds)(Order)>
Status eval_order(const NodeView&, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  return compare_order(inputs, outputs[0], Holds);
}

template <bool (*Holds)(bool, bool)>
Status eval_logic(const NodeView&, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  return compare_logic(inputs, outputs[0], Holds);
}

template <DTypeSet (*Allowed)(), bool (*Holds)(Order)>
constexpr Page order_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {2, 2},
          .infer = infer_predicate<Allowed>,
          .eval = eval_order<Holds>,
          .form = Form::Broadcast};
}

template <bool (*Holds)(bool, bool)>
constexpr Page logic_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {2, 2},
          .infer = infer_predicate<only_bool>,
          .eval = eval_logic<Holds>,
          .form = Form::Broadcast};
}

}  // namespace

RT_PAGE(Equal) = order_page<any, [](Order order) { return order == Order::Equal; }>(OpKind::Equal);
RT_NO_GRADIENT(Equal, "boolean output");

RT_PAGE(Less) = order_page<numbers, [](Order order) { return order == Order::Less; }>(OpKind::Less);
RT_NO_GRADIENT(Less, "boolean output");

RT_PAGE(LessOrEqual) = order_page<numbers, [](Order order) {
  return order == Order::Less || order == Order::Equal;
}>(OpKind::LessOrEqual);
RT_NO_GRADIENT(LessOrEqual, "boolean output");

RT_PAGE(Greater) = order_page<numbers, [](Order order) { return order == Order::Greater; }>(OpKind::Greater);
RT_NO_GRADIENT(Greater, "boolean output");

RT_PAGE(GreaterOrEqual) = order_page<numbers, [](Order order) {
  return order == Order::Greater || order == Order::Equal;
}>(OpKind::GreaterOrEqual);
RT_NO_GRADIENT(GreaterOrEqual, "boolean output");

RT_PAGE(And) = logic_page<[](bool a, bool b) { return a && b; }>(OpKind::And);
RT_NO_GRADIENT(And, "boolean output");

RT_PAGE(Or) = logic_page<[](bool a, bool b) { return a || b; }>(OpKind::Or);
RT_NO_GRADIENT(Or, "boolean output");

RT_PAGE(Xor) = logic_page<[](bool a, bool b) { return a != b; }>(OpKind::Xor);
RT_NO_GRADIENT(Xor, "boolean output");

}  // namespace librt::ops
