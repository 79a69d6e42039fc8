// TopK by sorting.
#include "backends/vulkan/steps/sort.h"

namespace librt::vulkan {
namespace {

Result<SortRows> rows_of(const NodeView& node) {
  const auto& attributes = node.as<op::TopKAttributes>();
  const Shape& x = node.shape(0);
  const auto axis = normalized_axis(attributes.axis, x.rank());
  if (!axis) return unsupported("an axis outside the input's rank");
  const int64_t inner = x.elements(*axis + 1, x.rank());
  return SortRows{.rows = x.elements(0, *axis) * inner,
                  .length = x[*axis],
                  .inner = inner,
                  .kept = node.output(0).shape[*axis],
                  .wide = node.dtype(0) == DType::I64,
                  .largest = attributes.largest};
}

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  RT_ASSIGN(const SortRows sort, rows_of(node));
  if (sort_bytes(sort) > cast(device).plan().max_binding_bytes)
    return unsupported("the entries to sort take ", bytes_text(sort_bytes(sort)),
                       ", more than the device binds at once");
  return {};
}

Shader load_shader(DType dtype) {
  switch (dtype) {
    case DType::F16: return Shader::topk_load_f16;
    case DType::I32: return Shader::topk_load_i32;
    case DType::I64: return Shader::topk_load_i64;
    case DType::U8: return Shader::topk_load_u8;
    case DType::I8: return Shader::topk_load_i8;
    default: return Shader::topk_load_f32;
  }
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const SortRows sort, rows_of(node));
  auto program = std::make_unique<Program>("topk");
  program->replaces(1);
  const int64_t count = node.output(0).elements();
  if (count == 0) return finish(std::move(program));
  const SortedRows sorted = add_sort(*program, cast(device).plan(), load_shader(node.dtype(0)), in(0), sort);
  const size_t size = size_of(node.dtype(0));
  const Shader store = size == 1   ? Shader::topk_store_1
                       : size == 2 ? Shader::topk_store_2
                       : size == 4 ? Shader::topk_store_4
                                   : Shader::topk_store_8;
  program->dispatch_each(store, count, 64)
      .push(count)
      .push(sort.length)
      .push(sort.inner)
      .push(sort.kept)
      .push(sorted.stride)
      .read(0, in(0))
      .write(1, out(0))
      .write(2, out(1))
      .read(3, sorted.positions);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {row<create, supports>(
    OpKind::TopK, "topk", DTypeSet{DType::F32, DType::F16, DType::I32, DType::I64, DType::U8, DType::I8})};

}  // namespace

std::span<const KernelRow> rows_topk() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
