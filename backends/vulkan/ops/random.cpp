// Uniform and normal random numbers, a block of four per invocation.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(known_on_host(node, 0, "shape"));
  if (node.has(1)) RT_TRY(storable(device, DType::I64));
  const DType dtype = node.output(0).dtype;
  if (dtype == DType::F64) return unsupported("random values of type f64");
  return storable(device, dtype);
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const bool normal = node.kind() == OpKind::RandomNormal;
  uint64_t seed;
  float first, second;
  if (normal) {
    const auto& attributes = node.as<op::RandomNormalAttributes>();
    seed = static_cast<uint64_t>(attributes.seed);
    first = attributes.mean;
    second = attributes.scale;
  } else {
    const auto& attributes = node.as<op::RandomUniformAttributes>();
    seed = static_cast<uint64_t>(attributes.seed);
    first = attributes.low;
    second = attributes.high - attributes.low;
  }
  const DType dtype = node.output(0).dtype;
  const int64_t elements = node.output(0).elements(), count = ceil_div(elements, 4);
  auto program = std::make_unique<Program>("random");
  const Ref result = dtype == DType::F32 ? out(0) : program->scratch(static_cast<uint64_t>(count) * 16);
  Step& step = program->dispatch_each(Shader::random, count, cast(device).plan().elementwise_lanes);
  step.spec(normal).spec(node.has(1));
  step.push(count).push(seed).push(seed >> 32).push(first).push(second).write(0, result);
  if (node.has(1)) step.read(1, in(1));
  if (dtype != DType::F32)
    program
        ->dispatch_each(dtype == DType::F16 ? Shader::cast_f32_f16 : Shader::cast_f32_bf16, elements,
                        cast(device).plan().elementwise_lanes)
        .push(elements)
        .read(0, result)
        .write(1, out(0));
  program->replaces(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::RandomUniform, "random_uniform", DTypeSet{DType::I64}),
    row<create, supports>(OpKind::RandomNormal, "random_normal", DTypeSet{DType::I64}),
};

}  // namespace

std::span<const KernelRow> rows_random();
std::span<const KernelRow> rows_random() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
