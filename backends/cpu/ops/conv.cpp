// Convolution, its two gradients, and ConvTranspose, which is one of them: several oneDNN kernels for each.
//
//   conv                  direct, channels-last; or nChw16c where its producer has it and it can: both are
//                         equally fast
//   conv.late             direct, then our own loop over the result for an activation that is faster there
//   conv.blocked          nChw16c, direct
//   conv.winograd2x2,4x4  nChw16c, 3x3 windows with stride 1: fewer multiplications, more memory (oneDNN up
//                         to 3.1)
//   conv.winograd_cached  channels-last, our own, for weights that change: many channels and few points
//   conv.streamed         our own, for constant weights and few points: weights are read once; in the
//                         layout of its producer
//   conv.own              conv.gemm where oneDNN has no fast loop: long windows and strides along one axis,
//                         read where they lie in memory; depthwise on three axes; long windows in groups
//   conv.narrow           our own, for few channels in the result: vectors run along the window; of a
//                         ConvTranspose, windows side by side
//   conv.winograd         our own, for constant weights, channels-last: where oneDNN has none, also along one
//                         axis
//   conv.gemm             our own GEMM, or depthwise: without oneDNN, and what it does not support
//   conv.plain            loops, for what has nothing to compute (windows without channels)
//
// Winograd comes first where it was faster on every machine measured (see pays_winograd), and is timed
// elsewhere. conv.bf16 is the direct one, channels-last, in bf16.
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/support/conv_gemm.h"
#include "backends/cpu/support/conv_shape.h"
#include "backends/cpu/support/epilogue.h"
#include "backends/cpu/support/narrow_conv.h"
#include "backends/cpu/support/narrow_transpose.h"
#include "backends/cpu/support/own_rows.h"
#include "backends/cpu/support/streamed_conv.h"
#include "backends/cpu/support/winograd.h"
#include "backends/cpu/support/winograd_tiles.h"

namespace librt::cpu {
namespace {

using onednn::Algorithm;

Result<ConvGeometry> whole_geometry_of(const NodeView& node) {
  switch (node.kind()) {
    case OpKind::Conv: return conv_geometry(node.shape(0), node.shape(1), node.as<op::ConvAttributes>());
    case OpKind::ConvWeightGrad:
      return conv_weight_grad_geometry(node.shape(0), node.shape(1), node.as<op::ConvWeightGradAttributes>());
    default: break;
  }
  std::optional<std::span<const int64_t>> output_size;
  if (node.has(2)) output_size = node.ints(2);
  return conv_transpose_geometry(node.shape(0), node.shape(1), node.as<op::ConvTransposeAttributes>(),
                                 output_size);
}

/// The underlying convolution of a Conv, ConvTranspose or ConvWeightGrad node.
Result<ConvGeometry> geometry_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry whole, whole_geometry_of(node));
  return without_unit_axes(whole);
}

Status known_output_size(const NodeView& node) {
  if (node.kind() == OpKind::ConvTranspose && node.has(2) && node.inputs[2].value == nullptr)
    return unsupported("the output size of a ConvTranspose must be known when the kernel is created");
  return {};
}

bool has_work(const ConvGeometry& g) noexcept {
  bool taps = g.input_channels > 0;
  for (int i = 0; i < g.rank; ++i) taps = taps && g.axes[static_cast<size_t>(i)].kernel > 0;
  return taps && g.input_shape().elements() > 0 && g.output_shape().elements() > 0;
}

