// The same elements in other places or shapes.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

using List = std::vector<int64_t>;

op::TransposeAttributes permuted(List permutation) {
  op::TransposeAttributes attributes;
  attributes.permutation = std::move(permutation);
  return attributes;
}

op::SliceAttributes sliced(List axes, List steps) {
  op::SliceAttributes attributes;
  attributes.axes = std::move(axes);
  attributes.steps = std::move(steps);
  return attributes;
}

op::ConcatAttributes joined(int64_t axis) {
  op::ConcatAttributes attributes;
  attributes.axis = axis;
  return attributes;
}

}  // namespace

std::vector<Case> cases_movement() {
  std::vector<Case> cases;
  cases.push_back(make_case("identity", op::IdentityAttributes{}, {f32({3, 4})}));
  cases.push_back(make_case("identity_of_shape", op::IdentityAttributes{}, {f32({3, 4}), ints({3, 4})}));
  cases.push_back(make_case("reshape", op::ReshapeAttributes{}, {f32({2, 3, 4}), ints({6, -1})}));
  cases.push_back(make_case("transpose_2d", permuted({1, 0}), {f32({17, 33})}));
  cases.push_back(make_case("transpose_nchw", permuted({0, 3, 1, 2}), {f32({2, 5, 6, 7})}));
  cases.push_back(make_case("transpose_heads", permuted({0, 2, 1, 3}), {f32({2, 5, 3, 8})}));
  cases.push_back(make_case("transpose_reverse", permuted({3, 2, 1, 0}), {f32({2, 3, 4, 5})}));
  cases.push_back(make_case("transpose_u8", permuted({1, 0}), {in_range(tensor(DType::U8, {5, 7}), 0, 50)}));
  cases.push_back(make_case("transpose_i64", permuted({1, 2, 0}), {tensor(DType::I64, {2, 3, 4})}));
  cases.push_back(no_gradient(make_case("transpose_f16", permuted({1, 0}), {tensor(DType::F16, {6, 5})})));
  // Exceeds the buffer binding limit of small devices.
  cases.push_back(no_gradient(make_case("transpose_large", permuted({1, 0}), {f32({617, 443})})));
  cases.push_back(no_gradient(make_case("concat_large", joined(1), {f32({501, 301}), f32({501, 303})})));
  cases.push_back(no_gradient(make_case("slice_large", sliced({0, 1}, {-1, 2}),
                                        {f32({617, 443}), ints({-1, 1}), ints({-1000, 1000})})));
  cases.push_back(make_case("concat_last", joined(-1), {f32({2, 3, 4}), f32({2, 3, 5}), f32({2, 3, 1})}));
  cases.push_back(make_case("concat_first", joined(0), {f32({2, 3}), f32({4, 3})}));
  cases.push_back(make_case("concat_i64", joined(0), {tensor(DType::I64, {2}), tensor(DType::I64, {3})}));
  cases.push_back(make_case("concat_empty", joined(1), {f32({2, 0}), f32({2, 3})}));
  cases.push_back(
      make_case("slice", sliced({1, 2}, {1, 1}), {f32({3, 5, 6}), ints({1, -4}), ints({4, 1000})}));
  cases.push_back(no_gradient(
      make_case("slice_steps", sliced({0, 1}, {2, -1}), {f32({7, 5}), ints({1, -1}), ints({7, -1000})})));
  cases.push_back(make_case("slice_i64", sliced({0}, {1}), {tensor(DType::I64, {6}), ints({2}), ints({5})}));
  cases.push_back(make_case("pad", op::PadAttributes{}, {f32({2, 3, 4}), ints({0, 1, 2, 1, 0, 1})}));
  op::PadAttributes reflect;
  reflect.mode = op::PadMode::Reflect;
  cases.push_back(
      no_gradient(make_case("pad_reflect", reflect, {f32({1, 5, 6, 3}), ints({0, 2, 1, 0, 0, 1, 2, 0})})));
  op::PadAttributes edge;
  edge.mode = op::PadMode::Edge;
  cases.push_back(no_gradient(make_case("pad_edge", edge, {f32({4, 5}), ints({1, 2, 0, 1})})));
  cases.push_back(no_gradient(make_case("pad_value", op::PadAttributes{},
                                        {f32({2, 3}), ints({1, 1, 1, 1}), with_values(weight({}), {-1.5})})));
  cases.push_back(
      no_gradient(make_case("pad_crop", op::PadAttributes{}, {f32({4, 6}), ints({-1, 1, 0, -2})})));
  cases.push_back(no_gradient(  // the same extents as before
      make_case("pad_shift", op::PadAttributes{}, {f32({5, 4, 2}), ints({-1, 2, 0, 1, -2, 0})})));
  cases.push_back(make_case("expand", op::ExpandAttributes{}, {f32({3, 1, 5}), ints({2, 3, 4, 5})}));
  cases.push_back(make_case("expand_scalar", op::ExpandAttributes{}, {f32({}), ints({3, 2})}));
  cases.push_back(make_case("tile", op::TileAttributes{}, {f32({2, 3}), ints({2, 3})}));
  cases.push_back(make_case("tile_runs", op::TileAttributes{}, {f32({5, 7, 20}), ints({2, 3, 3})}));
  return cases;
}

}  // namespace librt::test
