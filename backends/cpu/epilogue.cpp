#include "backends/cpu/epilogue.h"

#include <optional>

namespace rt::cpu {
namespace {

std::optional<UnaryFunction> function_of(op::Activation activation) noexcept {
  switch (activation) {
    case op::Activation::None: break;
    case op::Activation::Relu: return UnaryFunction::Relu;
    case op::Activation::Clip: return UnaryFunction::Clip;
    case op::Activation::Sigmoid: return UnaryFunction::Sigmoid;
    case op::Activation::Tanh: return UnaryFunction::Tanh;
    case op::Activation::HardSwish: return UnaryFunction::HardSwish;
    case op::Activation::Silu: return UnaryFunction::Silu;
    case op::Activation::Gelu: return UnaryFunction::Gelu;
    case op::Activation::GeluTanh: return UnaryFunction::GeluTanh;
    case op::Activation::LeakyRelu: return UnaryFunction::LeakyRelu;
    case op::Activation::HardSigmoid: return UnaryFunction::HardSigmoid;
  }
  return std::nullopt;
}

}  // namespace

Simd::Unary activation_of(const Simd& simd, op::Activation activation) noexcept {
  const auto function = function_of(activation);
  return function ? simd.unary[static_cast<int>(*function)] : nullptr;
}

Finish::Finish(const Simd& simd, const Shape& result, const op::EpilogueAttributes* epilogue,
               const Shape& bias)
    : elements_(result.elements()) {
  const auto& add = simd.binary[static_cast<int>(BinaryFunction::Add)];
  add_ = add[static_cast<int>(Advance::Both)];
  add_bias_ = add_;
  if (epilogue == nullptr) return;
  if (epilogue->has_bias) {
    plan_ = broadcast_plan<2>(result, {result, bias});
    if (plan_.inner_stride(1) == 0) add_bias_ = add[static_cast<int>(Advance::First)];
  }
  activation_ = activation_of(simd, epilogue->activation);
  alpha_ = epilogue->alpha;
  beta_ = epilogue->beta;
}

void Finish::run(float* y, const float* bias, const float* residual) const noexcept {
  if (bias == nullptr && residual == nullptr && activation_ == nullptr) return;
  parallel_for(elements_, 4, 64, [&](int64_t begin, int64_t end) noexcept {
    if (bias != nullptr)
      for_each_run(plan_, begin, end,
                   [&](int64_t first, const std::array<int64_t, 2>& offset, int64_t count) {
                     add_bias_(y + first, bias + offset[1], y + first, count);
                   });
    if (residual != nullptr) add_(y + begin, residual + begin, y + begin, end - begin);
    if (activation_ != nullptr) activation_(y + begin, y + begin, end - begin, alpha_, beta_);
  });
}

}  // namespace rt::cpu
