// Uniform and normal random values, element by element from seed, counter and position.
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/random.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/core/philox.h"

namespace librt::cpu {
namespace {

struct Numbers {
  uint64_t seed;
  float first, second;  ///< first + second times the sample: low and range, or mean and scale
  bool normal;
};

/// f64: the two values of one Philox block.
void block_of(const Numbers& values, uint64_t counter, int64_t index, double* out) noexcept {
  const PhiloxBlock bits = philox(values.seed, counter, static_cast<uint64_t>(index));
  double u[2] = {uniform53(bits[0], bits[1]), uniform53(bits[2], bits[3])};
  if (values.normal) {
    const double radius = std::sqrt(-2 * std::log(1 - u[0])), angle = 2 * M_PI * u[1];
    u[0] = radius * std::cos(angle);
    u[1] = radius * std::sin(angle);
  }
  for (size_t i = 0; i < 2; ++i)
    out[i] = static_cast<double>(values.first) + static_cast<double>(values.second) * u[i];
}

uint64_t counter_of(const Call& call) noexcept {
  const int64_t* counted = call.in<int64_t>(1);
  return counted == nullptr ? 0 : static_cast<uint64_t>(*counted);
}

KernelPtr make_f64(const Numbers& values, int64_t count) {
  return make_kernel([=](const Call& call) noexcept {
    double* y = call.out<double>();
    parallel_for((count + 1) / 2, 100, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        double made[2];
        block_of(values, counter_of(call), i, made);
        for (int64_t k = 0; k < std::min<int64_t>(2, count - i * 2); ++k) y[i * 2 + k] = made[k];
      }
    });
  });
}

/// In f32, a group of blocks at a time.
KernelPtr make_floats(const Simd& simd, const Numbers& values, DType dtype, int64_t count) {
  constexpr int64_t kGroup = 4 * RandomLoops::kBlocks;
  return make_kernel([=, random = simd.loops<RandomLoops>().random[values.normal ? 1 : 0],
                      &simd](const Call& call) noexcept {
    parallel_for((count + kGroup - 1) / kGroup, 8 * kGroup, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        float made[kGroup];
        random(values.seed, counter_of(call), static_cast<uint64_t>(i * RandomLoops::kBlocks), made);
#pragma omp simd
        for (int64_t k = 0; k < kGroup; ++k) made[k] = values.first + values.second * made[k];
        const int64_t first = i * kGroup, here = std::min(kGroup, count - first);
        if (dtype == DType::F32)
          std::copy(made, made + here, call.out<float>() + first);
        else
          narrow_block(simd, dtype, made, call.out<uint16_t>() + first, here);
      }
    });
  });
}

KernelPtr make_as(const CpuDevice& device, const NodeView& node, const Numbers& values) {
  const TensorInfo& result = node.output(0);
  if (result.dtype == DType::F64) return make_f64(values, result.elements());
  return make_floats(device.simd(), values, result.dtype, result.elements());
}

Result<KernelPtr> create_uniform(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::RandomUniformAttributes>();
  return make_as(
      device, node,
      {static_cast<uint64_t>(attributes.seed), attributes.low, attributes.high - attributes.low, false});
}
Result<KernelPtr> create_normal(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::RandomNormalAttributes>();
  return make_as(device, node,
                 {static_cast<uint64_t>(attributes.seed), attributes.mean, attributes.scale, true});
}

}  // namespace

std::span<const KernelRow> rows_random();
std::span<const KernelRow> rows_random() {
  static constexpr KernelRow kRows[] = {
      row<create_uniform>(OpKind::RandomUniform, "random_uniform", DTypeSet{DType::I64}),
      row<create_normal>(OpKind::RandomNormal, "random_normal", DTypeSet{DType::I64}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
