// Fused quantized operators: 8-bit matmuls and convolutions with their requantization, where all scales and
// zero points are constants, by oneDNN with AVX-512 VNNI, by our own GEMM and Winograd convolution elsewhere;
// and elementwise passes over 8-bit tensors.
//
// oneDNN: the zero point of x is folded into the bias: sum (x - zx) w = sum x w - zx sum w.
#include "runtime/geometry/matmul.h"
#include "runtime/geometry/quantization.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/quantize.h"
#include "backends/cpu/simd/quantized.h"
#include "backends/cpu/simd/reduce.h"
#include "backends/cpu/support/conv_integer_gemm.h"
#include "backends/cpu/support/conv_shape.h"
#include "backends/cpu/support/epilogue.h"
#include "backends/cpu/support/integer_gemm.h"
#include "backends/cpu/support/integer_winograd.h"
#include "backends/cpu/support/own_rows.h"
#include "backends/cpu/support/packing_kernel.h"
#include "backends/cpu/support/requantize.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/core/element.h"

namespace librt::cpu {
namespace {

constexpr DTypeSet kBytes{DType::U8, DType::I8};

bool is_signed(DType dtype) {
  return dtype == DType::I8;
}
size_t table_index(DType dtype) {
  return is_signed(dtype) ? 0 : 1;
}

int code_of(DType dtype) {
  return static_cast<int>(is_signed(dtype) ? IntegerCode::I8 : IntegerCode::U8);
}

// --- matmul and convolution

/// The value of a constant zero point of one element; 0 where it is absent.
int32_t known_zero_point(const NodeView& node, size_t i) {
  if (!node.has(i)) return 0;
  return static_cast<int32_t>(load_integer(node.inputs[i].value, node.dtype(i), 0));
}

Status supports_own(const CpuDevice&, const NodeView& node) {
  if (node.output(0).elements() == 0 || node.input(0).elements() == 0 || node.input(1).elements() == 0)
    return unsupported("empty operands: nothing to compute");
  for (size_t i = 1; i < node.input_count(); ++i)
    if (node.has(i) && node.inputs[i].value == nullptr)
      return unsupported("weights, scales and zero points must be constants");
  if (node.has(3) && node.input(3).elements() != 1)
    return unsupported("per-row zero points are not supported");
  const auto normal = [&](size_t i) {
    for (int64_t k = 0; node.has(i) && k < node.input(i).elements(); ++k)
      if (!std::isnormal(load_element(node.inputs[i].value, DType::F32, k))) return false;
    return true;
  };
  if (!normal(2) || !normal(5)) return unsupported("a scale is 0 or not finite");
  for (int64_t k = 0; node.has(4) && k < node.input(4).elements(); ++k)
    if (!std::isfinite(load_element(node.inputs[4].value, DType::F32, k)))
      return unsupported("a bias is not finite");
  if (node.kind() == OpKind::QuantizedMatMul && node.shape(1).elements(0, node.shape(1).rank() - 2) != 1)
    return unsupported("batched weights are not supported");
  return {};
}

Status supports_matmul(const CpuDevice& device, const NodeView& node) {
  RT_TRY(onednn::usable());
  if (!onednn::exact_integer_matmuls()) return unsupported("exact 8-bit arithmetic needs AVX-512 VNNI");
  return supports_own(device, node);
}

/// weight_sum(channel): the sum of a channel's weights where the zero point of x goes into the bias, else 0.
template <class Attributes, class WeightSum>
Requantization requantization_of(const NodeView& node, int64_t channels, const WeightSum& weight_sum) {
  const auto& attributes = node.as<Attributes>();
  Requantization last;
  const int32_t x_zero = known_zero_point(node, 3);
  const auto number = [&](size_t i, int64_t k) {
    return node.input(i).elements() == 1 ? load_element(node.inputs[i].value, DType::F32, 0)
                                         : load_element(node.inputs[i].value, DType::F32, k);
  };
  for (int64_t channel = 0; channel < channels; ++channel) {
    const double scale = number(2, channel);
    double bias = node.has(4) ? number(4, channel) : 0;
    if (x_zero != 0) bias -= scale * x_zero * static_cast<double>(weight_sum(channel));
    last.scale.push_back(static_cast<float>(scale));
    last.bias.push_back(static_cast<float>(bias));
  }
  if (const auto& epilogue = attributes.epilogue) {
    last.activation = epilogue->activation;
    last.alpha = epilogue->alpha;
    last.beta = epilogue->beta;
  }
  last.y_type = static_cast<DType>(attributes.to);
  if (node.has(5)) last.y_scale = static_cast<float>(number(5, 0));
  last.y_zero = known_zero_point(node, 6);
  return last;
}

Result<KernelPtr> create_matmul(CpuDevice&, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, matmul_geometry(node.shape(0), node.shape(1), {}));
  const auto* weight = static_cast<const int8_t*>(node.inputs[1].value);
  onednn::IntegerMatMul matmul{.m = g.m * g.batch.elements(), .k = g.k, .n = g.n};
  matmul.b.constant = weight;
  matmul.a_signed = is_signed(node.dtype(0));
  return onednn::make_quantized_matmul(
      matmul, requantization_of<op::QuantizedMatMulAttributes>(node, g.n, [&](int64_t column) {
        int64_t sum = 0;
        for (int64_t k = 0; k < g.k; ++k) sum += weight[k * g.n + column];
        return sum;
      }));
}

Result<ConvGeometry> conv_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry whole,
            conv_geometry(node.shape(0), node.shape(1),
                          as_conv(as_integer(node.as<op::QuantizedConvAttributes>()))));
  return without_unit_axes(whole);
}

