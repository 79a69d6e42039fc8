// Cases of other families repeated in f16 and bf16: for kernels of these types, and for the f32 kernels that
// a session uses instead.
#include <algorithm>

#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_conv();
std::vector<Case> cases_matmul();
std::vector<Case> cases_softmax();
std::vector<Case> cases_pool();

namespace {

constexpr std::string_view kAgain[] = {
    "conv_1x1",
    "conv_3x3_wide",
    "conv_3x3_odd",
    "conv_strided",
    "conv_asymmetric",
    "conv_dilated",
    "conv_tiles",
    "conv_grouped",
    "conv_depthwise",
    "conv_1d",
    "conv_unit_axis",
    "conv_variable_weight",
    "conv_bias_relu",
    "conv_residual_relu",
    "conv_clip",
    "conv_transpose",
    "conv_transpose_2x2",
    "conv_weight_grad",
    "conv_weight_grad_strided",
    "matmul_weight",
    "matmul_batched",
    "matmul_batch_broadcast",
    "matmul_3d_weight",
    "matmul_row",
    "matmul_transpose_a",
    "matmul_row_transpose_b",
    "matmul_transpose_b_batched",
    "matmul_Gelu",
    "matmul_residual_relu",
    "matmul_row_epilogue",
    "matmul_bias_residual",
    "matmul_large_bias",
    "matmul_large_depth",
    "matmul_large_result",
    "softmax_last",
    "log_softmax_middle",
    "max_pool_3x3",
    "average_pool_padded",
};

/// Kernel and reference each round the exact result once; accumulators are f32 or wider.
void add_typed(const std::vector<Case>& from, DType dtype, std::vector<Case>& to) {
  for (const Case& original : from) {
    if (std::find(std::begin(kAgain), std::end(kAgain), original.name) == std::end(kAgain)) continue;
    Case typed = no_gradient(within(original, dtype == DType::F16 ? 2e-3 : 1.6e-2, 1e-3));
    typed.name = text(original.name, "_", name_of(dtype));
    for (auto& input : typed.inputs)
      if (input && input->info.dtype == DType::F32) input->info.dtype = dtype;
    to.push_back(std::move(typed));
  }
}

}  // namespace

std::vector<Case> cases_half() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::F16, DType::BF16}) {
    add_typed(cases_conv(), dtype, cases);
    add_typed(cases_matmul(), dtype, cases);
    add_typed(cases_pool(), dtype, cases);
    add_typed(cases_softmax(), dtype, cases);
  }
  return cases;
}

}  // namespace librt::test
