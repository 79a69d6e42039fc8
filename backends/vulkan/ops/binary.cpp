// Arithmetic, comparison and bits of integers with broadcasting.
#include "backends/vulkan/kernel.h"
#include "runtime/geometry/function.h"
#include "runtime/geometry/in_place.h"

namespace librt::vulkan {
namespace {

/// The value of BinaryFunction or, for a comparison, of CompareFunction.
uint32_t function_of(const NodeView& node) {
  if (const auto function = binary_function(node.node)) return static_cast<uint32_t>(*function);
  const auto relation = compare_function(node.kind());
  return relation ? static_cast<uint32_t>(*relation) : 0;
}

Result<KernelPtr> create_float(Device& device, const NodeView& node, std::span<const LayoutId>) {
  StridedSpace space = broadcast_space(node);
  auto program = std::make_unique<Program>("binary");
  // Whole tensors have tail padding, so a single axis without splats needs no multiple of four.
  const bool padded = space.rank() == 1 && (space.strides[0][0] == 0 || space.strides[0][0] == 1) &&
                      (space.strides[1][0] == 0 || space.strides[1][0] == 1);
  const bool wide = padded || in_groups(space, 4, true);
  bool splat[2] = {false, false};
  if (wide) {
    space.extents.back() = ceil_div(space.extents.back(), 4);
    for (size_t operand = 0; operand < 2; ++operand) {
      auto& strides = space.strides[operand];
      splat[operand] = strides.back() == 0;
      if (!splat[operand])
        for (size_t axis = 0; axis + 1 < strides.size(); ++axis) strides[axis] /= 4;
    }
  }
  const int64_t count = node.output(0).elements() == 0 ? 0 : space.elements();
  const DType dtype = node.dtype(0);
  program
      ->dispatch_each(dtype == DType::F32 ? Shader::binary : Shader::binary_halves, count,
                      cast(device).plan().elementwise_lanes)
      .spec(function_of(node))
      .spec(space.rank())
      .spec(wide ? 4 : 1)
      .spec(splat[0])
      .spec(splat[1])
      .spec(element_of(dtype))
      .push(count)
      .push_axes(space.extents, 1)
      .push_axes(space.strides[0], 0)
      .push_axes(space.strides[1], 0)
      .read(0, in(0))
      .read(1, in(1))
      .write(2, out(0));
  if (const auto operand = operand_like_result(node)) program->in_place(*operand);
  return finish(std::move(program));
}

struct Typed {
  Shader f32, i32, i64, u8;
  Shader operator[](DType dtype) const {
    return dtype == DType::F32 ? f32 : dtype == DType::I32 ? i32 : dtype == DType::I64 ? i64 : u8;
  }
};

Shader bits_shader(DType dtype) {
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

Result<KernelPtr> create_typed(Device& device, const NodeView& node, Shader shader, bool in_place) {
  const StridedSpace space = broadcast_space(node);
  auto program = std::make_unique<Program>("binary");
  const int64_t count = node.output(0).elements();
  program->dispatch_each(shader, count, cast(device).plan().elementwise_lanes)
      .spec(function_of(node))
      .spec(space.rank())
      .push(count)
      .push_axes(space.extents, 1)
      .push_axes(space.strides[0], 0)
      .push_axes(space.strides[1], 0)
      .read(0, in(0))
      .read(1, in(1))
      .write(2, out(0));
  if (const auto operand = operand_like_result(node); in_place && operand) program->in_place(*operand);
  return finish(std::move(program));
}

Result<KernelPtr> create_integer(Device& device, const NodeView& node, std::span<const LayoutId>) {
  constexpr Typed kShaders{Shader::binary_u8, Shader::binary_i32, Shader::binary_i64, Shader::binary_u8};
  return create_typed(device, node, kShaders[node.dtype(0)], true);
}

Result<KernelPtr> create_compare(Device& device, const NodeView& node, std::span<const LayoutId>) {
  constexpr Typed kShaders{Shader::compare_f32, Shader::compare_i32, Shader::compare_i64, Shader::compare_u8};
  return create_typed(device, node, kShaders[node.dtype(0)], false);
}

Result<KernelPtr> create_bits(Device& device, const NodeView& node, std::span<const LayoutId>) {
  return create_typed(device, node, bits_shader(node.dtype(0)), true);
}

constexpr DTypeSet kF32{DType::F32}, kFloats{DType::F32, DType::F16, DType::BF16};
constexpr DTypeSet kInts{DType::I32, DType::I64, DType::U8};
constexpr DTypeSet kBool{DType::Bool};
constexpr DTypeSet kComparable = kF32 | kInts | kBool;

#define RT_ROWS(Name)                                                            \
  row<create_float, broadcast_supports>(OpKind::Name, "binary." #Name, kFloats), \
      row<create_integer, broadcast_supports>(OpKind::Name, "binary_integer." #Name, kInts)
#define RT_COMPARE(Name) row<create_compare, broadcast_supports>(OpKind::Name, "compare." #Name, kComparable)
#define RT_LOGIC(Name) row<create_integer, broadcast_supports>(OpKind::Name, "logic." #Name, kBool)
#define RT_BITS(Name) row<create_bits, broadcast_supports>(OpKind::Name, "bits." #Name, kIntegers)

constexpr KernelRow kRows[] = {
    RT_ROWS(Add),
    RT_ROWS(Sub),
    RT_ROWS(Mul),
    RT_ROWS(Div),
    RT_ROWS(Pow),
    RT_ROWS(Minimum),
    RT_ROWS(Maximum),
    RT_ROWS(Mod),
    row<create_float, broadcast_supports>(OpKind::GeluGrad, "binary.GeluGrad", kFloats),
    row<create_float, broadcast_supports>(OpKind::SiluGrad, "binary.SiluGrad", kFloats),
    row<create_float, broadcast_supports>(OpKind::ReluGrad, "binary.ReluGrad", kFloats),
    RT_COMPARE(Equal),
    RT_COMPARE(Less),
    RT_COMPARE(LessOrEqual),
    RT_COMPARE(Greater),
    RT_COMPARE(GreaterOrEqual),
    RT_LOGIC(And),
    RT_LOGIC(Or),
    RT_LOGIC(Xor),
    RT_BITS(BitwiseAnd),
    RT_BITS(BitwiseOr),
    RT_BITS(BitwiseXor),
    RT_BITS(BitShift),
};

}  // namespace

std::span<const KernelRow> rows_binary() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
