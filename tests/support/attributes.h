// One-line constructors of attributes for several tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/graph/op.h"

namespace librt::test {

/// QuantizeLinear's or DequantizeLinear's.
template <class Attributes>
Attributes quantization(DType to, int64_t axis = 1, int64_t block_size = 0) {
  Attributes attributes;
  attributes.to = static_cast<uint8_t>(to);
  attributes.axis = axis;
  attributes.block_size = block_size;
  return attributes;
}
inline op::QuantizeLinearAttributes quantize(DType to, int64_t axis = 1, int64_t block_size = 0) {
  return quantization<op::QuantizeLinearAttributes>(to, axis, block_size);
}
inline op::DequantizeLinearAttributes dequantize(DType to, int64_t axis = 1, int64_t block_size = 0) {
  return quantization<op::DequantizeLinearAttributes>(to, axis, block_size);
}

/// Conv's or ConvInteger's.
template <class Attributes = op::ConvAttributes>
Attributes conv(std::vector<int64_t> strides, std::vector<int64_t> pads, std::vector<int64_t> dilations,
                int64_t groups = 1) {
  Attributes attributes;
  attributes.strides = std::move(strides);
  attributes.pads = std::move(pads);
  attributes.dilations = std::move(dilations);
  attributes.groups = groups;
  return attributes;
}

}  // namespace librt::test
