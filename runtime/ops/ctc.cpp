// CtcLoss: connectionist temporal classification (Graves et al. 2006), forward and backward variables in log
// space.
//
// The extended sequence z has 2 L + 1 positions: a blank before, between and after the labels. alpha[t][k] is
// the log probability of all paths up to time t that are at position k then, beta the same from t on to the
// end, both including t's symbol:
//   loss = -log p,  d loss / d log_probabilities[t][c] = -sum over k with z[k] = c of alpha[t][k] beta[t][k]
//   / (p y[t][c]).
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

constexpr DTypeSet kIndexTypes{DType::I32, DType::I64};
constexpr double kImpossible = -std::numeric_limits<double>::infinity();

Status infer_ctc(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& ctc = node.as<op::CtcLossAttributes>();
  RT_TRY(expect_dtype_and_rank(node, 0, "log_probabilities", kFloats, 3, 3));
  const Shape& x = node.shape(0);
  if (ctc.blank < 0 || ctc.blank >= x[2])
    return invalid_argument("expected a blank in [0, ", x[2], "), the number of classes, found ", ctc.blank);
  for (size_t i = 1; i <= 3; ++i) {
    const Label what = i == 1 ? "labels" : i == 2 ? "input_lengths" : "label_lengths";
    RT_TRY(expect_dtype_and_rank(node, i, what, kIndexTypes, i == 1 ? 2 : 1, i == 1 ? 2 : 1));
    Shape expected = node.shape(i);  // any number of labels
    expected[0] = x[1];
    RT_TRY(expect_shape(node, i, what, expected));
  }
  RT_TRY(add_output(outputs, node.dtype(0), {x[1]}));
  return add_output(outputs, node.input(0));
}

double log_sum(double a, double b) {
  const double high = std::max(a, b);
  return high == kImpossible ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

/// One sequence.
struct Sequence {
  int64_t steps = 0;                      ///< its length in time
  std::vector<int64_t> symbols;           ///< z
  std::vector<double> log_probabilities;  ///< [steps, places]: of z[k] at t

  size_t positions() const { return symbols.size(); }
  double at(int64_t t, size_t k) const { return log_probabilities[static_cast<size_t>(t) * positions() + k]; }
  /// A path may leave out the blank between two different labels.
  bool may_skip_to(size_t k, int64_t blank) const {
    return k >= 2 && symbols[k] != blank && symbols[k] != symbols[k - 2];
  }
};

/// alpha of the sequence; applied to the reversed sequence it gives beta.
std::vector<double> forward(const Sequence& z, int64_t blank) {
  const size_t positions = z.positions();
  std::vector<double> alpha(z.log_probabilities.size(), kImpossible);
  for (size_t k = 0; k < std::min<size_t>(2, positions) && z.steps > 0; ++k) alpha[k] = z.at(0, k);
  for (int64_t t = 1; t < z.steps; ++t) {
    const double* from = alpha.data() + static_cast<size_t>(t - 1) * positions;
    for (size_t k = 0; k < positions; ++k) {
      double sum = from[k];
      if (k >= 1) sum = log_sum(sum, from[k - 1]);
      if (z.may_skip_to(k, blank)) sum = log_sum(sum, from[k - 2]);
      alpha[static_cast<size_t>(t) * positions + k] = sum + z.at(t, k);
    }
  }
  return alpha;
}

Status eval_ctc(const NodeView& node, std::span<const ConstTensorView> inputs,
                std::span<const TensorView> outputs) {
  const auto& ctc = node.as<op::CtcLossAttributes>();
  const Shape& shape = inputs[0].info.shape;
  const int64_t batch = shape[1], classes = shape[2], most = inputs[1].info.shape[1];
  const auto integer = [&](size_t input, int64_t i) {
    return load_integer(inputs[input].data, inputs[input].info.dtype, i);
  };
  for (int64_t i = 0; i < outputs[1].info.elements(); ++i) store(outputs[1], i, 0);
  for (int64_t n = 0; n < batch; ++n) {
    Sequence z{
        .steps = std::clamp<int64_t>(integer(2, n), 0, shape[0]), .symbols = {}, .log_probabilities = {}};
    const int64_t labels = std::clamp<int64_t>(integer(3, n), 0, most);
    for (int64_t i = 0; i < labels; ++i) {
      z.symbols.push_back(ctc.blank);
      z.symbols.push_back(integer(1, n * most + i));
    }
    z.symbols.push_back(ctc.blank);
    for (int64_t t = 0; t < z.steps; ++t)
      for (int64_t symbol : z.symbols)
        z.log_probabilities.push_back(symbol >= 0 && symbol < classes
                                          ? load(inputs[0], (t * batch + n) * classes + symbol)
                                          : kImpossible);
    const size_t positions = z.positions();
    const std::vector<double> alpha = forward(z, ctc.blank);
    Sequence reversed = z;
    std::reverse(reversed.symbols.begin(), reversed.symbols.end());
    std::reverse(reversed.log_probabilities.begin(), reversed.log_probabilities.end());
    const std::vector<double> beta = forward(reversed, ctc.blank);
    double total = z.steps == 0 && labels == 0 ? 0 : kImpossible;
    for (size_t k = positions - std::min<size_t>(2, positions); k < positions && z.steps > 0; ++k)
      total = log_sum(total, alpha[static_cast<size_t>(z.steps - 1) * positions + k]);
    const bool none = total == kImpossible;
    store(outputs[0], n, none && ctc.zero_infinity ? 0 : -total);
    if (none && ctc.zero_infinity) continue;
    for (int64_t t = 0; t < z.steps; ++t)
      for (size_t k = 0; k < positions; ++k) {
        const int64_t symbol = z.symbols[k];
        const auto i = static_cast<size_t>(t) * positions + k;
        if (symbol < 0 || symbol >= classes) continue;
        const double share =
            none ? std::numeric_limits<double>::quiet_NaN()
            : z.log_probabilities[i] == kImpossible
                ? 0
                : std::exp(alpha[i] + beta[beta.size() - 1 - i] - z.log_probabilities[i] - total);
        const int64_t to = (t * batch + n) * classes + symbol;
        store(outputs[1], to, load(outputs[1], to) - share);
      }
  }
  return {};
}

/// The second result is the gradient of each sequence's loss.
void gradient_of_ctc(GradContext& context) {
  Emitter& e = context.emit;
  if (context.grad(1) != kNoValue)
    return e.fail(unsupported("the gradient of CtcLoss's second result, which is itself a gradient"));
  const std::array<int64_t, 3> per_sequence{1, -1, 1};
  context.set(0, e.mul(context.output(1), e.reshape(context.grad(0), e.ints(per_sequence))));
}

}  // namespace

RT_PAGE(CtcLoss) = {.kind = OpKind::CtcLoss,
                    .inputs = {4, 4},
                    .outputs = {2, 2},
                    .infer = infer_ctc,
                    .cost =
                        [](const NodeView& node) {
                          Cost cost = elementwise_cost(node, 0);
                          cost.flops = 40.0 * static_cast<double>(node.shape(0)[0] * node.shape(0)[1]) *
                                       static_cast<double>(2 * node.shape(1)[1] + 1);
                          return cost;
                        },
                    .arithmetic = Arithmetic::PrecisionSensitive,
                    .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(CtcLoss) = {
    .eval = eval_ctc, .gradient = gradient_of_ctc, .domain = {.low = -3, .high = -0.5}};

}  // namespace librt::ops
