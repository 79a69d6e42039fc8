// Cast between all element types. Floats round to nearest even; float to integer truncates toward zero and
// saturates, NaN gives 0 (ONNX leaves both open); integer to integer keeps the low bits; bool is 0 or 1, and
// NaN is true.
#include <cstring>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_cast(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const uint8_t to = node.as<op::CastAttributes>().to;
  if (to >= kDTypeCount)
    return invalid_argument("expected an element type below ", kDTypeCount, " as `to`, found ", to);
  return add_output(outputs, static_cast<DType>(to), node.shape(0));
}

/// One rounding only: 64-bit integers do not go through double on their way to f32.
float integer_to_float(int64_t value, DType from) {
  return from == DType::U64 ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value);
}

Status eval_cast(const NodeView&, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const ConstTensorView& x = inputs[0];
  const TensorView& y = outputs[0];
  const DType from = x.info.dtype;
  const DType to = y.info.dtype;
  const int64_t count = x.info.elements();
  for (int64_t i = 0; i < count; ++i) {
    if (from == to) {
      const size_t size = size_of(to);
      std::memcpy(y.as<char>() + i * static_cast<int64_t>(size),
                  x.as<char>() + i * static_cast<int64_t>(size), size);
    } else if (is_float(from)) {
      store(y, i, load(x, i));
    } else if (!is_float(to)) {
      store_integer(y.data, to, i, load_integer(x.data, from, i));
    } else if (to == DType::F32) {
      store(y, i, static_cast<double>(integer_to_float(load_integer(x.data, from, i), from)));
    } else {
      store(y, i, load(x, i));
    }
  }
  return {};
}

}  // namespace

RT_PAGE(Cast) = {.kind = OpKind::Cast,
                 .inputs = {1, 1},
                 .infer = infer_cast,
                 .eval = eval_cast,
                 .extents = ExtentRule::LikeFirst};
// To an integer type the cast is piecewise constant, from one the input has no gradient: none is emitted.
RT_COMPILER_PAGE(Cast) = {.gradient = [](GradContext& c) {
  const DType from = c.emit.value(c.input(0)).dtype;
  if (is_float(from) && is_float(c.emit.value(c.output()).dtype)) c.set(0, c.emit.cast(c.grad(), from));
}};

}  // namespace librt::ops
