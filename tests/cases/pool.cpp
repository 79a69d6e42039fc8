#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
Attributes window(std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> pads,
                  bool ceil_mode = false) {
  Attributes attributes;
  attributes.kernel = std::move(kernel);
  attributes.strides = std::move(strides);
  attributes.pads = std::move(pads);
  attributes.ceil_mode = ceil_mode;
  return attributes;
}

void add_positions(std::vector<Case>& cases) {
  op::MaxPoolIndicesAttributes attributes;
  attributes.kernel = {3, 2};
  attributes.strides = {2, 1};
  attributes.pads = {1, 0, 1, 1};
  attributes.dilations = {1, 2};
  cases.push_back(make_case("max_pool_indices", attributes, {f32({2, 7, 6, 4})}));
  attributes.column_major = true;
  attributes.ceil_mode = true;
  cases.push_back(make_case("max_pool_indices_column_major", attributes, {f32({2, 6, 7, 3})}));
  op::MaxPoolIndicesAttributes one;
  one.kernel = {2};
  cases.push_back(make_case("max_pool_indices_1d", one, {f32({2, 9, 3})}));
  one.kernel = {2, 2, 2};
  one.column_major = true;
  cases.push_back(make_case("max_pool_indices_3d", one, {f32({1, 3, 4, 5, 2})}));
  one.kernel = {2, 2};
  cases.push_back(
      make_case("max_pool_indices_ties", one, {with_values(f32({1, 2, 3, 1}), {1, 1, 1, 1, 1, 1})}));
}

}  // namespace

std::vector<Case> cases_pool() {
  std::vector<Case> cases;
  using Max = op::MaxPoolAttributes;
  using Average = op::AveragePoolAttributes;
  cases.push_back(make_case("max_pool_2x2", window<Max>({2, 2}, {2, 2}, {0, 0, 0, 0}), {f32({2, 6, 8, 5})}));
  cases.push_back(make_case("max_pool_3x3", window<Max>({3, 3}, {2, 2}, {1, 1, 1, 1}), {f32({1, 9, 9, 16})}));
  cases.push_back(
      make_case("max_pool_ceil", window<Max>({3, 3}, {2, 2}, {0, 0, 0, 0}, true), {f32({1, 8, 8, 4})}));
  for (const DType dtype : {DType::U8, DType::I8}) {
    const std::string type(name_of(dtype));
    for (const int64_t channels : {1, 3, 8, 29, 100})
      cases.push_back(no_gradient(make_case("max_pool_" + type + "_" + std::to_string(channels),
                                            window<Max>({3, 2}, {2, 2}, {1, 0, 1, 1}),
                                            {quantized(dtype, {2, 9, 12, channels})})));
    cases.push_back(
        no_gradient(make_case("max_pool_overlap_" + type, window<Max>({3, 3}, {1, 1}, {1, 1, 1, 1}),
                              {quantized(dtype, {1, 9, 12, 24})})));
    cases.push_back(no_gradient(make_case("max_pool_3d_" + type, window<Max>({2, 2, 3}, {2, 1, 3}, {}),
                                          {quantized(dtype, {1, 5, 4, 9, 20})})));
  }
  cases.push_back(make_case("max_pool_1d", window<Max>({3}, {1}, {1, 1}), {f32({2, 9, 3})}));
  Max dilated = window<Max>({2, 2}, {1, 1}, {0, 0, 0, 0});
  dilated.dilations = {2, 2};
  cases.push_back(no_gradient(make_case("max_pool_dilated", dilated, {f32({1, 6, 6, 4})})));
  cases.push_back(
      make_case("average_pool_2x2", window<Average>({2, 2}, {2, 2}, {0, 0, 0, 0}), {f32({2, 6, 6, 4})}));
  cases.push_back(
      make_case("average_pool_padded", window<Average>({3, 3}, {2, 2}, {1, 1, 1, 1}), {f32({1, 7, 7, 8})}));
  cases.push_back(
      make_case("max_pool_wide", window<Max>({3, 3}, {2, 2}, {1, 1, 1, 1}), {f32({1, 9, 7, 83})}));
  cases.push_back(
      make_case("average_pool_wide", window<Average>({7, 6}, {3, 2}, {1, 2, 1, 2}), {f32({1, 9, 8, 150})}));
  Average counted = window<Average>({3, 3}, {1, 1}, {1, 1, 1, 1});
  counted.count_include_pad = true;
  cases.push_back(make_case("average_pool_count_pad", counted, {f32({1, 5, 5, 4})}));
  cases.push_back(make_case("average_pool_ceil", window<Average>({3, 3}, {2, 2}, {0, 0, 0, 0}, true),
                            {f32({1, 6, 6, 4})}));
  cases.push_back(
      no_gradient(make_case("max_pool_grad", window<op::MaxPoolGradAttributes>({2, 2}, {2, 2}, {0, 0, 0, 0}),
                            {f32({2, 6, 6, 5}), f32({2, 3, 3, 5})})));
  cases.push_back(no_gradient(make_case("max_pool_grad_overlap",
                                        window<op::MaxPoolGradAttributes>({3, 3}, {2, 2}, {1, 1, 1, 1}),
                                        {f32({1, 7, 7, 8}), f32({1, 4, 4, 8})})));
  cases.push_back(no_gradient(make_case("average_pool_grad",
                                        window<op::AveragePoolGradAttributes>({3, 3}, {2, 2}, {1, 1, 1, 1}),
                                        {ints({1, 7, 7, 8}), f32({1, 4, 4, 8})})));
  add_positions(cases);
  return cases;
}

}  // namespace librt::test
