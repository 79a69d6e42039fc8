// Values, types and errors of the elementwise pages: unary, activations, binary, comparisons, Where, Cast.
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

constexpr int64_t kLeast64 = std::numeric_limits<int64_t>::min();

template <class Attributes>
void expect_function(Attributes attributes, const std::vector<double>& x, const std::vector<double>& y,
                     double tolerance = 1e-6) {
  const Shape shape{static_cast<int64_t>(x.size())};
  expect_result(std::move(attributes), {f32(shape, x)}, f32(shape, y), tolerance);
}

template <class Attributes>
void expect_integers(Attributes attributes, DType dtype, const std::vector<int64_t>& a,
                     const std::vector<int64_t>& b, const std::vector<int64_t>& want) {
  const auto got = run_one(std::move(attributes), {integers(dtype, a), integers(dtype, b)});
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(integers(*got), want);
}

TEST(PagesUnary, Values) {
  expect_function(op::AbsAttributes{}, {-2, 0, 3, kNaN, -kInfinity}, {2, 0, 3, kNaN, kInfinity});
  expect_function(op::NegAttributes{}, {-2, 3}, {2, -3});
  expect_function(op::ExpAttributes{}, {0, 1, -kInfinity}, {1, 2.7182818, 0});
  expect_function(op::LogAttributes{}, {1, 0, -1}, {0, -kInfinity, kNaN});
  expect_function(op::SqrtAttributes{}, {4, 0, -1}, {2, 0, kNaN});
  expect_function(op::ReciprocalAttributes{}, {4, 0, -kInfinity}, {0.25, kInfinity, 0});
  expect_function(op::SinAttributes{}, {0, 1}, {0, 0.84147098});
  expect_function(op::CosAttributes{}, {0, 1}, {1, 0.54030231});
  expect_function(op::ErfAttributes{}, {0, 0.5, -kInfinity}, {0, 0.52049988, -1});
  expect_function(op::FloorAttributes{}, {-1.5, 1.5}, {-2, 1});
  expect_function(op::CeilAttributes{}, {-1.5, 1.5}, {-1, 2});
  expect_function(op::SignAttributes{}, {-3, 0, 5, kNaN}, {-1, 0, 1, kNaN});
}

TEST(PagesUnary, RoundTakesTheEvenNeighbour) {
  expect_result(
      op::RoundAttributes{},
      {tensor(DType::F64, {10}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 2.4, 1e300, kNaN})},
      tensor(DType::F64, {10}, {0, 2, 2, 0, -2, -2, 0, 2, 1e300, kNaN}), 0);
}

