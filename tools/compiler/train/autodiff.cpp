#include "tools/compiler/train/autodiff.h"

#include <algorithm>

#include "runtime/graph/node_view.h"
#include "runtime/ops/page.h"
#include "runtime/ops/page_support.h"

namespace librt::compiler {
namespace {

class Walker {
 public:
  Walker(Builder& builder, ValueId loss, std::span<const ValueId> wanted,
         const std::set<std::string>& detached)
      : builder_(builder), loss_(loss), node_count_(builder.graph().nodes.size()) {
    depends_.resize(builder.graph().values.size());
    gradients_.assign(builder.graph().values.size(), kNoValue);
    for (ValueId value : wanted) depends_[value] = true;
    for (size_t i = 0; i < node_count_; ++i) {
      const Node& node = builder.graph().nodes[i];
      bool any = false;
      for (ValueId input : node.inputs) any |= input != kNoValue && depends_[input];
      if (!any) continue;
      const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
      const unsigned constant = page == nullptr ? 0 : page->constant_outputs;
      // No gradient flows through an integer (a shape, an index).
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const ValueId output = node.outputs[k];
        const bool flows = output != kNoValue && (k >= 16 || (constant >> k & 1u) == 0) &&
                           !detached.contains(builder.value(output).name);
        if (flows && is_float(builder.value(output).dtype)) depends_[output] = true;
      }
      if (node.outputs.size() != 1 || !is_nonnegative(node)) continue;
      nonnegative_.insert(node.outputs[0]);
      if (is_scaled(node)) scaled_.insert(node.outputs[0]);
    }
  }

  Result<std::vector<ValueId>> run(std::span<const ValueId> wanted) {
    RT_TRY(check_coverage());
    builder_.set_scope("grad");
    gradients_[loss_] = builder_.scalar_like(1, loss_);
    for (size_t i = node_count_; i-- > 0;) {
      RT_TRY(visit(i));
      RT_TRY(Status(builder_.status()));
    }
    std::vector<ValueId> result;
    for (ValueId value : wanted) result.push_back(gradients_[value]);
    return result;
  }

 private:
  // By construction: a square, an absolute value, what a bound of 0 leaves, and sums, multiples and movements
  // of such.
  bool is_nonnegative(const Node& node) const {
    const auto is_one = [&](size_t i) { return nonnegative_.contains(node.inputs[i]); };
    const auto is_term = [&](size_t i) { return is_one(i) && !scaled_.contains(node.inputs[i]); };
    const auto is_factor = [&](size_t i) { return !depends_[node.inputs[i]]; };
    const auto number = [&](size_t i) { return ops::constant_number(builder_, node.inputs[i]).value_or(-1); };
    switch (node.kind()) {
      case OpKind::Abs:
      case OpKind::Relu: return true;
      case OpKind::Clip: return node.as<op::ClipAttributes>().minimum >= 0;
      case OpKind::Pow: return number(1) == 2;
      case OpKind::Maximum: return is_one(0) || is_one(1) || number(0) == 0 || number(1) == 0;
      case OpKind::Mul:
        return node.inputs[0] == node.inputs[1] || (is_one(0) && is_factor(1)) || (is_one(1) && is_factor(0));
      case OpKind::Div: return is_one(0) && is_factor(1);
      case OpKind::Add: return is_term(0) && is_term(1);
      case OpKind::ReduceSum:
      case OpKind::ReduceMean: return is_term(0);
      case OpKind::Cast: return is_one(0);
      default:
        return ops::moves_elements(node.kind()) && std::ranges::all_of(node.inputs, [&](ValueId input) {
                 return input == kNoValue || !is_float(builder_.value(input).dtype) ||
                        nonnegative_.contains(input);
               });
    }
  }

  // By a factor that may be negative: a root is real where it is not, but a sum may have both.
  bool is_scaled(const Node& node) const {
    const auto known = [&](ValueId input) { return ops::constant_number(builder_, input).value_or(-1) >= 0; };
    const bool scales =
        node.kind() == OpKind::Div || (node.kind() == OpKind::Mul && node.inputs[0] != node.inputs[1]);
    return (scales && std::ranges::none_of(node.inputs, known)) ||
           std::ranges::any_of(node.inputs, [&](ValueId input) { return scaled_.contains(input); });
  }

