// Values, shapes and errors of Resize and of the operators that create shapes.
#include "runtime/geometry/resize.h"
#include "tests/unit/page_test_support.h"
#include "tools/compiler/shape/ratio.h"

namespace librt::test {
namespace {

ops::HostTensor ints(const std::vector<int64_t>& values) {
  return integers(DType::I64, values);
}

op::ResizeAttributes resizing(op::ResizeMode mode,
                              op::ResizeCoordinates coordinates = op::ResizeCoordinates::HalfPixel,
                              op::ResizeNearest nearest = op::ResizeNearest::RoundPreferFloor) {
  op::ResizeAttributes attributes;
  attributes.mode = mode;
  attributes.coordinates = coordinates;
  attributes.nearest = nearest;
  return attributes;
}

TEST(PagesResize, Nearest) {
  const auto x = f32({1, 2, 2, 1}, {1, 2, 3, 4});
  expect_result(resizing(op::ResizeMode::Nearest), {x, std::nullopt, f32({2}, {2, 3})},
                f32({1, 4, 6, 1}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}));
  // Two channels; sizes; any type.
  expect_result(resizing(op::ResizeMode::Nearest), {tensor(DType::I8, {1, 2, 2}, {1, 2, 3, 4}), ints({1})},
                tensor(DType::I8, {1, 1, 2}, {1, 2}));
  using enum op::ResizeNearest;
  const auto line = f32({1, 4, 1}, {1, 2, 3, 4});
  const auto asymmetric = [&](op::ResizeNearest nearest) {
    return numbers(*run_one(resizing(op::ResizeMode::Nearest, op::ResizeCoordinates::Asymmetric, nearest),
                            {line, ints({8})}));
  };
  expect_values(asymmetric(Floor), {1, 1, 2, 2, 3, 3, 4, 4});
  expect_values(asymmetric(Ceil), {1, 2, 2, 3, 3, 4, 4, 4});
  expect_values(asymmetric(RoundPreferFloor), {1, 1, 2, 2, 3, 3, 4, 4});
  expect_values(asymmetric(RoundPreferCeil), {1, 2, 2, 3, 3, 4, 4, 4});
}

// Values of ONNX's published examples for Resize (a row of 1 2 / 3 4, or 1 to 8, or 1 to 16).
TEST(PagesResize, LinearAndCubic) {
  using enum op::ResizeCoordinates;
  const auto pair = f32({1, 2, 1}, {1, 2});
  expect_result(resizing(op::ResizeMode::Linear), {pair, std::nullopt, f32({1}, {2})},
                f32({1, 4, 1}, {1, 1.25, 1.75, 2}));
  expect_result(resizing(op::ResizeMode::Linear, AlignCorners), {pair, std::nullopt, f32({1}, {2})},
                f32({1, 4, 1}, {1, 4.0 / 3, 5.0 / 3, 2}));
  const auto line = f32({1, 4, 1}, {1, 2, 3, 4});
  expect_result(resizing(op::ResizeMode::Linear), {line, std::nullopt, f32({1}, {0.6f})},
                f32({1, 2, 1}, {1.3333333, 3}), 1e-5);
  expect_result(resizing(op::ResizeMode::Linear, AlignCorners), {line, std::nullopt, f32({1}, {0.6f})},
                f32({1, 2, 1}, {1, 3.142857}), 1e-5);
  expect_result(resizing(op::ResizeMode::Linear, PytorchHalfPixel), {line, ints({1})}, f32({1, 1, 1}, {1}));
  expect_result(resizing(op::ResizeMode::Linear, HalfPixelSymmetric), {line, std::nullopt, f32({1}, {0.6f})},
                f32({1, 2, 1}, {1.6666666, 3.3333333}), 1e-5);
  const auto cubic = run_one(resizing(op::ResizeMode::Cubic), {line, std::nullopt, f32({1}, {2})});
  ASSERT_TRUE(cubic.ok());
  expect_values(numbers(*cubic),
                {0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875},
                1e-5);
}

/// Extents of PyTorch's interpolate(scale_factor=...), whose exporters write the factor in f32.
TEST(PagesResize, ScalesAreTheFractionsThatTheyRound) {
  const auto extent = [](int64_t input, float scale) {
    const auto geometry =
        resize_geometry({1, input, 1}, resizing(op::ResizeMode::Nearest), {}, std::vector<float>{scale}, {});
    EXPECT_TRUE(geometry.ok());
    return geometry->axes[0].output;
  };
  EXPECT_EQ(extent(10, 0.7f), 7);
  EXPECT_EQ(extent(10, 1.3f), 13);
  EXPECT_EQ(extent(30, 0.9f), 27);
  EXPECT_EQ(extent(11, 0.7f), 7);
  EXPECT_EQ(extent(9, 1.0f / 3), 3);
  EXPECT_EQ(extent(1000, 1.999f), 1999);
  EXPECT_EQ(extent(3, 0x1p-21f), 0);
  EXPECT_EQ(extent(5, 1e6f), 5000000);
  const compiler::Ratio ratio = compiler::ratio_of(0.7f);
  EXPECT_EQ(ratio.numerator, 7);
  EXPECT_EQ(ratio.denominator, 10);
  for (int i = 1; i < 20000; ++i) {  // the loop ends, with a fraction that rounds to the scale
    const float scale = static_cast<float>(i) * static_cast<float>(i) * 1.2345e-4f;
    const compiler::Ratio found = compiler::ratio_of(scale);
    EXPECT_EQ(
        static_cast<float>(static_cast<double>(found.numerator) / static_cast<double>(found.denominator)),
        scale);
  }
}

/// Sizes are the extents, scales the ratio of positions.
TEST(PagesResize, SizesBesideScales) {
  using enum op::ResizeCoordinates;
  const auto line = f32({1, 4, 1}, {1, 2, 3, 4});
  expect_result(resizing(op::ResizeMode::Linear), {line, ints({2}), f32({1}, {0.6f})},
                f32({1, 2, 1}, {1.3333333, 3}), 1e-5);
  expect_result(resizing(op::ResizeMode::Linear, Asymmetric), {line, ints({3}), f32({1}, {0.5f})},
                f32({1, 3, 1}, {1, 3, 4}), 1e-5);
  expect_result(resizing(op::ResizeMode::Nearest, Asymmetric), {line, ints({0}), f32({1}, {2})},
                f32({1, 0, 1}, {}));
}

TEST(PagesResize, RatiosOfExtents) {
  const auto ratio = [](float scale) {
    const compiler::Ratio found = compiler::ratio_of_extents(scale);
    return std::pair(found.numerator, found.denominator);
  };
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(ratio(1.1f), Pair(11, 10));
  EXPECT_EQ(ratio(2.0f / 3), Pair(2, 3));
  EXPECT_EQ(ratio(0.6666667f), Pair(2, 3));
  EXPECT_EQ(ratio(3.0f), Pair(3, 1));
  EXPECT_EQ(ratio(1.3f), Pair(0, 0));  // 180 times it is a bit less than 234
  EXPECT_EQ(ratio(NAN), Pair(0, 0));
  EXPECT_EQ(ratio(-2.0f), Pair(0, 0));
  EXPECT_EQ(ratio(0x1p21f), Pair(0, 0));
}

/// Values of PyTorch's grid_sample(mode="bicubic", padding_mode="border"), within and outside of the image.
TEST(PagesResize, CubicGridSamplesReadTheBorderAroundThem) {
  op::GridSampleAttributes attributes;
  attributes.mode = op::ResizeMode::Cubic;
  attributes.padding = op::GridSamplePadding::Border;
  const auto line = f32({1, 4, 1}, {1, 2, 4, 8}), grid = f32({1, 5, 1}, {-1.4f, -0.9f, 0.3f, 1.2f, 1.9f});
  expect_result(attributes, {line, grid}, f32({1, 5, 1}, {1, 0.8897505f, 4.4494987f, 8.027f, 8}), 1e-5);
  attributes.align_corners = true;
  expect_result(attributes, {line, grid}, f32({1, 5, 1}, {0.9279997f, 1.0990009f, 3.7877808f, 8.441001f, 8}),
                1e-5);
}

TEST(PagesResize, WeightsSumToOne) {
  for (int mode = 1; mode <= 2; ++mode)
    for (int coordinates = 0; coordinates <= 4; ++coordinates)
      for (int64_t input : {1, 2, 5})
        for (int64_t output : {1, 3, 8})
          for (int variant = 0; variant < 4; ++variant) {
            auto attributes =
                resizing(static_cast<op::ResizeMode>(mode), static_cast<op::ResizeCoordinates>(coordinates));
            attributes.exclude_outside = (variant & 1) != 0;
            attributes.antialias = (variant & 2) != 0;
            const auto geometry =
                resize_geometry({1, input, 1}, attributes, std::vector<int64_t>{output}, {}, {});
            ASSERT_TRUE(geometry.ok());
            const ResizeTable table = resize_table(geometry->axes[0], attributes, geometry->taps);
            for (int64_t i = 0; i < output; ++i) {
              double sum = 0;
              for (int t = 0; t < geometry->taps; ++t) {
                const auto at = static_cast<size_t>(i * geometry->taps + t);
                sum += table.weight[at];
                EXPECT_TRUE(table.index[at] >= 0 && table.index[at] < input);
              }
              EXPECT_NEAR(sum, 1, 1e-12);
            }
          }
}

TEST(PagesResize, NoElementsAndErrors) {
  const auto x = f32({1, 2, 1}, {1, 2});
  expect_result(resizing(op::ResizeMode::Linear), {f32({0, 2, 1}, {}), ints({3})}, f32({0, 3, 1}, {}));
  expect_result(resizing(op::ResizeMode::Linear), {x, ints({0})}, f32({1, 0, 1}, {}));
  expect_error(resizing(op::ResizeMode::Linear), {f32({1, 0, 1}, {}), ints({3})}, "a non-empty input");
  expect_error(resizing(op::ResizeMode::Linear), {x}, "expected 1 sizes or scales");
  expect_error(resizing(op::ResizeMode::Linear), {x, ints({2, 2})}, "expected 1 sizes or scales");
  expect_error(resizing(op::ResizeMode::Linear), {x, ints({2, 2}), f32({1}, {2})}, "found 2 and 1");
  expect_error(resizing(op::ResizeMode::Linear), {x, ints({2}), f32({2}, {2, 2})}, "found 1 and 2");
  expect_error(resizing(op::ResizeMode::Linear), {x, ints({2}), f32({1}, {-2})}, "expected scales above 0");
  expect_error(resizing(op::ResizeMode::Linear), {x, ints({-2})}, "sizes in [0, 2^31)");
  for (double scale : {0.0, -1.0, 1e30, kNaN, kInfinity})
    expect_error(resizing(op::ResizeMode::Linear), {x, std::nullopt, f32({1}, {scale})},
                 "expected scales above 0");
  expect_error(resizing(op::ResizeMode::Linear), {f32({1, 1}, {1}), ints({})}, "rank 3 or more");
  expect_error(resizing(op::ResizeMode::Linear), {tensor(DType::I8, {1, 1, 1}, {1}), ints({2})},
               "expected x of type");
  expect_error(resizing(static_cast<op::ResizeMode>(7)), {x, ints({2})}, "known modes");
}

TEST(PagesShape, Shape) {
  const auto x = f32({2, 0, 4}, {});
  const auto shape = [](int64_t start, int64_t end) {
    op::ShapeAttributes attributes;
    attributes.start = start;
    attributes.end = end;
    return attributes;
  };
  expect_result(op::ShapeAttributes{}, {x}, ints({2, 0, 4}));
  expect_result(shape(-2, 99), {x}, ints({0, 4}));
  expect_result(shape(1, -1), {x}, ints({0}));
  expect_result(shape(2, 1), {x}, ints({}));
  expect_result(op::ShapeAttributes{}, {f32({}, {1})}, ints({}));
}

TEST(PagesShape, ConstantOfShape) {
  op::ConstantOfShapeAttributes attributes;
  attributes.dtype = static_cast<uint8_t>(DType::I16);
  attributes.value = -3;
  expect_result(attributes, {ints({2, 1})}, tensor(DType::I16, {2, 1}, {-3, -3}));
  expect_result(attributes, {ints({})}, tensor(DType::I16, {}, {-3}));
  expect_result(attributes, {ints({0, 5})}, tensor(DType::I16, {0, 5}, {}));
  expect_error(attributes, {ints({-1})}, RT_MOST_ELEMENTS);
  expect_error(attributes, {ints({int64_t{1} << 40, int64_t{1} << 40})}, RT_MOST_ELEMENTS);
  attributes.dtype = 99;
  expect_error(attributes, {ints({1})}, "known dtype, found value 99");
}

TEST(PagesShape, Range) {
  const auto scalar = [](DType dtype, double value) { return tensor(dtype, {}, {value}); };
  const auto range = [&](DType dtype, double start, double limit, double delta) {
    const auto got =
        run_one(op::RangeAttributes{}, {scalar(dtype, start), scalar(dtype, limit), scalar(dtype, delta)});
    EXPECT_TRUE(got.ok()) << got.status().message();
    return got.ok() ? numbers(*got) : std::vector<double>();
  };
  expect_values(range(DType::I64, 3, 9, 3), {3, 6});
  expect_values(range(DType::I32, 10, 6, -3), {10, 7});
  expect_values(range(DType::I64, 3, 3, 1), {});
  expect_values(range(DType::I64, 3, 9, -1), {});
  expect_values(range(DType::F32, 1, 2.1, 0.5), {1, 1.5, 2});
  const auto error = [&](DType dtype, double start, double limit, double delta, std::string_view part) {
    expect_error(op::RangeAttributes{}, {scalar(dtype, start), scalar(dtype, limit), scalar(dtype, delta)},
                 part);
  };
  error(DType::I64, 0, 5, 0, "delta other than 0");
  error(DType::F32, 0, 5, 0, "delta other than 0");
  error(DType::F32, 0, kNaN, 1, "finite range");
  error(DType::I64, -9e18, 9e18, 1, RT_MOST_ELEMENTS);
  expect_error(op::RangeAttributes{}, {ints({0, 1}), ints({3}), ints({1})}, "expected scalars");
}

}  // namespace
}  // namespace librt::test
