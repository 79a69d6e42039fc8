// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(GatherElements) = {.kind = OpKind::GatherElements, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(GatherElements, "not written yet");
RT_PAGE(GatherND) = {.kind = OpKind::GatherND, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(GatherND, "not written yet");
RT_PAGE(ScatterElements) = {
    .kind = OpKind::ScatterElements, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(ScatterElements, "not written yet");
RT_PAGE(ScatterND) = {.kind = OpKind::ScatterND, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(ScatterND, "not written yet");
RT_PAGE(CumSum) = {.kind = OpKind::CumSum, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(CumSum, "not written yet");
RT_PAGE(CumProd) = {.kind = OpKind::CumProd, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(CumProd, "not written yet");
RT_PAGE(TopK) = {.kind = OpKind::TopK, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(TopK, "not written yet");

}  // namespace rt::ops
