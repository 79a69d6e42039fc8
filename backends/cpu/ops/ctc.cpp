// CtcLoss: forward and backward variables as logarithms in f64 (f32 loses too many digits over many steps),
// one sequence per thread. The algorithm is described in runtime/ops/ctc.cpp; here only two rows of beta are
// kept.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"

namespace librt::cpu {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b) noexcept {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kImpossible ? high : high + std::log1p(std::exp(low - high));
}

/// Reads i32 and i64.
struct Integers {
  const std::byte* data;
  bool wide;
  int64_t operator[](int64_t i) const noexcept {
    return wide ? reinterpret_cast<const int64_t*>(data)[i] : reinterpret_cast<const int32_t*>(data)[i];
  }
};

struct Ctc {
  int64_t most_steps, batch, classes, most_labels, blank;
  bool zero_infinity;
  std::array<bool, 3> wide;

  int64_t max_positions() const { return 2 * most_labels + 1; }
  /// alpha of all steps, and two rows of beta.
  int64_t scratch_of_one() const { return (most_steps + 2) * max_positions(); }

  void sequence(const Call& call, int64_t n) const noexcept;
};

/// The inputs of one sequence.
struct Problem {
  const Ctc& ctc;
  const float* x;
  Integers labels;
  int64_t first_label, steps, positions, n;

  int64_t symbol(int64_t position) const noexcept {
    return position % 2 == 0 ? ctc.blank : labels[first_label + position / 2];
  }
  double log_probability(int64_t t, int64_t symbol) const noexcept {
    if (symbol < 0 || symbol >= ctc.classes) return kImpossible;
    return static_cast<double>(x[(t * ctc.batch + n) * ctc.classes + symbol]);
  }
  /// Whether a path may go from place - 2 to this one.
  bool skips(int64_t position) const noexcept {
    return position >= 2 && position < positions && position % 2 == 1 &&
           symbol(position) != symbol(position - 2) && symbol(position) != ctc.blank;
  }
};

void fill_alpha(const Problem& problem, double* alpha) noexcept {
  const int64_t positions = problem.positions;
  for (int64_t t = 0; t < problem.steps; ++t, alpha += positions)
    for (int64_t k = 0; k < positions; ++k) {
      const double* before = alpha - positions;
      double sum = kImpossible;
      if (t == 0) {
        sum = k < 2 ? 0 : kImpossible;
      } else {
        sum = before[k];
        if (k >= 1) sum = log_sum(sum, before[k - 1]);
        if (problem.skips(k)) sum = log_sum(sum, before[k - 2]);
      }
      alpha[k] = sum + problem.log_probability(t, problem.symbol(k));
    }
}

/// beta without the step's own symbol: alpha + beta is the log probability of all paths through a place.
void fill_beta(const Problem& problem, int64_t t, const double* after, double* beta) noexcept {
  const int64_t positions = problem.positions;
  const auto score_after = [&](int64_t k) {
    return after[k] + problem.log_probability(t + 1, problem.symbol(k));
  };
  for (int64_t k = 0; k < positions; ++k) {
    if (t == problem.steps - 1) {
      beta[k] = k + 2 >= positions ? 0 : kImpossible;
      continue;
    }
    double sum = score_after(k);
    if (k + 1 < positions) sum = log_sum(sum, score_after(k + 1));
    if (problem.skips(k + 2)) sum = log_sum(sum, score_after(k + 2));
    beta[k] = sum;
  }
}

void Ctc::sequence(const Call& call, int64_t n) const noexcept {
  const Integers labels{call.in<std::byte>(1), wide[0]}, input_lengths{call.in<std::byte>(2), wide[1]},
      label_lengths{call.in<std::byte>(3), wide[2]};
  const int64_t steps = std::clamp<int64_t>(input_lengths[n], 0, most_steps);
  const int64_t length = std::clamp<int64_t>(label_lengths[n], 0, most_labels);
  const Problem problem{*this, call.in<float>(0), labels, n * most_labels, steps, 2 * length + 1, n};
  float* gradient = call.out<float>(1);
  for (int64_t t = 0; t < most_steps; ++t) std::fill_n(gradient + (t * batch + n) * classes, classes, 0.0f);

  const int64_t positions = problem.positions;
  double* alpha = call.scratch<double>() + n * scratch_of_one();
  double* rows[2] = {alpha + most_steps * max_positions(), alpha + (most_steps + 1) * max_positions()};
  fill_alpha(problem, alpha);
  double total = steps == 0 && length == 0 ? 0 : kImpossible;
  for (int64_t k = std::max<int64_t>(positions - 2, 0); k < positions && steps > 0; ++k)
    total = log_sum(total, alpha[(steps - 1) * positions + k]);
  const bool none = total == kImpossible;
  call.out<float>(0)[n] = none && zero_infinity ? 0.0f : static_cast<float>(-total);
  if (none && zero_infinity) return;
  for (int64_t t = steps; t-- > 0;) {
    double* beta = rows[t % 2];
    fill_beta(problem, t, rows[(t + 1) % 2], beta);
    for (int64_t k = 0; k < positions; ++k) {
      const int64_t symbol = problem.symbol(k);
      if (symbol < 0 || symbol >= classes) continue;
      const double share = none ? std::numeric_limits<double>::quiet_NaN()
                                : std::exp(alpha[t * positions + k] + beta[k] - total);
      gradient[(t * batch + n) * classes + symbol] -= static_cast<float>(share);
    }
  }
}

Result<KernelPtr> create_ctc(CpuDevice&, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::CtcLossAttributes>();
  const Shape& x = node.shape(0);
  Ctc ctc{.most_steps = x[0],
          .batch = x[1],
          .classes = x[2],
          .most_labels = node.shape(1)[1],
          .blank = attributes.blank,
          .zero_infinity = attributes.zero_infinity,
          .wide = {}};
  for (size_t i = 0; i < 3; ++i) ctc.wide[i] = node.dtype(i + 1) == DType::I64;
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(ctc.batch * ctc.scratch_of_one()) * sizeof(double);
  return make_kernel(
      [ctc](const Call& call) noexcept {
        const int64_t work = ctc.most_steps * (ctc.max_positions() * 80 + ctc.classes);
        parallel_for(ctc.batch, work, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t n = begin; n < end; ++n) ctc.sequence(call, n);
        });
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_ctc();
std::span<const KernelRow> rows_ctc() {
  static constexpr KernelRow kRows[] = {row<create_ctc>(OpKind::CtcLoss, "ctc_loss", DTypeSet{DType::F32})};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
