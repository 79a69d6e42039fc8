#include "tests/cases/special.h"

#include <limits>

#include "runtime/core/element.h"
#include "runtime/core/random.h"

namespace librt::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDenormal = 1e-41;
constexpr double kLargest = std::numeric_limits<float>::max();

/// Operands of a list longer than this take the rounds in turn, one each.
constexpr size_t kMany = 32;

/// Values that overwrite elements of an input: every element, or on average one in `every` at random
/// positions.
struct Round {
  const char* name;
  std::vector<double> numbers;
  int64_t every;  ///< 0: only one element
};

const std::vector<Round>& rounds_for_all() {
  static const std::vector<Round> kRounds{
      {"one NaN", {kNan}, 0},
      {"one infinity", {kInfinity}, 0},
      {"one -infinity", {-kInfinity}, 0},
      {"some NaN", {kNan}, 5},
      {"infinities", {kInfinity, -kInfinity}, 7},
      {"a mixture", {kNan, kInfinity, -kInfinity, 0.0, -0.0, 1}, 3},
      {"all NaN", {kNan}, 1},
  };
  return kRounds;
}

/// For operators that compare and exponentiate: elsewhere sums and squares of such values overflow in f32,
/// but not in the f64 reference.
const std::vector<Round>& rounds_for_extremes() {
  static const std::vector<Round> kRounds{
      {"all -1e30", {-1e30}, 1},
      {"all the lowest number", {-kLargest}, 1},
      {"all -infinity", {-kInfinity}, 1},
      {"all equal", {3.5}, 1},
      {"hidden", {-1e30, -kLargest, -kInfinity}, 1},
      {"-infinity and lower than -1e30", {-kInfinity, -kInfinity, -kInfinity, -2e30}, 1},
      {"some hidden", {-1e30, -kLargest, -kInfinity}, 2},
      {"large", {1e30, -1e30}, 3},
      {"denormals", {kDenormal, -kDenormal}, 3},
  };
  return kRounds;
}

bool takes_extremes(OpKind kind) {
  switch (kind) {
    case OpKind::Softmax:
    case OpKind::LogSoftmax:
    case OpKind::SoftmaxCrossEntropy:
    case OpKind::CrossEntropy:
    case OpKind::Exp:
    case OpKind::Sigmoid:
    case OpKind::Tanh:
    case OpKind::Erf:
    case OpKind::Gelu:
    case OpKind::Silu:
    case OpKind::SiluGrad:
    case OpKind::Softplus:
    case OpKind::Elu:
    case OpKind::HardSigmoid:
    case OpKind::HardSwish:
    case OpKind::Relu:
    case OpKind::ReluGrad:
    case OpKind::LeakyRelu:
    case OpKind::Clip:
    case OpKind::Atan:
    case OpKind::Floor:
    case OpKind::Maximum:
    case OpKind::Minimum:
    case OpKind::MaxPool:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin: return true;
    default: return false;
  }
}

/// A copy of an input overwritten by a round.
ops::HostTensor spoiled(const ops::HostTensor& tensor, const Round& round, uint64_t seed) {
  ops::HostTensor result(tensor);
  const int64_t count = tensor.info.elements();
  uint64_t state = seed;
  size_t used = 0;
  const auto put = [&](int64_t i) {
    store_element(result.bytes.data(), tensor.info.dtype, i, round.numbers[used++ % round.numbers.size()]);
  };
  if (round.every == 0) {
    put(static_cast<int64_t>(split_mix(state) % static_cast<uint64_t>(count)));
    return result;
  }
  for (int64_t i = 0; i < count; ++i)
    if (round.every == 1 || split_mix(state) % static_cast<uint64_t>(round.every) == 0) put(i);
  return result;
}

/// Attention need not read masked keys.
bool hides_keys(const Case& test_case) {
  const auto& attributes = *test_case.op.AsAttention();
  for (size_t i = 3; i < test_case.inputs.size(); ++i)
    if (test_case.inputs[i]) return true;
  return attributes.causal || attributes.left_window >= 0 || attributes.right_window >= 0;
}

SpecialDomain domain_of(const Case& test_case) {
  using enum SpecialRule;
  switch (test_case.op.type) {
    case OpKind::Conv:
    case OpKind::ConvTranspose:
    case OpKind::ConvWeightGrad: return {Spreads, "Winograd's transforms mix the points of a tile"};
    case OpKind::BatchNorm:
    case OpKind::BatchNormTrain:
    case OpKind::BatchNormGrad:
      return {Spreads, "one multiplication and addition for a channel, or another order"};
    case OpKind::LayerNormGrad:
      return {Spreads, "the deviation of a value near the mean may be 0, and 0 times infinity is NaN"};
    case OpKind::Resize:
    case OpKind::GridSample:
    case OpKind::RoiAlign:
      return {Spreads, "a neighbour of weight 0 may be read, and 0 times infinity is NaN"};
    case OpKind::SgdStep:
    case OpKind::AdamStep:
    case OpKind::RmsPropStep:
    case OpKind::AdagradStep:
    case OpKind::AdadeltaStep:
    case OpKind::LambStep:
    case OpKind::LionStep: return {Spreads, "terms of weight 0 may be added, and 0 times infinity is NaN"};
    case OpKind::BlockwiseStep:
    case OpKind::BlockQuantize: return {None, "a block shares a scale, and quantized values have no NaN"};
    case OpKind::WeightQuantizedMatMul: return {Spreads, "an infinite scale times a code of 0 is NaN"};
    case OpKind::Attention:
      if (hides_keys(test_case)) return {None, "keys that are hidden may be left out, or have weight 0"};
      return {};
    case OpKind::CtcLoss:
    case OpKind::AttentionGrad:
    case OpKind::LSTMGrad:
    case OpKind::GRUGrad:
    case OpKind::RNNGrad:
    case OpKind::MaxPoolGrad:
    case OpKind::RoiAlignGrad:
      return {None, "a training stops at a loss that is not finite, before its gradients count"};
    default: return {};
  }
}

}  // namespace

SpecialDomain special_domain(const Case& test_case) {
  return test_case.special ? *test_case.special : domain_of(test_case);
}

void for_each_special(const Case& test_case, const CaseValues& values,
                      const std::function<bool(const std::string&, const CaseValues&)>& f) {
  const uint64_t seed = std::hash<std::string>{}(test_case.name);
  const bool many = values.size() > kMany;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i] || test_case.inputs[i]->constant || !is_float(values[i]->info.dtype)) continue;
    if (values[i]->info.elements() == 0) continue;
    std::vector<const Round*> rounds;
    for (const Round& round : rounds_for_all()) rounds.push_back(&round);
    // An additive mask: includes rows that are fully masked, by finite values or by -infinity.
    const bool is_mask = test_case.op.type == OpKind::Attention && i == 3;
    if (special_domain(test_case).rule == SpecialRule::None && !is_mask) continue;
    if (is_mask) rounds.clear();
    if (takes_extremes(test_case.op.type) || is_mask)
      for (const Round& round : rounds_for_extremes()) rounds.push_back(&round);
    if (many && !rounds.empty()) rounds = {rounds[i % rounds.size()]};
    for (const Round* round : rounds) {
      CaseValues changed = values;
      changed[i] = spoiled(*values[i], *round, seed + i);
      if (!f(text("x", i, ": ", round->name), changed)) return;
    }
  }
}

}  // namespace librt::test
