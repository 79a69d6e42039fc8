#include "backends/cpu/support/requantize.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/simd/quantize.h"
#include "backends/cpu/simd/quantized.h"
#include "backends/cpu/support/epilogue.h"
#include "backends/cpu/support/widen_blocks.h"

namespace librt::cpu {
namespace {

template <class T>
std::vector<T> repeated(const std::vector<T>& values, int64_t times) {
  std::vector<T> result;
  result.reserve(values.size() * static_cast<size_t>(times));
  for (int64_t i = 0; i < times; ++i) result.insert(result.end(), values.begin(), values.end());
  return result;
}

}  // namespace

BlockRequantizer::BlockRequantizer(const Simd& simd, const Requantization& last, std::vector<int32_t> less)
    : simd_(&simd),
      channels_(static_cast<int64_t>(last.scale.size())),
      together_(std::max<int64_t>(kWideBlock / std::max<int64_t>(channels_, 1), 1)),
      less_(repeated(less, together_)),
      scale_(repeated(last.scale, together_)),
      bias_(repeated(last.bias, together_)),
      activation_(last.activation),
      alpha_(last.alpha),
      beta_(last.beta),
      y_scale_(last.y_scale),
      inverse_(1 / last.y_scale),
      type_(last.y_type),
      normal_(std::isnormal(y_scale_) && std::isnormal(inverse_)),
      y_zero_(static_cast<std::byte>(last.y_zero)) {
  const float bound = 262144.0f * y_scale_;  // beyond any code
  const bool clamps = activation_ == op::Activation::None || activation_ == op::Activation::Relu ||
                      activation_ == op::Activation::Clip;
  const auto index = type_ == DType::I8 ? 0 : 1;
  if (type_ == DType::F32 || !clamps || !normal_ || !(bound > 0) || !std::isfinite(bound) ||
      simd.loops<QuantizedLoops>().requantize[index] == nullptr)
    return;
  float low = -bound, high = bound;
  if (activation_ == op::Activation::Relu) low = 0;
  if (activation_ == op::Activation::Clip) {
    if (!(alpha_ == alpha_ && beta_ == beta_)) return;
    low = std::clamp(alpha_, -bound, bound);
    high = std::clamp(beta_, -bound, bound);
  }
  in_one_pass_ = Requantized{low, high, y_scale_, inverse_, last.y_zero};
}

void BlockRequantizer::convert(const int32_t* sums, int64_t channel, std::byte* y, int64_t n) const noexcept {
  const auto& loops = simd_->loops<QuantizedLoops>();
  const auto* less = less_.data() + channel;
  const auto *scale = scale_.data() + channel, *bias = bias_.data() + channel;
  if (in_one_pass_)
    return loops.requantize[type_ == DType::I8 ? 0 : 1](sums, less, scale, bias, *in_one_pass_, y, n);
  float buffer[kWideBlock];
  float* const real = type_ == DType::F32 ? reinterpret_cast<float*>(y) : buffer;
  loops.scale_sums(sums, less, scale, bias, real, n);
  if (const auto activation = activation_of(*simd_, activation_); activation != nullptr)
    activation(real, real, n, alpha_, beta_);
  if (type_ == DType::F32) return;
  const auto code = type_ == DType::I8 ? IntegerCode::I8 : IntegerCode::U8;
  simd_->loops<QuantizeLoops>().quantize[static_cast<int>(code)](
      real, &y_scale_, normal_ ? &inverse_ : nullptr, &y_zero_, y, n, false);
}

void BlockRequantizer::run(const int32_t* sums, int64_t rows, Range columns, std::byte* y,
                           int64_t y_stride) const noexcept {
  const auto bytes = static_cast<int64_t>(size_of(type_));
  const int64_t width = columns.end - columns.begin;
  if (width == channels_ && y_stride == width && width <= kWideBlock) {
    for (int64_t row = 0; row < rows; row += together_)
      convert(sums + row * width, 0, y + row * width * bytes, std::min(together_, rows - row) * width);
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < width; c += kWideBlock)
      convert(sums + row * width + c, columns.begin + c, y + (row * y_stride + c) * bytes,
              std::min(kWideBlock, width - c));
}

}  // namespace librt::cpu
