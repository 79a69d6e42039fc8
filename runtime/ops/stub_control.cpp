// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(NonZero) = {.kind = OpKind::NonZero, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(NonZero, "not written yet");
RT_PAGE(NonMaxSuppression) = {
    .kind = OpKind::NonMaxSuppression, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(NonMaxSuppression, "not written yet");
RT_PAGE(Unique) = {.kind = OpKind::Unique, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(Unique, "not written yet");
RT_PAGE(If) = {.kind = OpKind::If, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(If, "not written yet");
RT_PAGE(Loop) = {.kind = OpKind::Loop, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(Loop, "not written yet");

}  // namespace rt::ops
