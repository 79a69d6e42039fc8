// What is asked of all gradients of a step: two or few launches, however many gradients there are.
#include "kernels/gradient_scale.h"

#include <vector>

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Status supports_gradients(const CudaDevice&, const NodeView& node) {
  for (size_t i = 0; i < node.input_count(); ++i)
    if (!kShortFloats.contains(node.dtype(i)))
      return unsupported("input ", i, " of type ", name_of(node.dtype(i)), ", expected f32, f16 or bf16");
  return {};
}

template <bool kNorm>
Result<KernelPtr> create_over_gradients(CudaDevice&, const NodeView& node) {
  std::vector<GradientsArguments::Gradient> gradients;
  int64_t parts = 0;
  for (size_t i = 0; i < node.input_count(); ++i) {
    gradients.push_back({nullptr, node.input(i).elements(), element_type(node.dtype(i))});
    parts += partial_sums(gradients.back().count);
  }
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(parts) * sizeof(float);
  return make_kernel(
      [gradients = std::move(gradients)](const Call& call) {
        std::vector<GradientsArguments::Gradient> here = gradients;
        for (size_t i = 0; i < here.size(); ++i) here[i].values = call.in(i);
        GradientsArguments arguments{.gradients = here, .partial = call.scratch<float>()};
        if constexpr (kNorm)
          arguments.norm = call.out<float>();
        else
          arguments.finite = call.out<bool>();
        return over_gradients(arguments, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_gradient_scale();
std::span<const KernelRow> rows_gradient_scale() {
  static constexpr KernelRow kRows[] = {
      row<create_over_gradients<true>, supports_gradients>(OpKind::GlobalNorm, "global_norm", kShortFloats),
      row<create_over_gradients<false>, supports_gradients>(OpKind::AllFinite, "all_finite", kShortFloats),
  };
  return kRows;
}

}  // namespace librt::cuda
