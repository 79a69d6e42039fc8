// Rules of convolutions and pools: how many windows fit. See runtime/geometry/windows.h for the formulas.
#include "tools/compiler/shape/rule_writer.h"

namespace librt::compiler {
namespace {

/// An entry of an attribute that may be absent.
int64_t entry(std::span<const int64_t> list, size_t i, int64_t absent) {
  return i < list.size() ? list[i] : absent;
}

}  // namespace

void RuleWriter::windows() {
  const auto convolution = [&](const auto& a) { conv(a.strides, a.pads, a.dilations, a.groups); };
  const auto pooling = [&](const auto& a) { pool(a.kernel, a.strides, a.pads, a.dilations, a.ceil_mode); };
  switch (node_.kind()) {
    case OpKind::Conv: return convolution(node_.as<op::ConvAttributes>());
    case OpKind::ConvInteger: return convolution(node_.as<op::ConvIntegerAttributes>());
    case OpKind::QuantizedConv: return convolution(node_.as<op::QuantizedConvAttributes>());
    case OpKind::ConvTranspose: return conv_transpose();
    case OpKind::ConvWeightGrad: return conv_weight_grad();
    case OpKind::MaxPool: return pooling(node_.as<op::MaxPoolAttributes>());
    case OpKind::MaxPoolIndices: return pooling(node_.as<op::MaxPoolIndicesAttributes>());
    case OpKind::AveragePool: return pooling(node_.as<op::AveragePoolAttributes>());
    default: return;
  }
}

Extent RuleWriter::padding(std::span<const int64_t> pads, size_t axis, size_t rank) {
  return t_.add(number(entry(pads, axis, 0)), number(entry(pads, axis + rank, 0)));
}

void RuleWriter::conv(std::span<const int64_t> strides, std::span<const int64_t> pads,
                      std::span<const int64_t> dilations, int64_t groups) {
  std::vector<Extent> shape = dims(0);
  const std::vector<Extent>& weight = dims(1);
  if (shape.size() < 3 || weight.size() != shape.size()) return;
  const size_t rank = shape.size() - 2;
  equal(shape.back(), t_.scale(weight.back(), groups));
  for (size_t i = 0; i < rank; ++i) {
    const Extent reach =
        t_.add(t_.scale(t_.add(weight[i + 1], number(-1)), entry(dilations, i, 1)), number(1));
    const Extent padded = t_.add(shape[i + 1], padding(pads, i, rank));
    const Extent last_start = t_.subtract(padded, reach);
    t_.assume_nonnegative(last_start);
    shape[i + 1] = t_.add(t_.floor_divide(last_start, number(entry(strides, i, 1))), number(1));
  }
  shape.back() = weight[0];
  set(0, shape);
}

void RuleWriter::conv_transpose() {
  std::vector<Extent> shape = dims(0);
  const std::vector<Extent>& weight = dims(1);
  const auto& a = node_.as<op::ConvTransposeAttributes>();
  if (shape.size() < 3 || weight.size() != shape.size()) return;
  const size_t rank = shape.size() - 2;
  const std::vector<Extent> sizes = entries(2);
  equal(shape.back(), weight[0]);
  for (size_t i = 0; i < rank; ++i) {
    if (has(2)) {
      shape[i + 1] = i < sizes.size() ? sizes[i] : Extent::unknown();
      continue;
    }
    const Extent steps = t_.scale(t_.add(shape[i + 1], number(-1)), entry(a.strides, i, 1));
    const Extent reach = t_.scale(t_.add(weight[i + 1], number(-1)), entry(a.dilations, i, 1));
    const Extent more = t_.add(number(1), number(entry(a.output_padding, i, 0)));
    shape[i + 1] = t_.add(t_.add(steps, reach), t_.subtract(more, padding(a.pads, i, rank)));
  }
  shape.back() = t_.scale(weight.back(), a.groups);
  set(0, shape);
}

void RuleWriter::conv_weight_grad() {
  const auto& a = node_.as<op::ConvWeightGradAttributes>();
  const std::vector<Extent>&x = dims(0), &grad = dims(1);
  if (x.size() < 3 || grad.size() != x.size()) return;
  std::vector<Extent> shape{grad.back()};
  for (const int64_t extent : a.kernel) shape.push_back(number(extent));
  shape.push_back(t_.floor_divide(x.back(), number(a.groups)));
  set(0, shape);
}

void RuleWriter::pool(std::span<const int64_t> kernel, std::span<const int64_t> strides,
                      std::span<const int64_t> pads, std::span<const int64_t> dilations, bool ceil_mode) {
  std::vector<Extent> shape = dims(0);
  if (shape.size() < 3 || kernel.size() + 2 != shape.size()) return;
  const size_t rank = kernel.size();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = entry(strides, i, 1), before = entry(pads, i, 0);
    const Extent reach =
        t_.add(t_.scale(t_.add(number(kernel[i]), number(-1)), entry(dilations, i, 1)), number(1));
    const Extent extent = shape[i + 1];
    const Extent last_start = t_.add(extent, t_.subtract(padding(pads, i, rank), reach));
    t_.assume_nonnegative(last_start);
    const Extent whole = t_.floor_divide(last_start, number(stride));
    Extent windows = t_.add(whole, number(1));
    if (ceil_mode) {
      // One more window for a remainder, unless it would start in the padding at the end.
      const Extent rest = t_.subtract(last_start, t_.scale(whole, stride));
      const Extent starts_inside =
          t_.is_negative(t_.subtract(t_.scale(windows, stride), t_.add(extent, number(before))));
      windows = t_.add(windows, t_.multiply(t_.negate(t_.is_zero(rest)), starts_inside));
    }
    shape[i + 1] = windows;
  }
  set(0, shape);
}

}  // namespace librt::compiler
