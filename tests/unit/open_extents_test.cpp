// Proofs about results with dynamic extents: nothing that holds only at some extents.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/control_nodes.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

struct Net {
  Graph graph;
  Builder build{graph};
  std::vector<std::string> fitted;

  ValueId input(std::vector<std::string> names) {
    std::vector<Dim> dims;
    for (const std::string& name : names)
      dims.push_back(name[0] >= '0' && name[0] <= '9' ? Dim{.extent = std::stoll(name)}
                                                      : Dim{.symbol = graph.symbol(name)});
    return build.input("x" + std::to_string(graph.inputs.size()), DType::F32, dims);
  }
  ValueId ints(std::vector<int64_t> numbers) { return build.ints(numbers); }
  ValueId slice(ValueId x, int64_t axis, int64_t start, int64_t end, int64_t step = 1) {
    op::SliceAttributes attributes;
    attributes.axes = {axis};
    attributes.steps = {step};
    return build.emit(std::move(attributes), {x, ints({start}), ints({end})});
  }
  ValueId extent(ValueId x, int64_t axis) {
    op::ShapeAttributes attributes;
    attributes.start = axis;
    attributes.end = axis + 1;
    return build.emit(attributes, {x});
  }
  ValueId concat(std::vector<ValueId> parts, int64_t axis) {
    op::ConcatAttributes attributes;
    attributes.axis = axis;
    return build.emit_many(make_op(attributes), parts, 1)[0];
  }
  ValueId zeros(const TensorInfo& info) {
    return build.constant(info, Blob::own(std::vector<std::byte>(info.bytes())));
  }
  std::string dims(ValueId id) {
    EXPECT_TRUE(build.status().ok()) << build.status().message();
    std::string all;
    for (const Dim& dim : build.value(id).dims)
      append(all, all.empty() ? "" : "; ",
             dim.is_known() ? text(dim.extent) : graph.symbols.at(static_cast<size_t>(dim.symbol)).name);
    return all;
  }
};

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// The rules are asked what a refused node requires of the extents: its attributes may be anything.
TEST(OpenExtents, RefusedNodesMayHaveAnyAttributes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  op::ConvAttributes conv;
  conv.pads = {kMost, kMost, kMost, kMost};
  conv.dilations = {kMost, kLeast};
  op::ConvTransposeAttributes transposed;
  transposed.pads = {kMost, kMost, kMost, kMost};
  transposed.output_padding = {kMost, kLeast};
  op::MaxPoolAttributes pool;
  pool.kernel = {kLeast, kMost};
  pool.dilations = {kMost, kMost};
  pool.pads = {kMost, kMost, kLeast, kLeast};
  const auto refused = [](const auto& attributes, std::initializer_list<std::vector<std::string>> inputs) {
    Net net;
    net.input({"n", "m"});
    std::vector<ValueId> ids;
    for (const auto& dims : inputs) ids.push_back(net.input(dims));
    net.build.emit_many(make_op(attributes), ids, 1);
    EXPECT_FALSE(net.build.status().ok()) << name_of(make_op(attributes).type);
  };
  refused(conv, {{"n", "h", "w", "4"}, {"8", "3", "3", "4"}});
  refused(transposed, {{"n", "h", "w", "4"}, {"4", "3", "3", "8"}});
  refused(pool, {{"n", "h", "w", "4"}});
  refused(op::AllGatherAttributes{}, {{}});
  op::SliceAttributes short_of_steps;
  short_of_steps.axes = {0, 1};
  short_of_steps.steps = {1};
  Net net;
  const ValueId x = net.input({"n", "m"});
  net.build.emit(short_of_steps, {x, net.ints({0, 0}), net.ints({1, 1})});
  EXPECT_FALSE(net.build.status().ok());
}

/// Operands of refused nodes may have any type, and the extents that are tried do not stretch a known value.
TEST(OpenExtents, RefusedOperandsAreNotReadAsSomethingElse) {
  for (const DType dtype : {DType::U8, DType::F16, DType::I64}) {
    Net net;
    const ValueId x = net.input({"n", "h", "w", "4"});
    net.build.emit(op::ResizeAttributes{}, {x, kNoValue, net.zeros({dtype, {2}})});
    EXPECT_FALSE(net.build.status().ok()) << name_of(dtype);
  }
  Net net;
  const ValueId x = net.input({"n", "m"});
  const ValueId shape = net.build.emit(op::ExpandAttributes{}, {net.ints({3}), net.extent(x, 0)});
  net.build.emit(op::ScatterAddAttributes{}, {shape, net.ints({0, 1}), net.input({"k", "5"})});
  EXPECT_FALSE(net.build.status().ok());
}

