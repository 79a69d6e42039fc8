// FlexAttention: attention whose scores and probabilities are modified by graphs of the model.
#include <cmath>

#include "tools/onnx/attribute.h"
#include "tools/onnx/importer.h"
#include "tools/onnx/narrow.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {

namespace {

struct FlexOperands {
  ValueId query, key, value;  ///< [B,H,S,D], [B,G,T,D], [B,G,T,E]
  int64_t heads = 0, groups = 0;
};

/// Heads are stored group by group, so the heads of a group form one matrix: [B,H,S,X] as [B,G,H/G S,X].
ValueId by_group(Emitter& emit, const FlexOperands& all, ValueId x) {
  if (all.heads == all.groups || x == kNoValue) return x;
  const Extent extents[] = {Extent::dim(emit, x, 0), Extent::of(all.groups), Extent::of(-1),
                            Extent::dim(emit, x, 3)};
  return reshape_to(emit, x, extents);
}

ValueId by_head(Emitter& emit, const FlexOperands& all, ValueId x) {
  if (all.heads == all.groups || x == kNoValue) return x;
  const Extent extents[] = {Extent::dim(emit, all.query, 0), Extent::of(all.heads),
                            Extent::dim(emit, all.query, 2), Extent::dim(emit, x, 3)};
  return reshape_to(emit, x, extents);
}

Status check_heads(const Emitter& emit, FlexOperands& all) {
  for (const ValueId id : {all.query, all.key, all.value})
    if (id == kNoValue || is_sequence(id) || emit.value(id).rank() != 4)
      return invalid_model("expected query, key and value of rank 4");
  const Dim heads = emit.value(all.query).dims[1], groups = emit.value(all.key).dims[1];
  if (heads == groups && (heads.is_known() || heads.symbol >= 0)) return {};  // both counts stay 0
  if (!heads.is_known() || !groups.is_known())
    return unsupported("the numbers of heads are not known; fix them with --dim");
  if (groups.extent < 1 || heads.extent % groups.extent != 0)
    return invalid_model(heads.extent, " query heads are no multiple of ", groups.extent, " key heads");
  all.heads = heads.extent;
  all.groups = groups.extent;
  return {};
}

}  // namespace

ValueId Importer::modified_scores(const rt_onnx::NodeProto& node, std::string_view which,
                                  const std::string& name, const Scope& scope, ValueId x) {
  const auto* modifier = find_attribute(node, which);
  if (modifier == nullptr || x == kNoValue) return x;
  const std::vector<ValueId> results = add_graph(modifier->g(), text(name, '/', which), scope, {&x, 1});
  builder().set_scope(name);
  if (results.empty()) return kNoValue;  // reported
  const Value &before = builder().value(x), &after = builder().value(results[0]);
  if (results.size() == 1 && after.rank() == before.rank() && after.dtype == before.dtype) return results[0];
  builder().fail(invalid_model(which, ": expected one result of the type and rank of its input"));
  return kNoValue;
}

ValueId Importer::flex_attention(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                                 std::span<const ValueId> inputs) {
  Emitter& emit = builder();
  if (inputs.size() != 3) {
    emit.fail(invalid_model("expected query, key and value"));
    return kNoValue;
  }
  FlexOperands all{.query = inputs[0], .key = inputs[1], .value = inputs[2]};
  emit.fail(check_heads(emit, all));
  if (!emit.status().ok()) return kNoValue;
  const DType given = emit.value(all.query).dtype;
  DType precision = given == DType::F64 ? DType::F64 : DType::F32;
  if (const int64_t asked = integer_of(node, "softmax_precision", 0); asked != 0) {
    const auto type = onnx_type(asked);
    if (!type.ok() || !is_float(type->dtype)) {
      emit.fail(invalid_model("softmax_precision: expected a type of floating point numbers, found ", asked));
      return kNoValue;
    }
    precision = type->dtype;
  }
  // Matmuls are computed in f32 or f64; only the steps between them may be in 16 bits.
  const DType wide = given == DType::F64 || precision == DType::F64 ? DType::F64 : DType::F32;
  double scale = 1;
  if (const auto* attribute = find_attribute(node, "scale"); attribute != nullptr) {
    scale = static_cast<double>(attribute->f());
  } else {
    const int64_t width = emit.value(all.query).dims[3].extent;
    if (width < 1) {
      emit.fail(unsupported("without scale the width of a head must be known; fix it with --dim"));
      return kNoValue;
    }
    scale = 1 / std::sqrt(static_cast<double>(width));
  }
  op::MatMulAttributes matmul;
  matmul.transpose_b = true;
  const ValueId query = as_type(emit, all.query, wide);
  ValueId x = emit.emit(matmul, {by_group(emit, all, query), as_type(emit, all.key, wide)});
  x = by_head(emit, all, emit.mul(x, emit.scalar(scale, wide)));
  x = modified_scores(node, "score_mod", name, scope, as_type(emit, x, precision));
  x = x != kNoValue ? emit.emit(op::SoftmaxAttributes{}, {x}) : x;
  x = modified_scores(node, "prob_mod", name, scope, x);
  if (x == kNoValue) return x;
  matmul.transpose_b = false;
  const ValueId y =
      emit.emit(matmul, {by_group(emit, all, as_type(emit, x, wide)), as_type(emit, all.value, wide)});
  return as_type(emit, by_head(emit, all, y), given);
}

void Importer::add_flex_attention(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!check_control(node, name, scope, {}, inputs)) return bind_nothing(node, scope);
  builder().set_scope(name);
  const size_t first_new = builder().graph().values.size();
  const ValueId y = flex_attention(node, name, scope, inputs);
  finish_control(node, name, scope, y != kNoValue ? std::vector{y} : std::vector<ValueId>(), first_new);
}

}  // namespace librt::onnx