TEST(PagesUnary, IntegersAreExactAndWrap) {
  const auto run = [](auto attributes, DType dtype, std::vector<int64_t> x) {
    const auto got = run_one(attributes, {integers(dtype, x)});
    EXPECT_TRUE(got.ok()) << got.status().message();
    return got.ok() ? integers(*got) : std::vector<int64_t>{};
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(run(op::AbsAttributes{}, DType::I64, {kLeast64, -5, (int64_t{1} << 53) + 1}),
            (List{kLeast64, 5, (int64_t{1} << 53) + 1}));
  EXPECT_EQ(run(op::AbsAttributes{}, DType::I8, {-128, -127}), (List{-128, 127}));
  EXPECT_EQ(run(op::AbsAttributes{}, DType::U64, {-1}), (List{-1}));
  EXPECT_EQ(run(op::SignAttributes{}, DType::U64, {-1, 0}), (List{1, 0}));
  EXPECT_EQ(run(op::NegAttributes{}, DType::I32, {-2147483648LL, 7}), (List{-2147483648LL, -7}));
  op::ClipAttributes clip;
  clip.minimum = -1.5f;
  clip.maximum = 2.5f;
  EXPECT_EQ(run(clip, DType::I64, {-9, 0, 9}), (List{-1, 0, 2}));
  EXPECT_EQ(run(clip, DType::U64, {-1, 1}), (List{2, 1}));
  EXPECT_EQ(run(op::ClipAttributes{}, DType::I64, {kLeast64}), (List{kLeast64}));
  expect_error(op::NegAttributes{}, {integers(DType::U8, {1})}, "expected x of type");
  expect_error(op::ExpAttributes{}, {integers(DType::I32, {1})}, "found i32");
}

TEST(PagesActivation, Values) {
  expect_function(op::TanhAttributes{}, {0, 1}, {0, 0.76159416});
  expect_function(op::SigmoidAttributes{}, {0, 1000, -1000, -2}, {0.5, 1, 0, 0.11920292});
  expect_function(op::ReluAttributes{}, {-1, 2, kNaN, kInfinity}, {0, 2, kNaN, kInfinity});
  expect_function(op::SoftplusAttributes{}, {0, 1000, -1000}, {0.69314718, 1000, 0});
  expect_function(op::LeakyReluAttributes{}, {-1, 2}, {-0.01, 2});
  expect_function(op::EluAttributes{}, {-1, 2}, {-0.63212056, 2});
  expect_function(op::HardSigmoidAttributes{}, {-10, 0.5, 10, kNaN}, {0, 0.6, 1, kNaN});
  expect_function(op::HardSwishAttributes{}, {-4, -1, 0, 1, 4}, {0, -0.33333333, 0, 0.66666667, 4});
  op::ClipAttributes clip;
  clip.minimum = -1;
  clip.maximum = 1;
  expect_function(clip, {-2, 0.5, 2, kNaN}, {-1, 0.5, 1, kNaN});
  clip.minimum = 3;  // above the maximum: the maximum wins, as in ONNX
  expect_function(clip, {-2, 5}, {1, 1});
  clip.maximum = std::numeric_limits<float>::quiet_NaN();
  expect_error(clip, {f32({}, {1})}, "found NaN");
}

TEST(PagesUnary, EmptyAndScalar) {
  expect_result(op::ExpAttributes{}, {f32({0, 3}, {})}, f32({0, 3}, {}));
  expect_result(op::ExpAttributes{}, {f32({}, {0})}, f32({}, {1}));
  expect_result(op::NotAttributes{}, {tensor(DType::Bool, {2}, {0, 1})}, tensor(DType::Bool, {2}, {1, 0}));
}

TEST(PagesBinary, Broadcasting) {
  expect_result(op::AddAttributes{}, {f32({2, 1}, {1, 2}), f32({3}, {10, 20, 30})},
                f32({2, 3}, {11, 21, 31, 12, 22, 32}));
  expect_result(op::SubAttributes{}, {f32({}, {1}), f32({2}, {3, 4})}, f32({2}, {-2, -3}));
  expect_result(op::MulAttributes{}, {f32({2, 0}, {}), f32({1, 1}, {3})}, f32({2, 0}, {}));
  expect_result(op::MulAttributes{}, {f32({0}, {}), f32({1}, {3})}, f32({0}, {}));
  expect_result(op::AddAttributes{}, {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {10, 20})},
                f32({2, 2, 2}, {11, 12, 21, 22, 13, 14, 23, 24}));
  expect_error(op::AddAttributes{}, {f32({2}, {1, 2}), f32({3}, {1, 2, 3})}, "found [2] and [3]");
  expect_error(op::AddAttributes{}, {f32({1}, {1}), tensor(DType::F16, {1}, {1})}, "of the same type as a");
  expect_error(op::AddAttributes{}, {f32({1}, {1})}, "expected 2 inputs, found 1");
  expect_error(op::AddAttributes{}, {f32({1}, {1}), std::nullopt}, "expected input 1 to be present");
}

TEST(PagesBinary, NaNAndInfinity) {
  const auto a = f32({4}, {kNaN, 1, 3, -kInfinity});
  const auto b = f32({4}, {1, kNaN, 2, 0});
  expect_result(op::MinimumAttributes{}, {a, b}, f32({4}, {kNaN, kNaN, 2, -kInfinity}));
  expect_result(op::MaximumAttributes{}, {a, b}, f32({4}, {kNaN, kNaN, 3, 0}));
  expect_result(op::DivAttributes{}, {f32({3}, {1, -1, 0}), f32({1}, {0})},
                f32({3}, {kInfinity, -kInfinity, kNaN}));
  expect_result(op::PowAttributes{}, {f32({3}, {-2, 0, 4}), f32({3}, {3, 0, 0.5})}, f32({3}, {-8, 1, 2}));
}

TEST(PagesBinary, IntegersNeverTrap) {
  expect_integers(op::DivAttributes{}, DType::I64, {kLeast64, 7, -7}, {-1, 2, 2}, {kLeast64, 3, -3});
  expect_integers(op::DivAttributes{}, DType::I32, {-2147483648LL}, {-1}, {-2147483648LL});
  expect_integers(op::DivAttributes{}, DType::U64, {-1}, {2}, {std::numeric_limits<int64_t>::max()});
  expect_integers(op::AddAttributes{}, DType::I64, {std::numeric_limits<int64_t>::max()}, {1}, {kLeast64});
  expect_integers(op::AddAttributes{}, DType::U8, {200}, {100}, {44});
  expect_integers(op::MulAttributes{}, DType::I64, {(int64_t{1} << 31) + 1}, {(int64_t{1} << 31) + 1},
                  {(int64_t{1} << 62) + (int64_t{1} << 32) + 1});
  expect_integers(op::MaximumAttributes{}, DType::U64, {-1}, {5}, {-1});
  expect_integers(op::MaximumAttributes{}, DType::I64, {-1}, {5}, {5});
  expect_integers(op::PowAttributes{}, DType::I64, {3, 2, -1, 5, 1}, {4, 62, -3, -1, -2},
                  {81, int64_t{1} << 62, -1, 0, 1});
  const auto one = integers(DType::I32, {1});
  const auto zero = integers(DType::I32, {0});
  expect_error(op::DivAttributes{}, {one, zero}, "expected a divisor other than 0");
  expect_error(op::ModAttributes{}, {one, zero}, "expected a divisor other than 0");
}

