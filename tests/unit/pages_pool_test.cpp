// Values, shapes and errors of the pools and their gradients.
#include "runtime/geometry/windows.h"
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

template <class Attributes>
Attributes pool(std::vector<int64_t> kernel, std::vector<int64_t> strides = {},
                std::vector<int64_t> pads = {}, bool ceil_mode = false) {
  Attributes attributes;
  attributes.kernel = std::move(kernel);
  attributes.strides = std::move(strides);
  attributes.pads = std::move(pads);
  attributes.ceil_mode = ceil_mode;
  return attributes;
}
constexpr auto kMax = pool<op::MaxPoolAttributes>;
constexpr auto kAverage = pool<op::AveragePoolAttributes>;

TEST(PagesPool, Maximum) {
  const auto x = f32({1, 4, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  expect_result(kMax({3, 3}, {2, 2}, {}, false), {x}, f32({1, 1, 1, 1}, {11}));
  expect_result(kMax({3, 3}, {2, 2}, {}, true), {x}, f32({1, 2, 2, 1}, {11, 12, 15, 16}));
  auto dilated = kMax({2, 2}, {}, {}, false);
  dilated.dilations = {2, 2};
  expect_result(dilated, {x}, f32({1, 2, 2, 1}, {11, 12, 15, 16}));
  const auto negative = f32({1, 2, 2}, {-1, -5, -3, -4});
  expect_result(kMax({2}, {}, {1, 1}, false), {negative}, f32({1, 3, 2}, {-1, -5, -1, -4, -3, -4}));
  expect_result(kMax({2}, {}, {}, false), {tensor(DType::I8, {1, 3, 1}, {-7, -9, -8})},
                tensor(DType::I8, {1, 2, 1}, {-7, -8}));
  expect_result(kMax({2}, {}, {}, false), {f32({1, 3, 1}, {kNaN, 1, 2})}, f32({1, 2, 1}, {kNaN, 2}));
  expect_result(kMax({1}, {}, {1, 0}, false), {f32({1, 1, 1}, {5})}, f32({1, 2, 1}, {-kInfinity, 5}));
}

// The window that would start in the padding at the end is dropped, though ceil rounding includes it.
TEST(PagesPool, CeilModeDropsWindowsInThePadding) {
  expect_result(kMax({2}, {2}, {0, 1}, true), {f32({1, 2, 1}, {1, 2})}, f32({1, 1, 1}, {2}));
  expect_result(kAverage({3}, {3}, {1, 1}, true), {f32({1, 3, 1}, {3, 6, 9})}, f32({1, 2, 1}, {4.5, 9}));
  expect_result(kAverage({3}, {3}, {2, 1}, true), {f32({1, 1, 1}, {3})}, f32({1, 1, 1}, {3}));
}

TEST(PagesPool, Average) {
  const auto x = f32({1, 2, 2, 1}, {1, 2, 3, 6});
  expect_result(kAverage({2, 2}, {}, {}, false), {x}, f32({1, 1, 1, 1}, {3}));
  expect_result(kAverage({2, 2}, {}, {1, 1, 0, 0}, false), {x}, f32({1, 2, 2, 1}, {1, 1.5, 2, 3}));
  auto padded = kAverage({2, 2}, {}, {1, 1, 0, 0}, false);
  padded.count_include_pad = true;
  expect_result(padded, {x}, f32({1, 2, 2, 1}, {0.25, 0.75, 1, 3}));
  // ceil_mode reaches one position past the padding, which is not counted even with count_include_pad.
  auto reaching = kAverage({3}, {2}, {0, 1}, true);
  reaching.count_include_pad = true;
  expect_result(reaching, {f32({1, 5, 1}, {1, 2, 3, 4, 5})}, f32({1, 3, 1}, {2, 4, 2.5}));
  auto dilated = kAverage({2}, {}, {1, 1}, false);
  dilated.dilations = {2};
  expect_result(dilated, {f32({1, 3, 1}, {1, 2, 3})}, f32({1, 3, 1}, {2, 2, 2}));
}

TEST(PagesPool, MaximumGradientGoesToTheFirst) {
  const auto x = f32({1, 2, 2, 1}, {4, 4, 4, 4});
  expect_result(pool<op::MaxPoolGradAttributes>({2, 2}), {x, f32({1, 1, 1, 1}, {5})},
                f32({1, 2, 2, 1}, {5, 0, 0, 0}));
  expect_result(pool<op::MaxPoolGradAttributes>({2}),
                {f32({1, 3, 2}, {1, 3, 2, 2, 1, 9}), f32({1, 2, 2}, {1, 2, 3, 4})},
                f32({1, 3, 2}, {0, 2, 4, 0, 0, 4}));
}

TEST(PagesPool, AverageGradientSpreads) {
  auto attributes = pool<op::AveragePoolGradAttributes>({2}, {1}, {1, 0});
  expect_result(attributes, {integers(DType::I64, {1, 2, 1}), f32({1, 2, 1}, {3, 8})},
                f32({1, 2, 1}, {7, 4}));
  attributes.count_include_pad = true;
  expect_result(attributes, {integers(DType::I64, {1, 2, 1}), f32({1, 2, 1}, {3, 8})},
                f32({1, 2, 1}, {5.5, 4}));
  expect_error(attributes, {integers(DType::I64, {1, 3, 1}), f32({1, 2, 1}, {3, 8})},
               "expected grad_output of shape [1,3,1]");
}

TEST(PagesPool, NoElementsAndErrors) {
  expect_result(kMax({2}, {}, {}, false), {f32({0, 4, 3}, {})}, f32({0, 3, 3}, {}));
  expect_result(kAverage({2}, {}, {}, false), {f32({2, 4, 0}, {})}, f32({2, 3, 0}, {}));
  const auto x = f32({1, 2, 1}, {1, 2});
  expect_error(kMax({}, {}, {}, false), {x}, "expected 1 entries in kernel, found 0");
  expect_error(kMax({0}, {}, {}, false), {x}, "expected kernel in [1,");
  expect_error(kMax({3}, {}, {}, false), {x}, "window of at most the padded extent 2");
  expect_error(kMax({int64_t{1} << 40}, {}, {}, false), {x}, "expected kernel in");
  expect_error(kMax({1}, {}, {}, false), {f32({2}, {1, 2})}, "rank 3 to 5");
  expect_error(kAverage({1}, {}, {}, false), {tensor(DType::I32, {1, 1, 1}, {1})}, "expected x of type");
}

// Every window and tap, counted explicitly.
TEST(Geometry, AverageCount) {
  for (int64_t input = 1; input < 6; ++input)
    for (int64_t begin = 0; begin < 3; ++begin)
      for (int64_t end = 0; end < 3; ++end)
        for (int64_t dilation = 1; dilation < 4; ++dilation) {
          WindowAxis axis{.input = input, .kernel = 3, .stride = 2, .dilation = dilation};
          axis.pad_begin = begin;
          axis.pad_end = end;
          for (int64_t window = 0; window < 4; ++window)
            for (bool include : {false, true}) {
              int64_t count = 0;
              for (int64_t tap = 0; tap < 3; ++tap) {
                const int64_t at = axis.position(window, tap);
                count += include ? at >= -begin && at < input + end : at >= 0 && at < input;
              }
              EXPECT_EQ(average_count(axis, window, include), count)
                  << input << ' ' << begin << ' ' << end << ' ' << dilation << ' ' << window << ' '
                  << include;
            }
        }
}

}  // namespace
}  // namespace librt::test
