// Elements at computed positions: grids and regions of interest.
#include <iterator>
#include <string_view>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

using op::GridSamplePadding;
using op::ResizeMode;

op::GridSampleAttributes sampled(ResizeMode mode, GridSamplePadding padding, bool align_corners) {
  op::GridSampleAttributes attributes;
  attributes.mode = mode;
  attributes.padding = padding;
  attributes.align_corners = align_corners;
  return attributes;
}

void add_grid_sample(std::vector<Case>& cases) {
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  for (int mode = 0; mode < 3; ++mode)
    for (int padding = 0; padding < 3; ++padding)
      for (bool align : {false, true}) {
        const auto attributes =
            sampled(static_cast<ResizeMode>(mode), static_cast<GridSamplePadding>(padding), align);
        const auto name = [&](const char* shape) {
          return text("grid_sample_", shape, "_", kModes[mode], "_", kPaddings[padding],
                      align ? "_corners" : "");
        };
        cases.push_back(
            make_case(name("2d"), attributes, {f32({2, 4, 5, 3}), in_range(f32({2, 3, 4, 2}), -1.9, 1.9)}));
        if (align) continue;
        cases.push_back(make_case(name("3d"), attributes,
                                  {f32({1, 3, 4, 2, 2}), in_range(f32({1, 2, 2, 3, 3}), -1.6, 1.6)}));
        cases.push_back(
            make_case(name("1d"), attributes, {f32({2, 7, 3}), in_range(f32({2, 5, 1}), -2.5, 2.5)}));
      }
  cases.push_back(no_gradient(
      make_case("grid_sample_halves", sampled(ResizeMode::Nearest, GridSamplePadding::Border, false),
                {f32({1, 2, 4, 2}), with_values(f32({1, 2, 2, 2}), {-0.5, 0, 0, 0, 0.5, 0.5, 1, -1})})));
  // More points of an image than a block has, and channels that fill vectors.
  for (const GridSamplePadding padding : {GridSamplePadding::Zeros, GridSamplePadding::Border}) {
    const auto attributes = sampled(ResizeMode::Linear, padding, false);
    const char* suffix = kPaddings[static_cast<int>(padding)];
    cases.push_back(make_case(text("grid_sample_one_channel_", suffix), attributes,
                              {f32({3, 9, 8, 1}), in_range(f32({3, 9, 11, 2}), -1.4, 1.4)}));
    cases.push_back(make_case(text("grid_sample_many_channels_", suffix), attributes,
                              {f32({1, 5, 6, 37}), in_range(f32({1, 9, 8, 2}), -1.4, 1.4)}));
  }
  cases.push_back(make_case("grid_sample_one_point",
                            sampled(ResizeMode::Linear, GridSamplePadding::Reflection, true),
                            {f32({1, 1, 1, 2}), in_range(f32({1, 2, 2, 2}), -1.5, 1.5)}));
}

/// Regions [4,4] of which the image is a small part, or no part; the last one is inside out.
constexpr double kHugeRegions[] = {-1e9, -1e9, 1e9,  1e9,  0.5, -200, 700,  900,
                                   1e30, 1e30, 2e30, 2e30, 3e8, 40,   -3e8, -60};

void add_roi_align(std::vector<Case>& cases) {
  const auto add = [&](const char* name, int64_t ratio, bool maximum, bool half_pixel, DType indices) {
    op::RoiAlignAttributes attributes;
    attributes.height = 3;
    attributes.width = 2;
    attributes.sampling_ratio = ratio;
    attributes.spatial_scale = 0.5f;
    attributes.maximum = maximum;
    attributes.half_pixel = half_pixel;
    const CaseInput rois = with_values(
        f32({4, 4}), {0.3, 1.2, 9.1, 7.7, 2.2, 3.1, 13.4, 17.9, -5.5, -3.2, 4.4, 2.1, 6.3, 6.4, 5.1, 6.8});
    cases.push_back(make_case(name, attributes,
                              {f32({2, 8, 7, 5}), rois, with_values(tensor(indices, {4}), {0, 1, 1, 0})}));
  };
  add("roi_align", 0, false, true, DType::I64);
  add("roi_align_output_half_pixel", 0, false, false, DType::I64);
  add("roi_align_ratio", 2, false, true, DType::I32);
  add("roi_align_max", 2, true, true, DType::I64);
  add("roi_align_max_adaptive", 0, true, false, DType::I64);
  for (const char* name : {"roi_align_huge", "roi_align_huge_ratio", "roi_align_huge_max"}) {
    const std::string_view kind = name;
    add(name, kind.ends_with("ratio") ? 64 : 0, kind.ends_with("max"), true, DType::I64);
    cases.back().inputs[1]->values.assign(std::begin(kHugeRegions), std::end(kHugeRegions));
  }
}

/// The gradient of the feature map.
void add_roi_align_grad(std::vector<Case>& cases) {
  const auto roi = [&](const char* name, int64_t ratio, bool maximum) {
    op::RoiAlignGradAttributes attributes;
    attributes.height = 3;
    attributes.width = 2;
    attributes.sampling_ratio = ratio;
    attributes.spatial_scale = 0.5f;
    attributes.maximum = maximum;
    const CaseInput rois =
        with_values(f32({3, 4}), {0.3, 1.2, 9.1, 7.7, 2.2, 3.1, 13.4, 17.9, -5.5, -3.2, 4.4, 2.1});
    cases.push_back(no_gradient(make_case(
        name, attributes,
        {f32({2, 8, 7, 5}), rois, with_values(tensor(DType::I64, {3}), {0, 1, 0}), f32({3, 3, 2, 5})})));
  };
  roi("roi_align_grad", 2, false);
  roi("roi_align_grad_adaptive", 0, false);
  roi("roi_align_grad_max", 2, true);
  for (const char* name : {"roi_align_grad_huge", "roi_align_grad_huge_max"}) {
    roi(name, 0, std::string_view(name).ends_with("max"));
    cases.back().inputs[1]->values.assign(kHugeRegions, kHugeRegions + 12);
  }
}

}  // namespace

std::vector<Case> cases_sample() {
  std::vector<Case> cases;
  add_grid_sample(cases);
  add_roi_align(cases);
  add_roi_align_grad(cases);
  return cases;
}

}  // namespace librt::test