Status supports_conv(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_matmul(device, node));
  RT_ASSIGN(const ConvGeometry g, conv_of(node));
  return onednn::usable_for(g);
}

Result<KernelPtr> create_conv(CpuDevice& device, const NodeView& node, Producers) {
  onednn::IntegerConvolution convolution;
  RT_ASSIGN(convolution.geometry, conv_of(node));
  const ConvGeometry& g = convolution.geometry;
  const auto* weight = static_cast<const int8_t*>(node.inputs[1].value);
  convolution.x_signed = is_signed(node.dtype(0));
  convolution.constant_weight = weight;
  convolution.pad_with_zero_point = known_zero_point(node, 3) != 0 && g.is_padded();
  const int64_t count = node.input(1).elements() / g.output_channels;
  return onednn::make_quantized_convolution(
      convolution,
      requantization_of<op::QuantizedConvAttributes>(node, g.output_channels, [&](int64_t channel) {
        return static_cast<int64_t>(
            device.simd().loops<QuantizeLoops>().sum_row[0](weight + channel * count, count));
      }));
}

Result<KernelPtr> create_own_matmul(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, matmul_geometry(node.shape(0), node.shape(1), {}));
  const auto* weight = static_cast<const int8_t*>(node.inputs[1].value);
  IntegerBlocks blocks(device.simd(), g.m * g.batch.elements(), g.n, g.k, is_signed(node.dtype(0)), true);
  blocks.buffers_results = true;
  std::vector<int32_t> less(static_cast<size_t>(g.n));
  const int32_t za = known_zero_point(node, 3) - blocks.a_shift();
  for (int64_t k = 0; k < g.k; ++k)
    device.simd().loops<QuantizeLoops>().multiply_add[0](less.data(), weight + k * g.n, za, g.n);
  const Requantization last =
      requantization_of<op::QuantizedMatMulAttributes>(node, g.n, [](int64_t) { return 0; });
  const auto requantizer = std::make_shared<const BlockRequantizer>(device.simd(), last, std::move(less));
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(device.info().threads * blocks.workspace());
  const PackedOperand b(weight, static_cast<size_t>(blocks.packed()), 0x6d6d713800ull, 1, requirements);
  const auto pack = [=](float* to) noexcept {
    blocks.pack(reinterpret_cast<uint8_t*>(to),
                [&](int64_t column, int64_t k0, int64_t steps, uint8_t* part) noexcept {
                  for (int64_t i = 0; i < steps; ++i)
                    part[i] = static_cast<uint8_t>(weight[(k0 + i) * g.n + column]);
                });
  };
  auto body = [=, bytes = static_cast<int64_t>(size_of(last.y_type))](const Call& call) noexcept {
    multiply_integers(
        blocks, 1, false,
        [&](int64_t, int64_t row, uint8_t* copied) noexcept {
          return blocks.row(call.in<uint8_t>(0) + row * g.k, copied);
        },
        [&](int64_t) noexcept { return call.packed<uint8_t>(); },
        [](int64_t) noexcept -> int32_t* { return nullptr; }, g.n,
        [&](int64_t, Range rows, Range columns, const int32_t*, const IntegerBlock& y) noexcept {
          requantizer->run(y.at, rows.end - rows.begin, columns,
                           call.out<std::byte>() + (rows.begin * g.n + columns.begin) * bytes, g.n);
        },
        call.scratch<uint8_t>());
  };
  return make_packing_kernel(device, pack, std::move(body), requirements);
}

