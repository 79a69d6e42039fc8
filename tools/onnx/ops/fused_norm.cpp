// Sums with their normalization in one node, and the embeddings of BERT, as ONNX Runtime fuses them
// (com.microsoft).
#include <limits>

#include "tools/onnx/node.h"
#include "tools/onnx/norms.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

constexpr float kFusedEpsilon = 1e-12f;

ValueId last_axis_norm(NodeContext& c, ValueId x, ValueId scale, ValueId bias) {
  op::LayerNormAttributes attributes;
  attributes.axis = -1;
  attributes.epsilon = c.real("epsilon", kFusedEpsilon);
  return c.emit.emit(attributes, {x, scale, bias});
}

// --- of sums

// Inputs x and skip and the vector `bias`, which may be absent. A skip of fewer rows is broadcast.
ValueId sum_with_skip(NodeContext& c, size_t bias) {
  const ValueId sum = c.emit.add(c.input(0), c.input(1));
  return c.has(bias) ? c.emit.add(sum, c.input(bias)) : sum;
}

// (x, skip, scale, [shift], [bias]) -> (y, -, -, sum); the mean and deviation are for training.
Status skip_layer_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 5));
  const ValueId sum = sum_with_skip(c, 4);
  c.outputs = {last_axis_norm(c, sum, c.input(2), c.input(3)), kNoValue, kNoValue, sum};
  return {};
}

// (x, skip, scale, [bias]) -> (y, -, -, sum)
Status skip_rms_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 4));
  const ValueId sum = sum_with_skip(c, 3);
  const DType type = c.dtype();
  const RmsNormalized norm =
      rms_normalized(c, sum, c.input(2), c.rank() - 1, c.real("epsilon", kFusedEpsilon),
                     type == DType::F16 || type == DType::BF16);
  c.outputs = {norm.y, kNoValue, kNoValue, sum};
  return {};
}

// (x [..,H C], scale [C], gate): the norm over each C elements, times the gate's activation, all in f32.
Status gated_rms_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  const std::string activation = c.string("activation", "silu");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    return invalid_model("activation: expected silu, swish or sigmoid, found ", activation);
  const int64_t size = c.rank(1) == 1 ? c.extent(1, 0) : -1;
  if (c.rank() < 1 || size < 1) return cannot("a scale of other than one known extent");
  Emitter& e = c.emit;
  std::vector<Extent> groups = extents_of(e, c.input(0));
  groups.back() =
      Extent::of(groups.back().is_number() && groups.back().number >= 0 ? groups.back().number / size : -1);
  groups.push_back(Extent::of(size));
  const ValueId x = reshape_to(e, as_type(e, c.input(0), DType::F32), groups);
  ValueId y =
      rms_normalized(c, x, as_type(e, c.input(1), DType::F32), c.rank(), c.real("epsilon", 1e-5f), false).y;
  y = reshape_to(e, y, extents_of(e, c.input(0)));
  const ValueId gate = as_type(e, c.input(2), DType::F32);
  y = e.mul(y, activation == "sigmoid" ? e.emit(op::SigmoidAttributes{}, {gate})
                                       : e.emit(op::SiluAttributes{}, {gate}));
  return c.result(as_type(e, y, c.dtype()));
}

// (x, y, gate [..,1]): x + y gate
Status gated_add(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 4));
  if (c.has(3)) return cannot("gate_weight is not supported; export for the CPU");
  return c.result(c.emit.add(c.input(0), c.emit.mul(c.input(1), c.input(2))));
}

// --- of groups of channels, with an activation