TEST(OpenExtents, BlocksHaveALimit) {
  op::BlockQuantizeAttributes blocks;
  blocks.block_size = kEnd;
  Net net;
  const ValueId operands[] = {net.input({"n"}), net.zeros({DType::F32, {256}})};
  net.build.emit_many(make_op(blocks), operands, 2);
  EXPECT_NE(net.build.status().message().find("expected a block_size from 1 to"), std::string::npos)
      << net.build.status().message();
}

/// Also where a Reshape to an unknown shape would be accepted.
TEST(OpenExtents, RequiredOperandsMustBePresent) {
  Net net;
  net.build.emit(op::ReshapeAttributes{}, {net.input({"n", "m"}), kNoValue});
  EXPECT_NE(net.build.status().message().find("input 1 is required"), std::string::npos)
      << net.build.status().message();
}

TEST(OpenExtents, SlicesSaturate) {
  Net net;
  const ValueId x = net.input({"b", "n"});
  EXPECT_EQ(net.dims(net.slice(x, 1, 0, 16)), "b; min(n, 16)");
  EXPECT_EQ(net.dims(net.slice(x, 1, -32, kEnd)), "b; min(n, 32)");
  EXPECT_EQ(net.dims(net.slice(x, 1, 1, kEnd)), "b; max(n - 1, 0)");
  EXPECT_EQ(net.dims(net.slice(x, 1, 0, kEnd)), "b; n");
  EXPECT_EQ(net.dims(net.slice(x, 1, kEnd, -kEnd, -1)), "b; n");
  EXPECT_EQ(net.dims(net.slice(x, 1, 0, kEnd, 2)), "b; floor((n + 1) / 2)");
  // Two equal slices have equal extents.
  const ValueId sum = net.build.add(net.slice(x, 1, 0, 16), net.slice(x, 1, 0, 16));
  EXPECT_EQ(net.dims(sum), "b; min(n, 16)");
}

/// An Identity that requires a shape: what follows has the required extents, and only a proof removes it.
TEST(OpenExtents, RequiredShapes) {
  const auto required = [](Net& net, ValueId x, ValueId shape) {
    return net.build.emit(op::IdentityAttributes{}, {x, shape});
  };
  const auto left = [](Net& net, ValueId result) {
    net.build.output(net.build.emit(op::AbsAttributes{}, {result}));
    ModelGraph model;
    model.entries.push_back({"infer", net.graph});
    model.entries[0].graph.values[model.entries[0].graph.outputs[0]].name = "y";
    EXPECT_TRUE(optimize(model, {}, nullptr).ok());
    const auto& nodes = model.entries[0].graph.nodes;
    return std::count_if(nodes.begin(), nodes.end(),
                         [](const Node& node) { return node.kind() == OpKind::Identity; });
  };
  {
    Net net;
    const ValueId x = net.input({"n", "4"}), y = net.input({"m", "4"});
    const ValueId checked = required(net, x, net.build.shape_of(y));
    EXPECT_EQ(net.dims(checked), "m; 4");
    EXPECT_TRUE(net.build.same_info(checked, y));
    EXPECT_FALSE(net.build.same_info(checked, x));
    EXPECT_EQ(left(net, checked), 1);
  }
  {
    Net net;
    const ValueId checked = required(net, net.input({"n", "m"}), net.ints({3, 4}));
    EXPECT_EQ(net.dims(checked), "3; 4");
    EXPECT_EQ(left(net, checked), 1);
  }
  {
    Net net;
    const ValueId checked = required(net, net.input({"n", "4"}), net.build.shape_of(net.input({"n", "4"})));
    EXPECT_EQ(left(net, checked), 0);
  }
  {  // of another rank, or of other static extents
    Net rank, extents;
    required(rank, rank.input({"n"}), rank.build.shape_of(rank.input({"m", "4"})));
    EXPECT_FALSE(rank.build.status().ok());
    required(extents, extents.zeros({DType::F32, {3, 4}}), extents.ints({4, 3}));
    EXPECT_NE(extents.build.status().message().find("expected x of shape [4,3], found [3,4]"),
              std::string::npos);
  }
  {  // a constant is not folded without the check
    Net net;
    const ValueId checked = required(net, net.zeros({DType::F32, {3}}), net.build.shape_of(net.input({"n"})));
    EXPECT_EQ(net.dims(checked), "n");
    EXPECT_FALSE(net.build.known_value(checked).has_value());
  }
}

