// Matmuls and convolutions of 8-bit integers.
#include <cstring>
#include <limits>

#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/onednn/program.h"
#include "backends/cpu/simd/quantize.h"
#include "backends/cpu/support/window_sums.h"

namespace librt::cpu::onednn {

namespace {

using Type = dnnl::memory::data_type;
Type byte_type(bool is_signed) {
  return is_signed ? Type::s8 : Type::u8;
}

/// An 8-bit weight as s8 in the layout `plain`.
Tensor signed_weight(ProgramBuilder& builder, const CpuDevice& device, const Desc& plain, bool is_signed) {
  if (is_signed) return {input(1), plain};
  const Tensor flipped = builder.temporary(plain);
  const auto bytes = static_cast<int64_t>(plain.get_size());
  builder.call({input(1), flipped.location},
               [bytes, flip = device.simd().loops<QuantizeLoops>().flip_signs](std::byte* const* buffers) {
                 const auto* from = reinterpret_cast<const uint8_t*>(buffers[0]);
                 auto* to = reinterpret_cast<int8_t*>(buffers[1]);
                 parallel_for(bytes, 1, 4096, [&](int64_t begin, int64_t end) noexcept {
                   flip(from + begin, to + begin, end - begin);
                 });
               });
  return flipped;
}

void add_finish(ProgramBuilder& builder, const IntegerFinish& finish, const Location& sums, size_t inputs) {
  if (!finish.function) return;
  std::vector<Location> buffers{output(), builder.region(finish.scratch), sums};
  for (size_t i = 0; i < inputs; ++i) buffers.push_back(input(static_cast<int>(i)));
  builder.call(buffers, finish.function);
}

}  // namespace

bool exact_integer_matmuls() noexcept {
#if defined(__x86_64__)
  return uses_isa(dnnl::cpu_isa::avx512_core_vnni);  // those that DNNL_MAX_CPU_ISA leaves
#else
  return false;
#endif
}

Result<KernelPtr> make_matmul_integer(const CpuDevice& device, const IntegerMatMul& matmul) {
  return caught("this integer matmul", [&]() -> KernelPtr {
    const auto matrix = [](const std::vector<int64_t>& batch, int64_t rows, int64_t columns, Type type) {
      Dims dims(batch.begin(), batch.end());
      dims.insert(dims.end(), {rows, columns});
      return Desc(dims, type, dense_strides(dims));
    };
    const Desc a = matrix(matmul.a.batch, matmul.m, matmul.k, byte_type(matmul.a_signed));
    const Desc b = matrix(matmul.b.batch, matmul.k, matmul.n, Type::s8);
    const Desc y = matrix(matmul.batch, matmul.m, matmul.n, Type::s32);
    const bool pack = matmul.b.constant != nullptr;
    const auto desc = first_fast([&](bool plain_weights) {
      Desc weights = b;
      if (pack && !plain_weights) {
        Dims dims(matmul.b.batch.begin(), matmul.b.batch.end());
        dims.insert(dims.end(), {matmul.k, matmul.n});
        weights = Desc(dims, Type::s8, dnnl::memory::format_tag::any);
      }
      return describe<dnnl::matmul>(engine(), user_scratchpad(), a, weights, y);
    });
    ProgramBuilder builder;
    const Tensor weights =
        pack ? builder.packed(1, b, desc.weights_desc(), matmul.b.constant, {}, !matmul.b_signed)
             : signed_weight(builder, device, b, matmul.b_signed);
    builder.add(made<dnnl::matmul>(desc),
                {{DNNL_ARG_SRC, {input(0), a}}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, {output(), y}}},
                desc.scratchpad_desc());
    add_finish(builder, matmul.finish, output(), matmul.inputs);
    return builder.build({});
  });
}

namespace {

/// A copy of x in scratch, padded with the zero point in input `zero`; removes the padding of g's axes.
Tensor padded_input(ProgramBuilder& builder, ConvGeometry& g, Type type, int zero) {
  const ConvGeometry from = g;
  Dims dims{g.batch};
  for (int i = 0; i < g.rank; ++i) {
    WindowAxis& axis = g.axes[static_cast<size_t>(i)];
    axis.input += axis.pad_begin + std::max<int64_t>(axis.effective_pad_end(), 0);
    axis.pad_begin = axis.pad_end = 0;
    dims.push_back(axis.input);
  }
  dims.push_back(g.input_channels);
  const Tensor padded = builder.temporary(channels_last(dims, false, type));
  builder.call({input(0), input(zero), padded.location}, [from, to = g](std::byte* const* buffers) {
    // Lines of the padded image along the last spatial axis; where one is inside the image, its middle is
    // copied.
    const auto at = [](const ConvGeometry& of, int axis) -> const WindowAxis& {
      return of.axes[static_cast<size_t>(axis)];
    };
    const int last = to.rank - 1;
    const int64_t channels = to.input_channels, line = at(to, last).input * channels;
    const int64_t lines = line == 0 ? 0 : to.input_shape().elements() / line;
    parallel_for(lines, line, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        std::byte* target = buffers[2] + i * line;
        std::memset(target, std::to_integer<int>(*buffers[1]), static_cast<size_t>(line));
        int64_t rest = i, source = 0, step = 1;
        bool inside = true;
        for (int axis = last - 1; axis >= 0; --axis) {
          const int64_t position = rest % at(to, axis).input - at(from, axis).pad_begin;
          rest /= at(to, axis).input;
          inside = inside && position >= 0 && position < at(from, axis).input;
          source += position * step;
          step *= at(from, axis).input;
        }
        const int64_t length = at(from, last).input * channels;
        if (inside)
          std::memcpy(target + at(from, last).pad_begin * channels,
                      buffers[0] + (rest * step + source) * length, static_cast<size_t>(length));
      }
    });
  });
  return padded;
}

