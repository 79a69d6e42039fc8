// Values, shapes and errors of data movement, Gather and ScatterAdd.
#include "runtime/geometry/movement.h"
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kTiny = std::numeric_limits<int64_t>::min();

ops::HostTensor ints(const std::vector<int64_t>& values) {
  return integers(DType::I64, values);
}

op::TransposeAttributes permutation(std::vector<int64_t> axes) {
  op::TransposeAttributes attributes;
  attributes.permutation = std::move(axes);
  return attributes;
}
op::SliceAttributes slicing(std::vector<int64_t> axes = {}, std::vector<int64_t> steps = {}) {
  op::SliceAttributes attributes;
  attributes.axes = std::move(axes);
  attributes.steps = std::move(steps);
  return attributes;
}
op::PadAttributes padding(op::PadMode mode) {
  op::PadAttributes attributes;
  attributes.mode = mode;
  return attributes;
}
template <class Attributes>
Attributes along(int64_t axis) {
  Attributes attributes;
  attributes.axis = axis;
  return attributes;
}

TEST(PagesMovement, Reshape) {
  const auto x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(op::ReshapeAttributes{}, {x, ints({3, -1})}, f32({3, 2}, {1, 2, 3, 4, 5, 6}));
  expect_result(op::ReshapeAttributes{}, {f32({1, 1}, {7}), ints({})}, f32({}, {7}));
  expect_result(op::ReshapeAttributes{}, {f32({}, {7}), ints({1, -1})}, f32({1, 1}, {7}));
  expect_result(op::ReshapeAttributes{}, {f32({0, 4}, {}), ints({-1, 2})}, f32({0, 2}, {}));
  expect_error(op::ReshapeAttributes{}, {x, ints({-1, -1})}, "at most one -1");
  expect_error(op::ReshapeAttributes{}, {x, ints({4, -1})}, "divides the 6 elements of [2,3], found [4,-1]");
  expect_error(op::ReshapeAttributes{}, {x, ints({0, -1})}, "divides");
  expect_error(op::ReshapeAttributes{}, {x, ints({0, 3})}, "6 elements");
  expect_error(op::ReshapeAttributes{}, {x, ints({-2, 3})}, "found [-2,3]");
  expect_error(op::ReshapeAttributes{}, {x, ints({kHuge, kHuge})}, "6 elements");
  expect_error(op::ReshapeAttributes{}, {x, ints({1, 1, 1, 1, 1, 1, 1, 1, 6})}, "at most 8 axes, found 9");
  expect_error(op::ReshapeAttributes{}, {x, f32({2}, {3, 2})}, "i64 vector");
}

TEST(PagesMovement, IdentityRequiresAShape) {
  const auto x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(op::IdentityAttributes{}, {x, ints({2, 3})}, x);
  expect_result(op::IdentityAttributes{}, {f32({}, {7}), ints({})}, f32({}, {7}));
  expect_result(op::IdentityAttributes{}, {f32({0, 4}, {}), ints({0, 4})}, f32({0, 4}, {}));
  expect_error(op::IdentityAttributes{}, {x, ints({3, 2})}, "expected x of shape [3,2], found [2,3]");
  expect_error(op::IdentityAttributes{}, {x, ints({6})}, "expected x of shape [6], found [2,3]");
  expect_error(op::IdentityAttributes{}, {x, ints({2, -1})}, "expected x of shape [2,-1], found [2,3]");
  expect_error(op::IdentityAttributes{}, {f32({1, 3}, {1, 2, 3}), ints({2, 3})},
               "of shape [2,3], found [1,3]");
  expect_error(op::IdentityAttributes{}, {f32({0, 4}, {}), ints({4, 0})}, "of shape [4,0], found [0,4]");
  expect_error(op::IdentityAttributes{}, {x, f32({2}, {2, 3})}, "i64 vector");
}

TEST(PagesMovement, UnknownShapeOperand) {
  Node node;
  node.op = make_op(op::ReshapeAttributes{});
  const Operand operands[] = {{.present = true, .info = {DType::F32, {2}}},
                              {.present = true, .info = {DType::I64, {1}}, .value = nullptr}};
  std::vector<TensorInfo> outputs;
  const Status status = ops::page_of(OpKind::Reshape)->infer({.node = node, .inputs = operands}, outputs);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("known"), std::string::npos) << status.message();
}

