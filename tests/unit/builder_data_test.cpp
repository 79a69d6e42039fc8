// The builder on data-dependent extents: their symbols, shape operands computed from data, bodies.
#include <gtest/gtest.h>

#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

/// x [n,4] f32, and k [1] i64, which is data dependent.
struct Net {
  Graph graph;
  Builder build{graph};
  ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("n")}, {.extent = 4}});
  ValueId k = kNoValue;

  Net() {
    op::ArgMaxAttributes argmax;
    argmax.axis = 0;
    const ValueId columns = build.emit(argmax, {x});
    op::ReduceSumAttributes sum;
    sum.axes = {1};
    sum.keep_dims = false;
    k = build.emit(std::move(sum), {columns});
  }
  std::string dims(ValueId id) const {
    std::string out;
    for (const Dim& dim : build.value(id).dims)
      append(out, text(out.empty() ? "" : ",", dim.is_known() ? text(dim.extent)
                                               : dim.symbol >= 0
                                                   ? graph.symbols[static_cast<size_t>(dim.symbol)].name
                                                   : "?"));
    return out;
  }
  ValueId vector(std::vector<ValueId> parts) {
    return build.emit_many(make_op(op::ConcatAttributes{}), parts, 1)[0];
  }
  ValueId number(int64_t value) { return build.ints({&value, 1}); }
};

TEST(BuilderData, CountsAreSymbolsOfTheirOwn) {
  Net net;
  const ValueId places = net.build.emit(op::NonZeroAttributes{}, {net.x});
  EXPECT_EQ(net.dims(places), "2,NonZero#0");
  EXPECT_TRUE(net.build.depends_on_data());
  op::TransposeAttributes transposed;
  transposed.permutation = {1, 0};
  EXPECT_EQ(net.dims(net.build.emit(std::move(transposed), {places})), "NonZero#0,2");
  // Another count gets another symbol.
  const ValueId other = net.build.emit(op::NonZeroAttributes{}, {net.k});
  EXPECT_EQ(net.dims(other), "1,NonZero_1#0");
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
  // A builder on the existing graph uses the same names.
  const Builder again(net.graph);
  EXPECT_EQ(net.dims(places), "2,NonZero#0");
  EXPECT_EQ(net.dims(other), "1,NonZero_1#0");
}

TEST(BuilderData, ConstantsAreCounted) {
  Net net;
  const float numbers[] = {0, 1, 2};
  const ValueId c = net.build.constant({DType::F32, {3}}, Blob::copy_of(numbers, sizeof numbers));
  const ValueId places = net.build.emit(op::NonZeroAttributes{}, {c});
  EXPECT_EQ(net.dims(places), "1,2");
  EXPECT_TRUE(net.build.known_value(places).has_value());
}

TEST(BuilderData, ReshapeKnowsWhatIsKnown) {
  Net net;
  const ValueId half = net.build.reshape(net.x, net.vector({net.k, net.number(2)}));
  EXPECT_EQ(net.build.value(half).dims[1].extent, 2);
  EXPECT_FALSE(net.build.value(half).dims[0].is_known());
  const ValueId open = net.build.reshape(net.x, net.vector({net.k, net.k, net.number(4)}));
  EXPECT_EQ(net.dims(open), "Reshape_1#0,Reshape_1#1,4");
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
}

TEST(BuilderData, ShapeOperandsLeaveOpenWhatFollowsFromThem) {
  Net net;
  op::SliceAttributes slice;
  slice.axes = {1};
  slice.steps = {1};
  EXPECT_EQ(net.dims(net.build.emit(std::move(slice), {net.x, net.number(0), net.k})), "n,Slice#0");
  EXPECT_EQ(
      net.dims(net.build.emit(op::PadAttributes{},
                              {net.x, net.vector({net.number(0), net.k, net.number(0), net.number(1)})})),
      "n,Pad#0");
  EXPECT_EQ(net.dims(net.build.emit(op::TileAttributes{}, {net.x, net.vector({net.number(1), net.k})})),
            "n,Tile#0");
  EXPECT_EQ(
      net.dims(net.build.emit(op::ExpandAttributes{}, {net.x, net.vector({net.k, net.number(1), net.k})})),
      "Expand#0,n,4");
  EXPECT_EQ(net.dims(net.build.emit(op::ConstantOfShapeAttributes{}, {net.vector({net.k, net.number(3)})})),
            "ConstantOfShape#0,3");
  const ValueId limit = net.build.reshape(net.k, net.build.ints({}));
  EXPECT_EQ(net.dims(net.build.emit(op::RangeAttributes{}, {net.build.scalar(0, DType::I64), limit,
                                                            net.build.scalar(1, DType::I64)})),
            "Range#0");
  const ValueId best = net.build.emit_many(make_op(op::TopKAttributes{}), std::array{net.x, net.k}, 2)[0];
  EXPECT_EQ(net.dims(best), "n,TopK#0");
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
}

