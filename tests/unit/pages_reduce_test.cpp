// Values, types and errors of the pages along axes: reductions, positions, softmax.
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

template <class Attributes>
Attributes over(std::vector<int64_t> axes, bool keep_dims = true) {
  Attributes attributes;
  attributes.axes = std::move(axes);
  attributes.keep_dims = keep_dims;
  return attributes;
}

template <class Attributes>
Attributes along(int64_t axis, bool keep_dims = true, bool select_last = false) {
  Attributes attributes;
  attributes.axis = axis;
  attributes.keep_dims = keep_dims;
  attributes.select_last = select_last;
  return attributes;
}

TEST(PagesReduce, Axes) {
  const auto x = f32({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_result(over<op::ReduceSumAttributes>({}), {x}, f32({1, 1, 1}, {78}));
  expect_result(over<op::ReduceSumAttributes>({}, false), {x}, f32({}, {78}));
  expect_result(over<op::ReduceSumAttributes>({-2}), {x}, f32({2, 1, 2}, {9, 12, 27, 30}));
  expect_result(over<op::ReduceSumAttributes>({0, 2}, false), {x}, f32({3}, {18, 26, 34}));
  expect_result(over<op::ReduceMeanAttributes>({2, 0}, false), {x}, f32({3}, {4.5, 6.5, 8.5}));
  expect_result(over<op::ReduceMaxAttributes>({1}, false), {x}, f32({2, 2}, {5, 6, 11, 12}));
  expect_result(over<op::ReduceMinAttributes>({1}, false), {x}, f32({2, 2}, {1, 2, 7, 8}));
  expect_result(over<op::ReduceProdAttributes>({2}, false), {x}, f32({2, 3}, {2, 12, 30, 56, 90, 132}));
  expect_result(over<op::ReduceSumAttributes>({}), {f32({}, {3})}, f32({}, {3}));
  expect_error(over<op::ReduceSumAttributes>({3}), {x}, "expected an axis from -3 to 2 for rank 3, found 3");
  expect_error(over<op::ReduceSumAttributes>({1, -2}), {x}, "axis 1 twice");
}

TEST(PagesReduce, NaNWins) {
  const auto x = f32({2, 3}, {1, kNaN, 3, -kInfinity, 0, kInfinity});
  expect_result(over<op::ReduceMaxAttributes>({1}, false), {x}, f32({2}, {kNaN, kInfinity}));
  expect_result(over<op::ReduceMinAttributes>({1}, false), {x}, f32({2}, {kNaN, -kInfinity}));
  expect_result(over<op::ReduceSumAttributes>({1}, false), {x}, f32({2}, {kNaN, kNaN}));
}

TEST(PagesReduce, NoElements) {
  const auto x = f32({2, 0}, {});
  expect_result(over<op::ReduceSumAttributes>({1}, false), {x}, f32({2}, {0, 0}));
  expect_result(over<op::ReduceProdAttributes>({1}, false), {x}, f32({2}, {1, 1}));
  expect_result(over<op::ReduceMeanAttributes>({1}, false), {x}, f32({2}, {kNaN, kNaN}));
  expect_result(over<op::ReduceMaxAttributes>({1}, false), {x}, f32({2}, {-kInfinity, -kInfinity}));
  expect_result(over<op::ReduceMinAttributes>({1}, false), {x}, f32({2}, {kInfinity, kInfinity}));
  expect_result(over<op::ReduceSumAttributes>({0}), {x}, f32({1, 0}, {}));
  const auto empty = [](DType dtype) { return tensor(dtype, {0}, {}); };
  const auto extreme = [](auto attributes, const ops::HostTensor& tensor) {
    const auto got = run_one(attributes, {tensor});
    EXPECT_TRUE(got.ok());
    return got.ok() ? integers(*got) : std::vector<int64_t>{};
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(extreme(op::ReduceMaxAttributes{}, empty(DType::I8)), (List{-128}));
  EXPECT_EQ(extreme(op::ReduceMinAttributes{}, empty(DType::U16)), (List{65535}));
  EXPECT_EQ(extreme(op::ReduceMaxAttributes{}, empty(DType::I64)),
            (List{std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(extreme(op::ReduceMinAttributes{}, empty(DType::U64)), (List{-1}));
  EXPECT_EQ(extreme(op::ReduceMinAttributes{}, empty(DType::Bool)), (List{1}));
  expect_error(op::ReduceMeanAttributes{}, {empty(DType::I32)}, "at least one integer");
}

TEST(PagesReduce, Integers) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const auto run = [](auto attributes, const ops::HostTensor& x) {
    const auto got = run_one(attributes, {x});
    EXPECT_TRUE(got.ok());
    return got.ok() ? integers(*got) : std::vector<int64_t>{};
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(run(op::ReduceSumAttributes{}, integers(DType::I64, {large, -1})), (List{large - 1}));
  EXPECT_EQ(run(op::ReduceSumAttributes{}, integers(DType::U8, {200, 100})), (List{44}));
  EXPECT_EQ(run(op::ReduceMeanAttributes{}, integers(DType::I32, {-3, -4})), (List{-3}));
  EXPECT_EQ(run(op::ReduceMaxAttributes{}, integers(DType::U64, {5, -1})), (List{-1}));
  EXPECT_EQ(run(op::ReduceMinAttributes{}, integers(DType::I64, {5, -1})), (List{-1}));
  EXPECT_EQ(run(op::ReduceMaxAttributes{}, integers(DType::Bool, {0, 1})), (List{1}));
}

TEST(PagesArg, TiesNaNAndAxes) {
  const auto x = f32({2, 3}, {1, 3, 3, 2, 2, 1});
  const auto positions = [](Shape shape, std::vector<double> values) {
    return tensor(DType::I64, shape, values);
  };
  expect_result(along<op::ArgMaxAttributes>(1), {x}, positions({2, 1}, {1, 0}));
  expect_result(along<op::ArgMaxAttributes>(-1, false, true), {x}, positions({2}, {2, 1}));
  expect_result(along<op::ArgMaxAttributes>(0, false), {x}, positions({3}, {1, 0, 0}));
  expect_result(along<op::ArgMinAttributes>(1, false), {x}, positions({2}, {0, 2}));
  const auto with_nan = f32({4}, {5, kNaN, 7, kNaN});
  expect_result(along<op::ArgMaxAttributes>(0, false), {with_nan}, positions({}, {1}));
  expect_result(along<op::ArgMinAttributes>(0, false), {with_nan}, positions({}, {1}));
  expect_result(along<op::ArgMaxAttributes>(0, false), {f32({2, 0}, {})}, positions({0}, {}));
  expect_error(along<op::ArgMaxAttributes>(1), {f32({2, 0}, {})}, "at least one element along axis 1");
  expect_error(along<op::ArgMaxAttributes>(0), {f32({}, {1})}, "expected x of rank 1");
}

TEST(PagesSoftmax, ShiftedAlongAnyAxis) {
  op::SoftmaxAttributes last;
  expect_result(last, {f32({2, 2}, {0, 0, 1000, 1001})}, f32({2, 2}, {0.5, 0.5, 0.26894142, 0.73105858}));
  op::SoftmaxAttributes first;
  first.axis = 0;
  expect_result(first, {f32({2, 2}, {0, 1, 0, 2})}, f32({2, 2}, {0.5, 0.26894142, 0.5, 0.73105858}));
  op::LogSoftmaxAttributes logarithm;
  expect_result(logarithm, {f32({3}, {-1000, 0, 0})}, f32({3}, {-1000.69314718, -0.69314718, -0.69314718}),
                1e-4);
  expect_result(logarithm, {f32({2}, {-kInfinity, 3})}, f32({2}, {-kInfinity, 0}));
  expect_result(last, {f32({0, 4}, {})}, f32({0, 4}, {}));
  first.axis = 2;
  expect_error(first, {f32({2, 2}, {0, 1, 0, 2})}, "found 2");
  expect_error(last, {integers(DType::I32, {1})}, "found i32");
}

}  // namespace
}  // namespace librt::test
