// QuantizeLinear, DequantizeLinear and NarrowFloat: vector loops over runs of elements that share a scale, or
// whose scales are contiguous.
#include "runtime/geometry/quantization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/quantize.h"
#include "backends/cpu/support/widen_blocks.h"

namespace librt::cpu {
namespace {

constexpr DTypeSet kCodes{DType::I8, DType::U8, DType::I16, DType::U16, DType::I32};

int code_of(DType dtype) {
  switch (dtype) {
    case DType::I8: return static_cast<int>(IntegerCode::I8);
    case DType::U8: return static_cast<int>(IntegerCode::U8);
    case DType::I16: return static_cast<int>(IntegerCode::I16);
    case DType::U16: return static_cast<int>(IntegerCode::U16);
    default: return static_cast<int>(IntegerCode::I32);
  }
}

/// Elements [first, first + count) with the scales from `scale` on: one for all, or one per element.
struct Run {
  int64_t first, count, scale;
};

/// A tensor cut into runs.
class Runs {
 public:
  explicit Runs(const ScaleGroups& groups)
      : g_(groups), blocks_((groups.extent + groups.block - 1) / groups.block) {
    along_axis_ = !g_.per_tensor() && g_.inner == 1 && g_.block_stride == 1 && g_.block == 1;
  }
  int64_t count() const noexcept {
    if (g_.inner != 1 || g_.per_tensor()) return g_.outer * g_.extent;
    return along_axis_ ? g_.outer : g_.outer * blocks_;
  }
  int64_t length() const noexcept {
    if (g_.inner != 1 || g_.per_tensor()) return g_.inner;
    return along_axis_ ? g_.extent : g_.block;
  }
  /// Whether every element of a run has its own scale.
  bool each() const noexcept { return along_axis_ || (g_.inner != 1 && g_.inner_stride == 1); }
  Run operator[](int64_t i) const noexcept {
    if (g_.inner != 1 || g_.per_tensor())
      return {i * g_.inner, g_.inner, g_.scale_of(i / g_.extent, i % g_.extent, 0)};
    if (along_axis_) return {i * g_.extent, g_.extent, i * g_.outer_stride};
    const int64_t o = i / blocks_, from = i % blocks_ * g_.block;
    return {o * g_.extent + from, std::min(g_.block, g_.extent - from), g_.scale_of(o, from, 0)};
  }

 private:
  ScaleGroups g_;
  int64_t blocks_;
  bool along_axis_ = false;
};

/// body(run) for all runs, long ones split further, on all threads.
template <class Body>
void for_each_run(const Runs& runs, const Body& body) noexcept {
  const bool each = runs.each();
  const auto pieces = [&](int64_t first, int64_t last, const Run& run) {
    for (int64_t at = first; at < last; at += kWideBlock)
      body(Run{run.first + at, std::min(kWideBlock, last - at), run.scale + (each ? at : 0)});
  };
  if (runs.count() == 1) {
    const Run run = runs[0];
    parallel_for(run.count, 4, 64, [&](int64_t begin, int64_t end) noexcept { pieces(begin, end, run); });
    return;
  }
  parallel_for(runs.count(), 4 * runs.length(), 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) pieces(0, runs[i].count, runs[i]);
  });
}

template <class Attributes>
Result<ScaleGroups> groups_of(const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  return scale_groups(node.shape(0), node.shape(1), attributes.axis, attributes.block_size);
}

/// Scales as f32: the input itself, or widened into the scratch.
const float* widened_scales(const Simd& simd, DType dtype, int64_t count, const Call& call) noexcept {
  if (dtype == DType::F32) return call.in<float>(1);
  widen_block(simd, dtype, call.in<uint16_t>(1), call.scratch<float>(), count);
  return call.scratch<float>();
}

Requirements scales_scratch(const NodeView& node) {
  Requirements requirements;
  if (node.dtype(1) != DType::F32)
    requirements.scratch = static_cast<size_t>(node.input(1).elements()) * sizeof(float);
  return requirements;
}

/// The quotients of 16-bit floats, rounded to 16 bits as well.
void divide_halves(const Simd& simd, DType dtype, const uint16_t* x, const float* scale, float* quotient,
                   int64_t n, bool each) noexcept {
  uint16_t narrow[kWideBlock];
  widen_block(simd, dtype, x, quotient, n);
  simd.loops<BinaryLoops>().binary[static_cast<int>(BinaryFunction::Div)][each ? 0 : 1](quotient, scale,
                                                                                        quotient, n);
  narrow_block(simd, dtype, quotient, narrow, n);
  widen_block(simd, dtype, narrow, quotient, n);
}

constexpr auto kOnes = [] {
  std::array<float, kWideBlock> ones{};
  ones.fill(1);
  return ones;
}();

