// layout: nets as imported from channels-first models, with a Transpose on both sides of each convolution.
#include "tests/passes/support.h"

namespace librt::compiler::test {
namespace {

const std::vector<std::string> kLayout{"canonicalize", "layout", "canonicalize", "fold", "common_subexpr"};

TEST(Layout, ResidualBlockKeepsOneTransposeAtEachBorder) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}, {.extent = 8}});
  const ValueId stem = net.unary(op::ReluAttributes{}, net.conv(x, {4, 3, 3, 3}, 1, {1, 1, 1, 1}));
  ValueId y = net.conv(stem, {4, 3, 3, 4}, 2, {1, 1, 1, 1});
  y = b.mul(y, random_constant(b, {1, 4, 1, 1}, 3));
  y = b.add(y, random_constant(b, {4, 1, 1}, 4));
  y = net.unary(op::ReluAttributes{}, b.add(y, stem));
  net.output(net.conv(y, {5, 1, 1, 4}, 6));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 2u) << print(net.graph);
}

TEST(Layout, ClassifierKeepsOnlyTheInputsTranspose) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}, {.extent = 8}});
  const ValueId left = net.unary(op::SigmoidAttributes{}, net.conv(x, {4, 3, 3, 3}, 1));
  const ValueId right = net.conv(x, {2, 3, 3, 3}, 2);
  op::ConcatAttributes concat;
  concat.axis = 1;
  ValueId y = b.emit(concat, {left, right});
  // Squeeze and excitation: a gate per channel.
  ValueId gate = b.reduce_mean(y, {2, 3});
  gate = net.unary(op::ReluAttributes{}, net.conv(gate, {3, 1, 1, 6}, 3));
  gate = net.unary(op::HardSigmoidAttributes{}, net.conv(gate, {6, 1, 1, 3}, 4));
  y = b.mul(gate, y);
  y = b.reduce_mean(y, {2, 3});
  y = b.reshape(y, b.ints(std::array<int64_t, 2>{-1, 6}));
  y = b.emit(op::MatMulAttributes{}, {y, random_constant(b, {6, 5}, 5)});
  net.output(net.unary(op::SoftmaxAttributes{}, y));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 1u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::Reshape), 1u) << print(net.graph);
}

TEST(Layout, OperandsOfFewerAxesAreMovedToo) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}, {.extent = 8}});
  const ValueId factor = net.input({}, "factor");
  const ValueId shift = net.input({{.extent = 4}, {.extent = 1}, {.extent = 1}}, "shift");
  const ValueId columns = net.input({{.extent = 8}}, "columns");
  ValueId y = net.conv(x, {4, 3, 3, 3}, 1, {1, 1, 1, 1});
  y = b.add(b.mul(net.unary(op::ExpAttributes{}, factor), y), shift);
  y = b.mul(columns, net.unary(op::TanhAttributes{}, y));
  net.output(net.conv(y, {5, 1, 1, 4}, 6));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 2u) << print(net.graph);
}

/// [N,C,H,W] through [N,H/2,W/2,2,2,C], whose axes lie apart in the input.
TEST(Layout, SpaceToDepthIsOneTranspose) {
  for (const bool dynamic : {false, true}) {
    Net net;
    Builder& b = net.b;
    const Dim batch = dynamic ? net.symbol("batch") : Dim{.extent = 2};
    const ValueId x = net.input({batch, {.extent = 3}, {.extent = 6}, {.extent = 8}});
    ValueId y = b.transpose(x, {0, 2, 3, 1});
    y = b.reshape(y, b.ints(std::array<int64_t, 6>{-1, 3, 2, 4, 2, 3}));
    y = b.transpose(y, {0, 1, 3, 2, 4, 5});
    y = b.reshape(y, b.ints(std::array<int64_t, 4>{-1, 3, 4, 12}));
    net.output(b.transpose(y, {0, 3, 1, 2}));
    transform(net.graph, kLayout);
    EXPECT_EQ(count(net.graph, OpKind::Transpose), 1u) << print(net.graph);
  }
}

