// The graph builder of gradient rules, composite bodies and importers.
//
// Knows: how to append a node and query a value's type, dims and data. Errors are sticky: after the first
// failure every call returns kNoValue and status() holds the error, so that a rule can be written as one
// expression.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt {

class Emitter {
 public:
  virtual ~Emitter() = default;

  /// Appends a node; the outputs' types and shapes are inferred. inputs may hold kNoValue for absent
  /// optionals.
  virtual std::vector<ValueId> emit_many(OpAttributes op, std::span<const ValueId> inputs,
                                         size_t outputs) = 0;
  virtual ValueId constant(const TensorInfo& info, Blob data) = 0;
  /// dtype, dims (known or symbolic), role, and data when it is a constant.
  virtual const Value& value(ValueId id) const = 0;
  virtual const Status& status() const noexcept = 0;
  /// Makes the emitter fail with this status, unless it has failed already.
  virtual void fail(Status status) = 0;

  // --- helpers built on the calls above
  template <class Attributes>
  ValueId emit(Attributes attributes, std::initializer_list<ValueId> inputs) {
    return emit_many(make_op(std::move(attributes)), {inputs.begin(), inputs.size()}, 1)[0];
  }
  ValueId add(ValueId a, ValueId b) { return emit(op::AddAttributes{}, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return emit(op::SubAttributes{}, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return emit(op::MulAttributes{}, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return emit(op::DivAttributes{}, {a, b}); }
  ValueId neg(ValueId a) { return emit(op::NegAttributes{}, {a}); }
  /// Rank-0 constant of the dtype of `like` (or of `dtype`).
  ValueId scalar(double number, DType dtype);
  ValueId scalar_like(double number, ValueId like) { return scalar(number, value(like).dtype); }
  /// i64 vector, for shape operands.
  ValueId ints(std::span<const int64_t> numbers);
  ValueId shape_of(ValueId x) { return emit(op::ShapeAttributes{}, {x}); }
  /// keep_dims reductions over `axes`.
  ValueId reduce_sum(ValueId x, std::vector<int64_t> axes, bool keep_dims = true);
  ValueId reduce_mean(ValueId x, std::vector<int64_t> axes, bool keep_dims = true);
  ValueId reshape(ValueId x, ValueId shape) { return emit(op::ReshapeAttributes{}, {x, shape}); }
  ValueId transpose(ValueId x, std::vector<int64_t> permutation);
  ValueId cast(ValueId x, DType to);
};

}  // namespace librt
