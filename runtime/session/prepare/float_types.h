// Values of a program in float types other than the graph's.
//
// Knows: how to convert them, once each: constants while planning, all others by a Cast step on the chosen
// device. A value that a node computed in another type is not converted back and forth. Must not know: which
// node needs which type (legalize.cpp).
#pragma once

#include <map>
#include <utility>

#include "runtime/session/prepare/legalize.h"

namespace librt {

class FloatTypes {
 public:
  FloatTypes(const LegalizeRequest& request, Program& program) : request_(request), p_(program) {}

  bool has(Ref value, DType type) const { return known_.contains({value, type}); }
  /// The value in `type`, the graph's type, after a step has computed it in its own type.
  Result<Ref> from_computed(Ref computed, DType type);
  /// Whether a step computed the value in `type`, which is not the graph's type.
  bool is_computed_in(Ref value, DType type) const {
    const auto found = computed_.find(value);
    return found != computed_.end() && found->second == type;
  }
  /// The value converted to an exchangeable type (core/convert_floats.h); other values unchanged.
  Result<Ref> as(Ref value, DType type);
  /// `alias` has the bytes of `value` in another shape; registers it in every type that `value` exists in.
  void add_alias(Ref value, Ref alias);

 private:
  Result<Ref> constant(Ref value, const TensorInfo& info);
  Result<Ref> cast(Ref value, const TensorInfo& info);
  Ref add_value(PlanValue value) {
    value.bytes = value.info.bytes();
    p_.values.push_back(std::move(value));
    return static_cast<Ref>(p_.values.size() - 1);
  }

  const LegalizeRequest& request_;
  Program& p_;
  std::map<std::pair<Ref, DType>, Ref> known_;
  std::map<Ref, DType> computed_;
};

}  // namespace librt
