#include "backends/cpu/onednn/kernels.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backends/cpu/onednn/program.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/support/conv_shape.h"

namespace librt::cpu::onednn {
namespace {

// --- descriptions
// -------------------------------------------------------------------------------------------

dnnl::primitive_attr attributes_for(const Epilogue& epilogue, bool with_activation = true) {
  dnnl::post_ops operations;
  if (epilogue.residual_input >= 0) operations.append_sum(1.0f);
  if (with_activation) append_activation(operations, epilogue.activation, epilogue.alpha, epilogue.beta);
  dnnl::primitive_attr attributes = user_scratchpad();
  attributes.set_post_ops(operations);
  return attributes;
}

/// The sum post-operation adds to what the result already holds: the residual, by sharing its memory or by a
/// copy.
void add_residual(ProgramBuilder& builder, const Epilogue& epilogue, size_t bytes) {
  if (epilogue.residual_input < 0) return;
  builder.requirements().in_place = InPlace{static_cast<uint8_t>(epilogue.residual_input), 0};
  builder.call({input(epilogue.residual_input), output()}, [bytes](std::byte* const* buffers) {
    if (buffers[0] == buffers[1]) return;
    parallel_for(static_cast<int64_t>(bytes), 1, 4096, [&](int64_t begin, int64_t end) noexcept {
      std::memcpy(buffers[1] + begin, buffers[0] + begin, static_cast<size_t>(end - begin));
    });
  });
}

/// An operand of a matmul or convolution, and its value where constant.
struct Factor {
  int input = 0;
  int64_t elements = 0;
  const void* constant = nullptr;
};

int64_t elements_of(const Desc& desc) {
  int64_t count = 1;
  for (const int64_t extent : dims_of(desc)) count *= extent;
  return count;
}

std::vector<Factor> factors_of(const Epilogue& epilogue, int64_t x, const Factor& weight, int64_t channels,
                               int64_t y) {
  std::vector<Factor> factors{{.input = 0, .elements = x}, weight};
  if (epilogue.bias_input >= 0) factors.push_back({.input = epilogue.bias_input, .elements = channels});
  if (epilogue.residual_input >= 0) factors.push_back({.input = epilogue.residual_input, .elements = y});
  return factors;
}

void add_activation(ProgramBuilder& builder, const CpuDevice& device, const Epilogue& epilogue, DType dtype,
                    const Tensor& y, When when) {
  const auto count = static_cast<int64_t>(y.desc.get_size() / size_of(dtype));
  builder.call(
      {y.location},
      [=, &simd = device.simd()](std::byte* const* buffers) {
        activate(simd, dtype, epilogue.activation, epilogue.alpha, epilogue.beta, buffers[0], count);
      },
      when);
}

/// Adds the primitive `fused`, which ends with the epilogue's activation. oneDNN's max and min lose NaN: the
/// operands are tested first, and where one is not finite, the primitive without activation, described by
/// `plain`, runs instead, followed by our own activation loop. (NaN that arises from finite operands, where
/// accumulators overflow to infinities of both signs, is lost.)
template <class Primitive, class Fused, class Plain>
void add_primitive(ProgramBuilder& builder, const CpuDevice& device, const Epilogue& epilogue, DType dtype,
                   const Fused& fused, const Plain& plain, const std::vector<Factor>& factors,
                   const std::vector<std::pair<int, Tensor>>& arguments, const Tensor& y) {
  if (!bounds_values(epilogue.activation))
    return builder.add(made<Primitive>(fused), arguments, fused.scratchpad_desc());
  bool finite = true;
  for (const Factor& factor : factors) {
    if (factor.constant != nullptr)
      finite = finite && all_finite(dtype, static_cast<const std::byte*>(factor.constant), factor.elements);
    else
      builder.test({input(factor.input)}, [dtype, count = factor.elements](std::byte* const* buffers) {
        return all_finite(dtype, buffers[0], count);
      });
  }
  if (finite) builder.add(made<Primitive>(fused), arguments, fused.scratchpad_desc(), When::AllFinite);
  const When otherwise = finite ? When::NotFinite : When::Always;
  const auto desc = plain();
  builder.add(made<Primitive>(desc), arguments, desc.scratchpad_desc(), otherwise);
  add_activation(builder, device, epilogue, dtype, y, otherwise);
}

Desc blocked(const Desc& desc) {
  using Tag = dnnl::memory::format_tag;
  const Dims dims = dims_of(desc);
  return Desc(dims, kF32, dims.size() == 3 ? Tag::nCw16c : dims.size() == 4 ? Tag::nChw16c : Tag::nCdhw16c);
}

dnnl::memory::data_type data_type_of(DType dtype) {
  return dtype == DType::BF16 ? dnnl::memory::data_type::bf16 : kF32;
}

/// The descriptors of a convolution in its dtype and layout.
ConvDescs descs_of(const Convolution& convolution) {
  const auto type = data_type_of(convolution.dtype);
  ConvDescs descs = conv_descs(convolution.geometry, {type, type, type});
  if (convolution.layout != kBlocked16) return descs;
  descs.x = blocked(descs.x);
  descs.y = blocked(descs.y);
  return descs;
}

dnnl::algorithm algorithm_of(const Convolution& convolution) {
  return convolution.algorithm == Algorithm::Direct ? dnnl::algorithm::convolution_direct
                                                    : dnnl::algorithm::convolution_winograd;
}

/// The primitive descriptor of the forward convolution, also the hint for backward ones.
dnnl::convolution_forward::primitive_desc forward_desc(const Convolution& convolution, const ConvDescs& d,
                                                       dnnl::prop_kind kind, bool free_layouts,
                                                       const Desc* bias,
                                                       const dnnl::primitive_attr& attributes) {
  const Desc x = free_layouts ? any_of(d.x) : d.x, y = free_layouts ? any_of(d.y) : d.y,
             weight = any_of(d.weight);
  if (bias != nullptr)
    return describe<dnnl::convolution_forward>(engine(), attributes, kind, algorithm_of(convolution), x,
                                               weight, *bias, y, d.strides, d.dilations, d.pads_begin,
                                               d.pads_end);
  return describe<dnnl::convolution_forward>(engine(), attributes, kind, algorithm_of(convolution), x, weight,
                                             y, d.strides, d.dilations, d.pads_begin, d.pads_end);
}

/// The weights as `wanted`: packed when they are constant, else reordered at every run.
Tensor weight_tensor(ProgramBuilder& builder, const Convolution& convolution, const Desc& plain,
                     const Desc& wanted) {
  if (convolution.constant_weight != nullptr) {
    // oneDNN transforms weights to the Winograd domain from [O,I,K..] only.
    std::optional<Desc> through;
    if (convolution.algorithm == Algorithm::Winograd2x2)
      through = Desc(dims_of(plain), kF32, dnnl::memory::format_tag::oihw);
    return builder.packed(1, plain, wanted, convolution.constant_weight, through);
  }
  return builder.converted({input(1), plain}, wanted);
}

}  // namespace

Status usable_for(const ConvGeometry& geometry) {
  RT_TRY(usable());
  for (int i = 0; i < geometry.rank; ++i)
    if (geometry.axes[static_cast<size_t>(i)].may_miss())
      return unsupported("a window may lie in the padding altogether");
  return {};
}

Status usable_for_weight_gradient(const ConvGeometry& geometry) {
  RT_TRY(usable_for(geometry));
  constexpr int64_t kMostLanes = 16;
  bool is_point = true, has_stride = false;
  for (int i = 0; i < geometry.rank; ++i) {
    is_point = is_point && geometry.axes[static_cast<size_t>(i)].kernel == 1;
    has_stride = has_stride || geometry.axes[static_cast<size_t>(i)].stride != 1;
  }
  if (is_point && has_stride && geometry.input_channels / geometry.groups < kMostLanes)
    return unsupported("oneDNN may overrun its scratchpad with a stride and fewer than 16 channels");
  return {};
}

namespace {

/// Whether the OS lets this process make written memory executable. SELinux, systemd's
/// MemoryDenyWriteExecute and other filters of system calls may not.
bool may_generate_code() noexcept {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return true;  // no memory, which is said elsewhere
  static_cast<volatile char*>(page)[0] = 0;
  const bool may = mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0 || (errno != EACCES && errno != EPERM);
  munmap(page, bytes);
  return may;
}

}  // namespace

Status usable() {
  static const bool may = may_generate_code();
  if (may) return {};
  return unsupported(
      "oneDNN generates code, which the OS does not let this process do (SELinux, MemoryDenyWriteExecute)");
}

std::string version() {
  if (!usable().ok()) return "own kernels (no code may be generated for oneDNN)";
  const dnnl_version_t* loaded = dnnl_version();
  return text("oneDNN ", loaded->major, ".", loaded->minor, ".", loaded->patch);
}

bool has_winograd() {
  const dnnl_version_t* loaded = dnnl_version();
  return loaded->major < 3 || (loaded->major == 3 && loaded->minor < 2);
}

bool has_bf16() noexcept {
  return uses_isa(dnnl::cpu_isa::avx512_core_bf16);
}

Result<KernelPtr> make_matmul(const CpuDevice& device, const MatMul& matmul) {
  return caught("this matmul", [&]() -> KernelPtr {
    const auto type = data_type_of(matmul.dtype);
    const auto matrix = [type](const Matrix& of, int64_t rows, int64_t columns) {
      Dims dims(of.batch.begin(), of.batch.end());
      dims.push_back(of.transposed ? columns : rows);
      dims.push_back(of.transposed ? rows : columns);
      Dims strides = dense_strides(dims);
      if (of.transposed) {
        std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
        std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
      }
      return Desc(dims, type, strides);
    };
    const Desc a = matrix(matmul.a, matmul.m, matmul.k), b = matrix(matmul.b, matmul.k, matmul.n);
    const Desc y = matrix({matmul.batch, false, nullptr}, matmul.m, matmul.n);
    const Epilogue& epilogue = matmul.epilogue;
    const auto attributes = attributes_for(epilogue);
    const bool pack = matmul.b.constant != nullptr;
    Dims bias_dims(matmul.batch.size() + 1, 1);
    bias_dims.push_back(matmul.n);
    const Desc bias(bias_dims, type, dense_strides(bias_dims));
    const auto desc = first_fast([&](bool plain_weights) {
      const Desc weights = pack && !plain_weights ? any_of(b) : b;
      if (epilogue.bias_input >= 0) return describe<dnnl::matmul>(engine(), attributes, a, weights, bias, y);
      return describe<dnnl::matmul>(engine(), attributes, a, weights, y);
    });
    ProgramBuilder builder;
    add_residual(builder, epilogue, y.get_size());
    const Tensor weights =
        pack ? builder.packed(1, b, desc.weights_desc(), matmul.b.constant) : Tensor{input(1), b};
    std::vector<std::pair<int, Tensor>> arguments{
        {DNNL_ARG_SRC, {input(0), a}}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, {output(), y}}};
    if (epilogue.bias_input >= 0) arguments.push_back({DNNL_ARG_BIAS, {input(epilogue.bias_input), bias}});
    const auto plain = [&] {
      const auto without = attributes_for(epilogue, false);
      const Desc same = desc.weights_desc();
      if (epilogue.bias_input >= 0) return describe<dnnl::matmul>(engine(), without, a, same, bias, y);
      return describe<dnnl::matmul>(engine(), without, a, same, y);
    };
    add_primitive<dnnl::matmul>(builder, device, epilogue, matmul.dtype, desc, plain,
                                factors_of(epilogue, elements_of(a), {1, elements_of(b), matmul.b.constant},
                                           matmul.n, elements_of(y)),
                                arguments, {output(), y});
    if (matmul.finish) {
      const EpilogueInputs inputs = matmul.finish->inputs;
      std::vector<Location> buffers{output()};
      if (inputs.bias >= 0) buffers.push_back(input(inputs.bias));
      if (inputs.residual >= 0) buffers.push_back(input(inputs.residual));
      builder.call(buffers, [finish = matmul.finish->finish, inputs](std::byte* const* at) {
        auto* result = reinterpret_cast<float*>(*at++);
        const auto* row = inputs.bias >= 0 ? reinterpret_cast<const float*>(*at++) : nullptr;
        finish.run(result, row, inputs.residual >= 0 ? reinterpret_cast<const float*>(*at) : nullptr);
      });
    }
    return builder.build({});
  });
}

