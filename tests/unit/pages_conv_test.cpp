// Values, shapes and errors of Conv, ConvTranspose and ConvWeightGrad, against loops written from the
// definition.
#include <random>

#include "runtime/geometry/windows.h"
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

struct Case {
  const char* name;
  std::vector<int64_t> extents, kernel, strides, pads, dilations, output_padding;
  int64_t groups = 1;
  int64_t channels = 2;  ///< of x
  int64_t features = 3;  ///< of the result
};

const Case kCases[] = {
    {"plain 1-d", {5}, {3}, {}, {}, {}, {}},
    {"strided, uneven pads", {6, 5}, {3, 2}, {2, 1}, {1, 0, 0, 1}, {}, {1, 0}},
    {"dilated groups", {7, 8}, {2, 3}, {1, 2}, {1, 1, 1, 1}, {3, 2}, {0, 1}, 2, 4, 6},
    {"depthwise", {4, 4}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {}, {}, 4, 4, 4},
    {"3-d", {3, 4, 3}, {2, 1, 2}, {1, 2, 1}, {0, 0, 1, 1, 0, 0}, {1, 1, 2}, {}, 1, 2, 2},
    {"padding wider than the window", {2}, {1}, {3}, {4, 4}, {}, {2}},
};

ops::HostTensor random(const Shape& shape, uint32_t seed) {
  std::mt19937 generator(seed);
  ops::HostTensor out(TensorInfo{.dtype = DType::F64, .shape = shape});
  for (int64_t i = 0; i < out.info.elements(); ++i)
    store_element(out.bytes.data(), DType::F64, i, static_cast<double>(generator() % 17) / 4 - 2);
  return out;
}

Shape shape_of(int64_t first, const std::vector<int64_t>& middle, int64_t last) {
  Shape shape{first};
  for (int64_t extent : middle) shape.push_back(extent);
  shape.push_back(last);
  return shape;
}

int64_t or_default(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

/// Calls visit for every multi-index below the extents.
template <class Visit>
void for_each_index(const std::vector<int64_t>& extents, Visit&& visit) {
  std::vector<int64_t> at(extents.size(), 0);
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  for (int64_t n = 0; n < count; ++n) {
    visit(at);
    for (size_t i = at.size(); i-- > 0 && ++at[i] == extents[i];) at[i] = 0;
  }
}

int64_t flat(const std::vector<int64_t>& at, const std::vector<int64_t>& extents) {
  int64_t index = 0;
  for (size_t i = 0; i < at.size(); ++i) index = index * extents[i] + at[i];
  return index;
}

/// Calls visit(image, large position, small position, tap) for all matching positions: large = small stride +
/// tap dilation - pad.
template <class Visit>
void for_each_pair(const Case& c, const std::vector<int64_t>& large, const std::vector<int64_t>& small,
                   Visit&& visit) {
  for_each_index(small, [&](const std::vector<int64_t>& s) {
    for_each_index(c.kernel, [&](const std::vector<int64_t>& k) {
      std::vector<int64_t> l(s.size());
      for (size_t i = 0; i < s.size(); ++i) {
        l[i] = s[i] * or_default(c.strides, i, 1) + k[i] * or_default(c.dilations, i, 1) -
               or_default(c.pads, i, 0);
        if (l[i] < 0 || l[i] >= large[i]) return;
      }
      visit(flat(l, large), flat(s, small), flat(k, c.kernel));
    });
  });
}

int64_t volume(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

template <class Attributes>
Attributes attributes_of(const Case& c) {
  Attributes attributes;
  attributes.strides = c.strides;
  attributes.pads = c.pads;
  attributes.dilations = c.dilations;
  attributes.groups = c.groups;
  return attributes;
}

std::vector<int64_t> spatial(const Shape& shape) {
  return std::vector<int64_t>(shape.begin() + 1, shape.end() - 1);
}

constexpr int64_t kBatch = 2;

TEST(PagesConv, FromTheDefinition) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const int64_t cg = c.channels / c.groups, og = c.features / c.groups;
    const auto x = random(shape_of(kBatch, c.extents, c.channels), 1);
    const auto w = random(shape_of(c.features, c.kernel, cg), 2);
    const auto bias = random({c.features}, 3);
    auto attributes = attributes_of<op::ConvAttributes>(c);
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->has_bias = true;
    const auto got = run_one(attributes, {x, w, bias});
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto out = spatial(got->info.shape);
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], (c.extents[i] + or_default(c.pads, i, 0) + or_default(c.pads, i + out.size(), 0) -
                         (c.kernel[i] - 1) * or_default(c.dilations, i, 1) - 1) /
                                or_default(c.strides, i, 1) +
                            1);
    const auto xs = numbers(x), ws = numbers(w), bs = numbers(bias);
    std::vector<double> want(static_cast<size_t>(got->info.elements()));
    for (size_t i = 0; i < want.size(); ++i) want[i] = bs[i % bs.size()];
    for (int64_t n = 0; n < kBatch; ++n)
      for_each_pair(c, c.extents, out, [&](int64_t l, int64_t s, int64_t k) {
        for (int64_t o = 0; o < c.features; ++o)
          for (int64_t i = 0; i < cg; ++i)
            want[static_cast<size_t>((n * volume(out) + s) * c.features + o)] +=
                xs[static_cast<size_t>((n * volume(c.extents) + l) * c.channels + o / og * cg + i)] *
                ws[static_cast<size_t>((o * volume(c.kernel) + k) * cg + i)];
      });
    expect_values(numbers(*got), want, 1e-12);
  }
}

