// Uniform and normal random numbers, element by element from seed, counter and position.
#include <cmath>

#include "backends/cpu/elements.h"
#include "backends/cpu/kernel.h"
#include "runtime/core/philox.h"

namespace rt::cpu {
namespace {

struct Numbers {
  uint64_t seed;
  float first, second;  ///< first + second times the number: low and range, or mean and scale
  bool normal;
};

template <class Real>
void box_muller(Real u, Real v, Real* pair) noexcept {
  const Real radius = std::sqrt(Real{-2} * std::log(Real{1} - u)), angle = static_cast<Real>(2 * M_PI) * v;
  pair[0] = radius * std::cos(angle);
  pair[1] = radius * std::sin(angle);
}

/// The numbers of one block, four in f32 or two in f64.
void block_of(const Numbers& numbers, uint64_t counter, int64_t index, float* out) noexcept {
  const PhiloxBlock bits = philox(numbers.seed, counter, static_cast<uint64_t>(index));
  float u[4];
  for (size_t i = 0; i < 4; ++i) u[i] = uniform24(bits[i]);
  if (numbers.normal) {
    box_muller(u[0], u[1], u);
    box_muller(u[2], u[3], u + 2);
  }
  for (size_t i = 0; i < 4; ++i) out[i] = numbers.first + numbers.second * u[i];
}
void block_of(const Numbers& numbers, uint64_t counter, int64_t index, double* out) noexcept {
  const PhiloxBlock bits = philox(numbers.seed, counter, static_cast<uint64_t>(index));
  double u[2] = {uniform53(bits[0], bits[1]), uniform53(bits[2], bits[3])};
  if (numbers.normal) box_muller(u[0], u[1], u);
  for (size_t i = 0; i < 2; ++i)
    out[i] = static_cast<double>(numbers.first) + static_cast<double>(numbers.second) * u[i];
}

template <class T>
KernelPtr make(const Numbers& numbers, int64_t count) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr int64_t kBlock = std::is_same_v<T, double> ? 2 : 4;
  return make_kernel([=](const Call& call) noexcept {
    const int64_t* counted = call.in<int64_t>(1);
    const uint64_t counter = counted == nullptr ? 0 : static_cast<uint64_t>(*counted);
    T* y = call.out<T>();
    parallel_for((count + kBlock - 1) / kBlock, 100, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        Real made[kBlock];
        block_of(numbers, counter, i, made);
        const int64_t here = std::min(kBlock, count - i * kBlock);
        for (int64_t k = 0; k < here; ++k) y[i * kBlock + k] = narrow<T>(made[k]);
      }
    });
  });
}

Result<KernelPtr> make_as(const NodeView& node, const Numbers& numbers) {
  const int64_t count = node.output(0).elements();
  switch (node.output(0).dtype) {
    case DType::F16: return make<Half>(numbers, count);
    case DType::BF16: return make<BFloat>(numbers, count);
    case DType::F64: return make<double>(numbers, count);
    default: return make<float>(numbers, count);
  }
}

Result<KernelPtr> create_uniform(CpuDevice&, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::RandomUniformAttributes>();
  return make_as(node, {static_cast<uint64_t>(attributes.seed), attributes.low,
                        attributes.high - attributes.low, false});
}
Result<KernelPtr> create_normal(CpuDevice&, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::RandomNormalAttributes>();
  return make_as(node, {static_cast<uint64_t>(attributes.seed), attributes.mean, attributes.scale, true});
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

}  // namespace rt::cpu
