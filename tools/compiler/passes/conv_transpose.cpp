#include "tools/compiler/passes/conv_transpose.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace librt::compiler {

std::optional<SideBySide> side_by_side(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  const auto& attributes = node.as<op::ConvTransposeAttributes>();
  const Value& weight = edit.value(node.inputs[1]);
  if (!weight.is_static() || attributes.groups != 1 || edit.input(node, 2) != kNoValue) return std::nullopt;
  const auto all = [](const std::vector<int64_t>& entries, int64_t number) {
    return std::ranges::all_of(entries, [&](int64_t entry) { return entry == number; });
  };
  if (!all(attributes.pads, 0) || !all(attributes.output_padding, 0) || !all(attributes.dilations, 1))
    return std::nullopt;
  const Shape shape = weight.info().shape;
  const auto window = shape.dims().subspan(1, static_cast<size_t>(shape.rank() - 2));
  SideBySide found{.window = {window.begin(), window.end()}, .inputs = shape[0], .channels = shape.back()};
  const bool same = attributes.strides.empty() ? all(found.window, 1) : found.window == attributes.strides;
  // Twice the spatial axes, for the movement.
  if (!same || 2 * window.size() + 2 > static_cast<size_t>(kMaxRank)) return std::nullopt;
  found.taps = std::accumulate(window.begin(), window.end(), int64_t{1}, std::multiplies());
  return found;
}

ValueId reshaped_constant(GraphEdit& edit, ValueId constant, const Shape& shape) {
  return edit.builder().constant({.dtype = edit.value(constant).dtype, .shape = shape},
                                 edit.value(constant).data);
}

ValueId by_tap(GraphEdit& edit, ValueId vector, const SideBySide& found) {
  if (vector == kNoValue || edit.value(vector).rank() == 0) return vector;
  Builder& b = edit.builder();
  const ValueId repeated =
      edit.emit(op::ExpandAttributes{}, {vector, b.ints(std::array{found.taps, found.channels})});
  return b.reshape(repeated, b.ints(std::array{found.taps * found.channels}));
}

NodeId put_matmul(GraphEdit& edit, NodeId id, const SideBySide& found, ValueId matrix, ValueId bias,
                  ValueId shape) {
  const ValueId x = edit.node(id).inputs[0], y = edit.node(id).outputs[0];
  edit.name_after(id);
  Builder& b = edit.builder();
  op::MatMulAttributes attributes;
  std::vector<ValueId> inputs{x, matrix};
  if (bias != kNoValue) {
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->has_bias = true;
    inputs.push_back(bias);
  }
  const ValueId matmul = edit.emit(std::move(attributes), inputs);
  // [N,S..,K..,O] and [N,S K..,O], both from x's shape [N,S..,C].
  const size_t k = found.window.size();
  std::vector<int64_t> from(2 * k + 2), kept(2 * k + 2), added(2 * k + 2), factors(k + 2), last(k + 2);
  std::vector<int64_t> permutation{0};
  factors[0] = 1;
  for (size_t i = 0; i < k; ++i) {
    from[i + 1] = static_cast<int64_t>(i + 1);
    added[k + 1 + i] = factors[i + 1] = found.window[i];
    permutation.push_back(static_cast<int64_t>(i + 1));
    permutation.push_back(static_cast<int64_t>(k + 1 + i));
  }
  std::fill_n(kept.begin(), k + 1, 1);
  added.back() = last.back() = found.channels;
  permutation.push_back(static_cast<int64_t>(2 * k + 1));
  const ValueId extents = b.shape_of(shape);
  const ValueId picked = edit.emit(op::GatherAttributes{}, {extents, b.ints(from)});
  const ValueId split = b.add(b.mul(picked, b.ints(kept)), b.ints(added));
  const ValueId merged = b.add(b.mul(extents, b.ints(factors)), b.ints(last));
  const ValueId moved = b.reshape(b.transpose(b.reshape(matmul, split), permutation), merged);
  if (moved != kNoValue) edit.replace(y, moved);
  return edit.producer_id(matmul);
}

Status use_matmuls(Graph& graph, const std::vector<State>& states) {
  GraphEdit edit(graph, states);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
    if (!edit.is_alive(id, OpKind::ConvTranspose)) continue;
    const ValueId x = edit.node(id).inputs[0], weight = edit.node(id).inputs[1],
                  bias = edit.input(edit.node(id), 3);
    if (!edit.is_constant(weight) || edit.value(weight).dtype != DType::F32 || edit.is_constant(x)) continue;
    if (bias != kNoValue && !edit.is_constant(bias)) continue;
    const auto found = side_by_side(edit, id);
    if (!found) continue;
    const ValueId matrix = reshaped_constant(edit, weight, {found->inputs, found->taps * found->channels});
    ValueId repeated = kNoValue;
    if (bias != kNoValue) {
      const Blob data = edit.value(bias).data;
      std::vector<std::byte> bytes;
      for (int64_t i = 0; i < found->taps; ++i) bytes.insert(bytes.end(), data.data, data.data + data.size);
      repeated = edit.builder().constant({.dtype = DType::F32, .shape = {found->taps * found->channels}},
                                         Blob::own(std::move(bytes)));
    }
    put_matmul(edit, id, *found, matrix, repeated, x);
  }
  return edit.finish();
}

}  // namespace librt::compiler
