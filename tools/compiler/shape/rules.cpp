// Rules of operators that compute extents, except windows (window_rules.cpp).
#include "tools/compiler/shape/rules.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/compiler/shape/rule_writer.h"
#include "tools/compiler/shape/saturating.h"

namespace librt::compiler {

Extent product_of(ExtentTable& table, std::span<const Extent> extents) {
  Extent product = number(1);
  for (const Extent& extent : extents) product = table.multiply(product, extent);
  return product;
}

void RuleWriter::run() {
  switch (ops::extent_rule(node_.kind())) {
    case ExtentRule::LikeFirst:
      for (size_t i = 0; i < results_.size(); ++i)
        if (has(0)) set(i, dims(0));
      return;
    case ExtentRule::Broadcast: {
      std::vector<Extent> shape;
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (has(i)) shape = broadcast(shape, dims(i));
      return set(0, shape);
    }
    case ExtentRule::Own: return own();
    default: return;
  }
}

void RuleWriter::own() {
  switch (node_.kind()) {
    case OpKind::Identity: return identity();
    case OpKind::Reshape: return reshape();
    case OpKind::Concat: return concat();
    case OpKind::Slice: return slice();
    case OpKind::Pad: return pad();
    case OpKind::Expand: return expand();
    case OpKind::Tile: return tile();
    case OpKind::Resize: return resize();
    case OpKind::Range: return range();
    case OpKind::ConstantOfShape:
    case OpKind::RandomUniform:
    case OpKind::RandomNormal:
    case OpKind::ScatterAdd:
    case OpKind::AveragePoolGrad: return set(0, entries(0));
    case OpKind::TopK: return top_k();
    case OpKind::MatMul: {
      const auto& attributes = node_.as<op::MatMulAttributes>();
      return matmul(attributes.transpose_a, attributes.transpose_b);
    }
    case OpKind::MatMulInteger:
    case OpKind::QuantizedMatMul: return matmul(false, false);
    case OpKind::AllGather:
      if (dims(0).size() != 1) return;
      return set(0, {t_.scale(dims(0)[0], node_.as<op::AllGatherAttributes>().ranks)});
    case OpKind::RankShard:
      return set(
          0, {t_.ceil_divide(product_of(t_, dims(0)), number(node_.as<op::RankShardAttributes>().ranks))});
    case OpKind::BlockQuantize:
      set(0, dims(0));
      return set(1, {t_.ceil_divide(product_of(t_, dims(0)),
                                    number(node_.as<op::BlockQuantizeAttributes>().block_size))});
    default: return windows();
  }
}

Extent RuleWriter::equal(Extent a, Extent b) {
  if (a == b) return a;
  demands_.push_back({a, b});
  return t_.length(b) < t_.length(a) ? b : a;
}

std::vector<Extent> RuleWriter::entries(size_t input) const {
  if (!has(input) || !inputs_[input]->has_elements) return {};
  return inputs_[input]->elements;
}

std::vector<Extent> RuleWriter::broadcast(std::span<const Extent> a, std::span<const Extent> b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<Extent> shape(rank);
  for (size_t back = 1; back <= rank; ++back)
    shape[rank - back] = back > a.size()   ? b[b.size() - back]
                         : back > b.size() ? a[a.size() - back]
                                           : t_.broadcast(a[a.size() - back], b[b.size() - back]);
  return shape;
}

/// The extents that are required: a run that goes on has found x to have them.
void RuleWriter::identity() {
  std::vector<Extent> shape = dims(0);
  const std::vector<Extent> required = entries(1);
  for (size_t i = 0; i < shape.size() && required.size() == shape.size(); ++i) {
    if (required[i].is_unknown()) continue;
    equal(shape[i], required[i]);
    shape[i] = required[i];
  }
  set(0, shape);
}

void RuleWriter::reshape() {
  if (!inputs_[1]->has_elements) return;
  std::vector<Extent> shape = entries(1);
  const Extent count = product_of(t_, dims(0));
  std::optional<size_t> inferred;  // the axis that gets what the others leave
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant(-1)) {
      inferred = i;
      shape[i] = number(1);
    } else if (!t_.is_nonnegative(shape[i])) {
      shape[i] = Extent::unknown();  // it may be -1
    }
  }
  const Extent others = product_of(t_, shape);
  // The page refuses -1 where the product of the other extents is 0, so the division is defined.
  if (inferred) shape[*inferred] = t_.floor_divide(count, others);
  if (!inferred && !others.is_unknown()) demands_.push_back({count, others});
  const auto open = std::find_if(shape.begin(), shape.end(), [](Extent e) { return e.is_unknown(); });
  if (open != shape.end() && !inferred) {
    std::vector<Extent> rest(shape.begin(), open);
    rest.insert(rest.end(), open + 1, shape.end());
    const Extent known = product_of(t_, rest);
    if (!known.is_unknown() && t_.is_at_least(known, 1)) *open = t_.floor_divide(count, known);
  }
  set(0, shape);
}

