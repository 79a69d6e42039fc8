// Movement, casts, gathers, interpolation and host-known results against the pages.
#include <gtest/gtest.h>

#include "tests/support/run_node.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::test {
namespace {

ops::HostTensor values(DType dtype, const Shape& shape, uint64_t seed) {
  return random_tensor({dtype, shape}, 0, 100, seed);
}

TEST(VulkanMovement, TransposeConcatSlice) {
  RT_LAVAPIPE(device);
  for (DType dtype : {DType::F32, DType::F16, DType::I64, DType::U8}) {
    op::TransposeAttributes transpose;
    transpose.permutation = {0, 2, 3, 1};
    check_node(device, make_node(transpose, 1), {values(dtype, {2, 3, 4, 5}, 1)});
    transpose.permutation = {2, 0, 1};
    check_node(device, make_node(transpose, 1), {values(dtype, {2, 3, 8}, 1)});
    for (int64_t axis = 0; axis < 3; ++axis) {
      op::ConcatAttributes concat;
      concat.axis = axis;
      Shape a{2, 3, 4}, b{2, 3, 4};
      b[static_cast<int>(axis)] = 5;
      check_node(device, make_node(concat, 3),
                 {values(dtype, a, 1), values(dtype, b, 2), values(dtype, a, 3)});
    }
    op::SliceAttributes slice;
    slice.axes = {0, 2};
    slice.steps = {1, -2};
    check_node(device, make_node(slice, 3),
               {values(dtype, {4, 3, 9}, 1), ints_tensor({1, -1}), ints_tensor({4, 0})});
    slice.steps = {};
    check_node(device, make_node(slice, 3),
               {values(dtype, {4, 3, 8}, 1), ints_tensor({1, 4}), ints_tensor({3, 8})});
  }
}

TEST(VulkanMovement, ExpandTileReshapePad) {
  RT_LAVAPIPE(device);
  for (DType dtype : {DType::F32, DType::I64, DType::U8}) {
    check_node(device, make_node(op::ExpandAttributes{}, 2),
               {values(dtype, {3, 1, 4}, 1), ints_tensor({2, 3, 5, 4})});
    check_node(device, make_node(op::TileAttributes{}, 2), {values(dtype, {2, 3}, 1), ints_tensor({3, 2})});
    check_node(device, make_node(op::ReshapeAttributes{}, 2),
               {values(dtype, {2, 6}, 1), ints_tensor({3, -1})});
    check_node(device, make_node(op::IdentityAttributes{}, 1), {values(dtype, {2, 6}, 1)});
    for (int mode = 0; mode < 4; ++mode) {
      op::PadAttributes pad;
      pad.mode = static_cast<op::PadMode>(mode);
      check_node(device, make_node(pad, 2), {values(dtype, {3, 4, 5}, 1), ints_tensor({1, 0, 2, 1, 0, 3})});
    }
    check_node(device, make_node(op::PadAttributes{}, 3),
               {values(dtype, {3, 4, 5}, 1), ints_tensor({1, -1, 0, 0, 2, -2}), scalar_tensor(dtype, 7)});
  }
}

TEST(VulkanMovement, Cast) {
  RT_LAVAPIPE(device);
  const DType types[] = {DType::F32, DType::F16, DType::I32, DType::I64, DType::U8, DType::I8, DType::Bool};
  for (DType from : types)
    for (DType to : types) {
      op::CastAttributes cast;
      cast.to = static_cast<uint8_t>(to);
      const bool is_signed = from != DType::U8 && from != DType::Bool;
      check_node(device, make_node(cast, 1), {random_tensor({from, {3, 11}}, is_signed ? -90 : 0, 120, 1)});
    }
}

TEST(VulkanMovement, GatherAndScatter) {
  RT_LAVAPIPE(device);
  for (int64_t axis = 0; axis < 3; ++axis) {
    op::GatherAttributes gather;
    gather.axis = axis;
    for (DType dtype : {DType::F32, DType::I64, DType::U8})
      check_node(device, make_node(gather, 2), {values(dtype, {4, 5, 6}, 1), ints_tensor({3, -1, 0, 2, 3})});
    op::ScatterAddAttributes scatter;
    scatter.axis = axis;
    Shape updates{4, 5, 6};
    updates[static_cast<int>(axis)] = 5;
    for (DType dtype : {DType::F32, DType::I32})
      check_node(device, make_node(scatter, 3),
                 {ints_tensor({4, 5, 6}), ints_tensor({3, -1, 0, 3, 3}), values(dtype, updates, 2)});
  }
}

TEST(VulkanMovement, Resize) {
  RT_LAVAPIPE(device);
  for (int mode = 0; mode < 3; ++mode)
    for (int coordinates = 0; coordinates < 4; ++coordinates) {
      op::ResizeAttributes attributes;
      attributes.mode = static_cast<op::ResizeMode>(mode);
      attributes.coordinates = static_cast<op::ResizeCoordinates>(coordinates);
      for (const auto& [h, w] : {std::pair<int64_t, int64_t>{8, 3}, {13, 10}})
        check_node(device, make_node(attributes, 3),
                   {random_tensor({DType::F32, {2, 5, 6, 3}}, -1, 1, 1), ints_tensor({h, w}), std::nullopt});
    }
}

TEST(VulkanMovement, KnownOnHost) {
  RT_LAVAPIPE(device);
  check_node(device, make_node(op::ShapeAttributes{}, 1), {values(DType::F32, {3, 4, 5}, 1)});
  op::ConstantOfShapeAttributes constant;
  constant.dtype = static_cast<uint8_t>(DType::F32);
  constant.value = 2.5;
  check_node(device, make_node(constant, 1), {ints_tensor({3, 4})});
  check_node(device, make_node(op::RangeAttributes{}, 3),
             {scalar_tensor(DType::I64, 2), scalar_tensor(DType::I64, 11), scalar_tensor(DType::I64, 3)});
}

}  // namespace
}  // namespace librt::test