namespace {

/// Reference loops are refused in f32, where our own kernels take every convolution: with blocked channels
/// and a dilation of 24 oneDNN has nothing else, and timing it once for 960 to 256 channels took a minute.
template <class PrimitiveDesc>
Status check_speed(const PrimitiveDesc& desc, const Convolution& convolution) {
  if (convolution.dtype != DType::F32 || !is_reference(desc)) return {};
  return unsupported("oneDNN has only its reference implementation of this convolution");
}

/// Whether our own loop over the result applies the activation: the primitives of Winograd's convolutions end
/// with Relu or nothing.
bool ends_late(const Convolution& convolution) {
  const op::Activation activation = convolution.epilogue.activation;
  return convolution.late_activation ||
         (convolution.algorithm != Algorithm::Direct && activation != op::Activation::None &&
          activation != op::Activation::Relu);
}

}  // namespace

Result<KernelPtr> make_convolution(const CpuDevice& device, const Convolution& whole) {
  return caught("this convolution", [&]() -> Result<KernelPtr> {
    const ReachingTaps taps = reaching_taps(whole.geometry);
    Convolution convolution = whole;
    convolution.geometry = taps.geometry;
    ConvDescs d = descs_of(convolution);
    const Desc whole_weight = descs_of(whole).weight;
    Dims first(dims_of(d.weight).size(), 0);
    std::copy_n(taps.first.begin(), taps.geometry.rank, first.end() - taps.geometry.rank);
    d.weight = whole_weight.submemory_desc(dims_of(d.weight), first);
    const Epilogue& epilogue = convolution.epilogue;
    const auto attributes = attributes_for(epilogue, !ends_late(convolution));
    const Desc bias({convolution.geometry.output_channels}, data_type_of(convolution.dtype),
                    dnnl::memory::format_tag::x);
    // A residual must be in the result's layout, so oneDNN cannot choose that layout. The propagation kind
    // selects between oneDNN's two Winograd convolutions.
    const auto kind = convolution.algorithm == Algorithm::Winograd4x4 ? dnnl::prop_kind::forward_training
                                                                      : dnnl::prop_kind::forward_inference;
    const bool fixed = convolution.layout == kBlocked16 || epilogue.residual_input >= 0;
    const auto desc = first_fast([&](bool free_layouts) {
      return forward_desc(convolution, d, kind, free_layouts && !fixed,
                          epilogue.bias_input >= 0 ? &bias : nullptr, attributes);
    });
    RT_TRY(check_speed(desc, convolution));
    ProgramBuilder builder;
    add_residual(builder, epilogue, d.y.get_size());
    const Tensor x = builder.converted({input(0), d.x}, desc.src_desc());
    const Tensor weight = weight_tensor(builder, convolution, d.weight, desc.weights_desc());
    const Tensor y = builder.output_for({output(), d.y}, desc.dst_desc());
    std::vector<std::pair<int, Tensor>> arguments{
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, y}};
    if (epilogue.bias_input >= 0) arguments.push_back({DNNL_ARG_BIAS, {input(epilogue.bias_input), bias}});
    const auto plain = [&] {
      const auto without = attributes_for(epilogue, false);
      if (epilogue.bias_input >= 0)
        return describe<dnnl::convolution_forward>(engine(), without, kind, algorithm_of(convolution),
                                                   Desc(desc.src_desc()), Desc(desc.weights_desc()), bias,
                                                   Desc(desc.dst_desc()), d.strides, d.dilations,
                                                   d.pads_begin, d.pads_end);
      return describe<dnnl::convolution_forward>(
          engine(), without, kind, algorithm_of(convolution), Desc(desc.src_desc()),
          Desc(desc.weights_desc()), Desc(desc.dst_desc()), d.strides, d.dilations, d.pads_begin, d.pads_end);
    };
    if (ends_late(convolution)) {
      builder.add(made<dnnl::convolution_forward>(desc), arguments, desc.scratchpad_desc());
      add_activation(builder, device, epilogue, convolution.dtype, y, When::Always);
    } else {
      add_primitive<dnnl::convolution_forward>(
          builder, device, epilogue, convolution.dtype, desc, plain,
          factors_of(epilogue, elements_of(d.x), {1, elements_of(whole_weight), convolution.constant_weight},
                     convolution.geometry.output_channels, elements_of(d.y)),
          arguments, y);
    }
    builder.finish_output(y, {output(), d.y});
    const uint32_t residual = epilogue.residual_input >= 0 ? 1u << epilogue.residual_input : 0u;
    return builder.build({convolution.layout, 1u | residual, 1u});
  });
}

