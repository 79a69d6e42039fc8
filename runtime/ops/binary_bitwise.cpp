// Bitwise operators on integers of one type, with NumPy's broadcasting.
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

using Function = uint64_t (*)(uint64_t, uint64_t);

Status infer_bits(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return infer_pair(node, outputs, kIntegers, node.dtype(0));
}

template <class F>
Status for_each_pair(std::span<const ConstTensorView> inputs, const TensorView& y, F&& f) {
  const DType dtype = y.info.dtype;
  const std::array<Shape, 2> shapes{inputs[0].info.shape, inputs[1].info.shape};
  return for_each_broadcast(y.info.shape, shapes, [&](int64_t i, const std::array<int64_t, 2>& at) {
    store_integer(y.data, dtype, i,
                  f(load_integer(inputs[0].data, dtype, at[0]), load_integer(inputs[1].data, dtype, at[1])));
  });
}

template <Function F>
Status eval_bits(const NodeView&, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  return for_each_pair(inputs, outputs[0], [](int64_t a, int64_t b) {
    return static_cast<int64_t>(F(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  });
}

/// A count of the type's width or more, or below 0, shifts out all bits: 0, or the sign.
Status eval_shift(const NodeView& node, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  const bool left = node.as<op::BitShiftAttributes>().left;
  const auto width = static_cast<int64_t>(8 * size_of(outputs[0].info.dtype));
  const bool is_signed = is_signed_integer(outputs[0].info.dtype);
  return for_each_pair(inputs, outputs[0], [=](int64_t a, int64_t count) -> int64_t {
    const bool over = count < 0 || count >= width;
    if (left) return over ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << count);
    if (is_signed) return a >> (over ? 63 : count);
    return over ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> count);
  });
}

constexpr Page bits_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {2, 2},
          .infer = infer_bits,
          .cost = [](const NodeView& node) { return elementwise_cost(node, 1); },
          .form = Form::Broadcast};
}

}  // namespace

RT_PAGE(BitwiseAnd) = bits_page(OpKind::BitwiseAnd);
RT_COMPILER_PAGE(BitwiseAnd) = {.eval = eval_bits<[](uint64_t a, uint64_t b) { return a & b; }>,
                                .no_gradient = "integer output",
                                .tolerance = {0, 0}};
RT_PAGE(BitwiseOr) = bits_page(OpKind::BitwiseOr);
RT_COMPILER_PAGE(BitwiseOr) = {.eval = eval_bits<[](uint64_t a, uint64_t b) { return a | b; }>,
                               .no_gradient = "integer output",
                               .tolerance = {0, 0}};
RT_PAGE(BitwiseXor) = bits_page(OpKind::BitwiseXor);
RT_COMPILER_PAGE(BitwiseXor) = {.eval = eval_bits<[](uint64_t a, uint64_t b) { return a ^ b; }>,
                                .no_gradient = "integer output",
                                .tolerance = {0, 0}};
RT_PAGE(BitShift) = bits_page(OpKind::BitShift);
RT_COMPILER_PAGE(BitShift) = {.eval = eval_shift, .no_gradient = "integer output", .tolerance = {0, 0}};

}  // namespace librt::ops
