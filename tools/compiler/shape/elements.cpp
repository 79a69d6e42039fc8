// Elements of small integer values: shape arithmetic on expressions.
#include <algorithm>
#include <array>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/shape/rules.h"

namespace librt::compiler {
namespace {

/// Types that extents are computed in. A cast to fewer bits would wrap, so those are not followed.
bool holds_extents(DType dtype) {
  return dtype == DType::I64 || dtype == DType::I32 || dtype == DType::Bool;
}

Shape shape_of(const Known& known) {
  Shape shape;
  for (const Extent& extent : known.dims) shape.push_back(extent.constant);
  return shape;
}

class Elements {
 public:
  Elements(ExtentTable& table, const Node& node, std::span<const Known* const> inputs,
           std::span<const DType> types, std::span<const TensorInfo> infos, std::vector<Known>& results)
      : t_(table), node_(node), inputs_(inputs), types_(types), infos_(infos), results_(results) {
    for (const Known* input : inputs) {
      elements_.emplace_back();
      if (input == nullptr || !input->is_static()) continue;
      // Data-dependent elements are each unknown.
      if (input->has_elements)
        elements_.back() = input->elements;
      else if (has_at_most(shape_of(*input), kMostElements))
        elements_.back() =
            std::vector<Extent>(static_cast<size_t>(shape_of(*input).elements()), Extent::unknown());
    }
  }

  void run() {
    if (infos_.size() != 1 || !holds_extents(infos_[0].dtype)) return;
    if (!has_at_most(infos_[0].shape, kMostElements)) return;
    if (node_.kind() == OpKind::Shape) return shape();
    if (node_.kind() == OpKind::ConstantOfShape) {
      const auto value = static_cast<int64_t>(node_.as<op::ConstantOfShapeAttributes>().value);
      return set(std::vector<Extent>(count(), number(value)));
    }
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (has(i) && !holds_extents(types_[i])) return;
    if (!movement()) arithmetic();
  }

 private:
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  bool known(size_t i) const { return has(i) && elements_[i].has_value(); }
  bool constant(size_t i) const {
    return known(i) &&
           std::all_of(elements_[i]->begin(), elements_[i]->end(), [](Extent e) { return e.is_constant(); });
  }
  size_t count() const { return static_cast<size_t>(infos_[0].elements()); }
  void set(std::vector<Extent> elements) {
    const auto unknown = [](Extent e) { return e.is_unknown(); };
    if (!elements.empty() && std::all_of(elements.begin(), elements.end(), unknown)) return;
    results_[0].elements = std::move(elements);
    results_[0].has_elements = true;
  }

  void shape() {
    const auto& attributes = node_.as<op::ShapeAttributes>();
    const auto rank = static_cast<int64_t>(inputs_[0]->dims.size());
    const int64_t start = attributes.start < 0 ? attributes.start + rank : attributes.start;
    const auto first = static_cast<size_t>(std::clamp<int64_t>(start, 0, rank));
    const std::vector<Extent>& dims = inputs_[0]->dims;
    if (first + count() > dims.size()) return;
    set({dims.begin() + static_cast<std::ptrdiff_t>(first),
         dims.begin() + static_cast<std::ptrdiff_t>(first + count())});
  }

  /// Operands whose elements end up in the result unchanged; all others must be constants.
  std::vector<size_t> moved() const {
    if (ops::moves_elements(node_.kind())) return {0};
    switch (node_.kind()) {
      case OpKind::Pad:
        if (!has(2)) return {};  // the fill value has no index
        return {0, 2};
      case OpKind::ScatterElements:
        if (node_.as<op::ScatterElementsAttributes>().reduction != op::ScatterReduction::None) return {};
        return {0, 2};
      case OpKind::ScatterND:
        if (node_.as<op::ScatterNDAttributes>().reduction != op::ScatterReduction::None) return {};
        return {0, 2};
      case OpKind::Concat: {
        std::vector<size_t> all;
        for (size_t i = 0; i < inputs_.size(); ++i) all.push_back(i);
        return all;
      }
      default: return {};
    }
  }

  /// Moves the indices of elements instead of elements, by the page's reference function.
  bool movement() {
    const std::vector<size_t> from = moved();
    if (from.empty()) return false;
    if (node_.kind() == OpKind::Reshape || node_.kind() == OpKind::Identity) {
      if (known(0) && elements_[0]->size() == count()) set(*elements_[0]);
      return true;
    }
    std::vector<Extent> pool;
    std::vector<std::vector<std::byte>> bytes(inputs_.size());
    std::vector<Operand> operands(inputs_.size());
    std::vector<ConstTensorView> views(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!has(i)) continue;
      const bool moves = std::find(from.begin(), from.end(), i) != from.end();
      if (!known(i) || (!moves && !constant(i))) return true;
      const DType dtype = moves ? DType::I64 : types_[i];
      const TensorInfo info{dtype, shape_of(*inputs_[i])};
      bytes[i].resize(std::max<size_t>(info.bytes(), 1));
      for (size_t k = 0; k < elements_[i]->size(); ++k) {
        const Extent element = (*elements_[i])[k];
        store_integer(bytes[i].data(), dtype, static_cast<int64_t>(k),
                      moves ? static_cast<int64_t>(pool.size()) : element.constant);
        if (moves) pool.push_back(element);
      }
      operands[i] = {.present = true, .info = info, .value = bytes[i].data()};
      views[i] = {bytes[i].data(), info};
    }
    const auto results = ops::evaluate_node({.node = node_, .inputs = operands}, views);
    if (!results.ok() || results.value()[0].info.shape != infos_[0].shape) return true;
    std::vector<Extent> elements;
    for (size_t k = 0; k < count(); ++k)
      elements.push_back(pool[static_cast<size_t>(
          load_integer(results.value()[0].bytes.data(), DType::I64, static_cast<int64_t>(k)))]);
    set(std::move(elements));
    return true;
  }

