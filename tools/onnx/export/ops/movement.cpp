// Data movement, shapes as values, indexed access.
#include <limits>

#include "runtime/core/element.h"
#include "tools/onnx/export/node_writer.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

int64_t normal_axis(int64_t axis, int rank) {
  return axis < 0 ? axis + rank : axis;
}

/// Where an axis is in the channels-first form.
int64_t axis_in_first(int64_t axis, int rank) {
  axis = normal_axis(axis, rank);
  return axis == 0 || rank < 3 ? axis : axis == rank - 1 ? 1 : axis + 1;
}

/// To a scalar by Squeeze: not every runtime takes an empty shape.
Result<bool> write_reshape(NodeWriter& n) {
  if (const auto shape = n.known_longs(1); shape && shape->empty()) {
    n.add("Squeeze", {n.in(0)}, {n.out()});
    return true;
  }
  n.add("Reshape", n.ins(), {n.out()}, {{"allowzero", int64_t{1}}});
  return true;
}

/// One that only changes the order of channels gives an existing value its other form.
Result<bool> write_transpose(NodeWriter& n) {
  const Longs& permutation = n.as<op::TransposeAttributes>().permutation;
  const int rank = n.rank();
  Forms &x = *n.scope.forms[n.node.inputs[0]], &y = *n.scope.forms[n.node.outputs[0]];
  if (rank >= 3 && permutation == to_second(rank)) {
    y.dense = n.writer.channels_first(x);
  } else if (rank >= 3 && permutation == to_last(rank)) {
    y.first = n.in(0);
  } else {
    n.add("Transpose", {n.in(0)}, {n.out()}, {{"perm", permutation}});
  }
  return true;
}

Result<bool> write_concat(NodeWriter& n) {
  const int rank = n.rank();
  const int64_t axis = normal_axis(n.as<op::ConcatAttributes>().axis, rank);
  bool first = false;
  for (size_t i = 0; i < n.node.inputs.size(); ++i) first = first || n.prefers_first(i);
  Names inputs;
  for (size_t i = 0; i < n.node.inputs.size(); ++i) inputs.push_back(first ? n.in_first(i) : n.in(i));
  n.add("Concat", inputs, {first ? n.out_first() : n.out()},
        {{"axis", first ? axis_in_first(axis, rank) : axis}});
  return true;
}

Result<bool> write_slice(NodeWriter& n) {
  const auto& slice = n.as<op::SliceAttributes>();
  const bool first = n.prefers_first(0);
  Longs axes = slice.axes;
  for (int64_t& axis : axes)
    if (first) axis = axis_in_first(axis, n.rank());
  const Names inputs = {first ? n.in_first(0) : n.in(0), n.in(1), n.in(2), n.longs(axes),
                        slice.steps.empty() ? std::string() : n.longs(slice.steps)};
  n.add("Slice", inputs, {first ? n.out_first() : n.out()});
  return true;
}

Result<bool> write_pad(NodeWriter& n) {
  constexpr const char* kPadModes[] = {"constant", "reflect", "edge", "wrap"};
  const std::string mode = kPadModes[static_cast<size_t>(n.as<op::PadAttributes>().mode)];
  const auto pads = n.known_longs(1);
  const bool first = n.prefers_first(0) && pads;
  std::string moved;
  if (first) {
    const auto rank = static_cast<size_t>(n.rank());
    const Longs order = to_second(n.rank());
    Longs all(2 * rank);
    for (size_t i = 0; i < 2 * rank; ++i)
      all[i] = (*pads)[static_cast<size_t>(order[i % rank]) + i / rank * rank];
    moved = n.longs(all);
  }
  const Names inputs = {first ? n.in_first(0) : n.in(0), first ? moved : n.in(1), n.in(2)};
  n.add("Pad", inputs, {first ? n.out_first() : n.out()}, {{"mode", mode}});
  return true;
}

/// Operands, results and meaning are the same.
Result<bool> write_alike(NodeWriter& n) {
  n.add(n.name(), n.ins(), n.outs());
  return true;
}

/// Its operands are scalars in ONNX; a tensor of one element does here.
Result<bool> write_range(NodeWriter& n) {
  Names inputs;
  for (size_t i = 0; i < n.node.inputs.size(); ++i)
    inputs.push_back(n.rank(i) == 0 ? n.in(i) : n.emit("Squeeze", {n.in(i)}));
  n.add("Range", inputs, {n.out()});
  return true;
}

template <class A>
Result<bool> write_with_axis(NodeWriter& n) {
  n.add(n.name(), n.ins(), {n.out()}, {{"axis", n.as<A>().axis}});
  return true;
}

