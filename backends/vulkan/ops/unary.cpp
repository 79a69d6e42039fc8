// Elementwise functions of one input.
#include "backends/vulkan/kernel.h"
#include "runtime/geometry/function.h"

namespace librt::vulkan {
namespace {

Result<KernelPtr> create_float(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const FunctionCall call = function_call(node.node);
  const int64_t count = ceil_div(node.output(0).elements(), 4);
  auto program = std::make_unique<Program>("unary");
  const DType dtype = node.dtype(0);
  program
      ->dispatch_each(dtype == DType::F32 ? Shader::unary : Shader::unary_halves, count,
                      cast(device).plan().elementwise_lanes)
      .spec(static_cast<uint32_t>(call.function))
      .spec(element_of(dtype))
      .push(count)
      .push(call.alpha)
      .push(call.beta)
      .read(0, in(0))
      .write(1, out(0));
  program->in_place(0);
  return finish(std::move(program));
}

Result<KernelPtr> create_integer(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const DType dtype = node.dtype(0);
  const Shader shader = dtype == DType::I32   ? Shader::unary_i32
                        : dtype == DType::I64 ? Shader::unary_i64
                                              : Shader::unary_u8;
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("unary");
  program->dispatch_each(shader, count, cast(device).plan().elementwise_lanes)
      .spec(static_cast<uint32_t>(function_of(node.kind())))
      .push(count)
      .read(0, in(0))
      .write(1, out(0));
  program->in_place(0);
  return finish(std::move(program));
}

constexpr DTypeSet kFloats{DType::F32, DType::F16, DType::BF16};
constexpr DTypeSet kInts{DType::I32, DType::I64, DType::U8};

#define RT_INTEGER_ROW(Name) row<create_integer, all_storable>(OpKind::Name, "unary_integer." #Name, kInts)

constexpr KernelRow kRows[] = {
#define RT_ROW_Floats(Name) row<create_float, all_storable>(OpKind::Name, "unary." #Name, kFloats),
#define RT_ROW_Numbers(Name) RT_ROW_Floats(Name)
#define RT_ROW_Booleans(Name) \
  row<create_integer, all_storable>(OpKind::Name, "unary." #Name, DTypeSet{DType::Bool}),
#define RT_ROW_None(Name)
#define RT_FUNCTION(Name, operands) RT_ROW_##operands(Name)
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
    RT_INTEGER_ROW(Abs),
    RT_INTEGER_ROW(Neg),
    RT_INTEGER_ROW(Sign),
    RT_INTEGER_ROW(Relu),
};

}  // namespace

std::span<const KernelRow> rows_unary() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