/// The convolution without the end of an axis that no window reaches, where oneDNN refuses that end: from a
/// stride on. A shorter end stays (the last row and column of a 1x1 convolution with stride 2): the fast
/// kernels handle it, and none of them takes data with gaps between rows. Null where no window reaches any.
std::optional<Convolution> without_unreached_end(Convolution convolution) {
  for (int i = 0; i < convolution.geometry.rank; ++i) {
    WindowAxis& axis = convolution.geometry.axes[static_cast<size_t>(i)];
    const int64_t end = axis.effective_pad_end();
    if (end <= -axis.stride) axis.input += end;
    if (axis.input < 1) return std::nullopt;
  }
  return convolution;
}

/// The data gradient of `reached`, into the begin of each axis of the data of `whole`.
Status add_data_gradient(ProgramBuilder& builder, const Convolution& whole, const Convolution& reached) {
  ConvDescs d = descs_of(reached);
  d.x = descs_of(whole).x.submemory_desc(dims_of(d.x), Dims(dims_of(d.x).size(), 0));
  const auto desc = first_fast([&](bool free_layouts) {
    const bool free = free_layouts && reached.layout != kBlocked16;
    const auto hint =
        forward_desc(reached, d, dnnl::prop_kind::forward_training, free, nullptr, user_scratchpad());
    return describe_backward<dnnl::convolution_backward_data>(
        engine(), user_scratchpad(), hint, algorithm_of(reached), free ? any_of(d.x) : d.x, any_of(d.weight),
        free ? any_of(d.y) : d.y, d.strides, d.dilations, d.pads_begin, d.pads_end);
  });
  RT_TRY(check_speed(desc, reached));
  const Tensor grad = builder.converted({input(0), d.y}, desc.diff_dst_desc());
  const Tensor weight = weight_tensor(builder, reached, d.weight, desc.weights_desc());
  const Tensor x = builder.output_for({output(), d.x}, desc.diff_src_desc());
  builder.add(made<dnnl::convolution_backward_data>(desc),
              {{DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, x}},
              desc.scratchpad_desc());
  builder.finish_output(x, {output(), d.x});
  return {};
}