void RuleWriter::concat() {
  std::vector<Extent> shape = dims(0);
  const auto rank = static_cast<int>(shape.size());
  const auto axis = normalized_axis(node_.as<op::ConcatAttributes>().axis, rank);
  if (!axis) return;
  for (size_t i = 1; i < inputs_.size(); ++i) {
    if (!has(i) || dims(i).size() != shape.size()) return;
    for (size_t k = 0; k < shape.size(); ++k)
      shape[k] = static_cast<int>(k) == *axis ? t_.add(shape[k], dims(i)[k]) : equal(shape[k], dims(i)[k]);
  }
  set(0, shape);
}

Extent RuleWriter::clamped(Extent position, Extent extent, Extent low, Extent high) {
  // Not below 2^59: the end, whatever the extent is.
  if (position.is_constant() && position.constant >= kMostExtent) return high;
  if (position.is_constant() && position.constant <= -kMostExtent) return low;
  const Extent from_end = t_.select(t_.is_negative(position), t_.add(position, extent), position);
  return t_.clamp(from_end, low, high);
}

void RuleWriter::slice() {
  std::vector<Extent> shape = dims(0);
  const auto& attributes = node_.as<op::SliceAttributes>();
  const std::vector<Extent> starts = entries(1), ends = entries(2);
  const size_t count = attributes.axes.empty() ? starts.size() : attributes.axes.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t named = attributes.axes.empty() ? static_cast<int64_t>(i) : attributes.axes[i];
    const auto axis = normalized_axis(named, static_cast<int>(shape.size()));
    if (!axis) return;
    Extent& extent = shape[static_cast<size_t>(*axis)];
    if (i >= starts.size() || i >= ends.size()) {
      extent = Extent::unknown();
      continue;
    }
    const int64_t step = i < attributes.steps.size() ? attributes.steps[i] : 1;
    const Extent last = t_.add(extent, number(-1));
    Extent length;
    if (step > 0) {
      length = t_.subtract(clamped(ends[i], extent, number(0), extent),
                           clamped(starts[i], extent, number(0), extent));
    } else {
      // An empty axis gives 0; so does the formula, since `last` is -1 then.
      length = t_.subtract(clamped(starts[i], extent, number(0), last),
                           clamped(ends[i], extent, number(-1), last));
      length = t_.select(t_.is_zero(extent), number(0), length);
    }
    const int64_t size = std::min(step > 0 ? step : step < -kMostExtent ? kMostExtent : -step, kMostExtent);
    extent = t_.ceil_divide(t_.maximum(length, number(0)), number(size));
  }
  set(0, shape);
}

void RuleWriter::pad() {
  std::vector<Extent> shape = dims(0);
  const std::vector<Extent> pads = entries(1);
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] = pads.size() == 2 * shape.size() ? t_.add(shape[i], t_.add(pads[i], pads[i + shape.size()]))
                                               : Extent::unknown();
  set(0, shape);
}