/// Between convolutions nothing is joined: the Transposes beside the activation meet their inverses.
TEST(Layout, SpaceToDepthBetweenConvolutionsKeepsOneTranspose) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 6}, {.extent = 8}});
  ValueId y = b.transpose(net.conv(x, {5, 3, 3, 3}, 1, {1, 1, 1, 1}), {0, 2, 3, 1});
  y = b.reshape(y, b.ints(std::array<int64_t, 6>{-1, 3, 2, 4, 2, 5}));
  y = b.transpose(y, {0, 1, 3, 2, 4, 5});
  y = b.reshape(y, b.ints(std::array<int64_t, 4>{-1, 3, 4, 20}));
  y = net.unary(op::ReluAttributes{}, b.transpose(y, {0, 3, 1, 2}));
  net.output(net.conv(y, {4, 1, 1, 20}, 2));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 3u) << print(net.graph);
}

// Operators that the schema got later than the others.
TEST(Layout, MovesThroughEveryFunctionOfOneOperand) {
  Net net;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}, {.extent = 8}});
  const ValueId y = net.unary(op::AtanAttributes{}, net.conv(x, {4, 3, 3, 3}, 1, {1, 1, 1, 1}));
  net.output(net.conv(y, {5, 1, 1, 4}, 6));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 2u) << print(net.graph);
}

TEST(Layout, MovesThroughQuantization) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 3}, {.extent = 3}, {.extent = 8}, {.extent = 8}});
  ValueId y = net.conv(x, {4, 3, 3, 3}, 1, {1, 1, 1, 1});
  op::QuantizeLinearAttributes quantize;  // along the channels
  quantize.to = static_cast<uint8_t>(DType::I8);
  y = b.emit(quantize, {y, random_constant(b, {4}, 2, 0.02, 0.1)});
  op::DequantizeLinearAttributes blocks;
  blocks.axis = 2;
  blocks.block_size = 3;
  y = b.emit(blocks, {y, random_constant(b, {3, 4, 3, 8}, 3, 0.02, 0.1)});
  y = net.conv(y, {5, 1, 1, 4}, 6);
  op::DequantizeLinearAttributes whole;
  quantize.axis = 7;  // per-tensor scale: the axis is ignored
  y = b.emit(whole, {b.emit(quantize, {y, b.scalar(0.05, DType::F32)}), b.scalar(0.05, DType::F32)});
  net.output(net.conv(y, {2, 1, 1, 5}, 7));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 2u) << print(net.graph);
}

// x sigmoid(x), its mean and its halves, each quantized: both operands of the product come from one
// Transpose, and the next convolutions are many nodes away.
TEST(Layout, LooksThroughQuantizationAndWherePathsMeet) {
  Net net;
  Builder& b = net.b;
  const auto quantized = [&](ValueId x) {
    op::QuantizeLinearAttributes quantize;
    quantize.to = static_cast<uint8_t>(DType::U8);
    op::DequantizeLinearAttributes dequantize;
    dequantize.to = static_cast<uint8_t>(DType::F32);
    const ValueId scale = b.scalar(0.02, DType::F32), zero = b.scalar(110, DType::U8);
    return b.emit(dequantize, {b.emit(quantize, {x, scale, zero}), scale, zero});
  };
  const auto half = [&](ValueId x, int64_t begin) {
    op::SliceAttributes slice;
    slice.axes = {1};
    return quantized(b.emit(std::move(slice), {x, b.ints(std::array{begin}), b.ints(std::array{begin + 4})}));
  };
  ValueId x = net.to_first(net.input({net.symbol("batch"), net.symbol("h"), {.extent = 6}, {.extent = 4}}));
  x = quantized(net.conv(x, {8, 3, 3, 4}, 1, {1, 1, 1, 1}));
  ValueId y = quantized(b.mul(x, quantized(b.emit(op::SigmoidAttributes{}, {x}))));
  y = quantized(b.mul(y, quantized(b.reduce_mean(y, {2, 3}))));
  const ValueId low = half(y, 0), high = half(y, 4);
  op::ConcatAttributes concat;
  concat.axis = 1;
  y = b.emit(concat, {low, quantized(net.conv(high, {4, 3, 3, 4}, 2, {1, 1, 1, 1}))});
  net.output(net.to_last(net.conv(y, {4, 1, 1, 8}, 3)));
  transform(net.graph, {"layout", "canonicalize"}, 0.03);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 0u) << print(net.graph);
}