ConvDescs integer_descs(const ConvGeometry& g, Type x_type) {
  return conv_descs(g, {x_type, Type::s8, Type::s32});
}

/// weight_of(plain, wanted) returns the weights.
template <class WeightOf>
void add_integer_convolution(ProgramBuilder& builder, const ConvGeometry& g, const Tensor& x, Type x_type,
                             const Location& result, const WeightOf& weight_of) {
  const ConvDescs d = integer_descs(g, x_type);
  const auto desc = describe<dnnl::convolution_forward>(
      engine(), user_scratchpad(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      d.x, any_of(d.weight, Type::s8), d.y, d.strides, d.dilations, d.pads_begin, d.pads_end);
  const Tensor weight = weight_of(d.weight, desc.weights_desc());
  builder.add(made<dnnl::convolution_forward>(desc),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, {result, d.y}}},
              desc.scratchpad_desc());
}

}  // namespace

Result<KernelPtr> make_convolution_integer(const CpuDevice& device, const IntegerConvolution& convolution) {
  return caught("this integer convolution", [&]() -> KernelPtr {
    ProgramBuilder builder;
    ConvGeometry g = convolution.geometry;
    const Type type = byte_type(convolution.x_signed);
    const Tensor x = convolution.pad_with_zero_point ? padded_input(builder, g, type, 2)
                                                     : Tensor{input(0), integer_descs(g, type).x};
    add_integer_convolution(builder, g, x, type, output(), [&](const Desc& plain, const Desc& wanted) {
      if (convolution.constant_weight != nullptr)
        return builder.packed(1, plain, wanted, convolution.constant_weight, {}, !convolution.weight_signed);
      return builder.converted(signed_weight(builder, device, plain, convolution.weight_signed), wanted);
    });
    Location sums = output();
    if (convolution.window_sums) {
      const WindowSums windows(device.simd(), g, convolution.x_signed);
      const Location places[] = {builder.region(windows.buffer_bytes()),
                                 builder.region(windows.buffer_bytes())};
      builder.call({x.location, places[0], places[1]}, [windows](std::byte* const* buffers) {
        windows.run(buffers[0],
                    {reinterpret_cast<int32_t*>(buffers[1]), reinterpret_cast<int32_t*>(buffers[2])});
      });
      sums = places[windows.result()];
    }
    add_finish(builder, convolution.finish, sums, convolution.inputs);
    return builder.build({});
  });
}