TEST(PagesConv, TransposeScatters) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const int64_t cg = c.channels / c.groups, og = c.features / c.groups;
    const auto x = random(shape_of(kBatch, c.extents, c.channels), 4);
    const auto w = random(shape_of(c.channels, c.kernel, og), 5);
    const auto bias = random({c.features}, 6);
    auto attributes = attributes_of<op::ConvTransposeAttributes>(c);
    attributes.output_padding = c.output_padding;
    std::vector<int64_t> large;
    bool empty = false;
    for (size_t i = 0; i < c.extents.size(); ++i) {
      large.push_back((c.extents[i] - 1) * or_default(c.strides, i, 1) +
                      (c.kernel[i] - 1) * or_default(c.dilations, i, 1) + 1 +
                      or_default(c.output_padding, i, 0) - or_default(c.pads, i, 0) -
                      or_default(c.pads, i + c.extents.size(), 0));
      empty |= large.back() < 1;
    }
    if (empty) {
      expect_error(attributes, {x, w, std::nullopt, bias}, "output extent of at least 1");
      continue;
    }
    const auto xs = numbers(x), ws = numbers(w), bs = numbers(bias);
    std::vector<double> want(static_cast<size_t>(kBatch * volume(large) * c.features));
    for (size_t i = 0; i < want.size(); ++i) want[i] = bs[i % bs.size()];
    for (int64_t n = 0; n < kBatch; ++n)
      for_each_pair(c, large, c.extents, [&](int64_t l, int64_t s, int64_t k) {
        for (int64_t i = 0; i < c.channels; ++i)
          for (int64_t o = 0; o < og; ++o)
            want[static_cast<size_t>((n * volume(large) + l) * c.features + i / cg * og + o)] +=
                xs[static_cast<size_t>((n * volume(c.extents) + s) * c.channels + i)] *
                ws[static_cast<size_t>((i * volume(c.kernel) + k) * og + o)];
      });
    const ops::HostTensor wanted = tensor(DType::F64, shape_of(kBatch, large, c.features), want);
    expect_result(attributes, {x, w, std::nullopt, bias}, wanted, 1e-12);
    attributes.output_padding.clear();
    expect_result(attributes, {x, w, integers(DType::I64, large), bias}, wanted, 1e-12);
  }
}

TEST(PagesConv, WeightGradient) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const int64_t cg = c.channels / c.groups, og = c.features / c.groups;
    const auto x = random(shape_of(kBatch, c.extents, c.channels), 7);
    const auto weight = random(shape_of(c.features, c.kernel, cg), 8);
    const auto y = run_one(attributes_of<op::ConvAttributes>(c), {x, weight});
    ASSERT_TRUE(y.ok());
    const auto out = spatial(y->info.shape);
    const auto grad = random(y->info.shape, 9);
    auto attributes = attributes_of<op::ConvWeightGradAttributes>(c);
    attributes.kernel = c.kernel;
    const auto xs = numbers(x), gs = numbers(grad);
    std::vector<double> want(static_cast<size_t>(weight.info.elements()));
    for (int64_t n = 0; n < kBatch; ++n)
      for_each_pair(c, c.extents, out, [&](int64_t l, int64_t s, int64_t k) {
        for (int64_t o = 0; o < c.features; ++o)
          for (int64_t i = 0; i < cg; ++i)
            want[static_cast<size_t>((o * volume(c.kernel) + k) * cg + i)] +=
                xs[static_cast<size_t>((n * volume(c.extents) + l) * c.channels + o / og * cg + i)] *
                gs[static_cast<size_t>((n * volume(out) + s) * c.features + o)];
      });
    expect_result(attributes, {x, grad}, tensor(DType::F64, weight.info.shape, want), 1e-12);
  }
}