void RuleWriter::expand() {
  const std::vector<Extent> shape = entries(1);
  if (!inputs_[1]->has_elements) return;
  std::vector<Extent> result = broadcast(dims(0), shape);
  set(0, result);
}

void RuleWriter::tile() {
  std::vector<Extent> shape = dims(0);
  const std::vector<Extent> repeats = entries(1);
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] = repeats.size() == shape.size() ? t_.multiply(shape[i], repeats[i]) : Extent::unknown();
  set(0, shape);
}

void RuleWriter::resize() {
  std::vector<Extent> shape = dims(0);
  if (shape.size() < 3) return;
  const size_t count = shape.size() - 2;
  if (has(1)) {
    const std::vector<Extent> sizes = entries(1);
    for (size_t i = 0; i < count; ++i) shape[i + 1] = i < sizes.size() ? sizes[i] : Extent::unknown();
  } else {
    const bool known = has(2) && inputs_[2]->bytes != nullptr && inputs_[2]->dtype == DType::F32 &&
                       inputs_[2]->dims.size() == 1 &&
                       inputs_[2]->dims[0].is_constant(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) {
      float scale = 0;
      if (known) std::memcpy(&scale, inputs_[2]->bytes + i * sizeof(float), sizeof(float));
      shape[i + 1] = scaled(shape[i + 1], scale);
    }
  }
  set(0, shape);
}

Extent RuleWriter::scaled(Extent extent, float scale) {
  // A run multiplies in f32 and rounds down: no expression of the extent gives that for all extents.
  if (!extent.is_constant() || !(scale > 0)) return Extent::unknown();
  const float product = static_cast<float>(extent.constant) * scale;
  return product < 0x1p31f ? number(static_cast<int64_t>(product)) : Extent::unknown();
}

void RuleWriter::range() {
  const std::vector<Extent> start = entries(0), limit = entries(1), delta = entries(2);
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1) return;
  if (!delta[0].is_constant() || delta[0].constant == 0) return;
  const Extent span = t_.subtract(limit[0], start[0]);
  set(0, {t_.maximum(t_.ceil_divide(span, delta[0]), number(0))});
}

void RuleWriter::top_k() {
  std::vector<Extent> shape = dims(0);
  const std::vector<Extent> k = entries(1);
  const auto axis = normalized_axis(node_.as<op::TopKAttributes>().axis, static_cast<int>(shape.size()));
  if (!axis) return;
  shape[static_cast<size_t>(*axis)] = k.size() == 1 ? k[0] : Extent::unknown();
  set(0, shape);
  set(1, shape);
}

void RuleWriter::matmul(bool transpose_a, bool transpose_b) {
  const std::vector<Extent>&a = dims(0), &b = dims(1);
  if (a.empty() || b.empty()) return;
  const auto split = [](const std::vector<Extent>& x, bool transposed, bool left, Extent& inner,
                        std::vector<Extent>& batch) -> std::optional<Extent> {
    if (x.size() == 1) {
      inner = x[0];
      return std::nullopt;
    }
    const Extent row = x[x.size() - (transposed ? 1 : 2)], column = x[x.size() - (transposed ? 2 : 1)];
    inner = left ? column : row;
    batch.assign(x.begin(), x.end() - 2);
    return left ? row : column;
  };
  Extent inner_a, inner_b;
  std::vector<Extent> batch_a, batch_b;
  const auto m = split(a, transpose_a, true, inner_a, batch_a);
  const auto n = split(b, transpose_b, false, inner_b, batch_b);
  equal(inner_a, inner_b);
  std::vector<Extent> shape = broadcast(batch_a, batch_b);
  if (m) shape.push_back(*m);
  if (n) shape.push_back(*n);
  set(0, shape);
}

void infer_extents(ExtentTable& table, const Node& node, std::span<const Known* const> inputs,
                   std::vector<std::vector<Extent>>& results, std::vector<Demand>& demands) {
  RuleWriter(table, node, inputs, results, demands).run();
}

}  // namespace librt::compiler