TEST(Layout, PatchesOfAVisionTransformer) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}, {.extent = 8}});
  ValueId y = net.conv(x, {6, 4, 4, 3}, 1, {}, 1, {4, 4});
  y = b.reshape(y, b.ints(std::array<int64_t, 3>{-1, 6, 4}));
  y = b.transpose(y, {0, 2, 1});
  net.output(b.add(y, random_constant(b, {4, 6}, 2)));
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 1u) << print(net.graph);
}

TEST(Layout, MovesThroughAxesPadsSlicesAndReductions) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 5}, {.extent = 6}, {.extent = 4}});
  ValueId y = net.to_first(net.unary(op::ReluAttributes{}, x));  // [batch,4,5,6]
  y = b.emit(op::PadAttributes{}, {y, b.ints(std::array<int64_t, 8>{0, 1, 0, 2, 0, 0, 1, 0})});
  op::SliceAttributes slice;
  slice.axes = {-1, 1};
  slice.steps = {2, 1};
  y = b.emit(slice, {y, b.ints(std::array<int64_t, 2>{1, 0}), b.ints(std::array<int64_t, 2>{100, 4})});
  op::SoftmaxAttributes softmax;
  softmax.axis = 1;
  y = net.unary(softmax, y);
  const ValueId back = net.to_last(y);
  net.output(net.unary(op::ExpAttributes{}, back), "back");
  net.output(b.reduce_sum(y, {1, -1}, false), "sum");
  op::ArgMaxAttributes most;
  most.axis = 1;
  most.keep_dims = false;
  net.output(net.unary(most, y), "most");
  op::GatherAttributes pick;
  pick.axis = 1;
  net.output(
      b.emit(pick, {y, b.constant({.dtype = DType::I64, .shape = {}}, Blob::own(std::vector<std::byte>(8)))}),
      "first");
  transform(net.graph, kLayout);
  EXPECT_EQ(count(net.graph, OpKind::Transpose), 0u) << print(net.graph);
}

TEST(Layout, ShuffledChannelsAndComputedSizes) {
  Net net;
  Builder& b = net.b;
  const ValueId x =
      net.input({net.symbol("batch"), {.extent = 4}, net.symbol("height"), net.symbol("width")});
  ValueId y = net.conv(x, {6, 3, 3, 4}, 1, {1, 1, 1, 1});
  const ValueId flat = b.emit(op::GatherAttributes{}, {b.shape_of(y), b.ints(std::array<int64_t, 1>{1})});
  y = b.transpose(b.reshape(y, b.ints(std::array<int64_t, 4>{0 + 1, 2, 3, -1})), {0, 2, 1, 3});
  op::ConcatAttributes concat;
  concat.axis = 0;
  net.output(b.mul(b.reduce_mean(y, {0, 1, 2, 3}), b.cast(flat, DType::F32)));
  transform(net.graph, kLayout);
}

TEST(Layout, AttentionHeadsStayAsTheyAre) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 5}, {.extent = 8}});
  const auto heads = [&](uint32_t seed) {
    const ValueId y = b.emit(op::MatMulAttributes{}, {x, random_constant(b, {8, 8}, seed)});
    return b.transpose(b.reshape(y, b.ints(std::array<int64_t, 4>{-1, 5, 2, 4})), {0, 2, 1, 3});
  };
  const ValueId q = heads(1), k = b.transpose(heads(2), {0, 1, 3, 2}), v = heads(3);
  const ValueId scores = b.mul(b.emit(op::MatMulAttributes{}, {q, k}), b.scalar(0.5, DType::F32));
  const ValueId mixed = b.emit(op::MatMulAttributes{}, {net.unary(op::SoftmaxAttributes{}, scores), v});
  net.output(b.reshape(b.transpose(mixed, {0, 2, 1, 3}), b.ints(std::array<int64_t, 3>{-1, 5, 8})));
  transform(net.graph, kLayout);
  EXPECT_LE(count(net.graph, OpKind::Transpose), 4u) << print(net.graph);
}

}  // namespace
}  // namespace librt::compiler::test