Result<bool> write_shape(NodeWriter& n) {
  const auto& shape = n.as<op::ShapeAttributes>();
  Attributes attributes = {{"start", shape.start}};
  if (shape.end != std::numeric_limits<int64_t>::max()) attributes.push_back({"end", shape.end});
  n.add("Shape", {n.in(0)}, {n.out()}, attributes);
  return true;
}

Result<bool> write_constant_of_shape(NodeWriter& n) {
  const auto& fill = n.as<op::ConstantOfShapeAttributes>();
  const auto type = static_cast<DType>(fill.dtype);
  std::byte bytes[8] = {};
  store_element(bytes, type, 0, fill.value);
  auto value = std::make_unique<rt_onnx::TensorProto>();
  value->set_data_type(n.onnx_type(type));
  value->add_dims(1);
  value->set_raw_data(bytes, size_of(type));
  const std::string shape = n.in(0);
  n.add("ConstantOfShape", {shape}, {n.out()}, {{"value", value.release()}});
  return true;
}

// --- indexed access

std::string reduction_name(op::ScatterReduction reduction) {
  constexpr const char* kNames[] = {"none", "add", "mul", "min", "max"};
  return kNames[static_cast<size_t>(reduction)];
}

Result<bool> write_gather_nd(NodeWriter& n) {
  n.add("GatherND", {n.in(0), n.dtype(1) == DType::I64 ? n.in(1) : n.cast(n.in(1), DType::I64)}, {n.out()},
        {{"batch_dims", n.as<op::GatherNDAttributes>().batch_dimensions}});
  return true;
}

Result<bool> write_scatter_elements(NodeWriter& n) {
  const auto& scatter = n.as<op::ScatterElementsAttributes>();
  n.add("ScatterElements", n.ins(), {n.out()},
        {{"axis", scatter.axis}, {"reduction", reduction_name(scatter.reduction)}});
  return true;
}

Result<bool> write_scatter_nd(NodeWriter& n) {
  const Names inputs = {n.in(0), n.dtype(1) == DType::I64 ? n.in(1) : n.cast(n.in(1), DType::I64), n.in(2)};
  n.add("ScatterND", inputs, {n.out()},
        {{"reduction", reduction_name(n.as<op::ScatterNDAttributes>().reduction)}});
  return true;
}

Result<bool> write_tensor_scatter(NodeWriter& n) {
  const auto& scatter = n.as<op::TensorScatterAttributes>();
  n.writer.require_opset(24);
  const Names inputs = {n.in(0), n.in(1),
                        !n.has(2) || n.dtype(2) == DType::I64 ? n.in(2) : n.cast(n.in(2), DType::I64)};
  n.add("TensorScatter", inputs, {n.out()},
        {{"axis", scatter.axis}, {"mode", std::string(scatter.circular ? "circular" : "linear")}});
  return true;
}

template <class A>
Result<bool> write_scan(NodeWriter& n) {
  const auto& scan = n.as<A>();
  if (n.node.kind() == OpKind::CumProd) n.writer.require_opset(26);
  const Names inputs = {n.in(0), n.number(static_cast<double>(scan.axis), DType::I64)};
  n.add(
      n.name(), inputs, {n.out()},
      {{"exclusive", static_cast<int64_t>(scan.exclusive)}, {"reverse", static_cast<int64_t>(scan.reverse)}});
  return true;
}

Result<bool> write_top_k(NodeWriter& n) {
  const auto& top = n.as<op::TopKAttributes>();
  n.add("TopK", n.ins(), n.outs(),
        {{"axis", top.axis},
         {"largest", static_cast<int64_t>(top.largest)},
         {"sorted", static_cast<int64_t>(top.sorted)}});
  return true;
}

Result<bool> write_suppression(NodeWriter& n) {
  n.add(
      "NonMaxSuppression", n.ins(), {n.out()},
      {{"center_point_box", static_cast<int64_t>(n.as<op::NonMaxSuppressionAttributes>().center_point_box)}});
  return true;
}

Result<bool> write_unique(NodeWriter& n) {
  const auto& unique = n.as<op::UniqueAttributes>();
  Attributes attributes = {{"sorted", static_cast<int64_t>(unique.sorted)}};
  if (!unique.flatten) attributes.push_back({"axis", unique.axis});
  n.add("Unique", n.ins(), n.outs(), attributes);
  return true;
}

// --- reductions