TEST(PagesConv, EpilogueAndIntegers) {
  op::ConvAttributes attributes;
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->activation = op::Activation::Relu;
  attributes.epilogue->has_bias = true;
  attributes.epilogue->has_residual = true;
  const auto x = tensor(DType::I32, {1, 3, 1}, {1, 2, 3}), w = tensor(DType::I32, {1, 2, 1}, {-1, 1});
  expect_result(attributes, {x, w, tensor(DType::I32, {1}, {-3}), tensor(DType::I32, {1, 2, 1}, {0, 9})},
                tensor(DType::I32, {1, 2, 1}, {0, 7}));
}

TEST(PagesConv, NoElements) {
  expect_result(op::ConvAttributes{}, {f32({0, 4, 2}, {}), f32({3, 2, 2}, std::vector<double>(12, 1))},
                f32({0, 3, 3}, {}));
  expect_result(op::ConvAttributes{}, {f32({1, 2, 0}, {}), f32({2, 1, 0}, {})}, f32({1, 2, 2}, {0, 0, 0, 0}));
}

TEST(PagesConv, Errors) {
  const auto x = f32({1, 4, 4, 2}, std::vector<double>(32, 1));
  const auto w = f32({3, 3, 3, 2}, std::vector<double>(54, 1));
  op::ConvAttributes attributes;
  expect_error(attributes, {x, f32({3, 3, 2}, std::vector<double>(18, 1))},
               "weight [O,K..,C/groups] of rank 4");
  expect_error(attributes, {x, f32({1, 5, 5, 2}, std::vector<double>(50, 1))},
               "window of at most the padded extent 4");
  attributes.groups = 2;
  expect_error(attributes, {x, w}, "expected groups to divide 2 input and 3 output channels, found 2");
  attributes.groups = 0;
  expect_error(attributes, {x, w}, "expected groups to divide");
  attributes.groups = 1;
  attributes.strides = {1, -1};
  expect_error(attributes, {x, w}, "expected strides in [1, 2147483647], found -1");
  attributes.strides = {1};
  expect_error(attributes, {x, w}, "expected 2 entries in strides or none, found 1");
  attributes.strides = {};
  attributes.pads = {std::numeric_limits<int64_t>::max(), 0, 0, 0};
  expect_error(attributes, {x, w}, "expected pads in [0, 2147483647]");
  attributes.pads = {};
  attributes.dilations = {int64_t{1} << 31, 1};
  expect_error(attributes, {x, w}, "expected dilations in");
  attributes.dilations = {2147483647, 2147483647};
  expect_error(attributes, {x, w}, "window of at most the padded extent");
  op::ConvTransposeAttributes transposed;
  const auto wt = f32({2, 3, 3, 1}, std::vector<double>(18, 1));
  transposed.strides = {2147483647, 2147483647};
  expect_error(transposed, {x, wt}, "less than " RT_MOST_ELEMENTS " elements");
  transposed.strides = {2, 2};
  expect_error(transposed, {x, wt, integers(DType::I64, {9, 11})}, "in [9, 11), found 11");
  expect_error(transposed, {x, wt, integers(DType::I64, {9})}, "expected 2 extents in output_size");
  expect_error(transposed, {x, wt, std::nullopt, f32({2}, {1, 1})}, "expected a bias [1], found [2]");
  transposed.groups = -1;
  expect_error(transposed, {x, wt}, "expected groups");
  op::ConvWeightGradAttributes gradient;
  gradient.kernel = {3};
  expect_error(gradient, {x, x}, "expected 2 entries in kernel, found 1");
  gradient.kernel = {3, 3};
  expect_error(gradient, {x, x}, "expected grad_output with extent 2");
}

TEST(Geometry, EffectivePadding) {
  op::ConvAttributes attributes;
  attributes.strides = {2};
  attributes.pads = {1, 1};
  const auto geometry = conv_geometry({1, 6, 1}, {1, 3, 1}, attributes);
  ASSERT_TRUE(geometry.ok());
  EXPECT_EQ(geometry->axes[0].output, 3);
  EXPECT_EQ(geometry->axes[0].effective_pad_end(), 0);  // the last window does not reach the padding
  EXPECT_EQ(geometry->multiply_adds(), 9);
}

}  // namespace
}  // namespace librt::test
