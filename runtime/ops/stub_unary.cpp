// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(BitwiseAnd) = {.kind = OpKind::BitwiseAnd, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(BitwiseAnd, "not written yet");
RT_PAGE(BitwiseOr) = {.kind = OpKind::BitwiseOr, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(BitwiseOr, "not written yet");
RT_PAGE(BitwiseXor) = {.kind = OpKind::BitwiseXor, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(BitwiseXor, "not written yet");
RT_PAGE(BitShift) = {.kind = OpKind::BitShift, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(BitShift, "not written yet");
RT_PAGE(RandomUniform) = {.kind = OpKind::RandomUniform, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(RandomUniform, "not written yet");
RT_PAGE(RandomNormal) = {.kind = OpKind::RandomNormal, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(RandomNormal, "not written yet");

}  // namespace rt::ops
