// Convolution, its two gradients, and ConvTranspose, which is one of them: implicit GEMM, a direct kernel for
// groups of few channels, and cuDNN if available.
#include "kernels/conv.h"

#include "backends/cuda/support/gemm_plan.h"
#include "kernels/matmul.h"

namespace librt::cuda {
namespace {

constexpr ConvForm form_of(OpKind kind) {
  return kind == OpKind::ConvTranspose    ? ConvForm::Data
         : kind == OpKind::ConvWeightGrad ? ConvForm::Weight
                                          : ConvForm::Forward;
}

/// The convolution of a Conv, ConvTranspose or ConvWeightGrad node.
Result<ConvGeometry> geometry_of(const NodeView& node) {
  if (node.kind() == OpKind::Conv)
    return conv_geometry(node.shape(0), node.shape(1), node.as<op::ConvAttributes>());
  if (node.kind() == OpKind::ConvWeightGrad)
    return conv_weight_grad_geometry(node.shape(0), node.shape(1), node.as<op::ConvWeightGradAttributes>());
  RT_TRY(known_on_host(node, 2, "the output size of a ConvTranspose"));
  std::optional<std::span<const int64_t>> output_size;
  if (node.has(2)) output_size = node.ints(2);
  return conv_transpose_geometry(node.shape(0), node.shape(1), node.as<op::ConvTransposeAttributes>(),
                                 output_size);
}

Status supports(const CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry, geometry_of(node));
  return conv_fits(geometry, form_of(node.kind()));
}

bool lacks_tensor_cores(const CudaDevice& device, DType dtype) {
  return dtype == DType::BF16 && device.facts().compute_capability < 80;
}

/// An implicit GEMM would compute 64 columns for the few channels of a group.
Status supports_direct(const CudaDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  constexpr int64_t kFew = 8, kMaxGrid = 65535;
  const bool few =
      g.groups > 1 && (g.input_channels_per_group() < kFew || g.output_channels_per_group() < kFew);
  if (!few && !lacks_tensor_cores(device, node.dtype(0)))
    return unsupported("groups of ", g.input_channels_per_group(), " to ", g.output_channels_per_group(),
                       " channels are large enough for implicit GEMM");
  RT_ASSIGN(const ConvWindows w, conv_windows(g));
  if (node.kind() == OpKind::ConvWeightGrad && w.taps() * w.group_in() > kMaxGrid)
    return unsupported("filters of ", w.taps() * w.group_in(), " elements, at most ", kMaxGrid,
                       " are supported");
  return {};
}

template <MatMulAlgorithm kAlgorithm>
Status supports_tensor(const CudaDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  RT_TRY(tensor_cores_support(device, node.dtype(0)));
  if constexpr (kAlgorithm == MatMulAlgorithm::Tensor128) {
    RT_ASSIGN(const ConvGeometry geometry, geometry_of(node));
    RT_ASSIGN(const ConvWindows windows, conv_windows(geometry));
    RT_TRY(tiles_occupy(device, conv_gemm(windows, form_of(node.kind())), matmul_tile(kAlgorithm)));
  }
  return {};
}

constexpr MatMulTile tile_of(ConvAlgorithm algorithm) {
  return {algorithm == ConvAlgorithm::Tensor128 ? 128 : 64, 64};
}

const op::EpilogueAttributes* epilogue_of(const NodeView& node) {
  return node.kind() == OpKind::Conv ? node.as<op::ConvAttributes>().epilogue.get() : nullptr;
}

/// Windows, GEMM shape and activation; algorithm and splits are left open.
Result<ConvArguments> arguments_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry, geometry_of(node));
  ConvArguments arguments;
  RT_ASSIGN(arguments.windows, conv_windows(geometry));
  arguments.type = element_type(node.dtype(0));
  arguments.form = form_of(node.kind());
  arguments.gemm = conv_gemm(arguments.windows, arguments.form);
  arguments.gemm.epilogue.activation = function_call(epilogue_of(node));
  return arguments;
}

EpilogueInputs inputs_of(const NodeView& node) {
  EpilogueInputs inputs = epilogue_inputs(epilogue_of(node), node);
  if (node.kind() == OpKind::ConvTranspose && node.has(3)) inputs.bias = 3;
  return inputs;
}