TEST(PagesMovement, Transpose) {
  const auto x = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(permutation({2, 0, 1}), {x}, f32({3, 2, 1}, {1, 4, 2, 5, 3, 6}));
  expect_result(permutation({}), {x}, f32({3, 1, 2}, {1, 4, 2, 5, 3, 6}));
  expect_result(permutation({1, 0}), {tensor(DType::I8, {2, 2}, {1, 2, 3, 4})},
                tensor(DType::I8, {2, 2}, {1, 3, 2, 4}));
  expect_result(permutation({}), {f32({}, {1})}, f32({}, {1}));
  expect_result(permutation({1, 0}), {f32({0, 3}, {})}, f32({3, 0}, {}));
  constexpr int64_t kLong = int64_t{1} << 31;  // which nothing walks along
  expect_result(permutation({1, 0, 2}), {f32({kLong, 4, 0}, {})}, f32({4, kLong, 0}, {}));
  for (const auto& wrong : {std::vector<int64_t>{0, 1}, {0, 1, 1}, {0, 1, 3}, {-1, 0, 1}, {0, 1, 2, 2}})
    expect_error(permutation(wrong), {x}, "expected a permutation of");
}

TEST(PagesMovement, Concat) {
  const auto a = f32({2, 1}, {1, 2}), b = f32({2, 2}, {3, 4, 5, 6}), none = f32({2, 0}, {});
  expect_result(along<op::ConcatAttributes>(1), {a, none, b}, f32({2, 3}, {1, 3, 4, 2, 5, 6}));
  expect_result(along<op::ConcatAttributes>(-2), {b, b}, f32({4, 2}, {3, 4, 5, 6, 3, 4, 5, 6}));
  expect_result(along<op::ConcatAttributes>(0), {tensor(DType::F64, {1}, {5})}, tensor(DType::F64, {1}, {5}));
  expect_error(along<op::ConcatAttributes>(0), {a, b}, "agree but on axis 0, found [2,1] and [2,2]");
  expect_error(along<op::ConcatAttributes>(2), {a, b}, "expected an axis");
  expect_error(along<op::ConcatAttributes>(0), {f32({}, {1}), f32({}, {1})}, "axis");
  expect_error(along<op::ConcatAttributes>(0), {a, f32({2}, {1, 2})}, "rank 2");
  expect_error(along<op::ConcatAttributes>(0), {a, tensor(DType::F64, {2, 1}, {1, 2})}, "same type");
}

TEST(PagesMovement, SliceClampsAsOnnx) {
  const auto x = f32({5}, {0, 1, 2, 3, 4});
  const auto run = [&](int64_t start, int64_t end, int64_t step) {
    const auto got = run_one(slicing({0}, {step}), {x, ints({start}), ints({end})});
    EXPECT_TRUE(got.ok()) << got.status().message();
    return got.ok() ? numbers(*got) : std::vector<double>();
  };
  using List = std::vector<double>;
  EXPECT_EQ(run(1, 3, 1), (List{1, 2}));
  EXPECT_EQ(run(-2, kHuge, 1), (List{3, 4}));
  EXPECT_EQ(run(kTiny, kHuge, 2), (List{0, 2, 4}));
  EXPECT_EQ(run(3, 1, 1), (List{}));
  EXPECT_EQ(run(9, 12, 1), (List{}));
  EXPECT_EQ(run(kHuge, kTiny, -1), (List{4, 3, 2, 1, 0}));
  EXPECT_EQ(run(-1, -6, -2), (List{4, 2, 0}));
  EXPECT_EQ(run(3, 0, -2), (List{3, 1}));
  EXPECT_EQ(run(3, -6, kTiny), (List{3}));
  EXPECT_EQ(run(0, 5, kHuge), (List{0}));
  EXPECT_EQ(run(1, 3, -1), (List{}));
}

TEST(PagesMovement, SliceAxes) {
  const auto x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(slicing({-1, 0}, {-1, 1}), {x, ints({5, 1}), ints({0, 2})}, f32({1, 2}, {6, 5}));
  expect_result(slicing(), {x, ints({1}), ints({2})}, f32({1, 3}, {4, 5, 6}));
  expect_result(slicing({0}, {-1}), {f32({0, 2}, {}), ints({3}), ints({-9})}, f32({0, 2}, {}));
  expect_error(slicing({0, -2}), {x, ints({0, 0}), ints({1, 1})}, "each axis once");
  expect_error(slicing({2}), {x, ints({0}), ints({1})}, "expected axes in [-2, 2), found 2");
  expect_error(slicing({0}, {0}), {x, ints({0}), ints({1})}, "steps other than 0");
  expect_error(slicing({0}), {x, ints({0, 0}), ints({1})}, "as many starts and ends");
  expect_error(slicing({0}, {1, 1}), {x, ints({0}), ints({1})}, "expected 1 steps");
}

