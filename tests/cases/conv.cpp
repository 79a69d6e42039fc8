#include "tests/cases/case.h"
#include "tests/support/attributes.h"

namespace librt::test {
namespace {

using List = std::vector<int64_t>;

op::ConvAttributes fused(op::ConvAttributes attributes, op::Activation activation, bool residual) {
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->activation = activation;
  attributes.epilogue->has_bias = true;
  attributes.epilogue->has_residual = residual;
  attributes.epilogue->beta = 6;
  return attributes;
}

op::ConvTransposeAttributes transposed(List strides, List pads, List dilations, List output_padding,
                                       int64_t groups = 1) {
  op::ConvTransposeAttributes attributes;
  attributes.strides = std::move(strides);
  attributes.pads = std::move(pads);
  attributes.dilations = std::move(dilations);
  attributes.output_padding = std::move(output_padding);
  attributes.groups = groups;
  return attributes;
}

op::ConvWeightGradAttributes weight_grad(List kernel, List strides, List pads, int64_t groups = 1) {
  op::ConvWeightGradAttributes attributes;
  attributes.kernel = std::move(kernel);
  attributes.strides = std::move(strides);
  attributes.pads = std::move(pads);
  attributes.groups = groups;
  return attributes;
}

}  // namespace

std::vector<Case> cases_conv() {
  std::vector<Case> cases;
  cases.push_back(
      make_case("conv_1x1", conv({1, 1}, {0, 0, 0, 0}, {1, 1}), {f32({2, 5, 6, 8}), weight({12, 1, 1, 8})}));
  cases.push_back(
      make_case("conv_3x3", conv({1, 1}, {1, 1, 1, 1}, {1, 1}), {f32({2, 7, 6, 4}), weight({8, 3, 3, 4})}));
  cases.push_back(make_case("conv_3x3_wide", conv({1, 1}, {1, 1, 1, 1}, {1, 1}),
                            {f32({1, 14, 14, 32}), weight({32, 3, 3, 32})}));
  // Of a size for Winograd, with tiles of 4x4 results that reach beyond the image; it loses some precision:
  // up to 1e-5 of the largest value.
  cases.push_back(
      within(no_gradient(make_case(
                 "conv_3x3_winograd", fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}), op::Activation::Silu, true),
                 {f32({8, 5, 5, 128}), weight({128, 3, 3, 128}), weight({128}), f32({8, 5, 5, 128})})),
             1e-4, 1e-3));
  cases.push_back(make_case("conv_3x3_odd", conv({1, 1}, {1, 1, 1, 1}, {1, 1}),
                            {f32({1, 9, 7, 5}), weight({7, 3, 3, 5})}));
  cases.push_back(make_case("conv_strided", conv({2, 2}, {1, 1, 1, 1}, {1, 1}),
                            {f32({1, 9, 8, 3}), weight({6, 3, 3, 3})}));
  cases.push_back(make_case("conv_stem", conv({2, 2}, {3, 3, 3, 3}, {1, 1}),
                            {f32({1, 20, 20, 3}), weight({16, 7, 7, 3})}));
  cases.push_back(make_case("conv_asymmetric", conv({2, 1}, {0, 1, 1, 2}, {1, 1}),
                            {f32({1, 8, 9, 4}), weight({4, 3, 2, 4})}));
  cases.push_back(make_case("conv_dilated", conv({1, 1}, {2, 2, 2, 2}, {2, 2}),
                            {f32({1, 8, 8, 4}), weight({8, 3, 3, 4})}));
  // Taps that meet nothing but padding: all but the middle one, those of one side, of one axis with many
  // weights for each position; and windows that begin within the input.
  cases.push_back(make_case("conv_pyramid", conv({1, 1}, {6, 6, 6, 6}, {6, 6}),
                            {f32({2, 5, 6, 16}), weight({16, 3, 3, 16})}));
  cases.push_back(no_gradient(
      make_case("conv_pyramid_side", fused(conv({2, 1}, {14, 3, 6, 9}, {7, 2}), op::Activation::Relu, true),
                {f32({1, 5, 7, 20}), weight({24, 4, 5, 20}), weight({24}), f32({1, 2, 11, 24})})));
  cases.push_back(no_gradient(make_case(
      "conv_pyramid_streamed", fused(conv({1, 1}, {6, 1, 0, 1}, {3, 1}), op::Activation::Relu, false),
      {f32({1, 4, 4, 64}), weight({416, 3, 3, 64}), weight({416})})));
  cases.push_back(make_case("conv_pyramid_grouped", conv({1, 1}, {8, 0, 8, 9}, {8, 3}, 2),
                            {f32({2, 7, 3, 8}), weight({6, 3, 4, 4})}));
  cases.push_back(no_gradient(make_case("conv_pyramid_inside", conv({9, 1}, {1, 0, 0, 1}, {4, 1}),
                                        {f32({1, 5, 4, 8}), weight({8, 2, 2, 8})})));
  cases.push_back(no_gradient(
      make_case("conv_padding_only", fused(conv({9, 9}, {4, 4, 0, 0}, {1, 1}), op::Activation::Relu, false),
                {f32({1, 2, 2, 256}), weight({512, 1, 1, 256}), weight({512})})));
  // Several tiles of every kernel along pixels and channels, with filter taps that end within a tile.
  cases.push_back(no_gradient(
      make_case("conv_tiles", fused(conv({1, 2}, {1, 2, 3, 1}, {2, 1}), op::Activation::Relu, true),
                {f32({2, 13, 19, 20}), weight({76, 3, 5, 20}), weight({76}), f32({2, 13, 9, 76})})));
  cases.push_back(make_case("conv_grouped", conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 2),
                            {f32({2, 6, 6, 8}), weight({6, 3, 3, 4})}));
  cases.push_back(make_case("conv_depthwise", conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 16),
                            {f32({2, 7, 7, 16}), weight({16, 3, 3, 1})}));
  cases.push_back(make_case("conv_depthwise_strided", conv({2, 2}, {1, 1, 1, 1}, {1, 1}, 24),
                            {f32({1, 9, 9, 24}), weight({24, 3, 3, 1})}));
  cases.push_back(make_case("conv_depthwise_multiplier", conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 3),
                            {f32({1, 6, 6, 3}), weight({6, 3, 3, 1})}));
  cases.push_back(make_case("conv_gray", conv({1, 1}, {2, 2, 2, 2}, {1, 1}),
                            {f32({2, 12, 12, 1}), weight({6, 5, 5, 1})}));
  cases.push_back(make_case("conv_1d", conv({2}, {1, 1}, {1}), {f32({2, 11, 4}), weight({6, 3, 4})}));
  // Windows along one axis as rows of a GEMM, where they lie in memory: of more elements than are packed at a
  // time, over ends and from one sample to the next.
  cases.push_back(
      no_gradient(make_case("conv_long_windows", fused(conv({7}, {40, 90}, {1}), op::Activation::Relu, false),
                            {f32({2, 900, 1}), weight({24, 500, 1}), weight({24})})));
  cases.push_back(no_gradient(
      make_case("conv_wide_strides", conv({2}, {1, 2}, {1}), {f32({3, 61, 352}), weight({40, 3, 352})})));
  cases.push_back(
      make_case("conv_depthwise_1d", conv({2}, {2, 1}, {1}, 16), {f32({2, 21, 16}), weight({16, 4, 1})}));
  cases.push_back(
      make_case("conv_grouped_1d", conv({1}, {2, 2}, {2}, 2), {f32({2, 19, 8}), weight({6, 3, 4})}));
  cases.push_back(no_gradient(
      make_case("conv_grouped_long", conv({1}, {40, 39}, {1}, 3), {f32({2, 50, 48}), weight({48, 80, 16})})));
  cases.push_back(make_case("conv_depthwise_3d", conv({1, 2, 1}, {1, 1, 0, 1, 0, 2}, {1, 1, 1}, 6),
                            {f32({1, 4, 5, 6, 6}), weight({6, 3, 2, 3, 1})}));
  // Few channels in the result: whole blocks of points and single ones, ends of lines that fill no vector,
  // windows over the ends of both axes, and outside of the image altogether.
  cases.push_back(no_gradient(
      make_case("conv_narrow_1", fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}), op::Activation::Relu, true),
                {f32({2, 9, 21, 24}), weight({1, 3, 3, 24}), weight({1}), f32({2, 9, 21, 1})})));
  cases.push_back(no_gradient(make_case("conv_narrow_2", conv({2, 1}, {0, 2, 1, 3}, {2, 1}),
                                        {f32({1, 8, 13, 33}), weight({2, 3, 5, 33})})));
  cases.push_back(no_gradient(make_case("conv_narrow_3", conv({1, 2}, {1, 0, 1, 0}, {1, 1}),
                                        {f32({1, 12, 40, 48}), f32({3, 3, 3, 48})})));
  for (const int64_t outputs : {4, 5, 6, 7, 8})
    cases.push_back(
        no_gradient(make_case("conv_narrow_" + std::to_string(outputs), conv({1, 1}, {1, 1, 1, 1}, {1, 1}),
                              {f32({1, 4, 19, 68}), weight({outputs, 3, 3, 68})})));
  cases.push_back(no_gradient(
      make_case("conv_narrow_filter", conv({3}, {130, 40}, {1}), {f32({2, 700, 1}), weight({5, 100, 1})})));
  cases.push_back(make_case("conv_3d", conv({1, 1, 1}, {0, 1, 0, 0, 1, 0}, {1, 1, 1}),
                            {f32({1, 4, 5, 4, 3}), weight({4, 2, 3, 2, 3})}));
  // Axes of extent 1 without a window, which kernels leave out: the last, and all but one.
  cases.push_back(make_case("conv_unit_axis", conv({1, 2}, {2, 0, 1, 0}, {1, 1}),
                            {f32({2, 11, 1, 32}), weight({32, 5, 1, 32})}));
  cases.push_back(no_gradient(make_case(
      "conv_unit_axis_residual", fused(conv({2, 1}, {0, 0, 0, 0}, {1, 1}), op::Activation::Relu, true),
      {f32({2, 40, 1, 16}), weight({48, 5, 1, 16}), weight({48}), f32({2, 18, 1, 48})})));
  cases.push_back(make_case("conv_unit_axes_3d", conv({3, 1, 1}, {0, 1, 0, 0, 1, 0}, {1, 1, 1}),
                            {f32({1, 1, 9, 1, 3}), weight({4, 1, 3, 1, 3})}));
  cases.push_back(make_case("conv_unit_axes_alone", conv({1, 1}, {0, 0, 0, 0}, {1, 1}),
                            {f32({3, 1, 1, 8}), weight({5, 1, 1, 8})}));
  cases.push_back(make_case("conv_variable_weight", conv({1, 1}, {1, 1, 1, 1}, {1, 1}),
                            {f32({2, 6, 6, 4}), f32({8, 3, 3, 4})}));
  cases.push_back(make_case("conv_variable_depthwise", conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 8),
                            {f32({2, 6, 6, 8}), f32({8, 3, 3, 1})}));
  cases.push_back(make_case("conv_bias",
                            fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}), op::Activation::None, false),
                            {f32({1, 6, 6, 4}), weight({8, 3, 3, 4}), weight({8})}));
  cases.push_back(no_gradient(
      make_case("conv_bias_relu", fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}), op::Activation::Relu, false),
                {f32({1, 6, 6, 16}), weight({16, 3, 3, 16}), weight({16})})));
  cases.push_back(no_gradient(
      make_case("conv_residual_relu", fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}), op::Activation::Relu, true),
                {f32({1, 6, 6, 16}), weight({16, 3, 3, 16}), weight({16}), f32({1, 6, 6, 16})})));
  cases.push_back(no_gradient(
      make_case("conv_clip", fused(conv({1, 1}, {0, 0, 0, 0}, {1, 1}), op::Activation::Clip, false),
                {f32({1, 6, 6, 8}), weight({24, 1, 1, 8}), weight({24})})));
  cases.push_back(no_gradient(make_case(
      "conv_depthwise_clip", fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 16), op::Activation::Clip, false),
      {f32({1, 6, 6, 16}), weight({16, 3, 3, 1}), weight({16})})));
  cases.push_back(no_gradient(make_case(
      "conv_hard_swish", fused(conv({1, 1}, {1, 1, 1, 1}, {1, 1}), op::Activation::HardSwish, false),
      {f32({1, 6, 6, 8}), weight({8, 3, 3, 8}), weight({8})})));

  cases.push_back(make_case("conv_transpose", transposed({2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}),
                            {f32({2, 4, 5, 6}), weight({6, 3, 3, 4})}));
  cases.push_back(make_case("conv_transpose_2x2", transposed({2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}),
                            {f32({1, 5, 5, 8}), weight({8, 2, 2, 3}), std::nullopt, weight({3})}));
  cases.push_back(make_case("conv_transpose_size", transposed({2, 2}, {1, 1, 1, 1}, {1, 1}, {}),
                            {f32({1, 4, 4, 6}), f32({6, 3, 3, 4}), ints({8, 7})}));
  cases.push_back(make_case("conv_transpose_grouped", transposed({1, 1}, {1, 1, 1, 1}, {1, 1}, {}, 2),
                            {f32({1, 5, 5, 4}), weight({4, 3, 3, 3})}));
  cases.push_back(make_case("conv_transpose_depthwise", transposed({1, 1}, {1, 1, 1, 1}, {1, 1}, {}, 8),
                            {f32({1, 5, 5, 8}), f32({8, 3, 3, 1})}));
  cases.push_back(make_case("conv_transpose_unit_axis", transposed({2, 1}, {1, 0, 0, 0}, {1, 1}, {1, 0}),
                            {f32({2, 7, 1, 16}), weight({16, 4, 1, 32})}));
  cases.push_back(
      no_gradient(make_case("conv_transpose_narrow", transposed({2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}),
                            {f32({2, 5, 37, 24}), weight({24, 2, 2, 1}), std::nullopt, weight({1})})));
  cases.push_back(no_gradient(make_case("conv_transpose_narrow_3d",
                                        transposed({2, 3, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, {0, 0, 0}),
                                        {f32({1, 3, 2, 9, 35}), f32({35, 2, 3, 2, 2})})));
  // Windows that overlap, with each remainder of a position to the stride: all in the middle, some on the
  // ends; gaps between windows; rows that no window reaches.
  cases.push_back(
      no_gradient(make_case("conv_transpose_narrow_overlap", transposed({2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}),
                            {f32({2, 6, 19, 33}), weight({33, 4, 4, 3}), std::nullopt, weight({3})})));
  cases.push_back(
      no_gradient(make_case("conv_transpose_narrow_9", transposed({3, 3}, {4, 4, 4, 4}, {1, 1}, {2, 1}),
                            {f32({1, 5, 12, 56}), weight({56, 9, 9, 1})})));
  cases.push_back(
      no_gradient(make_case("conv_transpose_narrow_gaps", transposed({3, 5}, {0, 1, 0, 0}, {2, 1}, {1, 4}),
                            {f32({2, 4, 7, 40}), weight({40, 2, 3, 2})})));
  cases.push_back(no_gradient(make_case("conv_transpose_narrow_1d", transposed({1}, {2, 2}, {1}, {0}),
                                        {f32({2, 300, 36}), weight({36, 5, 1})})));
  cases.push_back(no_gradient(make_case("conv_transpose_narrow_cropped", transposed({4}, {9, 7}, {1}, {0}),
                                        {f32({2, 11, 48}), weight({48, 11, 2})})));
  // Ends of the result that no window reaches.
  cases.push_back(no_gradient(  // an output_padding that is not below the stride
      make_case("conv_transpose_unreached", transposed({1, 2}, {0, 0, 1, 0}, {4, 3}, {3, 2}),
                {f32({2, 4, 5, 6}), weight({6, 3, 3, 4}), {}, f32({4})})));
  cases.push_back(make_case("conv_transpose_unreached_everywhere", transposed({5}, {3, 0}, {1}, {4}),
                            {f32({2, 1, 4}), weight({4, 1, 2})}));
  cases.push_back(
      make_case("conv_transpose_1d", transposed({3}, {0, 0}, {1}, {0}), {f32({1, 5, 4}), weight({4, 3, 2})}));
  cases.push_back(no_gradient(make_case("conv_weight_grad", weight_grad({3, 3}, {1, 1}, {1, 1, 1, 1}),
                                        {f32({2, 6, 7, 4}), f32({2, 6, 7, 8})})));
  cases.push_back(no_gradient(make_case("conv_weight_grad_gray", weight_grad({5, 5}, {1, 1}, {2, 2, 2, 2}),
                                        {f32({3, 12, 12, 1}), f32({3, 12, 12, 6})})));
  cases.push_back(no_gradient(make_case("conv_weight_grad_strided", weight_grad({3, 3}, {2, 2}, {1, 1, 1, 1}),
                                        {f32({2, 9, 9, 3}), f32({2, 5, 5, 6})})));
  cases.push_back(
      no_gradient(make_case("conv_weight_grad_depthwise", weight_grad({3, 3}, {1, 1}, {1, 1, 1, 1}, 8),
                            {f32({2, 6, 6, 8}), f32({2, 6, 6, 8})})));
  cases.push_back(no_gradient(make_case("conv_weight_grad_1x1", weight_grad({1, 1}, {1, 1}, {0, 0, 0, 0}),
                                        {f32({2, 5, 5, 16}), f32({2, 5, 5, 8})})));
  cases.push_back(
      no_gradient(make_case("conv_weight_grad_unit_axis", weight_grad({5, 1}, {1, 1}, {2, 0, 2, 0}),
                            {f32({2, 20, 1, 16}), f32({2, 20, 1, 32})})));
  return cases;
}

}  // namespace librt::test