/// run(arguments with addresses, stream) launches the node's kernels, with `scratch` bytes as
/// Gemm::partial.
template <class Run>
KernelPtr conv_kernel(const NodeView& node, const ConvArguments& arguments, size_t scratch, Run run) {
  Requirements requirements;
  requirements.scratch = scratch;
  if (node.kind() == OpKind::ConvTranspose && node.has(2)) requirements.replaced_inputs = 1u << 2;
  return make_kernel(
      [arguments, inputs = inputs_of(node), run = std::move(run)](const Call& call) {
        ConvArguments a = arguments;
        a.first = call.in(0);
        a.second = call.in(1);
        bind_gemm(a.gemm, inputs, call);
        return run(a, call.stream);
      },
      requirements);
}

template <ConvAlgorithm kAlgorithm>
Result<KernelPtr> create(CudaDevice& device, const NodeView& node) {
  RT_ASSIGN(ConvArguments arguments, arguments_of(node));
  arguments.algorithm = kAlgorithm;
  Gemm& p = arguments.gemm;
  const int multiprocessors = device.facts().multiprocessors;
  if (kAlgorithm != ConvAlgorithm::Direct)
    p.splits = gemm_splits(p, tile_of(kAlgorithm).rows, tile_of(kAlgorithm).columns, multiprocessors);
  else if (arguments.form == ConvForm::Weight)
    p.splits = conv_direct_splits(arguments.windows, multiprocessors);
  return conv_kernel(node, arguments, gemm_partial_bytes(p), &conv);
}

// --- cuDNN

CudnnRequest request_of(const CudaDevice& device, const ConvArguments& arguments,
                        const EpilogueInputs& inputs) {
  return {.arguments = arguments,
          .has_bias = inputs.bias != EpilogueInputs::kNone,
          .has_residual = inputs.residual != EpilogueInputs::kNone,
          .tf32 = device.tf32()};
}

Status supports_library(const CudaDevice& device, const NodeView& node) {
  if (device.cudnn() == nullptr) return device.cudnn_status();
  RT_TRY(supports(device, node));
  RT_ASSIGN(const ConvArguments arguments, arguments_of(node));
  return Cudnn::takes(request_of(device, arguments, inputs_of(node)));
}

/// Only here is known whether the library has a plan: without one, the next row is taken and the reason kept.
Result<KernelPtr> create_library(CudaDevice& device, const NodeView& node) {
  RT_ASSIGN(const ConvArguments arguments, arguments_of(node));
  RT_TRY(device.activate());
  RT_ASSIGN(const std::shared_ptr<const CudnnConvolution> convolution,
            device.cudnn()->plan(request_of(device, arguments, inputs_of(node))));
  return conv_kernel(
      node, arguments, convolution->workspace_bytes(),
      [convolution](const ConvArguments& a, cudaStream_t stream) { return convolution->run(a, stream); });
}

}  // namespace

std::span<const KernelRow> rows_conv();
std::span<const KernelRow> rows_conv() {
  constexpr DTypeSet kF32{DType::F32};
#define RT_CONV(Name, name)                                                                            \
  row<create<ConvAlgorithm::Direct>, supports_direct>(OpKind::Name, name ".direct", kShortFloats, 30), \
      row<create_library, supports_library>(OpKind::Name, name ".cudnn", kShortFloats, 25),            \
      row<create<ConvAlgorithm::Tensor128>, supports_tensor<MatMulAlgorithm::Tensor128>>(              \
          OpKind::Name, name ".tensor128", kShortFloats, 20),                                          \
      row<create<ConvAlgorithm::Tensor64>, supports_tensor<MatMulAlgorithm::Tensor64>>(                \
          OpKind::Name, name ".tensor64", kShortFloats, 15),                                           \
      row<create<ConvAlgorithm::Plain>, supports>(OpKind::Name, name ".plain", kF32, 10)
  static constexpr KernelRow kRows[] = {
      RT_CONV(Conv, "conv"),
      RT_CONV(ConvTranspose, "conv_transpose"),
      RT_CONV(ConvWeightGrad, "conv_weight_grad"),
  };
#undef RT_CONV
  return kRows;
}

}  // namespace librt::cuda