TEST(PagesMovement, PadModes) {
  const auto x = f32({3}, {1, 2, 3});
  using enum op::PadMode;
  expect_result(padding(Constant), {x, ints({2, 1}), f32({}, {9})}, f32({6}, {9, 9, 1, 2, 3, 9}));
  expect_result(padding(Constant), {x, ints({1, 0})}, f32({4}, {0, 1, 2, 3}));
  expect_result(padding(Reflect), {x, ints({5, 3})}, f32({11}, {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2}));
  expect_result(padding(Edge), {x, ints({2, 1})}, f32({6}, {1, 1, 1, 2, 3, 3}));
  expect_result(padding(Wrap), {x, ints({4, 2})}, f32({9}, {3, 1, 2, 3, 1, 2, 3, 1, 2}));
  expect_result(padding(Reflect), {f32({1}, {7}), ints({1, 2})}, f32({4}, {7, 7, 7, 7}));
  // Negative pads crop before the rest is padded.
  expect_result(padding(Constant), {x, ints({-1, 1})}, f32({3}, {2, 3, 0}));
  expect_result(padding(Edge), {x, ints({2, -1})}, f32({4}, {1, 1, 1, 2}));
  expect_result(padding(Wrap), {x, ints({2, -1})}, f32({4}, {1, 2, 1, 2}));
  expect_result(padding(Constant), {x, ints({-4, 2})}, f32({1}, {0}));
  expect_result(padding(Constant), {x, ints({-1, -2})}, f32({0}, {}));
  expect_result(padding(Constant), {f32({2, 0}, {}), ints({0, 1, 0, 1}), f32({1}, {5})},
                f32({2, 2}, {5, 5, 5, 5}));
  expect_result(padding(Constant),
                {tensor(DType::U8, {1, 2}, {1, 2}), ints({1, 0, 0, 1}), tensor(DType::U8, {}, {3})},
                tensor(DType::U8, {2, 3}, {3, 3, 3, 1, 2, 3}));
  expect_result(padding(Edge), {f32({}, {4}), ints({})}, f32({}, {4}));
  expect_error(padding(Edge), {f32({0}, {}), ints({1, 0})}, "elements to pad from");
  expect_error(padding(Constant), {x, ints({-4, 0})}, "leave 0 or more of extent 3");
  expect_error(padding(Constant), {x, ints({1})}, "expected 2 pads");
  expect_error(padding(Constant), {x, ints({kHuge, 1})}, "expected pads in");
  expect_error(padding(Constant), {x, ints({kTiny, 1})}, "expected pads in");
  expect_error(padding(Constant), {x, ints({1, 1}), f32({2}, {1, 1})}, "one element as the pad value");
  expect_error(padding(static_cast<op::PadMode>(9)), {x, ints({1, 1})}, "known pad mode");
}

