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
RT_PAGE(LSTMGrad) = {.kind = OpKind::LSTMGrad, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(LSTMGrad, "the gradient of a gradient");
RT_PAGE(GRUGrad) = {.kind = OpKind::GRUGrad, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(GRUGrad, "the gradient of a gradient");
RT_PAGE(RNNGrad) = {.kind = OpKind::RNNGrad, .inputs = {0, kUnbounded}, .infer = infer_nothing};
RT_NO_GRADIENT(RNNGrad, "the gradient of a gradient");

}  // namespace rt::ops