TEST(PagesBinary, ModTakesTheSignOfTheDivisorOrOfTheDividend) {
  op::ModAttributes truncated;
  truncated.truncated = true;
  const std::vector<int64_t> a{-4, 7, 5, 4, -7, 8, kLeast64};
  const std::vector<int64_t> b{2, -3, 8, -2, 3, 5, -1};
  expect_integers(op::ModAttributes{}, DType::I64, a, b, {0, -2, 5, 0, 2, 3, 0});
  expect_integers(truncated, DType::I64, a, b, {0, 1, 5, 0, -1, 3, 0});
  const auto x = f32({4}, {-4.3, 7.2, 5.5, 1});
  const auto y = f32({4}, {2.1, -3.4, 8.5, kInfinity});
  expect_result(op::ModAttributes{}, {x, y}, f32({4}, {2, -3, 5.5, 1}), 1e-5);
  expect_result(truncated, {x, y}, f32({4}, {-0.1, 0.4, 5.5, 1}), 1e-5);
}

TEST(PagesCompare, Values) {
  const auto a = f32({3}, {1, 2, kNaN});
  const auto b = f32({3}, {2, 2, kNaN});
  const auto truths = [](std::vector<double> values) { return tensor(DType::Bool, {3}, values); };
  expect_result(op::EqualAttributes{}, {a, b}, truths({0, 1, 0}));
  expect_result(op::LessAttributes{}, {a, b}, truths({1, 0, 0}));
  expect_result(op::LessOrEqualAttributes{}, {a, b}, truths({1, 1, 0}));
  expect_result(op::GreaterAttributes{}, {a, b}, truths({0, 0, 0}));
  expect_result(op::GreaterOrEqualAttributes{}, {a, b}, truths({0, 1, 0}));
  const int64_t large = (int64_t{1} << 53) + 1;
  expect_integers(op::EqualAttributes{}, DType::I64, {large}, {large - 1}, {0});
  expect_integers(op::LessAttributes{}, DType::U64, {-1}, {1}, {0});
  expect_integers(op::LessAttributes{}, DType::I64, {-1}, {1}, {1});
  expect_integers(op::AndAttributes{}, DType::Bool, {0, 1, 1}, {1, 0, 1}, {0, 0, 1});
  expect_integers(op::OrAttributes{}, DType::Bool, {0, 1, 0}, {1, 0, 0}, {1, 1, 0});
  expect_integers(op::XorAttributes{}, DType::Bool, {0, 1, 1}, {1, 0, 1}, {1, 1, 0});
  expect_error(op::AndAttributes{}, {a, b}, "expected a of type bool");
}

TEST(PagesWhere, BroadcastsAllThree) {
  const auto condition = tensor(DType::Bool, {2, 1}, {1, 0});
  expect_result(op::WhereAttributes{}, {condition, f32({}, {5}), f32({3}, {kNaN, 2, 3})},
                f32({2, 3}, {5, 5, 5, kNaN, 2, 3}));
  expect_error(op::WhereAttributes{}, {f32({1}, {1}), f32({1}, {1}), f32({1}, {1})},
               "condition of type bool");
  expect_error(op::WhereAttributes{}, {condition, f32({1}, {1}), integers(DType::I8, {1})},
               "expected y of the same type as x");
}

TEST(PagesCast, BetweenAllTypes) {
  const auto cast_to = [](DType to) {
    op::CastAttributes cast;
    cast.to = static_cast<uint8_t>(to);
    return cast;
  };
  for (int from = 0; from < kDTypeCount; ++from)
    for (int to = 0; to < kDTypeCount; ++to)
      expect_result(cast_to(static_cast<DType>(to)), {tensor(static_cast<DType>(from), {2}, {0, 1})},
                    tensor(static_cast<DType>(to), {2}, {0, 1}), 0);
  expect_result(cast_to(DType::I8), {f32({5}, {-1.9, 1.9, 300, -300, kNaN})},
                tensor(DType::I8, {5}, {-1, 1, 127, -128, 0}));
  expect_result(cast_to(DType::Bool), {f32({3}, {0, 0.5, kNaN})}, tensor(DType::Bool, {3}, {0, 1, 1}));
  expect_result(cast_to(DType::U8), {integers(DType::I32, {-1, 256, 3})},
                tensor(DType::U8, {3}, {255, 0, 3}));
  expect_result(cast_to(DType::F16), {f32({2}, {65504, 1e6})}, tensor(DType::F16, {2}, {65504, kInfinity}));
  // 2^24 + 1 + 2^-30 style double rounding: the exact integer rounds up, its double rounds to the tie.
  const int64_t tricky = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  expect_result(cast_to(DType::F32), {integers(DType::I64, {tricky})},
                f32({1}, {static_cast<double>(static_cast<float>(tricky))}), 0);
  expect_result(cast_to(DType::F32), {integers(DType::U64, {-1})}, f32({1}, {18446744073709551616.0}), 0);
  op::CastAttributes unknown;
  unknown.to = 77;
  expect_error(unknown, {f32({1}, {1})}, "found 77");
}

}  // namespace
}  // namespace librt::test
