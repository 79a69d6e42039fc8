// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(MaxPoolIndices) = {.kind = OpKind::MaxPoolIndices, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(MaxPoolIndices, "not written yet");
RT_PAGE(GridSample) = {.kind = OpKind::GridSample, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(GridSample, "not written yet");
RT_PAGE(RoiAlign) = {.kind = OpKind::RoiAlign, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(RoiAlign, "not written yet");

}  // namespace rt::ops