TEST(PagesMovement, ExpandAndTile) {
  const auto x = f32({2, 1}, {1, 2});
  expect_result(op::ExpandAttributes{}, {x, ints({2, 1, 3})},
                f32({2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  expect_result(op::ExpandAttributes{}, {x, ints({1})}, x);
  expect_result(op::ExpandAttributes{}, {x, ints({2, 0})}, f32({2, 0}, {}));
  expect_result(op::ExpandAttributes{}, {f32({}, {4}), ints({2})}, f32({2}, {4, 4}));
  expect_error(op::ExpandAttributes{}, {x, ints({3, 1})}, "shapes that broadcast, found [2,1] and [3,1]");
  expect_error(op::ExpandAttributes{}, {x, ints({-1})}, "extents of 0 or more");
  expect_error(op::ExpandAttributes{}, {x, ints({1 << 30, 1 << 30, 1, 1})}, "");
  expect_result(op::TileAttributes{}, {f32({1, 2}, {1, 2}), ints({2, 2})},
                f32({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}));
  expect_result(op::TileAttributes{}, {x, ints({0, 3})}, f32({0, 3}, {}));
  expect_error(op::TileAttributes{}, {x, ints({1})}, "expected 2 repeats");
  expect_error(op::TileAttributes{}, {x, ints({1, -1})}, "repeats of 0 or more");
  expect_error(op::TileAttributes{}, {x, ints({kHuge, 1})}, RT_MOST_ELEMENTS);
}

TEST(PagesGather, Values) {
  const auto x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(along<op::GatherAttributes>(0), {x, tensor(DType::I32, {1, 2}, {1, -2})},
                f32({1, 2, 3}, {4, 5, 6, 1, 2, 3}));
  expect_result(along<op::GatherAttributes>(-1), {x, ints({2, 0, 2})}, f32({2, 3}, {3, 1, 3, 6, 4, 6}));
  expect_result(along<op::GatherAttributes>(1), {x, tensor(DType::I64, {}, {-1})}, f32({2}, {3, 6}));
  expect_result(along<op::GatherAttributes>(0), {x, ints({})}, f32({0, 3}, {}));
  expect_error(along<op::GatherAttributes>(0), {x, ints({0, 2})},
               "indices in [-2, 2), found 2 at position 1");
  expect_error(along<op::GatherAttributes>(0), {x, ints({kTiny})}, "indices in");
  expect_error(along<op::GatherAttributes>(0), {f32({0, 3}, {}), ints({0})},
               "expected an axis with elements to index, found axis 0 of [0,3] and indices [1]");
  expect_error(along<op::GatherAttributes>(0), {x, f32({1}, {0})}, "indices of type");
  expect_error(along<op::GatherAttributes>(2), {x, ints({0})}, "axis");
  expect_error(along<op::GatherAttributes>(0),
               {f32({1, 1, 1, 1, 1, 1}, {1}), tensor(DType::I64, {1, 1, 1, 1}, {0})},
               "at most 8 axes, found 9");
}

/// An axis without elements has no valid index: the shape rules refuse all but empty indices.
TEST(PagesGather, AxisWithoutElements) {
  constexpr std::string_view kRefused = "expected an axis with elements to index";
  const auto none = f32({0, 3}, {}), no_columns = f32({2, 0}, {});
  const auto pairs = [](std::vector<double> values) {
    return tensor(DType::I64, {static_cast<int64_t>(values.size() / 2), 2}, values);
  };
  expect_error(along<op::GatherAttributes>(1), {no_columns, tensor(DType::I32, {}, {0})}, kRefused);
  expect_error(along<op::GatherAttributes>(1), {f32({0, 0}, {}), ints({0})}, kRefused);
  expect_result(along<op::GatherAttributes>(0), {none, ints({})}, f32({0, 3}, {}));
  expect_error(along<op::ScatterAddAttributes>(0), {ints({0, 3}), ints({0}), f32({1, 3}, {1, 2, 3})},
               kRefused);
  expect_error(along<op::GatherElementsAttributes>(1), {no_columns, pairs({0, 0, 0, 0})}, kRefused);
  expect_result(along<op::GatherElementsAttributes>(0), {none, tensor(DType::I64, {0, 2}, {})},
                f32({0, 2}, {}));
  expect_error(along<op::ScatterElementsAttributes>(1), {no_columns, pairs({0, 0}), f32({1, 2}, {1, 2})},
               kRefused);
  expect_error(op::GatherNDAttributes{}, {no_columns, pairs({0, 0})}, kRefused);
  expect_error(op::GatherNDAttributes{}, {none, tensor(DType::I64, {1, 1}, {0})}, kRefused);
  expect_result(op::GatherNDAttributes{}, {no_columns, tensor(DType::I64, {1, 1}, {1})}, f32({1, 0}, {}));
  expect_result(op::GatherNDAttributes{}, {none, pairs({})}, f32({0}, {}));
  expect_error(op::ScatterNDAttributes{}, {no_columns, pairs({1, 0}), f32({1}, {1})}, kRefused);
  op::GatherNDAttributes batch;
  batch.batch_dimensions = 1;
  expect_error(batch, {no_columns, tensor(DType::I64, {2, 1}, {0, 0})}, kRefused);
  expect_result(batch, {none, tensor(DType::I64, {0, 1}, {})}, f32({0}, {}));
}

TEST(PagesGather, ScatterAddsRepeats) {
  expect_result(along<op::ScatterAddAttributes>(0),
                {ints({3, 2}), ints({2, 0, -1}), f32({3, 2}, {1, 2, 3, 4, 5, 6})},
                f32({3, 2}, {3, 4, 0, 0, 6, 8}));
  expect_result(along<op::ScatterAddAttributes>(1),
                {ints({2, 3}), tensor(DType::I32, {1, 2}, {1, 1}), f32({2, 1, 2}, {1, 2, 3, 4})},
                f32({2, 3}, {0, 3, 0, 0, 7, 0}));
  expect_result(along<op::ScatterAddAttributes>(0), {ints({2}), ints({}), f32({0}, {})}, f32({2}, {0, 0}));
  expect_error(along<op::ScatterAddAttributes>(0), {ints({3, 2}), ints({0}), f32({2}, {1, 2})},
               "expected updates [1,2], found [2]");
  expect_error(along<op::ScatterAddAttributes>(0), {ints({3}), ints({3}), f32({1}, {1})},
               "indices in [-3, 3)");
  expect_error(along<op::ScatterAddAttributes>(0), {ints({kHuge, 2}), ints({3}), f32({1, 2}, {1, 1})},
               "extents");
}

}  // namespace
}  // namespace librt::test
