#include "runtime/session/prepare/float_types.h"

#include "runtime/core/convert_floats.h"

namespace librt {

Result<Ref> FloatTypes::as(Ref value, DType type) {
  if (value == kNone) return value;
  TensorInfo info = p_.values[value].info;
  if (info.dtype == type || !is_exchangeable(info.dtype)) return value;
  if (const auto found = known_.find({value, type}); found != known_.end()) return found->second;
  info.dtype = type;
  // A value computed in a third type is converted directly from that.
  if (const auto found = computed_.find(value); found != computed_.end())
    if (const auto original = known_.find({value, found->second}); original != known_.end()) {
      RT_ASSIGN(const Ref made, cast(original->second, info));
      return known_[{value, type}] = made;
    }
  RT_ASSIGN(const Ref made,
            p_.values[value].source == ValueSource::Constant ? constant(value, info) : cast(value, info));
  known_[{value, type}] = made;
  return made;
}

Result<Ref> FloatTypes::constant(Ref value, const TensorInfo& info) {
  const PlanValue from = p_.values[value];
  const std::byte* host = from.host;
  if (info.bytes() > 0) {
    ConvertedConstant own;
    ConvertedConstant& converted = from.stable ? request_.converted.all[{from.host, info.dtype}] : own;
    if (!converted.filled) {
      if (from.stable) request_.converted.filled.push_back(&converted);
      RT_TRY(converted.bytes.reserve(info.bytes()));
      convert_floats(from.host, from.info.dtype, converted.bytes.data(), info.dtype, info.elements());
      converted.filled = true;
      if (is_within(request_.mapped, from.host)) discard_pages(from.host, from.info.bytes());
    }
    host = converted.bytes.data();
    if (!from.stable) p_.computed.push_back(std::move(own.bytes));
  }
  return add_value({.name = from.name,
                    .info = info,
                    .source = ValueSource::Constant,
                    .host = host,
                    .stable = from.stable,
                    .origin = from.origin});
}

Result<Ref> FloatTypes::cast(Ref value, const TensorInfo& info) {
  std::unique_ptr<Node>& node = p_.casts[static_cast<size_t>(info.dtype)];
  if (node == nullptr) {
    node = std::make_unique<Node>();
    op::CastAttributes attributes;
    attributes.to = static_cast<uint8_t>(info.dtype);
    node->op = make_op(std::move(attributes));
  }
  const Operand operand{.present = true, .info = p_.values[value].info};
  const NodeView view{.node = *node, .inputs = {&operand, 1}, .outputs = {&info, 1}};
  Device& device = request_.devices.device(DeviceSet::kChosen);
  Step step{.node = node.get(),
            .name = text(p_.values[value].name, " as ", name_of(info.dtype)),
            .inputs = {value},
            .device = DeviceSet::kChosen,
            .cost = ops::cost_of(view)};
  RT_ASSIGN(step.candidates, device.kernels().candidates(device, view));
  const Ref made = add_value(
      {.name = p_.values[value].name, .info = info, .index = static_cast<uint32_t>(p_.steps.size())});
  step.outputs = {made};
  p_.steps.push_back(std::move(step));
  known_[{made, p_.values[value].info.dtype}] = value;
  return made;
}

Result<Ref> FloatTypes::from_computed(Ref computed, DType type) {
  RT_ASSIGN(const Ref value, as(computed, type));
  if (value != computed) computed_[value] = p_.values[computed].info.dtype;
  return value;
}

void FloatTypes::add_alias(Ref value, Ref alias) {
  if (const auto found = computed_.find(value); found != computed_.end()) computed_[alias] = found->second;
  for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
    const auto found = known_.find({value, type});
    if (found == known_.end() || p_.values[found->second].source == ValueSource::Constant) continue;
    const TensorInfo info{.dtype = type, .shape = p_.values[alias].info.shape};
    known_[{alias, type}] = add_value({.name = p_.values[alias].name,
                                       .info = info,
                                       .source = ValueSource::Alias,
                                       .index = root_of(p_, found->second)});
  }
}

}  // namespace librt