/// The norm of x [N,S..,C] or, without channels_last, [N,C,S..], in f32, then 1: SiLU.
Result<ValueId> activated_group_norm(NodeContext& c, ValueId x, bool channels_last) {
  const int64_t groups = c.integer("groups", 0), activation = c.integer("activation", 0);
  if (c.value(x).rank() < 3 || groups < 1)
    return invalid_model("expected an input of rank 3 or more and groups of at least 1, found rank ",
                         c.value(x).rank(), " and ", groups);
  if (activation != 0 && activation != 1)
    return invalid_model("activation: expected 0 or 1, found ", activation);
  Emitter& e = c.emit;
  const ValueId wide = as_type(e, x, DType::F32), first = channels_last ? to_channels_first(e, wide) : wide;
  const std::vector<Extent> extents = extents_of(e, first);
  ValueId y = reshape_to(e, group_normalized(c, first, groups, c.real("epsilon", 1e-5f)), extents);
  if (channels_last) y = to_channels_last(e, y);
  const auto by_channel = [&](size_t input) {
    std::vector<int64_t> column(channels_last ? size_t{1} : extents.size() - 1, 1);
    column[0] = -1;
    return e.reshape(as_type(e, c.input(input), DType::F32), e.ints(column));
  };
  y = e.add(e.mul(y, by_channel(1)), by_channel(2));
  if (activation == 1) y = e.emit(op::SiluAttributes{}, {y});
  return as_type(e, y, c.dtype());
}

Status fused_group_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  RT_ASSIGN(const ValueId y, activated_group_norm(c, c.input(0), c.integer("channels_last", 1) != 0));
  return c.result(y);
}

// (x, scale, shift, skip, [bias]) -> (y, x + skip + bias); a skip [N,C] or [N,1,1,C] is one for all
// positions.
Status skip_group_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  if (c.integer("channels_last", 1) == 0)
    return cannot("channels_last 0 is not supported; export in the layout NHWC");
  if (c.rank() != 4) return invalid_model("expected an input [N,H,W,C], found rank ", c.rank());
  ValueId skip = c.input(3);
  if (c.rank(3) == 2) skip = unsqueeze(c.emit, skip, {{1, 2}});
  ValueId sum = c.emit.add(c.input(0), skip);
  if (c.has(4)) sum = c.emit.add(sum, c.input(4));
  if (!c.emit.status().ok()) return {};
  RT_ASSIGN(const ValueId y, activated_group_norm(c, sum, true));
  c.outputs = {y, sum};
  return {};
}

// --- embeddings

/// Per-tensor scale and zero point; none for tensors that are not quantized.
struct TableScale {
  ValueId scale = kNoValue, zero = kNoValue;
};

ValueId scaled_rows(NodeContext& c, ValueId rows, const TableScale& scale) {
  if (scale.scale == kNoValue) return rows;
  const auto number = [&](ValueId id) {
    return id == kNoValue || c.value(id).rank() == 0 ? id : reshape_to(c.emit, id, {});
  };
  op::DequantizeLinearAttributes attributes;
  attributes.to = static_cast<uint8_t>(DType::F32);
  return c.emit.emit(attributes, {rows, number(scale.scale), number(scale.zero)});
}

ValueId embedding(NodeContext& c, ValueId table, ValueId ids, const TableScale& scale) {
  return scaled_rows(c, c.emit.emit(op::GatherAttributes{}, {table, ids}), scale);
}

// The first rows of the table, one for each of S positions.
ValueId first_rows(NodeContext& c, ValueId table, const TableScale& scale) {
  const ValueId end = dims_product(c.emit, c.input(0), 1, 2);
  const ValueId start = c.emit.ints(std::array<int64_t, 1>{0});
  return scaled_rows(c, slice_between(c.emit, table, 0, start, end), scale);
}

// How many entries of each row of input `mask` are 1; 0 without a mask.
ValueId valid_lengths(NodeContext& c, size_t mask) {
  op::ReduceSumAttributes along;
  along.axes = {1};
  along.keep_dims = false;
  ValueId ones = kNoValue;
  if (c.has(mask)) {
    ones = c.emit.emit(op::EqualAttributes{}, {c.input(mask), c.emit.scalar_like(1, c.input(mask))});
    ones = c.emit.cast(ones, DType::I32);
  } else {
    const ValueId ids = c.emit.cast(c.input(0), DType::I32);
    ones = c.emit.mul(ids, c.emit.scalar(0, DType::I32));
  }
  return c.emit.emit(std::move(along), {ones});
}