/// Adds a ConvTranspose's bias to its result.
void add_channel_bias(ProgramBuilder& builder, const CpuDevice& device, const Convolution& convolution) {
  const int bias = convolution.epilogue.bias_input;
  if (bias < 0) return;
  const int64_t channels = convolution.geometry.input_channels;
  const int64_t points = convolution.geometry.input_shape().elements() / std::max<int64_t>(channels, 1);
  const auto add = device.simd().loops<RowLoops>().accumulate[static_cast<int>(ReduceFunction::Sum)];
  builder.call({input(bias), output()}, [=](std::byte* const* buffers) {
    const auto* from = reinterpret_cast<const float*>(buffers[0]);
    auto* to = reinterpret_cast<float*>(buffers[1]);
    parallel_for(points, channels, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) add(to + i * channels, from, channels);
    });
  });
}

Result<KernelPtr> make_convolution_data_gradient(const CpuDevice& device, const Convolution& convolution) {
  return caught("this transposed convolution", [&]() -> Result<KernelPtr> {
    ProgramBuilder builder;
    const std::optional<Convolution> reached = without_unreached_end(convolution);
    if (!reached || reached->geometry.input_shape() != convolution.geometry.input_shape()) {
      const Desc whole = descs_of(convolution).x;
      builder.call({output()},
                   [bytes = whole.get_size()](std::byte* const* y) { std::memset(y[0], 0, bytes); });
    }
    if (reached) RT_TRY(add_data_gradient(builder, convolution, *reached));
    add_channel_bias(builder, device, convolution);
    return builder.build({convolution.layout, 1u, 1u});
  });
}