namespace {

/// Scales and bias in oneDNN's form, and the matching attributes.
struct Scaling {
  std::vector<float> factors, bias;
  dnnl::primitive_attr attributes = user_scratchpad();
  Type y_type = Type::f32;
};

/// Clamping activations become bounds on the quantized result, and the zero point part of the bias; after any
/// other activation a separate post-operation scales the result. No two post-operations are of one algorithm:
/// oneDNN 2.6 computes the second one with the first one's constants.
Scaling scaling_of(const Requantization& last, int result_mask, int weights_mask) {
  using dnnl::algorithm;
  using op::Activation;
  Scaling scaling;
  dnnl::post_ops operations;
  const bool whole = last.y_type != DType::F32;
  const float low = last.y_type == DType::I8 ? -128.0f : 0.0f, high = low + 255.0f;
  const bool bounds = last.activation == Activation::None || last.activation == Activation::Relu ||
                      last.activation == Activation::Clip;
  const auto zero = static_cast<float>(last.y_zero);
  const float y_scale = whole && bounds ? last.y_scale : 1.0f, offset = whole && bounds ? zero : 0.0f;
  scaling.y_type = last.y_type == DType::F32 ? Type::f32 : byte_type(last.y_type == DType::I8);
  for (size_t i = 0; i < last.scale.size(); ++i) {
    const float factor = last.scale[i] / y_scale, bias = last.bias[i] / y_scale + offset;
    scaling.factors.push_back(factor);
    scaling.bias.push_back(kBiasIsScaled ? bias / factor : bias);
  }
  if (bounds && last.activation != Activation::None) {
    const bool relu = last.activation == Activation::Relu;
    const float least = relu ? offset : last.alpha / y_scale + offset;
    const float most = relu ? std::numeric_limits<float>::max() : last.beta / y_scale + offset;
    if (!whole || least > low || most < high)
      append_eltwise(operations, algorithm::eltwise_clip, least, most);
  }
  if (whole && last.activation == Activation::HardSigmoid) {
    append_eltwise(operations, algorithm::eltwise_linear, last.alpha / last.y_scale,
                   last.beta / last.y_scale + zero);
    append_eltwise(operations, algorithm::eltwise_clip, zero, 1 / last.y_scale + zero);
  } else if (!bounds) {
    append_activation(operations, last.activation, last.alpha, last.beta);
    if (whole) append_eltwise(operations, algorithm::eltwise_linear, 1 / last.y_scale, zero);
  }
  scaling.attributes.set_post_ops(operations);
  set_factors(scaling.attributes, result_mask, weights_mask, scaling.factors);
  return scaling;
}

using Arguments = std::vector<std::pair<int, Tensor>>;

void add_scaled(ProgramBuilder& builder, Arguments& arguments, const Scaling& scaling,
                const Dims& bias_dims) {
  arguments.push_back({DNNL_ARG_BIAS, builder.numbers(scaling.bias, bias_dims)});
  if (!kBiasIsScaled)
    arguments.push_back(
        {kFactorsArgument, builder.numbers(scaling.factors, {static_cast<int64_t>(scaling.factors.size())})});
}

}  // namespace

Result<KernelPtr> make_quantized_matmul(const IntegerMatMul& matmul, const Requantization& last) {
  return caught("this quantized matmul", [&]() -> KernelPtr {
    const auto matrix = [](int64_t rows, int64_t columns, Type type) {
      const Dims dims{rows, columns};
      return Desc(dims, type, dense_strides(dims));
    };
    const Scaling scaling = scaling_of(last, 1 << 1, 1 << 1);
    const Desc a = matrix(matmul.m, matmul.k, byte_type(matmul.a_signed));
    const Desc b = matrix(matmul.k, matmul.n, Type::s8);
    const Desc y = matrix(matmul.m, matmul.n, scaling.y_type);
    const Desc bias = matrix(1, matmul.n, kF32);
    const auto desc = first_fast([&](bool plain_weights) {
      const Desc weights = plain_weights ? b : any_of(b, Type::s8);
      return describe<dnnl::matmul>(engine(), scaling.attributes, a, weights, bias, y);
    });
    ProgramBuilder builder;
    Arguments arguments{{DNNL_ARG_SRC, {input(0), a}},
                        {DNNL_ARG_WEIGHTS, builder.packed(1, b, desc.weights_desc(), matmul.b.constant)},
                        {DNNL_ARG_DST, {output(), y}}};
    add_scaled(builder, arguments, scaling, {1, matmul.n});
    builder.add(made<dnnl::matmul>(desc), std::move(arguments), desc.scratchpad_desc());
    return builder.build({});
  });
}

Result<KernelPtr> make_quantized_convolution(const IntegerConvolution& convolution,
                                             const Requantization& last) {
  return caught("this quantized convolution", [&]() -> KernelPtr {
    ProgramBuilder builder;
    ConvGeometry g = convolution.geometry;
    const Type x_type = byte_type(convolution.x_signed);
    const Scaling scaling = scaling_of(last, 1 << 1, g.groups > 1 ? 3 : 1);
    const ConvTypes types{x_type, Type::s8, scaling.y_type};
    const Tensor x = convolution.pad_with_zero_point ? padded_input(builder, g, x_type, 3)
                                                     : Tensor{input(0), conv_descs(g, types).x};
    const ConvDescs d = conv_descs(g, types);
    const Desc bias({g.output_channels}, kF32, dnnl::memory::format_tag::x);
    const auto desc = describe<dnnl::convolution_forward>(
        engine(), scaling.attributes, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        d.x, any_of(d.weight, Type::s8), bias, d.y, d.strides, d.dilations, d.pads_begin, d.pads_end);
    Arguments arguments{
        {DNNL_ARG_SRC, x},
        {DNNL_ARG_WEIGHTS, builder.packed(1, d.weight, desc.weights_desc(), convolution.constant_weight)},
        {DNNL_ARG_DST, {output(), d.y}}};
    add_scaled(builder, arguments, scaling, {g.output_channels});
    builder.add(made<dnnl::convolution_forward>(desc), std::move(arguments), desc.scratchpad_desc());
    return builder.build({});
  });
}

}  // namespace librt::cpu::onednn
