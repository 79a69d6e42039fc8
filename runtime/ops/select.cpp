// Where: takes each element from x where the condition holds, else from y; all three broadcast.
#include <cstring>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_where(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "condition", DTypeSet{DType::Bool}));
  RT_TRY(expect_same_dtype(node, 2, "y", 1, "x"));
  return add_broadcast_output(node, outputs, node.dtype(1));
}

Status eval_where(const NodeView&, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  const size_t size = size_of(outputs[0].info.dtype);
  const auto step = static_cast<int64_t>(size);
  const std::array<Shape, 3> shapes{inputs[0].info.shape, inputs[1].info.shape, inputs[2].info.shape};
  return for_each_broadcast(outputs[0].info.shape, shapes, [&](int64_t i, const std::array<int64_t, 3>& at) {
    const size_t from = load_integer(inputs[0].data, DType::Bool, at[0]) != 0 ? 1 : 2;
    std::memcpy(outputs[0].as<char>() + i * step, inputs[from].as<char>() + at[from] * step, size);
  });
}

}  // namespace

RT_PAGE(Where) = {.kind = OpKind::Where,
                  .inputs = {3, 3},
                  .infer = infer_where,
                  .eval = eval_where,
                  .form = Form::Broadcast};
RT_COMPILER_PAGE(Where) = {.gradient = [](GradContext& c) {
  if (c.needs(1)) c.set(1, keep_where(c.emit, c.input(0), c.grad()));
  if (!c.needs(2)) return;
  c.set(2, c.emit.emit(op::WhereAttributes{}, {c.input(0), c.emit.scalar_like(0, c.grad()), c.grad()}));
}};

}  // namespace librt::ops