Result<KernelPtr> make_convolution_weight_gradient(const CpuDevice&, const Convolution& convolution) {
  return caught("this convolution's weight gradient", [&]() -> Result<KernelPtr> {
    const ConvDescs d = descs_of(convolution);
    const auto desc = first_fast([&](bool free_layouts) {
      const bool free = free_layouts && convolution.layout != kBlocked16;
      const auto hint =
          forward_desc(convolution, d, dnnl::prop_kind::forward_training, free, nullptr, user_scratchpad());
      return describe_backward<dnnl::convolution_backward_weights>(
          engine(), user_scratchpad(), hint, algorithm_of(convolution), free ? any_of(d.x) : d.x,
          any_of(d.weight), free ? any_of(d.y) : d.y, d.strides, d.dilations, d.pads_begin, d.pads_end);
    });
    RT_TRY(check_speed(desc, convolution));
    ProgramBuilder builder;
    const Tensor x = builder.converted({input(0), d.x}, desc.src_desc());
    const Tensor grad = builder.converted({input(1), d.y}, desc.diff_dst_desc());
    const Tensor weight = builder.output_for({output(), d.weight}, desc.diff_weights_desc());
    builder.add(made<dnnl::convolution_backward_weights>(desc),
                {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_DIFF_WEIGHTS, weight}},
                desc.scratchpad_desc());
    builder.finish_output(weight, {output(), d.weight});
    return builder.build({convolution.layout, 3u, 0u});
  });
}

}  // namespace librt::cpu::onednn