TEST(OpenExtents, NoPassTakesASliceForItsOperand) {
  Net net;
  const ValueId x = net.input({"b", "n"});
  net.build.output(net.build.reduce_mean(net.slice(x, 1, 0, 16), {1}, false));
  ModelGraph model;
  model.entries.push_back({"infer", std::move(net.graph)});
  model.entries[0].graph.values[model.entries[0].graph.outputs[0]].name = "y";
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  const auto& nodes = model.entries[0].graph.nodes;
  EXPECT_TRUE(
      std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.kind() == OpKind::Slice; }));
}

TEST(OpenExtents, WindowsAreCounted) {
  Net net;
  const ValueId x = net.input({"b", "n", "1"});
  op::ConvAttributes conv;
  conv.strides = {160};
  EXPECT_EQ(net.dims(net.build.emit(conv, {x, net.zeros({DType::F32, {32, 400, 1}})})),
            "b; floor((n + 80) / 160) - 2; 32");
  op::MaxPoolAttributes pool;
  pool.kernel = {2};
  pool.strides = {2};
  EXPECT_EQ(net.dims(net.build.emit(pool, {x})), "b; floor(n / 2); 1");
  EXPECT_EQ(net.dims(net.build.emit(pool, {net.build.emit(pool, {x})})), "b; floor(n / 4); 1");
}

TEST(OpenExtents, ShapeArithmeticIsFollowed) {
  Net net;
  const ValueId x = net.input({"b", "n", "8"});
  const ValueId count = net.build.div(net.extent(x, 1), net.ints({160}));
  const ValueId steps = net.build.emit(op::ConstantOfShapeAttributes{}, {count});
  EXPECT_EQ(net.dims(steps), "floor(n / 160)");
  const ValueId flat = net.concat({net.extent(x, 0), net.build.mul(net.extent(x, 1), net.ints({8}))}, 0);
  EXPECT_EQ(net.dims(net.build.reshape(x, flat)), "b; 8*n");
  EXPECT_EQ(net.dims(net.build.reshape(x, net.ints({-1, 8}))), "b*n; 8");
  const ValueId back = net.concat({net.extent(x, 0), net.ints({-1}), net.ints({4, 2})}, 0);
  EXPECT_EQ(net.dims(net.build.reshape(x, back)), "b; n; 4; 2");
}

TEST(OpenExtents, ACountOfIterationsThatIsNotFollowedIsOpen) {
  Net net;
  const ValueId x = net.input({"n"}), y = net.input({"3", "16"});
  // floor(0.5 n): non-integer values are not tracked.
  const float half = 0.5f;
  const ValueId halves =
      net.build.mul(net.build.cast(net.extent(x, 0), DType::F32),
                    net.build.constant({DType::F32, {1}}, Blob::copy_of(&half, sizeof half)));
  const ValueId trips = net.build.cast(net.build.emit(op::FloorAttributes{}, {halves}), DType::I64);
  test::Body body(net.graph, {}, {y}, true);
  body.build.output(body.build.emit(op::IdentityAttributes{}, {body.in(1)}));
  body.build.output(body.build.emit(op::NegAttributes{}, {body.in(2)}));
  const bool yes = true;
  const ValueId always = net.build.constant({DType::Bool, {}}, Blob::copy_of(&yes, sizeof yes));
  const ValueId scanned = test::emit_loop(net.build, trips, always, {}, body)[0];
  EXPECT_EQ(net.dims(scanned), "Loop#0; 3; 16");
}

TEST(OpenExtents, OtherSymbolsAreOtherExtents) {
  Net net;
  const ValueId x = net.input({"b", "n"}), y = net.input({"c", "n"});
  const ValueId sum = net.build.add(x, y);
  // Either may be 1.
  EXPECT_FALSE(net.build.same_info(sum, x));
  EXPECT_FALSE(net.build.same_info(sum, y));
  EXPECT_EQ(net.build.value(sum).dims[1], net.build.value(x).dims[1]);
}

TEST(OpenExtents, SymbolsThatShareAProbeStayTwo) {
  Net net;
  const ValueId x = net.input({"b", "n"}), y = net.input({"c", "n"});
  const ValueId sum = net.build.add(x, y);
  // The addition fits at no extents with b and c different (and above 1), so both got the same.
  ASSERT_TRUE(net.build.may_have_same_info(x, y));
  EXPECT_FALSE(net.build.same_info(x, y));
  EXPECT_FALSE(net.build.same_elements(x, y));
  EXPECT_NE(net.build.comparable_shape(x), net.build.comparable_shape(y));
  // Derived from b or from c, not from what the probes have in common.
  EXPECT_EQ(net.dims(net.concat({x, x}, 0)), "2*b; n");
  EXPECT_EQ(net.dims(net.concat({y, y}, 0)), "2*c; n");
  EXPECT_EQ(net.dims(net.concat({x, y}, 0)), "b + c; n");
  EXPECT_FALSE(net.build.same_info(sum, x));
}

