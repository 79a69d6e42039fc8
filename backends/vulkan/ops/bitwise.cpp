// Bits of integers with broadcasting.
#include "backends/vulkan/support.h"

namespace rt::vulkan {
namespace {

StridedSpace space_of(const NodeView& node) {
  const Shape shapes[] = {node.shape(0), node.shape(1)};
  return broadcast_space(node.output(0).shape, shapes);
}

Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(all_storable(device, node));
  const size_t rank = space_of(node).rank();
  if (rank > kMaxAxes)
    return unsupported("broadcasting needs ", rank, " axes after collapsing, ", kMaxAxes, " are supported");
  return {};
}

Shader shader_of(DType dtype) {
  switch (dtype) {
    case DType::U8: return Shader::bits_u8;
    case DType::I8: return Shader::bits_i8;
    case DType::U16: return Shader::bits_u16;
    case DType::I16: return Shader::bits_i16;
    case DType::U32: return Shader::bits_u32;
    case DType::U64: return Shader::bits_u64;
    case DType::I64: return Shader::bits_i64;
    default: return Shader::bits_i32;
  }
}

uint32_t function_of(const NodeView& node) {
  switch (node.kind()) {
    case OpKind::BitwiseAnd: return 0;
    case OpKind::BitwiseOr: return 1;
    case OpKind::BitwiseXor: return 2;
    default: return node.as<op::BitShiftAttributes>().left ? 3 : 4;
  }
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const StridedSpace space = space_of(node);
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("bits");
  program->dispatch_each(shader_of(node.dtype(0)), count, cast(device).plan().elementwise_lanes)
      .spec(function_of(node))
      .spec(space.rank())
      .push(count)
      .push_axes(space.extents, 1)
      .push_axes(space.strides[0], 0)
      .push_axes(space.strides[1], 0)
      .read(0, in(0))
      .read(1, in(1))
      .write(2, out(0));
  for (uint8_t i = 0; i < 2; ++i)
    if (node.input(i) == node.output(0)) {
      program->in_place(i);
      break;
    }
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    {OpKind::BitwiseAnd, "bits.BitwiseAnd", kIntegers, supports, create},
    {OpKind::BitwiseOr, "bits.BitwiseOr", kIntegers, supports, create},
    {OpKind::BitwiseXor, "bits.BitwiseXor", kIntegers, supports, create},
    {OpKind::BitShift, "bits.BitShift", kIntegers, supports, create},
};

}  // namespace

std::span<const KernelRow> rows_bitwise();
std::span<const KernelRow> rows_bitwise() {
  return kRows;
}

}  // namespace rt::vulkan
