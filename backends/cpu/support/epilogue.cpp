#include "backends/cpu/support/epilogue.h"

#include <algorithm>
#include <atomic>

#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/unary.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/geometry/function.h"

namespace librt::cpu {

UnaryLoops::Unary activation_of(const Simd& simd, op::Activation activation) noexcept {
  return activation == op::Activation::None
             ? nullptr
             : simd.loops<UnaryLoops>().unary[static_cast<int>(function_of(activation))];
}

bool bounds_values(op::Activation activation) noexcept {
  return activation == op::Activation::Relu || activation == op::Activation::Clip ||
         activation == op::Activation::HardSigmoid;
}

void activate(const Simd& simd, DType dtype, op::Activation activation, float alpha, float beta, std::byte* y,
              int64_t n) noexcept {
  const UnaryLoops::Unary loop = activation_of(simd, activation);
  parallel_for(n, 4, 64, [&](int64_t begin, int64_t end) noexcept {
    if (dtype == DType::F32) {
      auto* values = reinterpret_cast<float*>(y);
      return loop(values + begin, values + begin, end - begin, alpha, beta);
    }
    auto* values = reinterpret_cast<uint16_t*>(y);
    float wide[kWideBlock];
    for (int64_t i = begin; i < end; i += kWideBlock) {
      const int64_t count = std::min(kWideBlock, end - i);
      widen_block(simd, dtype, values + i, wide, count);
      loop(wide, wide, count, alpha, beta);
      narrow_block(simd, dtype, wide, values + i, count);
    }
  });
}

bool all_finite(DType dtype, const std::byte* x, int64_t n) noexcept {
  std::atomic<bool> finite{true};
  const auto look = [&](const auto* bits, uint32_t exponent, int64_t begin, int64_t end) noexcept {
    constexpr int64_t kRun = 8192;
    for (int64_t i = begin; i < end && finite.load(std::memory_order_relaxed); i += kRun) {
      const int64_t last = std::min(i + kRun, end);
      uint32_t found = 0;
#pragma omp simd reduction(| : found)
      for (int64_t k = i; k < last; ++k) found |= (bits[k] & exponent) == exponent ? 1u : 0u;
      if (found != 0) finite.store(false, std::memory_order_relaxed);
    }
  };
  parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
    if (dtype == DType::F32)
      look(reinterpret_cast<const uint32_t*>(x), 0x7f800000u, begin, end);
    else
      look(reinterpret_cast<const uint16_t*>(x), 0x7f80u, begin, end);
  });
  return finite;
}

Finish::Finish(const Simd& simd, const Shape& result, const op::EpilogueAttributes* epilogue,
               const Shape& bias)
    : elements_(result.elements()) {
  const auto& add = simd.loops<BinaryLoops>().binary[static_cast<int>(BinaryFunction::Add)];
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
  parallel_for(elements_, 4, 64,
               [&](int64_t begin, int64_t end) noexcept { run_part(y, bias, residual, begin, end); });
}

void Finish::run_part(float* y, const float* bias, const float* residual, int64_t begin,
                      int64_t end) const noexcept {
  if (bias != nullptr)
    for_each_run(plan_, begin, end, [&](int64_t first, const std::array<int64_t, 2>& offset, int64_t count) {
      add_bias_(y + first, bias + offset[1], y + first, count);
    });
  if (residual != nullptr) add_(y + begin, residual + begin, y + begin, end - begin);
  if (activation_ != nullptr) activation_(y + begin, y + begin, end - begin, alpha_, beta_);
}

}  // namespace librt::cpu