template <class A>
Result<bool> write_reduction(NodeWriter& n) {
  const auto& reduction = n.as<A>();
  const int rank = n.rank();
  // Kept axes are in the channels-first order afterwards; of those that remain, the order must be known.
  const bool first = n.prefers_first(0) && (reduction.keep_dims || n.output().rank() <= 2);
  Longs axes = reduction.axes;
  bool channels = axes.empty(), batch = axes.empty();
  for (int64_t& axis : axes) {
    axis = normal_axis(axis, rank);
    channels = channels || axis == rank - 1;
    batch = batch || axis == 0;
    if (first) axis = axis_in_first(axis, rank);
  }
  const bool ordered = reduction.keep_dims || n.output().rank() < 2 || (!channels && !batch);
  if (first && !ordered) axes = reduction.axes;
  const bool moved = first && ordered;
  Names inputs = {moved ? n.in_first(0) : n.in(0)};
  if (!axes.empty()) inputs.push_back(n.longs(axes));
  n.add(n.name(), inputs, {moved && reduction.keep_dims ? n.out_first() : n.out()},
        {{"keepdims", static_cast<int64_t>(reduction.keep_dims)}});
  return true;
}

template <class A>
Result<bool> write_position(NodeWriter& n) {
  const auto& arg = n.as<A>();
  n.add(n.name(), n.ins(), {n.out()},
        {{"axis", arg.axis},
         {"keepdims", static_cast<int64_t>(arg.keep_dims)},
         {"select_last_index", static_cast<int64_t>(arg.select_last)}});
  return true;
}

/// The scale, which ONNX's operator needs: ones where there is none.
Result<bool> write_layer_norm(NodeWriter& n) {
  const auto& norm = n.as<op::LayerNormAttributes>();
  Names inputs = {{}, {}, {}};
  if (!n.has(1)) {
    Longs extents;
    for (int axis = static_cast<int>(normal_axis(norm.axis, n.rank())); axis < n.rank(); ++axis)
      extents.push_back(n.input(0).dims[static_cast<size_t>(axis)].extent);
    int64_t count = 1;
    for (const int64_t extent : extents) {
      if (extent < 0) return false;
      count *= extent;
    }
    std::string bytes(static_cast<size_t>(count) * size_of(n.dtype()), '\0');
    for (int64_t i = 0; i < count; ++i) store_element(bytes.data(), n.dtype(), i, 1);
    inputs[1] = n.writer.fresh(text(n.writer.node_name(), "/ones"));
    n.writer.initializer(inputs[1], n.onnx_type(n.dtype()), extents).set_raw_data(std::move(bytes));
  } else {
    inputs[1] = n.in(1);
  }
  inputs[0] = n.in(0);
  inputs[2] = n.in(2);
  n.add("LayerNormalization", inputs, {n.out()}, {{"axis", norm.axis}, {"epsilon", norm.epsilon}});
  return true;
}

constexpr ExportRow kMovement[] = {
    {OpKind::Reshape, write_reshape},
    {OpKind::Transpose, write_transpose},
    {OpKind::Concat, write_concat},
    {OpKind::Slice, write_slice},
    {OpKind::Pad, write_pad},
    {OpKind::Expand, write_alike},
    {OpKind::Tile, write_alike},
    {OpKind::Gather, write_with_axis<op::GatherAttributes>},
    {OpKind::Shape, write_shape},
    {OpKind::ConstantOfShape, write_constant_of_shape},
    {OpKind::Range, write_range},
    {OpKind::GatherElements, write_with_axis<op::GatherElementsAttributes>},
    {OpKind::GatherND, write_gather_nd},
    {OpKind::ScatterElements, write_scatter_elements},
    {OpKind::ScatterND, write_scatter_nd},
    {OpKind::TensorScatter, write_tensor_scatter},
    {OpKind::CumSum, write_scan<op::CumSumAttributes>},
    {OpKind::CumProd, write_scan<op::CumProdAttributes>},
    {OpKind::TopK, write_top_k},
    {OpKind::NonZero, write_alike},
    {OpKind::NonMaxSuppression, write_suppression},
    {OpKind::Unique, write_unique},
    {OpKind::ReduceSum, write_reduction<op::ReduceSumAttributes>},
    {OpKind::ReduceMean, write_reduction<op::ReduceMeanAttributes>},
    {OpKind::ReduceMax, write_reduction<op::ReduceMaxAttributes>},
    {OpKind::ReduceMin, write_reduction<op::ReduceMinAttributes>},
    {OpKind::ReduceProd, write_reduction<op::ReduceProdAttributes>},
    {OpKind::ArgMax, write_position<op::ArgMaxAttributes>},
    {OpKind::ArgMin, write_position<op::ArgMinAttributes>},
    {OpKind::Softmax, write_with_axis<op::SoftmaxAttributes>},
    {OpKind::LogSoftmax, write_with_axis<op::LogSoftmaxAttributes>},
    {OpKind::LayerNorm, write_layer_norm},
};

}  // namespace

std::span<const ExportRow> export_rows_movement() {
  return kMovement;
}

}  // namespace librt::onnx
