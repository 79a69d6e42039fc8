// Causal masks as models spell them out: comparisons of positions, or constants.
#include <algorithm>

#include "runtime/core/element.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

/// Positions start, start + 1, .. along one of the last two axes.
struct Positions {
  bool along_keys = false;
  ValueId start = kNoValue;  ///< kNoValue: 0
};

/// Which of the last two axes is the only one that is not 1.
std::optional<bool> is_along_keys(GraphEdit& edit, ValueId value) {
  const Shape shape = edit.builder().comparable_shape(value);
  int long_axis = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (long_axis >= 0) return std::nullopt;
    long_axis = axis;
  }
  if (long_axis < 0 || long_axis < shape.rank() - 2) return std::nullopt;
  return long_axis == shape.rank() - 1;
}

bool is_one_integer(GraphEdit& edit, ValueId value) {
  const Shape shape = edit.builder().comparable_shape(value);
  return edit.value(value).dtype == DType::I64 &&
         std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent == 1; });
}

/// A Range, or the sum of one and an offset.
std::optional<Positions> positions_of(GraphEdit& edit, ValueId value) {
  const auto along_keys = is_along_keys(edit, value);
  if (!along_keys) return std::nullopt;
  Positions positions{.along_keys = *along_keys};
  const auto starts_at = [&](ValueId start) {
    if (edit.uniform(start) == 0) return true;
    if (positions.start != kNoValue) return false;
    positions.start = start;
    return true;
  };
  for (const Node* node = edit.producer(value); node != nullptr; node = edit.producer(value)) {
    if (node->kind() == OpKind::Range) {
      if (edit.uniform(node->inputs[2]) != 1 || edit.value(value).dtype != DType::I64) return std::nullopt;
      return starts_at(node->inputs[0]) ? std::optional(positions) : std::nullopt;
    }
    size_t next = 0;
    if (node->kind() == OpKind::Add) {
      next = is_one_integer(edit, node->inputs[0]) ? 1 : 0;
      if (!is_one_integer(edit, node->inputs[1 - next]) || !starts_at(node->inputs[1 - next]))
        return std::nullopt;
    } else if (node->kind() != OpKind::Reshape && node->kind() != OpKind::Identity) {
      return std::nullopt;
    }
    value = node->inputs[next];
  }
  return std::nullopt;
}

/// Whether `right` holds for every element of a constant, given its [row, column] in the last two axes.
bool all_matrices(const ConstTensorView& view, auto&& right) {
  const Shape& shape = view.info.shape;
  const int64_t columns = shape.back(), rows = shape[shape.rank() - 2];
  for (int64_t i = 0; i < view.info.elements(); ++i)
    if (!right(load_element(view.data, view.info.dtype, i), i / columns % rows, i % columns)) return false;
  return true;
}

constexpr int64_t kMostElements = 1 << 24;

std::optional<ConstTensorView> matrix(GraphEdit& edit, ValueId value) {
  const auto known = edit.builder().known_value(value);
  if (!known || known->info.shape.rank() < 2 || known->info.elements() > kMostElements) return std::nullopt;
  // A single row or column is ambiguous.
  return known->info.shape.back() > 1 && known->info.shape[known->info.shape.rank() - 2] > 1 ? known
                                                                                             : std::nullopt;
}

}  // namespace

std::optional<CausalMask> causal_condition(GraphEdit& edit, ValueId condition, bool shows) {
  if (const auto known = matrix(edit, condition)) {
    const bool causal = all_matrices(*known, [&](double number, int64_t row, int64_t column) {
      return (number != 0) == (shows == (column <= row));
    });
    return causal ? std::optional(CausalMask{}) : std::nullopt;
  }
  const Node* node = edit.producer(condition);
  if (node == nullptr) return std::nullopt;
  if (node->kind() == OpKind::Not) {
    // Two of them would have cancelled.
    if (edit.producer(node->inputs[0], OpKind::Not) != nullptr) return std::nullopt;
    return causal_condition(edit, node->inputs[0], !shows);
  }
  const OpKind kind = node->kind();
  const bool keys_first = kind == (shows ? OpKind::LessOrEqual : OpKind::Greater);
  if (!keys_first && kind != (shows ? OpKind::GreaterOrEqual : OpKind::Less)) return std::nullopt;
  const auto first = positions_of(edit, node->inputs[0]), second = positions_of(edit, node->inputs[1]);
  if (!first || !second) return std::nullopt;
  const Positions &keys = keys_first ? *first : *second, &rows = keys_first ? *second : *first;
  if (!keys.along_keys || rows.along_keys || keys.start != kNoValue) return std::nullopt;
  return CausalMask{rows.start};
}

bool is_causal_constant(GraphEdit& edit, ValueId mask) {
  constexpr double kMasked = -1e4;
  const auto known = matrix(edit, mask);
  return known && all_matrices(*known, [](double number, int64_t row, int64_t column) {
           return column <= row ? number == 0 : number <= kMasked;
         });
}

}  // namespace librt::compiler