Status supports_own_conv(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_own(device, node));
  RT_ASSIGN(const ConvGeometry g, conv_of(node));
  return supports_requantized(g);
}

Status supports_winograd_conv(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_own(device, node));
  RT_ASSIGN(const ConvGeometry g, conv_of(node));
  return supports_integer_winograd(device, g);
}

Result<IntegerConv> integer_conv_of(const NodeView& node) {
  IntegerConv conv;
  RT_ASSIGN(conv.g, conv_of(node));
  conv.x_signed = is_signed(node.dtype(0));
  conv.weight_signed = true;
  conv.constant_weight = node.inputs[1].value;
  conv.known_x_zero = known_zero_point(node, 3);
  conv.requantization =
      requantization_of<op::QuantizedConvAttributes>(node, conv.g.output_channels, [](int64_t) { return 0; });
  return conv;
}

template <KernelPtr (*kMake)(const CpuDevice&, const IntegerConv&)>
Result<KernelPtr> create_own_conv(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const IntegerConv conv, integer_conv_of(node));
  return kMake(device, conv);
}

// --- Requantize

Result<KernelPtr> create_requantize(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::RequantizeAttributes>();
  const DType to = static_cast<DType>(attributes.to);
  const int64_t channels = node.shape(0).back();
  const int64_t rows = channels == 0 ? 0 : node.input(0).elements() / channels;
  const bool each = node.input(1).elements() != 1 || channels == 1, has_bias = node.has(2);
  op::EpilogueAttributes epilogue;
  if (attributes.epilogue) epilogue = *attributes.epilogue;
  const auto activation = activation_of(device.simd(), epilogue.activation);
  const auto quantize = device.simd().loops<QuantizeLoops>().quantize[code_of(to)];
  // Long rows are split, so that intermediates stay in L1; short ones are computed together, with scale and
  // bias repeated.
  const int64_t together = std::max<int64_t>(kWideBlock / std::max<int64_t>(channels, 1), 1);
  const int64_t line = together * channels, lines = (rows + together - 1) / together;
  const int64_t pieces = (line + kWideBlock - 1) / kWideBlock;
  const DType x = node.dtype(0);
  const int code = x == DType::I32 ? static_cast<int>(IntegerCode::I32) : code_of(x);
  const auto bytes = static_cast<int64_t>(size_of(x));
  return make_kernel([=, &simd = device.simd()](const Call& call) noexcept {
    const auto add = simd.loops<BinaryLoops>()
                         .binary[static_cast<int>(BinaryFunction::Add)][static_cast<int>(Advance::Both)];
    const auto widen = simd.loops<QuantizeLoops>().dequantize[code];
    const float y_scale = to == DType::F32 ? 1.0f : *call.in<float>(3), inverse = 1 / y_scale;
    const bool normal = std::isnormal(y_scale) && std::isnormal(inverse);
    parallel_for(lines * pieces, std::min(line, kWideBlock) * 4, 1, [&](int64_t begin, int64_t end) noexcept {
      float buffer[kWideBlock], scales[kWideBlock], biases[kWideBlock];
      const auto repeated = [=](const float* values, float* copies) noexcept {
        if (together == 1) return values;
        for (int64_t i = 0; i < together; ++i) std::copy_n(values, channels, copies + i * channels);
        return static_cast<const float*>(copies);
      };
      const float* scale = each ? repeated(call.in<float>(1), scales) : call.in<float>(1);
      const float* bias = has_bias ? repeated(call.in<float>(2), biases) : nullptr;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = i % pieces * kWideBlock, at = i / pieces * line + from;
        const int64_t count = std::min({kWideBlock, line - from, rows * channels - at});
        float* real = to == DType::F32 ? call.out<float>() + at : buffer;
        widen(call.in<std::byte>(0) + at * bytes, scale + (each ? from : 0), nullptr, real, count, each);
        if (has_bias) add(real, bias + from, real, count);
        if (activation != nullptr) activation(real, real, count, epilogue.alpha, epilogue.beta);
        if (to != DType::F32)
          quantize(real, &y_scale, normal ? &inverse : nullptr, call.in<std::byte>(4),
                   call.out<std::byte>() + at, count, false);
      }
    });
  });
}

