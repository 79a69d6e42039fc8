// Uniform and normal random numbers from seed, counter and position.
#include "kernels/random.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> make(const NodeView& node, RandomArguments arguments) {
  arguments.type = element_type(node.output(0).dtype);
  arguments.count = node.output(0).elements();
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 0) & 1u;
  return make_kernel(
      [arguments](const Call& call) {
        RandomArguments a = arguments;
        a.result = call.out();
        a.counter = call.in<int64_t>(1);
        return random(a, call.stream);
      },
      requirements);
}

Result<KernelPtr> create_uniform(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::RandomUniformAttributes>();
  return make(node, {.seed = static_cast<uint64_t>(attributes.seed),
                     .first = attributes.low,
                     .second = attributes.high - attributes.low});
}
Result<KernelPtr> create_normal(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::RandomNormalAttributes>();
  return make(node, {.normal = true,
                     .seed = static_cast<uint64_t>(attributes.seed),
                     .first = attributes.mean,
                     .second = attributes.scale});
}

}  // namespace

std::span<const KernelRow> rows_random();
std::span<const KernelRow> rows_random() {
  static constexpr KernelRow kRows[] = {
      row<create_uniform>(OpKind::RandomUniform, "random_uniform", DTypeSet{DType::I64}),
      row<create_normal>(OpKind::RandomNormal, "random_normal", DTypeSet{DType::I64}),
  };
  return kRows;
}

}  // namespace librt::cuda