TEST(BuilderData, ShapeRulesThatRefuseMadeUpExtents) {
  Net net;
  const ValueId a = net.build.reshape(net.x, net.vector({net.k, net.k}));
  const std::vector<float> numbers(12, 1);
  const ValueId w = net.build.constant({DType::F32, {4, 3}}, Blob::copy_of(numbers.data(), 48));
  // Inner dimensions must match, whatever the extent turns out to be.
  EXPECT_EQ(net.dims(net.build.emit(op::MatMulAttributes{}, {a, w})), "Reshape#0,3");
  // Broadcasts to the known extent.
  EXPECT_EQ(net.dims(net.build.add(a, w)), "4,3");
  // Either extent, or one of them is 1: unknown.
  const ValueId b = net.build.emit(op::NonZeroAttributes{}, {net.k});
  const ValueId sum = net.build.add(net.build.cast(b, DType::F32), a);
  EXPECT_EQ(net.build.value(sum).rank(), 2);
  EXPECT_FALSE(net.build.value(sum).dims[1].is_known());
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
}

TEST(BuilderData, RanksMustBeKnown) {
  Net net;
  const ValueId places = net.build.emit(op::NonZeroAttributes{}, {net.k});
  const ValueId shape = net.build.reshape(places, net.number(-1));
  net.build.reshape(net.x, shape);
  EXPECT_EQ(net.build.status().code(), Code::Unsupported) << net.build.status().message();
}

/// if (x[0,0] != 0) x else joined(x, x)
TEST(BuilderData, BranchesThatDiffer) {
  Net net;
  Graph bodies[2];
  for (Graph& body : bodies) {
    Builder build(body);
    const ValueId x = build.input("x", DType::F32, {{.symbol = body.symbol("n")}, {.extent = 4}});
    build.output(&body == bodies ? build.neg(x) : build.emit(op::ConcatAttributes{}, {x, x}));
    build.output(build.neg(x));
  }
  Node node;
  node.op = make_op(op::IfAttributes{});
  const ValueId one = net.build.reshape(net.k, net.build.ints({}));
  node.inputs = {net.build.cast(one, DType::Bool), net.x};
  node.bodies = {bodies[0], bodies[1]};
  const auto outputs = net.build.emit_node(std::move(node));
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
  EXPECT_EQ(net.dims(outputs[0]), "If#0,4");
  EXPECT_EQ(net.dims(outputs[1]), "n,4");
}

TEST(BuilderData, KnownBranchesReplaceTheirIf) {
  Net net;
  Graph bodies[2];
  for (Graph& body : bodies) {
    Builder build(body);
    const ValueId x = build.input("x", DType::F32, {{.symbol = body.symbol("n")}, {.extent = 4}});
    build.output(&body == bodies ? build.neg(x) : build.emit(op::ExpAttributes{}, {x}));
  }
  Node node;
  node.op = make_op(op::IfAttributes{});
  node.inputs = {net.build.scalar(0, DType::Bool), net.x};
  node.bodies = {bodies[0], bodies[1]};
  net.build.output(net.build.emit_node(std::move(node))[0]);
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
  const Status status = run_pass("branches", net.graph, {});
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(net.graph.nodes.size(), 1u);
  EXPECT_EQ(net.graph.nodes[0].kind(), OpKind::Exp);
}

TEST(BuilderData, ALoopWithoutGradientSaysSo) {
  EXPECT_NE(ops::compiler_page_of(OpKind::Loop)->no_gradient, nullptr);
  EXPECT_NE(ops::compiler_page_of(OpKind::If)->no_gradient, nullptr);
}

}  // namespace
}  // namespace librt::compiler
