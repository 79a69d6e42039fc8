// Movement, gather, resize and shape kernels: exact, every element size.
#include <array>
#include <bit>

#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/transpose.h"
#include "tests/cpu/cpu_support.h"

namespace librt::test {
namespace {

const DType kSizes[] = {DType::U8, DType::F16, DType::F32, DType::I64};

void check(Node node, NodeInputs inputs) {
  check_node(cpu_device(), node, inputs, 0, ops::Tolerance{0, 0});
}

TEST(CpuMovement, Transpose) {
  const auto transpose = [](std::vector<int64_t> permutation, const Shape& shape) {
    op::TransposeAttributes attributes;
    attributes.permutation = std::move(permutation);
    for (const DType dtype : kSizes) {
      SCOPED_TRACE(text(name_of(dtype), shape));
      check(make_node(attributes, 1), {ramp(dtype, shape, 0, 200)});
    }
  };
  transpose({}, Shape{});
  transpose({1, 0}, Shape{37, 53});
  transpose({1, 0}, Shape{64, 256});
  transpose({0, 2, 1}, Shape{3, 17, 9});
  transpose({0, 2, 3, 1}, Shape{2, 3, 33, 35});
  transpose({0, 3, 1, 2}, Shape{2, 13, 15, 16});
  transpose({2, 0, 1}, Shape{5, 6, 7});
  transpose({3, 2, 1, 0}, Shape{2, 3, 4, 5});
  transpose({0, 2, 1, 3}, Shape{2, 7, 5, 64});
  transpose({1, 0, 2}, Shape{0, 3, 4});
  transpose({4, 2, 0, 1, 3}, Shape{2, 3, 4, 5, 6});
}

/// The code path for matrices larger than the caches, on small ones: aligned, unaligned, with remainders.
TEST(CpuMovement, TransposePastTheCaches) {
  const auto check_size = [](auto zero, const cpu::Simd& simd) {
    using T = decltype(zero);
    for (const auto& [rows, columns, stride] :
         {std::array<int64_t, 3>{256, 64, 256}, {300, 70, 301}, {513, 33, 520}}) {
      SCOPED_TRACE(text(simd.name, " ", sizeof(T), " bytes, ", rows, "x", columns));
      std::vector<T> x(static_cast<size_t>(rows * columns)), y(static_cast<size_t>(columns * stride + 64));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 7 + i / 251);
      T* to = y.data();
      while (reinterpret_cast<uintptr_t>(to) % 64 != 0) ++to;
      simd.loops<cpu::TransposeLoops>().transpose[std::countr_zero(sizeof(T))](x.data(), columns, to, stride,
                                                                               rows, columns, true);
      int64_t wrong = 0;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          wrong += to[j * stride + i] != x[static_cast<size_t>(i * columns + j)] ? 1 : 0;
      EXPECT_EQ(wrong, 0);
      std::vector<T> copy(x.size() + 1);
      simd.loops<cpu::TransposeLoops>().stream_copy(x.data(), copy.data() + 1,
                                                    static_cast<int64_t>(x.size() * sizeof(T)));
      simd.loops<cpu::TransposeLoops>().finish_streams();
      EXPECT_TRUE(std::equal(x.begin(), x.end(), copy.begin() + 1));
    }
  };
  const cpu::Simd* sets[3] = {};
  const int count = cpu::available_simd(sets);
  for (int i = 0; i < count; ++i) {
    check_size(uint8_t{0}, *sets[i]);
    check_size(uint16_t{0}, *sets[i]);
    check_size(uint32_t{0}, *sets[i]);
    check_size(uint64_t{0}, *sets[i]);
  }
}

TEST(CpuMovement, SliceConcatExpandTile) {
  for (const DType dtype : kSizes) {
    op::SliceAttributes slice;
    slice.axes = {0, 2};
    slice.steps = {2, -1};
    check(make_node(slice, 3),
          {ramp(dtype, Shape{7, 3, 9}, 0, 200), ints_tensor({1, -1}), ints_tensor({100, -8})});
    slice.axes = {1};
    slice.steps = {1};
    check(make_node(slice, 3), {ramp(dtype, Shape{7, 30}, 0, 200), ints_tensor({5}), ints_tensor({20})});
    check(make_node(slice, 3), {ramp(dtype, Shape{7, 30}, 0, 200), ints_tensor({5}), ints_tensor({5})});
    op::ConcatAttributes concat;
    concat.axis = 1;
    check(make_node(concat, 3),
          {ramp(dtype, Shape{3, 2, 5}, 0, 200, 1), ramp(dtype, Shape{3, 0, 5}, 0, 200, 2),
           ramp(dtype, Shape{3, 4, 5}, 0, 200, 3)});
    concat.axis = -1;
    check(make_node(concat, 2),
          {ramp(dtype, Shape{90, 20}, 0, 200, 1), ramp(dtype, Shape{90, 1}, 0, 200, 2)});
    check(make_node(op::ExpandAttributes{}, 2),
          {ramp(dtype, Shape{3, 1, 5}, 0, 200), ints_tensor({2, 3, 4, 5})});
    check(make_node(op::ExpandAttributes{}, 2), {ramp(dtype, Shape{}, 0, 200), ints_tensor({200, 300})});
    check(make_node(op::TileAttributes{}, 2), {ramp(dtype, Shape{2, 3, 4}, 0, 200), ints_tensor({2, 1, 3})});
    check(make_node(op::IdentityAttributes{}, 1), {ramp(dtype, Shape{2, 3, 4}, 0, 200)});
    check(make_node(op::ReshapeAttributes{}, 2), {ramp(dtype, Shape{2, 3, 4}, 0, 200), ints_tensor({-1, 6})});
  }
}

TEST(CpuMovement, Pad) {
  for (const auto mode : {op::PadMode::Constant, op::PadMode::Reflect, op::PadMode::Edge, op::PadMode::Wrap})
    for (const DType dtype : kSizes) {
      op::PadAttributes pad;
      pad.mode = mode;
      SCOPED_TRACE(text(op::EnumNamePadMode(mode), " ", name_of(dtype)));
      check(make_node(pad, 2), {ramp(dtype, Shape{4, 5, 6}, 0, 200), ints_tensor({1, 0, 2, 0, 3, 1})});
      check(make_node(pad, 2), {ramp(dtype, Shape{4, 6}, 0, 200), ints_tensor({-1, 2, 1, -2})});
      if (mode == op::PadMode::Constant)
        check(make_node(pad, 3),
              {ramp(dtype, Shape{4, 6}, 0, 200), ints_tensor({0, 2, 1, 1}), scalar_tensor(dtype, 7)});
    }
}

TEST(CpuGather, GatherAndScatterAdd) {
  for (const DType index : {DType::I32, DType::I64})
    for (const int64_t axis : {0, 1, -1}) {
      op::GatherAttributes gather;
      gather.axis = axis;
      const auto indices = ramp(index, Shape{3, 4}, -4, 3);
      for (const DType dtype : kSizes)
        check(make_node(gather, 2), {ramp(dtype, Shape{5, 4, 6}, 0, 200), indices});
      op::ScatterAddAttributes scatter;
      scatter.axis = 1;
      check_node(cpu_device(), make_node(scatter, 3),
                 {ints_tensor({5, 4, 6}), indices, f32(Shape{5, 3, 4, 6})});
      check_node(cpu_device(), make_node(scatter, 3),
                 {ints_tensor({5, 4, 6}), indices, ramp(DType::I32, Shape{5, 3, 4, 6}, -9, 9)});
    }
}

TEST(CpuResize, OutsideOfTheRegion) {
  op::ResizeAttributes resize;
  resize.mode = op::ResizeMode::Linear;
  resize.coordinates = op::ResizeCoordinates::TfCropAndResize;
  resize.extrapolation = 7;
  const auto region = tensor_of({DType::F32, Shape{4}}, {-0.3, 0.4, 0.6, 1.5});
  Node node = make_node(resize, 4);
  node.inputs[2] = kNoValue;
  for (const int64_t channels : {3, 20})
    check_node(cpu_device(), node,
               {f32(Shape{1, 8, 9, channels}), ints_tensor({7, 11}), std::nullopt, region}, 8);
}

TEST(CpuResize, Modes) {
  for (const auto mode : {op::ResizeMode::Nearest, op::ResizeMode::Linear, op::ResizeMode::Cubic})
    for (const auto coordinates : {op::ResizeCoordinates::HalfPixel, op::ResizeCoordinates::AlignCorners,
                                   op::ResizeCoordinates::Asymmetric}) {
      op::ResizeAttributes resize;
      resize.mode = mode;
      resize.coordinates = coordinates;
      check_node(cpu_device(), make_node(resize, 2), {f32(Shape{2, 5, 6, 3}), ints_tensor({9, 4})});
      check_node(cpu_device(), make_node(resize, 2), {f32(Shape{1, 5, 20}), ints_tensor({11})});
      check_node(cpu_device(), make_node(resize, 2), {f32(Shape{2, 5, 6, 40}), ints_tensor({3, 17})});
      check_node(cpu_device(), make_node(resize, 2), {f32(Shape{1, 3, 5, 4, 2}), ints_tensor({5, 4, 9})});
      resize.antialias = mode != op::ResizeMode::Nearest;
      check_node(cpu_device(), make_node(resize, 2), {f32(Shape{1, 20, 31, 3}), ints_tensor({7, 5})});
    }
}

TEST(CpuShapeOps, Values) {
  op::ShapeAttributes shape;
  shape.start = -2;
  check(make_node(shape, 1), {f32(Shape{2, 3, 4})});
  op::ConstantOfShapeAttributes constant;
  constant.dtype = static_cast<uint8_t>(DType::I32);
  constant.value = 7;
  check(make_node(constant, 1), {ints_tensor({3, 4})});
  check(make_node(op::RangeAttributes{}, 3),
        {scalar_tensor(DType::F32, 1), scalar_tensor(DType::F32, 4), scalar_tensor(DType::F32, 0.5)});
}

}  // namespace
}  // namespace librt::test
