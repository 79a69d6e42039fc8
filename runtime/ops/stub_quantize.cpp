// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(QuantizeLinear) = {.kind = OpKind::QuantizeLinear, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(QuantizeLinear, "not written yet");
RT_PAGE(DequantizeLinear) = {
    .kind = OpKind::DequantizeLinear, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(DequantizeLinear, "not written yet");
RT_PAGE(MatMulInteger) = {.kind = OpKind::MatMulInteger, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(MatMulInteger, "not written yet");
RT_PAGE(ConvInteger) = {.kind = OpKind::ConvInteger, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(ConvInteger, "not written yet");

}  // namespace rt::ops