TEST(OpenExtents, WhatANodeDemandsIsSolved) {
  Net net;
  net.build.fit_symbols(net.fitted);
  const ValueId x = net.input({"b", "h", "3"});
  const ValueId shape = net.concat({net.extent(x, 0), net.ints({96 * 3})}, 0);
  const ValueId y = net.build.reshape(x, shape);
  EXPECT_EQ(net.dims(y), "b; 288");
  EXPECT_EQ(net.build.value(net.graph.inputs[0]).dims[1].extent, 96);
  ASSERT_EQ(net.fitted.size(), 1u);
  EXPECT_NE(net.fitted[0].find("'h' is 96"), std::string::npos) << net.fitted[0];
}

TEST(OpenExtents, AnInputIsNotNamedAsAResult) {
  Net net;
  net.build.fit_symbols(net.fitted);
  const ValueId x = net.input({"n", "3"});
  // As many as the run finds: the demand that it is n has no solution among the inputs.
  const ValueId found = net.build.emit(op::NonZeroAttributes{}, {x});
  const ValueId y = net.build.reshape(x, net.concat({net.extent(found, 1), net.ints({3})}, 0));
  EXPECT_EQ(net.dims(y), "NonZero#0; 3");
  EXPECT_EQ(net.dims(x), "n; 3");
  EXPECT_TRUE(net.fitted.empty());
}

/// Replacing a symbol shifts those after it.
TEST(OpenExtents, SymbolsAfterAReplacedOneStayThemselves) {
  Net net;
  net.build.fit_symbols(net.fitted);
  const ValueId x = net.input({"b", "c"}), z = net.input({"m", "n"});
  EXPECT_EQ(net.dims(net.concat({z, z}, 0)), "2*m; n");
  const ValueId scale = net.zeros({DType::F32, {7}});
  EXPECT_EQ(net.dims(net.build.emit(op::LayerNormAttributes{}, {x, scale, scale})), "b; 7");
  EXPECT_EQ(net.fitted.size(), 1u);
  EXPECT_EQ(net.dims(net.concat({z, z}, 0)), "2*m; n");
  EXPECT_EQ(net.dims(net.concat({z, z, z}, 0)), "3*m; n");
}

// A mask of S queries for the S + P keys of a decoder fits a prompt, P = 0, and one further token, S = 1.
TEST(OpenExtents, ABroadcastThatFitsInTwoWaysFixesNeither) {
  Net net;
  net.build.fit_symbols(net.fitted);
  const ValueId ids = net.input({"b", "s"}), past = net.input({"b", "p"});
  const ValueId queries = net.extent(ids, 1), keys = net.build.add(queries, net.extent(past, 1));
  const ValueId mask = net.build.emit(op::ConstantOfShapeAttributes{}, {net.concat({queries, queries}, 0)});
  const ValueId wide = net.build.emit(op::ExpandAttributes{}, {mask, net.concat({queries, keys}, 0)});
  ASSERT_TRUE(net.build.status().ok()) << net.build.status().message();
  EXPECT_TRUE(net.fitted.empty());
  EXPECT_EQ(net.dims(ids), "b; s");
  EXPECT_EQ(net.build.value(wide).dims[0], net.build.value(ids).dims[1]);
}

TEST(OpenExtents, ABroadcastThatFitsInOneWayFixesTheExtent) {
  Net net;
  net.build.fit_symbols(net.fitted);
  const ValueId queries = net.extent(net.input({"b", "s"}), 1);
  const ValueId mask = net.build.emit(op::ConstantOfShapeAttributes{}, {net.concat({queries, queries}, 0)});
  const ValueId longer = net.build.add(queries, net.ints({2}));
  net.build.emit(op::ExpandAttributes{}, {mask, net.concat({queries, longer}, 0)});
  ASSERT_EQ(net.fitted.size(), 1u);
  EXPECT_NE(net.fitted[0].find("'s' is 1"), std::string::npos) << net.fitted[0];
}

TEST(OpenExtents, AnInputNamedAsASumIsOne) {
  Net net;
  const ValueId mask = net.input({"b", "past + new"});
  const ValueId past = net.input({"b", "past"}), fresh = net.input({"b", "new"});
  EXPECT_TRUE(net.build.same_info(net.concat({past, fresh}, 1), mask));
}

}  // namespace
}  // namespace librt::compiler