enum EmbeddingInput : size_t {
  kTokenIds,
  kSegmentIds,
  kWordTable,
  kPositionTable,
  kSegmentTable,
  kNormScale,
  kNormShift,
  kWordMask
};

struct EmbeddingScales {
  TableScale words, positions, segments, gamma, beta;
  ValueId position_ids = kNoValue;
};

Status embedded_norm(NodeContext& c, const EmbeddingScales& scales) {
  c.ignore({"mask_index_type"});  // given by the number of outputs
  if (c.rank(kTokenIds) != 2) return invalid_model("expected ids [B,S], found rank ", c.rank(kTokenIds));
  if (c.has(kSegmentIds) != c.has(kSegmentTable))
    return invalid_model("segment_ids and segment_embedding belong together");
  ValueId sum = embedding(c, c.input(kWordTable), c.input(kTokenIds), scales.words);
  if (scales.position_ids != kNoValue)
    sum = c.emit.add(sum, embedding(c, c.input(kPositionTable), scales.position_ids, scales.positions));
  else
    sum = c.emit.add(sum, first_rows(c, c.input(kPositionTable), scales.positions));
  if (c.has(kSegmentTable))
    sum = c.emit.add(sum, embedding(c, c.input(kSegmentTable), c.input(kSegmentIds), scales.segments));
  const ValueId y = last_axis_norm(c, sum, scaled_rows(c, c.input(kNormScale), scales.gamma),
                                   scaled_rows(c, c.input(kNormShift), scales.beta));
  c.outputs = {y, c.wants(1) ? valid_lengths(c, kWordMask) : kNoValue, sum};
  return {};
}

// (ids, [segment ids], word, position, [segment] tables, scale, shift, [mask], [position ids])
Status embed_layer_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 9));
  for (size_t i : {size_t{kWordTable}, size_t{kPositionTable}, size_t{kNormScale}, size_t{kNormShift}})
    if (!c.has(i)) return invalid_model("input ", i, " is missing");
  EmbeddingScales scales;
  scales.position_ids = c.input(8);
  return embedded_norm(c, scales);
}

// The same, then five scales and five zero points, of the three tables, scale and shift.
Status quantized_embed_layer_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 18));
  if (c.inputs.size() < 13) return invalid_model("expected 18 inputs, found ", c.inputs.size());
  for (size_t i : {size_t{kWordTable}, size_t{kPositionTable}, size_t{kNormScale}, size_t{kNormShift}})
    if (!c.has(i)) return invalid_model("input ", i, " is missing");
  const auto scale = [&](size_t i) { return TableScale{c.input(8 + i), c.input(13 + i)}; };
  return embedded_norm(c, {.words = scale(0),
                           .positions = scale(1),
                           .segments = scale(2),
                           .gamma = scale(3),
                           .beta = scale(4),
                           .position_ids = kNoValue});
}

constexpr ImportRow kFusedNormRows[] = {
    {"com.microsoft", "SkipLayerNormalization", 1, kNewestOpset, skip_layer_norm},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, kNewestOpset, skip_rms_norm},
    {"com.microsoft", "GroupNorm", 1, kNewestOpset, fused_group_norm},
    {"com.microsoft", "SkipGroupNorm", 1, kNewestOpset, skip_group_norm},
    {"com.microsoft", "GatedRMSNorm", 1, kNewestOpset, gated_rms_norm},
    {"com.microsoft", "GatedAdd", 1, kNewestOpset, gated_add},
    {"com.microsoft", "EmbedLayerNormalization", 1, kNewestOpset, embed_layer_norm},
    {"com.microsoft", "QEmbedLayerNormalization", 1, kNewestOpset, quantized_embed_layer_norm},
};

}  // namespace

std::span<const ImportRow> rows_fused_norm() {
  return kFusedNormRows;
}

}  // namespace librt::onnx