  // Names every operator without a gradient on a path from a wanted value to the loss.
  Status check_coverage() const {
    std::vector<bool> leads(depends_.size());
    leads[loss_] = true;
    std::set<std::string> gaps;
    for (size_t i = node_count_; i-- > 0;) {
      const Node& node = builder_.graph().nodes[i];
      bool on_path = false;  // never by an integer result (ArgMax, Shape): it depends on nothing
      for (ValueId output : node.outputs) on_path |= output != kNoValue && leads[output] && depends_[output];
      if (!on_path) continue;
      const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
      if (page == nullptr || page->gradient == nullptr) {
        const char* reason = page == nullptr                ? "unknown operator"
                             : page->no_gradient != nullptr ? page->no_gradient
                                                            : "a composite that was not inlined";
        gaps.insert(text(describe(node), ": ", reason));
        continue;
      }
      for (ValueId input : node.inputs)
        if (input != kNoValue && is_float(builder_.value(input).dtype)) leads[input] = true;
    }
    if (gaps.empty()) return {};
    std::string message = "no gradient for ";
    const char* separator = "";
    for (const std::string& gap : gaps) {
      append(message, text(separator, gap));
      separator = "; ";
    }
    append(message, "; train only what comes after these nodes, or freeze what comes before");
    return Status(Code::Unsupported, message);
  }

  Status visit(size_t index) {
    // The graph grows while rules emit, so the node is copied before its rule runs.
    std::vector<ValueId> grads;
    bool any = false;
    for (ValueId output : builder_.graph().nodes[index].outputs) {
      grads.push_back(output == kNoValue ? kNoValue : gradients_[output]);
      any |= grads.back() != kNoValue;
    }
    if (!any) return {};
    const Node node = builder_.graph().nodes[index];
    const size_t count = node.inputs.size();
    const auto needed = std::make_unique<bool[]>(count);
    bool none_needed = true;
    for (size_t i = 0; i < count; ++i) {
      const ValueId input = node.inputs[i];
      needed[i] = input != kNoValue && depends_[input] && is_float(builder_.value(input).dtype);
      none_needed &= !needed[i];
    }
    if (none_needed) return {};
    const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
    if (page == nullptr || page->gradient == nullptr)
      return internal_error(describe(node), " has a gradient to pass on, but no rule");
    std::vector<ValueId> results(count, kNoValue);
    builder_.set_scope(text("grad.", node.name));
    ops::GradContext context{.emit = builder_,
                             .node = node,
                             .grad_outputs = grads,
                             .needed = {needed.get(), count},
                             .grad_inputs = results,
                             .is_nonnegative = nonnegative_.contains(node.inputs[0])};
    page->gradient(context);
    RT_TRY(Status(builder_.status()).in(text("gradient of ", describe(node))));
    for (size_t i = 0; i < count; ++i)
      if (needed[i] && results[i] != kNoValue) accumulate(node.inputs[i], results[i]);
    return {};
  }

  void accumulate(ValueId value, ValueId gradient) {
    gradient = reduce_to(gradient, value);
    ValueId& sum = gradients_[value];
    sum = sum == kNoValue ? gradient : builder_.add(sum, gradient);
  }

  // Sums over the axes along which `value` was broadcast to the gradient's shape.
  ValueId reduce_to(ValueId gradient, ValueId value) {
    if (gradient == kNoValue) return kNoValue;
    const Shape from = builder_.comparable_shape(gradient), to = builder_.comparable_shape(value);
    if (from == to) return gradient;
    const int extra = from.rank() - to.rank();
    if (extra < 0) {
      builder_.fail(internal_error("the gradient ", from, " has a lower rank than its value ", to));
      return kNoValue;
    }
    std::vector<int64_t> leading, inner;
    for (int i = 0; i < extra; ++i) leading.push_back(i);
    for (int i = 0; i < to.rank(); ++i)
      if (to[i] == 1 && from[i + extra] != 1) inner.push_back(i);
    if (!leading.empty()) gradient = builder_.reduce_sum(gradient, leading, false);
    if (!inner.empty()) gradient = builder_.reduce_sum(gradient, inner, true);
    // Not proven equal: if an axis was broadcast after all, the shapes do not match and the run reports it.
    if (builder_.comparable_shape(gradient) != to)
      gradient = builder_.reshape(gradient, builder_.shape_of(value));
    return gradient;
  }

  Builder& builder_;
  ValueId loss_;
  size_t node_count_;
  std::vector<bool> depends_;       ///< on a wanted value; only for values that exist before the walk
  std::vector<ValueId> gradients_;  ///< by value
  std::set<ValueId> scaled_;        ///< of the next, multiples by factors of unknown sign
  std::set<ValueId> nonnegative_;   ///< by construction, of those that depend on a wanted value
};

}  // namespace

Result<std::vector<ValueId>> differentiate(Builder& builder, ValueId loss, std::span<const ValueId> wanted,
                                           const std::set<std::string>& detached) {
  RT_TRY(Status(builder.status()));
  const Value& value = builder.value(loss);
  if (builder.example_info(loss).elements() != 1 || !is_float(value.dtype))
    return invalid_argument("differentiate: the loss must be one float, found ", builder.example_info(loss));
  return Walker(builder, loss, wanted, detached).run(wanted);
}

}  // namespace librt::compiler
