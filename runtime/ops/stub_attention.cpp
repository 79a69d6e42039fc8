// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(Attention) = {.kind = OpKind::Attention, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(Attention, "not written yet");
RT_PAGE(RotaryEmbedding) = {
    .kind = OpKind::RotaryEmbedding, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(RotaryEmbedding, "not written yet");
RT_PAGE(TensorScatter) = {.kind = OpKind::TensorScatter, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(TensorScatter, "not written yet");

}  // namespace rt::ops