/// 16-bit floats; the scales are widened into the scratch.
KernelPtr make_quantize_halves(const CpuDevice& device, const NodeView& node, const Runs& runs) {
  const DType from = node.dtype(0), to = node.output(0).dtype;
  const auto quantize = device.simd().loops<QuantizeLoops>().quantize[code_of(to)];
  const auto size = static_cast<int64_t>(size_of(to));
  const int64_t scales = node.input(1).elements();
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float* scale = widened_scales(simd, from, scales, call);
        const auto* zero = call.in<std::byte>(2);
        for_each_run(runs, [&](const Run& run) noexcept {
          float quotient[kWideBlock];
          divide_halves(simd, from, call.in<uint16_t>(0) + run.first, scale + run.scale, quotient, run.count,
                        runs.each());
          quantize(quotient, kOnes.data(), kOnes.data(), zero == nullptr ? nullptr : zero + run.scale * size,
                   call.out<std::byte>() + run.first * size, run.count, runs.each());
        });
      },
      scales_scratch(node));
}

/// 1 / scale for all scales; null where one of them is not a normal float.
const float* inverse_of(const float* scale, float* inverse, int64_t count) noexcept {
  bool normal = true;
  for (int64_t i = 0; i < count; ++i) {
    inverse[i] = 1 / scale[i];
    normal = normal && std::isnormal(inverse[i]) && std::isnormal(scale[i]);
  }
  return normal ? inverse : nullptr;
}

Result<KernelPtr> create_quantize(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ScaleGroups groups, groups_of<op::QuantizeLinearAttributes>(node));
  const Runs runs(groups);
  if (kHalves.contains(node.dtype(0))) return make_quantize_halves(device, node, runs);
  const DType to = node.output(0).dtype;
  const Simd& simd = device.simd();
  const auto quantize = (node.dtype(0) == DType::I32 ? simd.loops<QuantizeLoops>().quantize_sums
                                                     : simd.loops<QuantizeLoops>().quantize)[code_of(to)];
  const auto size = static_cast<int64_t>(size_of(to));
  const int64_t scales = node.input(1).elements();
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(scales) * sizeof(float);
  return make_kernel(
      [=](const Call& call) noexcept {
        const float* inverse = inverse_of(call.in<float>(1), call.scratch<float>(), scales);
        const auto* zero = call.in<std::byte>(2);
        for_each_run(runs, [&](const Run& run) noexcept {
          quantize(call.in<float>(0) + run.first, call.in<float>(1) + run.scale,
                   inverse == nullptr ? nullptr : inverse + run.scale,
                   zero == nullptr ? nullptr : zero + run.scale * size,
                   call.out<std::byte>() + run.first * size, run.count, runs.each());
        });
      },
      requirements);
}

Result<KernelPtr> create_dequantize(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ScaleGroups groups, groups_of<op::DequantizeLinearAttributes>(node));
  const Runs runs(groups);
  const DType from = node.dtype(0), real = node.dtype(1), to = node.output(0).dtype;
  const auto dequantize = device.simd().loops<QuantizeLoops>().dequantize[code_of(from)];
  const auto size = static_cast<int64_t>(size_of(from));
  const int64_t scales = node.input(1).elements();
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float* scale = widened_scales(simd, real, scales, call);
        const auto* zero = call.in<std::byte>(2);
        for_each_run(runs, [&](const Run& run) noexcept {
          float buffer[kWideBlock];
          float* y = to == DType::F32 ? call.out<float>() + run.first : buffer;
          dequantize(call.in<std::byte>(0) + run.first * size, scale + run.scale,
                     zero == nullptr ? nullptr : zero + run.scale * size, y, run.count, runs.each());
          if (to != DType::F32) narrow_block(simd, to, buffer, call.out<uint16_t>() + run.first, run.count);
        });
      },
      scales_scratch(node));
}

Result<KernelPtr> create_narrow(CpuDevice& device, const NodeView& node, Producers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr FloatFormat kFormats[] = {{3, -6, 448, kNan, kNan, true},
                                      {3, -7, 240, kNan, kNan, false},
                                      {2, -14, 57344, kInfinity, kNan, true},
                                      {2, -15, 57344, kNan, kNan, false},
                                      {1, 0, 6, 6, -0.0f, true}};
  const auto& attributes = node.as<op::NarrowFloatAttributes>();
  FloatFormat format = kFormats[static_cast<size_t>(attributes.format)];
  if (attributes.saturate) format.beyond = format.largest;
  const int64_t n = node.input(0).elements();
  return make_kernel(
      [=, loop = device.simd().loops<QuantizeLoops>().narrow_float](const Call& call) noexcept {
        parallel_for(n, 2, 64, [&](int64_t begin, int64_t end) noexcept {
          loop(call.in<float>(0) + begin, call.out<float>() + begin, end - begin, format);
        });
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_quantize();
std::span<const KernelRow> rows_quantize() {
  static constexpr KernelRow kRows[] = {
      row<create_quantize>(OpKind::QuantizeLinear, "quantize",
                           DTypeSet{DType::F32, DType::F16, DType::BF16, DType::I32}),
      row<create_dequantize>(OpKind::DequantizeLinear, "dequantize", kCodes),
      row<create_narrow>(OpKind::NarrowFloat, "narrow_float", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
