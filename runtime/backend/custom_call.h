// Calls an operator of the application: its operands, results and attributes as rt/custom.h describes them.
//
// Knows: one node at concrete shapes. Must not know: memory, which backend calls it. Compiled into the
// modules of backends.
#pragma once

#include <deque>

#include "runtime/backend/custom_operators.h"
#include "runtime/geometry/custom.h"

namespace librt {

class CustomCall {
 public:
  /// The functions are copied. Only after the node has been inferred.
  CustomCall(const rt_custom_operator& functions, const NodeView& node);
  CustomCall(const CustomCall&) = delete;
  CustomCall& operator=(const CustomCall&) = delete;

  /// Allocates nothing unless it fails. What the function throws is an error, too.
  Status run(rt_custom_function function, std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs, void* stream) noexcept;
  Status run_on_host(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) noexcept {
    return run(functions_.run, inputs, outputs, nullptr);
  }
  Status run_on_cuda(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                     void* stream) noexcept {
    return run(functions_.run_cuda, inputs, outputs, stream);
  }

 private:
  rt_custom_operator functions_;
  std::string node_, operator_;
  op::CustomAttributes values_;    ///< which the attributes refer to
  std::deque<std::string> texts_;  ///< names and texts of the attributes, which stay where they are
  std::vector<TensorInfo> infos_;
  std::vector<rt_custom_attribute> attributes_;
  std::vector<rt_custom_tensor> tensors_;  ///< operands, then results
  size_t input_count_;
  char message_[256];
};

/// Ok if the session's operator has this kernel, which `memory` names for the message.
Status supports_custom(const Device& device, const NodeView& node,
                       rt_custom_function rt_custom_operator::*kernel, const char* name);

}  // namespace librt
