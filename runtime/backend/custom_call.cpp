#include "runtime/backend/custom_call.h"

#include <cstring>

#include "runtime/core/exception.h"

namespace librt {
namespace {

rt_custom_tensor tensor_of(const TensorInfo& info) noexcept {
  return {static_cast<rt_dtype>(info.dtype), info.shape.rank(), info.shape.begin(), nullptr};
}

}  // namespace

CustomCall::CustomCall(const rt_custom_operator& functions, const NodeView& node)
    : functions_(functions),
      node_(node.node.name),
      values_(node.as<op::CustomAttributes>()),
      input_count_(node.input_count()) {
  operator_ = text("operator '", values_.name, "' of the domain '", values_.domain, "', node '", node_, "'");
  for (size_t i = 0; i < input_count_; ++i) infos_.push_back(node.input(i));
  infos_.insert(infos_.end(), node.outputs.begin(), node.outputs.end());
  for (const TensorInfo& info : infos_) tensors_.push_back(tensor_of(info));
  for (size_t i = 0; i < input_count_; ++i)
    if (!node.has(i)) tensors_[i].rank = -1;
  CustomAttributeReader reader(values_);
  for (CustomAttribute one;;) {
    const Result<bool> more = reader.next(one);
    if (!more.ok() || !*more) break;
    rt_custom_attribute& to = attributes_.emplace_back();
    to.name = texts_.emplace_back(one.name).c_str();
    to.count = one.count;
    to.kind = one.type == 'i' ? RT_CUSTOM_INTS : one.type == 'f' ? RT_CUSTOM_FLOATS : RT_CUSTOM_TEXT;
    if (one.type == 'i') to.ints = values_.ints.data() + one.first;
    if (one.type == 'f') to.floats = values_.floats.data() + one.first;
    if (one.type == 's') to.text = texts_.emplace_back(values_.text, one.first, one.count).c_str();
  }
}

Status CustomCall::run(rt_custom_function function, std::span<const std::byte* const> inputs,
                       std::span<std::byte* const> outputs, void* stream) noexcept {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const size_t output = i - input_count_;
    if (i < input_count_)
      tensors_[i].data = i < inputs.size() ? const_cast<std::byte*>(inputs[i]) : nullptr;
    else
      tensors_[i].data = output < outputs.size() ? outputs[output] : nullptr;
  }
  message_[0] = 0;
  const rt_custom_call call{sizeof call,
                            node_.c_str(),
                            tensors_.data(),
                            input_count_,
                            tensors_.data() + input_count_,
                            tensors_.size() - input_count_,
                            attributes_.data(),
                            attributes_.size(),
                            stream,
                            message_,
                            sizeof message_};
  int result = 0;
  RT_ATTEMPT {
    result = function(functions_.user, &call);
    if (result == 0) return {};
  }
  RT_CAUGHT {
    return caught_exception(operator_.c_str());
  }
  message_[sizeof message_ - 1] = 0;
  const bool known = result > 0 && result <= static_cast<int>(Code::DeviceLost);
  return Status::make(known ? static_cast<Code>(result) : Code::Internal, operator_, ": ",
                      message_[0] != 0 ? std::string(message_) : text("its kernel returned ", result));
}

Status supports_custom(const Device& device, const NodeView& node,
                       rt_custom_function rt_custom_operator::*kernel, const char* name) {
  const CustomOperator* const found = find_custom(device, node);
  if (found != nullptr && found->functions.*kernel != nullptr) return {};
  return unsupported("the operator '", node.as<op::CustomAttributes>().name, "' has no kernel `", name,
                     "` (rt/custom.h)");
}

}  // namespace librt