Status supports_gemm(const CpuDevice&, const NodeView& node) {
  RT_TRY(known_output_size(node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  if (!has_work(g)) return unsupported("empty convolution: nothing to compute");
  return {};
}

Status supports_direct(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_gemm(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  if (node.kind() == OpKind::Conv) return onednn::usable_for(reaching_taps(g).geometry);
  return node.kind() == OpKind::ConvWeightGrad ? onednn::usable_for_weight_gradient(g)
                                               : onednn::usable_for(g);
}

Status supports_bf16(const CpuDevice& device, const NodeView& node) {
  RT_TRY(onednn::usable());
  if (!onednn::has_bf16()) return unsupported("this CPU has no bf16 matmul instructions");
  if (node.kind() == OpKind::ConvTranspose && node.has(3)) return unsupported("no bias in bf16");
  return supports_direct(device, node);
}

Status supports_blocked(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_direct(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  if (g.input_channels % kBlock != 0 || g.output_channels % kBlock != 0)
    return unsupported("channels must be multiples of 16, not ", g.input_channels, " and ",
                       g.output_channels);
  if (g.groups != 1) return unsupported("groups must be 1, not ", g.groups);
  if (std::string_view(device.simd().name) != "avx512")
    return unsupported("the blocked layout needs AVX-512");
  if (node.kind() == OpKind::ConvTranspose && node.has(3))
    return unsupported("no bias in the blocked layout");
  return {};
}

Status supports_winograd(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_blocked(device, node));
  if (!onednn::has_winograd()) return unsupported(onednn::version(), " has no Winograd convolution");
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  bool fits = g.rank == 2;
  for (int i = 0; i < g.rank; ++i) {
    const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
    fits = fits && axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1 && axis.pad_begin <= 1 &&
           axis.effective_pad_end() <= 1;
  }
  if (!fits) return unsupported("Winograd needs 3x3 windows with stride 1 and padding of at most 1");
  return {};
}

/// Tiles of 4x4 results need the fewest multiplications, but oneDNN transforms their weights at every run;
/// for 2x2 it takes pre-transformed weights. Offered where they won by 1.2x to 3x against the direct
/// convolution (oneDNN 2.6, AVX-512, 32 to 512 channels): many points amortize the transform, few channels
/// never do.
template <Algorithm kAlgorithm>
Status pays_winograd(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_winograd(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  const bool constant = node.kind() == OpKind::Conv && node.inputs[1].value != nullptr;
  if (kAlgorithm == Algorithm::Winograd2x2 && !constant) return unsupported("the weights must be constant");
  const int64_t points = g.batch * g.axes[0].output * g.axes[1].output;
  const int64_t least = kAlgorithm == Algorithm::Winograd2x2 ? 49 : constant ? 2048 : 784;
  if (g.input_channels < 32 || g.output_channels < 32 || points < least)
    return unsupported("Winograd is not faster for ", g.input_channels, " to ", g.output_channels,
                       " channels at ", points, " output positions");
  return {};
}

/// Constant weights are better transformed once.
Status supports_cached(const CpuDevice& device, const NodeView& node) {
  RT_TRY(known_output_size(node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  if (node.kind() != OpKind::ConvWeightGrad && node.inputs[1].value != nullptr)
    return unsupported("the weights must not be constant");
  if (node.kind() == OpKind::Conv && node.as<op::ConvAttributes>().epilogue)
    return unsupported("no fused bias, residual or activation");
  if (node.kind() == OpKind::ConvTranspose && node.has(3)) return unsupported("no fused bias");
  return supports_winograd_cached(device, g);
}

Result<KernelPtr> create_cached(CpuDevice& device, const NodeView& node, Producers) {
  if constexpr (!kHasAvx512) return unsupported("this build has no AVX-512");  // and leaves out the rest
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  return make_winograd_cached(device, node.kind(), g);
}

Status supports_streamed(const CpuDevice& device, const NodeView& node) {
  if (node.inputs[1].value == nullptr) return unsupported("the weights must be constant");
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  return supports_streamed_conv(device, g);
}

/// Follows the layout of the data's producer where the blocked one is possible.
bool comes_blocked(const CpuDevice& device, const NodeView& node, Producers producers) {
  const bool both =
      node.kind() != OpKind::ConvWeightGrad || (producers.size() > 1 && producers[1] == kBlocked16);
  return !producers.empty() && producers[0] == kBlocked16 && both && supports_blocked(device, node).ok();
}

Result<KernelPtr> create_streamed(CpuDevice& device, const NodeView& node, Producers producers) {
  if constexpr (!kHasAvx512) return unsupported("this build has no AVX-512");  // and leaves out the rest
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  return make_streamed_conv(device, g, static_cast<const float*>(node.inputs[1].value),
                            node.as<op::ConvAttributes>().epilogue.get(),
                            epilogue_inputs<op::ConvAttributes>(node),
                            comes_blocked(device, node, producers) ? kBlocked16 : kDense);
}

/// Those with an exponential: on Cascade Lake oneDNN takes 0.95 ns for each Silu of f32 within a convolution,
/// our loop 0.62, and a pass over a large result costs less than the difference.
Status supports_late(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_direct(device, node));
  const auto& epilogue = node.as<op::ConvAttributes>().epilogue;
  const auto activation = epilogue ? epilogue->activation : op::Activation::None;
  switch (activation) {
    case op::Activation::Sigmoid:
    case op::Activation::Tanh:
    case op::Activation::Silu:
    case op::Activation::Gelu:
    case op::Activation::GeluTanh: return {};
    default:
      return unsupported("the activation costs nothing within the convolution: ",
                         op::EnumNameActivation(activation));
  }
}

/// oneDNN's kernel of a node's convolution.
Result<KernelPtr> make_direct(const CpuDevice& device, const NodeView& node,
                              onednn::Convolution convolution) {
  if (node.kind() == OpKind::ConvWeightGrad)
    return onednn::make_convolution_weight_gradient(device, convolution);
  convolution.constant_weight = node.inputs[1].value;
  if (node.kind() == OpKind::ConvTranspose) {
    if (node.has(3)) convolution.epilogue.bias_input = 3;
    return onednn::make_convolution_data_gradient(device, convolution);
  }
  if (const auto& epilogue = node.as<op::ConvAttributes>().epilogue) {
    const EpilogueInputs inputs = epilogue_inputs<op::ConvAttributes>(node);
    convolution.epilogue = {epilogue->activation, epilogue->alpha, epilogue->beta, inputs.bias,
                            inputs.residual};
  }
  return onednn::make_convolution(device, convolution);
}

template <Algorithm kAlgorithm, LayoutId kLayout, bool kLate = false>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  onednn::Convolution convolution;
  RT_ASSIGN(convolution.geometry, geometry_of(node));
  convolution.dtype = node.dtype(0);
  convolution.algorithm = kAlgorithm;
  convolution.late_activation = kLate;
  if (kLayout == kDense && convolution.dtype == DType::F32 && comes_blocked(device, node, producers)) {
    convolution.layout = kBlocked16;
    Result<KernelPtr> blocked = make_direct(device, node, convolution);
    if (blocked.ok() || blocked.status().code() != Code::Unsupported) return blocked;
  }
  convolution.layout = kLayout;
  return make_direct(device, node, convolution);
}

// --- own kernels

/// The epilogue of a node as a pass over its result.
struct Ending {
  EpilogueInputs inputs;
  Finish finish;

  Ending(const CpuDevice& device, const NodeView& node) {
    op::EpilogueAttributes epilogue;
    if (node.kind() == OpKind::Conv) {
      inputs = epilogue_inputs<op::ConvAttributes>(node);
      if (node.as<op::ConvAttributes>().epilogue) epilogue = *node.as<op::ConvAttributes>().epilogue;
    } else if (node.kind() == OpKind::ConvTranspose && node.has(3)) {
      inputs.bias = 3;
      epilogue.has_bias = true;
    }
    const Shape bias = inputs.bias >= 0 ? node.shape(static_cast<size_t>(inputs.bias)) : Shape{};
    finish = Finish(device.simd(), node.output(0).shape, &epilogue, bias);
  }
};

Result<KernelPtr> create_gemm(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  const Ending ending(device, node);
  const void* weight = node.kind() == OpKind::ConvWeightGrad ? nullptr : node.inputs[1].value;
  return make_conv_gemm(device, node.kind(), g, weight, ending.finish, ending.inputs);
}

/// Where oneDNN's fastest kernels were slower with AVX-512: for windows of 400 elements along one axis (a
/// short-time Fourier transform) by 2.6, for 512 channels with a stride of 2 by 1.2, for depthwise windows of
/// three axes by 1.5, for groups of 16 channels with 128 taps (wav2vec 2.0) by 1.4. It is faster with fewer
/// elements or without a stride.
Status supports_own(const CpuDevice& device, const NodeView& node) {
  if (std::string_view(device.simd().name) != "avx512") return unsupported("timed for AVX-512");
  RT_TRY(supports_gemm(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  const WindowAxis& axis = g.axes[static_cast<size_t>(g.rank - 1)];
  const int64_t taps = points_of(g, &WindowAxis::kernel), channels = g.input_channels_per_group(),
                window = taps * channels;
  bool faster = false;
  if (g.groups > 1)
    faster = is_depthwise(g) ? g.rank == 3 && taps < 64 : channels >= 8 && window >= 1024 && taps >= 64;
  else if (g.rank == 1 && axis.dilation == 1 && g.output_channels >= kBlock)
    faster = channels < kBlock ? window >= 160 : axis.stride > 1 && window >= 1024;
  if (!faster)
    return unsupported("not faster for windows of ", window, " elements on ", g.rank, " axes in ", g.groups,
                       " groups");
  return {};
}

Status supports_narrow(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_gemm(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  return supports_narrow_conv(device, g);
}

Result<KernelPtr> create_narrow(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  const Ending ending(device, node);
  return make_narrow_conv(device, g, ending.finish, ending.inputs);
}

Status supports_narrow_back(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_gemm(device, node));
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  return supports_narrow_transpose(device, g);
}

Result<KernelPtr> create_narrow_back(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  const Ending ending(device, node);
  return make_narrow_transpose(device, g, node.inputs[1].value, ending.finish, ending.inputs);
}

Status supports_winograd_own(const CpuDevice& device, const NodeView& node) {
  if (node.inputs[1].value == nullptr) return unsupported("the weights must be constant");
  if (supports_winograd(device, node).ok()) return unsupported("oneDNN's Winograd is as fast");
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  if (!has_work(g)) return unsupported("empty convolution: nothing to compute");
  return supports_winograd_tiles(g);  // the weights' bytes may still be of another type than the node's
}

Result<KernelPtr> create_winograd_own(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  const Ending ending(device, node);
  return make_winograd_tiles(device, g, static_cast<const float*>(node.inputs[1].value), ending.finish,
                             ending.inputs);
}

// --- plain loops, for corner cases

Result<KernelPtr> create_plain(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ConvGeometry g, geometry_of(node));
  return make_kernel([=, kind = node.kind(), ending = Ending(device, node)](const Call& call) noexcept {
    const auto operand = [&](int i) { return i >= 0 ? call.in<float>(static_cast<size_t>(i)) : nullptr; };
    convolve_plainly(kind, g, call.in<float>(0), call.in<float>(1), call.out<float>());
    ending.finish.run(call.out<float>(), operand(ending.inputs.bias), operand(ending.inputs.residual));
  });
}

Status supports_plain(const CpuDevice&, const NodeView& node) {
  return known_output_size(node);
}

constexpr DTypeSet kF32{DType::F32}, kBf16{DType::BF16};
#define RT_CONV(Name, name)                                                                                 \
  row<create<Algorithm::Direct, kDense>, supports_direct>(OpKind::Name, name, kF32, 10),                    \
      row<create<Algorithm::Direct, kDense>, supports_bf16>(OpKind::Name, name ".bf16", kBf16, 10),         \
      row<create<Algorithm::Direct, kBlocked16>, supports_blocked>(OpKind::Name, name ".blocked", kF32, 6), \
      row<create<Algorithm::Winograd4x4, kBlocked16>, pays_winograd<Algorithm::Winograd4x4>>(               \
          OpKind::Name, name ".winograd4x4", kF32, 13),                                                     \
      row<create_cached, supports_cached>(OpKind::Name, name ".winograd_cached", kF32, 14),                 \
      row<create_gemm, supports_gemm>(OpKind::Name, name ".gemm", kF32, kOwnLast ? -5 : 9),                 \
      row<create_plain, supports_plain>(OpKind::Name, name ".plain", kF32, -10)
template <bool kOwnLast>
constexpr KernelRow kRowsOfConv[] = {
    RT_CONV(Conv, "conv"),
    row<create<Algorithm::Winograd2x2, kBlocked16>, pays_winograd<Algorithm::Winograd2x2>>(
        OpKind::Conv, "conv.winograd2x2", kF32, 12),
    row<create_gemm, supports_own>(OpKind::Conv, "conv.own", kF32, 12),
    row<create_narrow, supports_narrow>(OpKind::Conv, "conv.narrow", kF32, 15),
    row<create_streamed, supports_streamed>(OpKind::Conv, "conv.streamed", kF32, 11),
    row<create_winograd_own, supports_winograd_own>(OpKind::Conv, "conv.winograd", kF32, 11),
    row<create<Algorithm::Direct, kDense, true>, supports_late>(OpKind::Conv, "conv.late", kF32, 5),
    RT_CONV(ConvTranspose, "conv_transpose"),
    row<create_narrow_back, supports_narrow_back>(OpKind::ConvTranspose, "conv_transpose.narrow", kF32, 15),
    RT_CONV(ConvWeightGrad, "conv_weight_grad"),
};
#undef RT_CONV

}  // namespace

std::span<const KernelRow> rows_conv();
std::span<const KernelRow> rows_conv() {
  return own_rows_last() ? rows_in_build<kRowsOfConv<true>>() : rows_in_build<kRowsOfConv<false>>();
}

}  // namespace librt::cpu