// --- QuantizedAdd

Status supports_add(const CpuDevice&, const NodeView& node) {
  const auto& epilogue = node.as<op::QuantizedAddAttributes>().epilogue;
  if (epilogue && epilogue->activation > op::Activation::Clip)
    return unsupported("no fused activation other than Relu and Clip, found ",
                       op::EnumNameActivation(epilogue->activation));
  return {};
}

/// The composite's steps one after the other: for scales with which a QuantizedSum's terms are not finite.
struct StepwiseAdd {
  const Simd& simd;
  DType a, b, y;
  op::EpilogueAttributes epilogue;

  void operator()(const Call& call, int64_t begin, int64_t end) const noexcept {
    const auto& loops = simd.loops<QuantizeLoops>();
    const auto add = simd.loops<BinaryLoops>()
                         .binary[static_cast<int>(BinaryFunction::Add)][static_cast<int>(Advance::Both)];
    const auto activation = activation_of(simd, epilogue.activation);
    float sums[kWideBlock], addends[kWideBlock];
    for (int64_t i = begin; i < end; i += kWideBlock) {
      const int64_t n = std::min(kWideBlock, end - i);
      loops.dequantize[code_of(a)](call.in<std::byte>(0) + i, call.in<float>(2), call.in<std::byte>(3), sums,
                                   n, false);
      loops.dequantize[code_of(b)](call.in<std::byte>(1) + i, call.in<float>(4), call.in<std::byte>(5),
                                   addends, n, false);
      add(sums, addends, sums, n);
      if (activation != nullptr) activation(sums, sums, n, epilogue.alpha, epilogue.beta);
      loops.quantize[code_of(y)](sums, call.in<float>(6), nullptr, call.in<std::byte>(7),
                                 call.out<std::byte>() + i, n, false);
    }
  }
};

Result<KernelPtr> create_add(CpuDevice& device, const NodeView& node, Producers) {
  const DType a = node.dtype(0), b = node.dtype(1), y = node.output(0).dtype;
  const auto loop =
      device.simd().loops<QuantizedLoops>().add_quantized[table_index(a)][table_index(b)][table_index(y)];
  op::EpilogueAttributes epilogue;
  if (const auto& fused = node.as<op::QuantizedAddAttributes>().epilogue) epilogue = *fused;
  const int64_t n = node.output(0).elements();
  const StepwiseAdd stepwise{device.simd(), a, b, y, epilogue};
  return make_kernel([=](const Call& call) noexcept {
    const auto zero = [&](size_t i, DType type) {
      return static_cast<float>(load_integer(call.in<std::byte>(i), type, 0));
    };
    const float y_scale = *call.in<float>(6), y_zero = zero(7, y);
    QuantizedSum sum{};
    sum.factor_a = *call.in<float>(2) / y_scale;
    sum.factor_b = *call.in<float>(4) / y_scale;
    sum.offset = y_zero - zero(3, a) * sum.factor_a - zero(5, b) * sum.factor_b;
    if (!(y_scale > 0) || !std::isfinite(sum.factor_a) || !std::isfinite(sum.factor_b) ||
        !std::isfinite(sum.offset)) {
      parallel_for(n, 8, 64, [&](int64_t begin, int64_t end) noexcept { stepwise(call, begin, end); });
      return;
    }
    sum.low = is_signed(y) ? -128.0f : 0.0f;
    sum.high = sum.low + 255.0f;
    if (epilogue.activation == op::Activation::Relu) sum.low = std::max(sum.low, y_zero);
    if (epilogue.activation == op::Activation::Clip) {
      const float low = epilogue.alpha / y_scale + y_zero, high = epilogue.beta / y_scale + y_zero;
      sum.low = std::clamp(low, sum.low, sum.high);
      sum.high = std::clamp(high, sum.low, sum.high);
    }
    parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
      loop(call.in<std::byte>(0) + begin, call.in<std::byte>(1) + begin, call.out<std::byte>() + begin,
           end - begin, sum);
    });
  });
}

