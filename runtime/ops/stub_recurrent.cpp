// Pages to be written.
#include "runtime/ops/page.h"

namespace rt::ops {
namespace {
Status infer_nothing(const NodeView&, std::vector<TensorInfo>&) {
  return unsupported("this operator has no page yet");
}
}  // namespace

RT_PAGE(LSTM) = {.kind = OpKind::LSTM, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(LSTM, "not written yet");
RT_PAGE(GRU) = {.kind = OpKind::GRU, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(GRU, "not written yet");
RT_PAGE(RNN) = {.kind = OpKind::RNN, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(RNN, "not written yet");

}  // namespace rt::ops
