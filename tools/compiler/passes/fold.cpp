// fold: computes what depends on constants only, and shape arithmetic whose result is the same for all
// extents.
//
// Exact: values come from the pages' reference functions. The file must not grow: a result of more than 1 MiB
// that is larger than the operands stays a node, and so does the widening of 16-bit weights unless it is
// requested.
#include <algorithm>
#include <cstring>

#include "runtime/ops/evaluate.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

constexpr size_t kAlwaysFoldBytes = size_t{1} << 20;
constexpr int64_t kAlwaysWidenElements = 4096;

bool is_foldable(GraphEdit& edit, const Node& node, bool widen) {
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr || page->impure || !(page->composite || ops::can_evaluate(node))) return false;
  size_t bytes_in = 0, bytes_out = 0;
  for (ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    if (!edit.is_constant(input) || edit.value(input).quantization) return false;
    bytes_in += edit.value(input).data.size;
  }
  for (ValueId output : node.outputs) {
    if (!edit.value(output).is_static() || edit.value(output).quantization) return false;
    bytes_out += edit.value(output).info().bytes();
  }
  if (node.kind() == OpKind::Cast && !widen &&
      edit.value(node.outputs[0]).info().elements() > kAlwaysWidenElements && bytes_out > bytes_in)
    return false;
  return bytes_out <= kAlwaysFoldBytes || bytes_out <= bytes_in || (widen && node.kind() == OpKind::Cast);
}

/// Weights are large and the reference functions slow: a transpose of any element type by copying.
void transpose_bytes(const Shape& from, std::span<const int64_t> permutation, const std::byte* in,
                     std::byte* out, size_t element) {
  const auto strides = strides_of(from);
  Shape to;
  std::array<int64_t, kMaxRank> step{}, index{};
  for (size_t i = 0; i < permutation.size(); ++i) {
    to.push_back(from[static_cast<int>(permutation[i])]);
    step[i] = strides[static_cast<size_t>(permutation[i])];
  }
  int64_t offset = 0;
  for (int64_t i = 0, count = to.elements(); i < count; ++i) {
    std::memcpy(out + static_cast<size_t>(i) * element, in + static_cast<size_t>(offset) * element, element);
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      offset += step[a];
      if (++index[a] < to[axis]) break;
      offset -= step[a] * to[axis];
      index[a] = 0;
    }
  }
}

/// By the composite's body, in a graph of this node alone.
Result<std::vector<ops::HostTensor>> compute_composite(GraphEdit& edit, const Node& node) {
  Graph graph;
  Builder builder(graph);
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs)
    inputs.push_back(input == kNoValue ? kNoValue
                                       : builder.constant(edit.value(input).info(), edit.value(input).data));
  for (const ValueId output : builder.emit_many(OpAttributes(node.op), inputs, node.outputs.size()))
    builder.output(output);
  RT_TRY(Status(builder.status()).in(describe(node)));
  RT_TRY(expand_composites(graph, {}));
  return ops::evaluate_graph(graph, {});
}

Result<std::vector<Blob>> compute(GraphEdit& edit, const Node& node) {
  if (node.kind() == OpKind::Reshape || node.kind() == OpKind::Identity)
    return std::vector<Blob>{edit.value(node.inputs[0]).data};
  std::vector<ops::HostTensor> results;
  for (ValueId output : node.outputs) results.emplace_back(edit.value(output).info());
  if (!ops::can_evaluate(node)) {
    RT_ASSIGN(results, compute_composite(edit, node));
  } else if (node.kind() == OpKind::Transpose) {
    const Value& x = edit.value(node.inputs[0]);
    transpose_bytes(x.info().shape, node.as<op::TransposeAttributes>().permutation, x.data.data,
                    results[0].bytes.data(), size_of(x.dtype));
  } else {
    std::vector<Operand> operands;
    std::vector<ConstTensorView> views;
    for (ValueId input : node.inputs) {
      const bool present = input != kNoValue;
      const TensorInfo info = present ? edit.value(input).info() : TensorInfo{};
      const void* bytes = present ? edit.value(input).data.data : nullptr;
      if (present && bytes == nullptr) bytes = "";  // an empty tensor
      operands.push_back({.present = present, .info = info, .value = bytes});
      views.push_back({bytes, info});
    }
    std::vector<TensorInfo> infos;
    std::vector<TensorView> outputs;
    for (ops::HostTensor& result : results) {
      infos.push_back(result.info);
      outputs.push_back(result.view());
    }
    RT_TRY(ops::evaluate_node({.node = node, .inputs = operands, .outputs = infos}, views, outputs));
  }
  std::vector<Blob> blobs;
  for (ops::HostTensor& result : results) blobs.push_back(Blob::own(std::move(result.bytes)));
  return blobs;
}

Status fold(Graph& graph, const PassContext& context, bool keep_integers) {
  GraphEdit edit(graph, context.states, context.inferred);
  RT_TRY(Status(edit.status()));
  const auto put = [&](ValueId old, Blob bytes) {
    const ValueId constant = edit.builder().constant(edit.value(old).info(), std::move(bytes));
    if (constant == kNoValue) return;
    graph[constant].name = graph[old].name;
    edit.replace(old, constant);
  };
  // The nodes are in topological order, so one walk folds whole chains.
  for (NodeId id = 0; id < edit.node_count(); ++id) {
    if (!edit.is_alive(id)) continue;
    const std::vector<ValueId> outputs = edit.node(id).outputs;
    const Value& first = edit.value(outputs[0]);
    if (keep_integers && edit.node(id).kind() == OpKind::DequantizeLinear && first.rank() > 1) continue;
    if (edit.is_output(outputs[0]) && edit.node(id).kind() == OpKind::Identity) continue;
    const bool known = std::all_of(outputs.begin(), outputs.end(), [&](ValueId output) {
      return edit.value(output).is_static() && edit.builder().known_value(output);
    });
    if (known) {
      for (const ValueId output : outputs) {
        const auto value = edit.builder().known_value(output);
        put(output, Blob::copy_of(value->data, value->info.bytes()));
      }
      continue;
    }
    if (!is_foldable(edit, edit.node(id), context.widen)) continue;
    RT_ASSIGN(std::vector<Blob> blobs, compute(edit, edit.node(id)));
    for (size_t i = 0; i < outputs.size(); ++i) put(outputs[i], std::move(blobs[i]));
  }
  return edit.finish();
}

}  // namespace

Status fold(Graph& graph, const PassContext& context) {
  return fold(graph, context, false);
}

Status fold_all(Graph& graph, const PassContext& context) {
  for (size_t before = graph.nodes.size() + 1; graph.nodes.size() < before;) {
    before = graph.nodes.size();
    RT_TRY(fold(graph, context));
  }
  return {};
}

Status fold_known(Graph& graph, const PassContext& context) {
  return fold(graph, context, true);
}

}  // namespace librt::compiler