// --- Lookup

Result<KernelPtr> create_lookup(CpuDevice& device, const NodeView& node, Producers) {
  const size_t size = size_of(node.output(0).dtype);
  const auto loop = device.simd().loops<QuantizedLoops>().look_up[size == 1   ? 0
                                                                  : size == 2 ? 1
                                                                  : size == 4 ? 2
                                                                              : 3];
  const auto step = static_cast<int64_t>(size);
  const int64_t n = node.output(0).elements();
  // A negative s8 value, read as u8, indexes from the end of the table.
  return make_kernel([=](const Call& call) noexcept {
    parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
      loop(call.in<uint8_t>(0) + begin, call.in<std::byte>(1), call.out<std::byte>() + begin * step,
           end - begin);
    });
  });
}

// --- DynamicQuantizeLinear

Result<KernelPtr> create_dynamic(CpuDevice& device, const NodeView& node, Producers) {
  const int64_t n = node.input(0).elements();
  const int parts = max_threads();
  Requirements requirements;
  requirements.scratch = 2 * static_cast<size_t>(parts) * sizeof(float);
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float* x = call.in<float>(0);
        auto* ranges = call.scratch<float>();
        parallel_parts(n < kSerialWork ? 1 : parts, [&](int part) noexcept {
          const Range range = part_of(n, part, n < kSerialWork ? 1 : parts, 64);
          const int64_t count = range.end - range.begin;
          ranges[2 * part] = simd.loops<ReduceLoops>().reduce_row[static_cast<int>(ReduceFunction::Min)](
              x + range.begin, count);
          ranges[2 * part + 1] = simd.loops<ReduceLoops>().reduce_row[static_cast<int>(ReduceFunction::Max)](
              x + range.begin, count);
        });
        float low = 0, high = 0;
        for (int part = 0; part < (n < kSerialWork ? 1 : parts); ++part) {
          // Not std::min, which leaves out NaN.
          if (low == low && !(ranges[2 * part] >= low)) low = ranges[2 * part];
          if (high == high && !(ranges[2 * part + 1] <= high)) high = ranges[2 * part + 1];
        }
        const float scale = (high - low) / 255.0f, inverse = 1 / scale;
        const float position = -low / scale;
        const auto zero =  // 0 for 0 / 0, NaN and infinities
            position >= 0 ? static_cast<uint8_t>(std::nearbyint(std::min(position, 255.0f))) : uint8_t{0};
        *call.out<float>(1) = scale;
        *call.out<uint8_t>(2) = zero;
        const bool normal = std::isnormal(scale) && std::isnormal(inverse);
        const auto quantize = simd.loops<QuantizeLoops>().quantize[static_cast<int>(IntegerCode::U8)];
        parallel_for(n, 4, 64, [&](int64_t begin, int64_t end) noexcept {
          quantize(x + begin, &scale, normal ? &inverse : nullptr, &zero, call.out<uint8_t>() + begin,
                   end - begin, false);
        });
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_quantized();
std::span<const KernelRow> rows_quantized() {
  static constexpr KernelRow kRows[] = {
      row<create_matmul, supports_matmul>(OpKind::QuantizedMatMul, "quantized_matmul", kBytes, 10),
      row<create_own_matmul, supports_own>(OpKind::QuantizedMatMul, "quantized_matmul.gemm", kBytes,
                                           kOwnPriority),
      row<create_conv, supports_conv>(OpKind::QuantizedConv, "quantized_conv", kBytes, 10),
      row<create_own_conv<make_integer_winograd>, supports_winograd_conv>(
          OpKind::QuantizedConv, "quantized_conv.winograd", kBytes, kOwnPriority),
      row<create_own_conv<make_conv_integer_gemm>, supports_own_conv>(
          OpKind::QuantizedConv, "quantized_conv.gemm", kBytes, kOwnPriority),
      row<create_requantize>(OpKind::Requantize, "requantize", DTypeSet{DType::I32, DType::U8, DType::I8}),
      row<create_add, supports_add>(OpKind::QuantizedAdd, "quantized_add", kBytes),
      row<create_lookup>(OpKind::Lookup, "lookup", kBytes),
      row<create_dynamic>(OpKind::DynamicQuantizeLinear, "dynamic_quantize", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
