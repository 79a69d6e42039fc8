// Interpolation between elements.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

op::ResizeAttributes resized(op::ResizeMode mode, op::ResizeCoordinates coordinates) {
  op::ResizeAttributes attributes;
  attributes.mode = mode;
  attributes.coordinates = coordinates;
  return attributes;
}

/// A region of interest, antialiasing, coordinates of one mode.
void add_special(std::vector<Case>& cases) {
  const auto add = [&](const char* name, op::ResizeMode mode, op::ResizeCoordinates coordinates,
                       std::vector<double> roi, bool antialias, std::vector<double> sizes) {
    op::ResizeAttributes attributes;
    attributes.mode = mode;
    attributes.coordinates = coordinates;
    attributes.antialias = antialias;
    attributes.extrapolation = 1.5f;
    std::vector<std::optional<CaseInput>> inputs{f32({2, 6, 7, 3}), ints(std::move(sizes)), std::nullopt};
    if (!roi.empty()) inputs.emplace_back(with_values(weight({4}), std::move(roi)));
    cases.push_back(make_case(name, attributes, std::move(inputs)));
    // Gradients are tested in f64, a type that roi does not support.
    cases.back().gradient = cases.back().inputs.size() == 3;
  };
  using enum op::ResizeCoordinates;
  const std::vector<double> inside{0.1, 0.2, 0.8, 0.9}, outside{-0.3, 0.4, 0.7, 1.6};
  add("resize_crop", op::ResizeMode::Linear, TfCropAndResize, inside, false, {4, 5});
  add("resize_crop_outside", op::ResizeMode::Linear, TfCropAndResize, outside, false, {5, 9});
  add("resize_crop_nearest", op::ResizeMode::Nearest, TfCropAndResize, outside, false, {5, 9});
  add("resize_crop_cubic", op::ResizeMode::Cubic, TfCropAndResize, outside, false, {5, 1});
  add("resize_antialias_linear", op::ResizeMode::Linear, HalfPixel, {}, true, {3, 2});
  add("resize_antialias_cubic", op::ResizeMode::Cubic, HalfPixel, {}, true, {4, 3});
  add("resize_antialias_mixed", op::ResizeMode::Linear, HalfPixel, {}, true, {2, 11});
  add("resize_half_pixel_for_nearest", op::ResizeMode::Nearest, TfHalfPixelForNn, {}, false, {3, 4});
}

}  // namespace

std::vector<Case> cases_resize() {
  std::vector<Case> cases;
  const auto add_resize = [&](const char* name, op::ResizeMode mode, op::ResizeCoordinates coordinates,
                              CaseInput x, std::vector<double> sizes) {
    cases.push_back(make_case(name, resized(mode, coordinates), {std::move(x), ints(std::move(sizes))}));
  };
  add_resize("resize_nearest", op::ResizeMode::Nearest, op::ResizeCoordinates::Asymmetric, f32({1, 3, 4, 5}),
             {6, 8});
  add_resize("resize_linear", op::ResizeMode::Linear, op::ResizeCoordinates::HalfPixel, f32({2, 3, 4, 3}),
             {7, 6});
  add_resize("resize_linear_corners", op::ResizeMode::Linear, op::ResizeCoordinates::AlignCorners,
             f32({1, 4, 4, 2}), {6, 9});
  add_resize("resize_cubic", op::ResizeMode::Cubic, op::ResizeCoordinates::HalfPixel, f32({1, 5, 5, 2}),
             {8, 7});
  cases.push_back(no_gradient(
      make_case("resize_scales", resized(op::ResizeMode::Linear, op::ResizeCoordinates::PytorchHalfPixel),
                {f32({1, 4, 4, 3}), std::nullopt, with_values(weight({2}), {2, 1.5})})));
  cases.push_back(no_gradient(
      make_case("resize_sizes_and_scales", resized(op::ResizeMode::Linear, op::ResizeCoordinates::HalfPixel),
                {f32({1, 5, 4, 3}), ints({3, 6}), with_values(weight({2}), {0.7, 1.5})})));
  add_special(cases);
  return cases;
}

}  // namespace librt::test