  /// Element `index` of the result's shape, of operand i, which broadcasts to it.
  Extent broadcast_element(size_t i, int64_t index) const {
    const Shape from = shape_of(*inputs_[i]), &to = infos_[0].shape;
    int64_t at = 0, stride = 1;
    for (int back = 1; back <= to.rank(); ++back) {
      const int64_t extent = to[to.rank() - back], position = index % extent;
      index /= extent;
      if (back > from.rank()) continue;
      const int64_t own = from[from.rank() - back];
      if (own != 1) at += position * stride;
      stride *= own;
    }
    return (*elements_[i])[static_cast<size_t>(at)];
  }

  void arithmetic() {
    switch (node_.kind()) {
      case OpKind::Range: return range();
      case OpKind::ReduceSum:
      case OpKind::ReduceProd:
      case OpKind::ReduceMax:
      case OpKind::ReduceMin: return reduce();
      default: break;
    }
    const ExtentRule rule = ops::extent_rule(node_.kind());
    // Others of the first operand's shape have operands that do not broadcast to it (indices, updates).
    const bool is_unary = rule == ExtentRule::LikeFirst && inputs_.size() == 1;
    if (!is_unary && rule != ExtentRule::Broadcast) return;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!known(i)) return;
    std::vector<Extent> elements;
    for (int64_t k = 0; k < infos_[0].elements(); ++k) {
      std::array<Extent, 3> x{};
      for (size_t i = 0; i < inputs_.size() && i < x.size(); ++i) x[i] = broadcast_element(i, k);
      const auto result = apply(x[0], x[1], x[2]);
      if (!result) return;
      elements.push_back(*result);
    }
    set(std::move(elements));
  }

  std::optional<Extent> apply(Extent a, Extent b, Extent c) {
    const bool truth = infos_[0].dtype == DType::Bool && types_[0] == DType::Bool;
    switch (node_.kind()) {
      case OpKind::Cast: return infos_[0].dtype == DType::Bool && !truth ? t_.negate(t_.is_zero(a)) : a;
      case OpKind::Neg: return t_.scale(a, -1);
      case OpKind::Abs: return t_.maximum(a, t_.scale(a, -1));
      case OpKind::Relu: return t_.maximum(a, number(0));
      case OpKind::Not: return t_.negate(a);
      case OpKind::Add: return t_.add(a, b);
      case OpKind::Sub: return t_.subtract(a, b);
      case OpKind::Mul: return t_.multiply(a, b);
      case OpKind::Div: return t_.truncated_divide(a, b);
      case OpKind::Mod:
        return t_.subtract(a,
                           t_.multiply(b, node_.as<op::ModAttributes>().truncated ? t_.truncated_divide(a, b)
                                                                                  : t_.floor_divide(a, b)));
      case OpKind::Minimum: return t_.minimum(a, b);
      case OpKind::Maximum: return t_.maximum(a, b);
      case OpKind::Equal: return t_.is_zero(t_.subtract(a, b));
      case OpKind::Less: return t_.is_negative(t_.subtract(a, b));
      case OpKind::GreaterOrEqual: return t_.negate(t_.is_negative(t_.subtract(a, b)));
      case OpKind::Greater: return t_.is_negative(t_.subtract(b, a));
      case OpKind::LessOrEqual: return t_.negate(t_.is_negative(t_.subtract(b, a)));
      case OpKind::And: return t_.multiply(a, b);
      case OpKind::Or: return t_.negate(t_.multiply(t_.negate(a), t_.negate(b)));
      case OpKind::Xor: return t_.select(a, t_.negate(b), b);
      case OpKind::Where: return t_.select(a, b, c);
      default: return std::nullopt;
    }
  }

  void range() {
    if (!known(0) || !known(2)) return;
    std::vector<Extent> elements;
    for (int64_t k = 0; k < infos_[0].elements(); ++k)
      elements.push_back(t_.add((*elements_[0])[0], t_.scale((*elements_[2])[0], k)));
    set(std::move(elements));
  }

  /// Reduces all elements to one.
  void reduce() {
    if (!known(0) || infos_[0].elements() != 1 || elements_[0]->empty()) return;
    Extent result = (*elements_[0])[0];
    for (size_t k = 1; k < elements_[0]->size(); ++k) {
      const Extent next = (*elements_[0])[k];
      switch (node_.kind()) {
        case OpKind::ReduceSum: result = t_.add(result, next); break;
        case OpKind::ReduceProd: result = t_.multiply(result, next); break;
        case OpKind::ReduceMax: result = t_.maximum(result, next); break;
        default: result = t_.minimum(result, next); break;
      }
    }
    set({result});
  }

  ExtentTable& t_;
  const Node& node_;
  std::span<const Known* const> inputs_;
  std::span<const DType> types_;
  std::span<const TensorInfo> infos_;
  std::vector<Known>& results_;
  std::vector<std::optional<std::vector<Extent>>> elements_;  ///< by input
};

}  // namespace

void infer_elements(ExtentTable& table, const Node& node, std::span<const Known* const> inputs,
                    std::span<const DType> input_types, std::span<const TensorInfo> infos,
                    std::vector<Known>& results) {
  Elements(table, node, inputs, input_types, infos, results).run();
}

}  // namespace librt::compiler
