// Cast between f32, f16, bf16, i32, i64, u8, i8 and bool.
#include <algorithm>
#include <optional>

#include "backends/vulkan/dispatch/split.h"
#include "backends/vulkan/steps/repack.h"

namespace librt::vulkan {
namespace {

/// The shader's name for a type; bool is stored as u8.
enum Kind { F32, F16, I32, I64, U8, I8, Bool, BF16, kKinds };

std::optional<Kind> kind_of(DType dtype) {
  switch (dtype) {
    case DType::F32: return F32;
    case DType::F16: return F16;
    case DType::I32: return I32;
    case DType::I64: return I64;
    case DType::U8: return U8;
    case DType::I8: return I8;
    case DType::Bool: return Bool;
    case DType::BF16: return BF16;
    default: return std::nullopt;
  }
}

#define RT_CASTS(from) \
  Shader::cast_##from##_f32, Shader::cast_##from##_f16, Shader::cast_##from##_i32, Shader::cast_##from##_i64
constexpr Shader kNone = Shader::unary;  // same representation: a copy
constexpr Shader kMissing = Shader::binary;
constexpr Shader kCasts[kKinds][kKinds] = {
    {kNone, Shader::cast_f32_f16, Shader::cast_f32_i32, Shader::cast_f32_i64, Shader::cast_f32_u8,
     Shader::cast_f32_i8, Shader::cast_f32_bool, Shader::cast_f32_bf16},
    {Shader::cast_f16_f32, kNone, Shader::cast_f16_i32, Shader::cast_f16_i64, Shader::cast_f16_u8,
     Shader::cast_f16_i8, Shader::cast_f16_bool, Shader::cast_f16_bf16},
    {Shader::cast_i32_f32, Shader::cast_i32_f16, kNone, Shader::cast_i32_i64, Shader::cast_i32_u8,
     Shader::cast_i32_i8, Shader::cast_i32_bool, kMissing},
    {Shader::cast_i64_f32, Shader::cast_i64_f16, Shader::cast_i64_i32, kNone, Shader::cast_i64_u8,
     Shader::cast_i64_i8, Shader::cast_i64_bool, kMissing},
    {RT_CASTS(u8), kNone, Shader::cast_u8_i8, Shader::cast_u8_bool, Shader::cast_u8_bf16},
    {RT_CASTS(i8), Shader::cast_i8_u8, kNone, Shader::cast_i8_bool, Shader::cast_i8_bf16},
    {RT_CASTS(u8), kNone, Shader::cast_u8_i8, kNone, Shader::cast_u8_bf16},
    {RT_CASTS(bf16), Shader::cast_bf16_u8, Shader::cast_bf16_i8, Shader::cast_bf16_bool, kNone},
};

/// Casts between floats by words, which need no 16-bit storage: a graph in f16 is computed in f32 between
/// them on a device without it.
bool by_words(const Device& device, const NodeView& node) {
  const auto is_float_type = [](DType dtype) {
    return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
  };
  return !cast(device).facts().features.storage_16bit && is_float_type(node.dtype(0)) &&
         is_float_type(node.output(0).dtype);
}

Status supports(const Device& device, const NodeView& node) {
  if (by_words(device, node)) return {};
  for (const DType dtype : {node.dtype(0), node.output(0).dtype}) RT_TRY(storable(device, dtype));
  if (!kind_of(node.output(0).dtype)) return unsupported("no cast to ", name_of(node.output(0).dtype));
  if (kCasts[*kind_of(node.dtype(0))][*kind_of(node.output(0).dtype)] == kMissing)
    return unsupported("no cast from ", name_of(node.dtype(0)), " to ", name_of(node.output(0).dtype));
  return {};
}

void add_words(Program& program, const VulkanDevice& device, const NodeView& node) {
  const DType from = node.dtype(0), to = node.output(0).dtype;
  const int64_t count = node.output(0).elements();
  const int64_t pair_bytes[] = {2 * static_cast<int64_t>(size_of(from)),
                                2 * static_cast<int64_t>(size_of(to))};
  for (const Rows& part : ranges_of_rows(device, ceil_div(count, 2), pair_bytes))
    program.dispatch_each(Shader::cast_words, part.count, device.plan().elementwise_lanes)
        .spec(element_of(from))
        .spec(element_of(to))
        .push(std::min(2 * part.count, count - 2 * part.first))
        .read(0, rows_of(in(0), part, pair_bytes[0]))
        .write(1, rows_of(out(0), part, pair_bytes[1]));
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const Shader shader = kCasts[*kind_of(node.dtype(0))][*kind_of(node.output(0).dtype)];
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("cast");
  if (shader == kNone) {
    if (count > 0) program->copy(out(0), in(0));
    program->in_place(0);
    return finish(std::move(program));
  }
  if (by_words(device, node)) {
    add_words(*program, cast(device), node);
    return finish(std::move(program));
  }
  add_cast(*program, cast(device), shader, count, in(0), size_of(node.dtype(0)), out(0),
           size_of(node.output(0).dtype));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::Cast, "cast",
                          DTypeSet{DType::F32, DType::F16, DType::I32, DType::I64, DType::U8, DType::I8,
                                   DType::Bool, DType::BF16}),
};

}  // namespace

std::span<const KernelRow> rows_cast() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
