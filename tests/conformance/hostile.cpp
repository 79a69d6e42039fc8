#include "tests/conformance/hostile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/element.h"

namespace librt::test {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kWord = int64_t{1} << 32;

// --- indices

/// Maps entry i of an index operand, with some value, to the value that it counts as; null: the page defines
/// all values.
using Meaning = std::function<int64_t(int64_t i, int64_t value)>;

struct IndexOperand {
  size_t input;
  Meaning meaning;
};

Meaning nearest(int64_t extent) {
  return [extent](int64_t, int64_t value) {
    return std::clamp<int64_t>(value < 0 ? value + extent : value, 0, extent - 1);
  };
}

Meaning of_axis(const Shape& shape, int64_t axis) {
  return nearest(shape[*normalized_axis(axis, shape.rank())]);
}

Meaning of_tuples(const Shape& data, const Shape& indices, int64_t batch) {
  return [=, length = indices.back()](int64_t i, int64_t value) {
    return nearest(data[static_cast<int>(batch + i % length)])(i, value);
  };
}

Meaning of_scatter(const op::TensorScatterAttributes& attributes, const Shape& cache) {
  const int64_t positions = cache[*normalized_axis(attributes.axis, cache.rank())];
  return [=, circular = attributes.circular](int64_t, int64_t value) {
    if (!circular || positions == 0) return std::clamp(value, -positions, positions);
    const int64_t rest = value % positions;
    return rest < 0 ? rest + positions : rest;
  };
}

std::vector<IndexOperand> index_operands(const Case& c, const CaseValues& values) {
  const auto shape = [&](size_t i) { return values[i]->info.shape; };
  std::vector<IndexOperand> found;
  switch (c.op.type) {
    case OpKind::Gather: return {{1, of_axis(shape(0), c.op.AsGather()->axis)}};
    case OpKind::GatherElements: return {{1, of_axis(shape(0), c.op.AsGatherElements()->axis)}};
    case OpKind::ScatterElements: return {{1, of_axis(shape(0), c.op.AsScatterElements()->axis)}};
    case OpKind::ScatterAdd: {
      Shape result;
      for (int64_t i = 0; i < values[0]->info.elements(); ++i)
        result.push_back(load_integer(values[0]->bytes.data(), DType::I64, i));
      return {{1, of_axis(result, c.op.AsScatterAdd()->axis)}};
    }
    case OpKind::GatherND: return {{1, of_tuples(shape(0), shape(1), c.op.AsGatherND()->batch_dimensions)}};
    case OpKind::ScatterND: return {{1, of_tuples(shape(0), shape(1), 0)}};
    case OpKind::RoiAlign:
    case OpKind::RoiAlignGrad:
      return {
          {2, [images = shape(0)[0]](int64_t, int64_t i) { return std::clamp<int64_t>(i, 0, images - 1); }}};
    case OpKind::TensorScatter:
      if (values.size() > 2 && values[2]) return {{2, of_scatter(*c.op.AsTensorScatter(), shape(0))}};
      return {};
    case OpKind::TreeLeaves: {
      const Meaning node = nearest(shape(2)[0]), feature = nearest(shape(0)[1]);
      const auto field = [=](int64_t i, int64_t value) {
        return i % 4 == 0 ? feature(i, value) : i % 4 == 3 ? value : node(i, value);
      };
      return {{1, field}, {3, node}};
    }
    case OpKind::CtcLoss: return {{1, {}}, {2, {}}, {3, {}}};
    case OpKind::SoftmaxCrossEntropy:
    case OpKind::CrossEntropy:
    case OpKind::CrossEntropyGrad:
    case OpKind::RandomUniform:
    case OpKind::RandomNormal: found = {{1, {}}}; break;
    case OpKind::Attention:
    case OpKind::AttentionGrad: found = {{4, {}}, {5, {}}}; break;
    case OpKind::LSTM:
    case OpKind::GRU:
    case OpKind::RNN: found = {{4, {}}}; break;
    case OpKind::LSTMGrad:
    case OpKind::GRUGrad:
    case OpKind::RNNGrad: found = {{5, {}}}; break;
    case OpKind::BlockDequantize:
    case OpKind::Lookup: found = {{0, {}}}; break;
    default: break;
  }
  std::erase_if(found, [&](const IndexOperand& o) { return o.input >= values.size() || !values[o.input]; });
  return found;
}

int64_t saturated(int64_t value, DType dtype) {
  if (dtype != DType::I32) return value;
  return std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
}

/// The operand with new values, and with what they mean.
struct Replaced {
  ops::HostTensor given, meant;
};
Replaced replaced(const ops::HostTensor& operand, const Meaning& meaning,
                  const std::function<int64_t(int64_t i, int64_t valid)>& value) {
  Replaced both{operand, operand};
  const DType dtype = operand.info.dtype;
  for (int64_t i = 0; i < operand.info.elements(); ++i) {
    store_integer(both.given.bytes.data(), dtype, i,
                  saturated(value(i, load_integer(operand.bytes.data(), dtype, i)), dtype));
    const int64_t given = load_integer(both.given.bytes.data(), dtype, i);
    store_integer(both.meant.bytes.data(), dtype, i, meaning ? meaning(i, given) : given);
  }
  return both;
}

/// What the forward pass saves for the gradient of a recurrent operator, whose operands these are: y.
template <class Attributes, class GradAttributes>
ops::HostTensor saved_for(const GradAttributes& gradient, const CaseValues& values) {
  Attributes attributes;
  attributes.hidden = gradient.hidden;
  attributes.direction = gradient.direction;
  attributes.clip = gradient.clip;
  attributes.activations = gradient.activations;
  attributes.alphas = gradient.alphas;
  attributes.betas = gradient.betas;
  if constexpr (requires { gradient.input_forget; }) attributes.input_forget = gradient.input_forget;
  if constexpr (requires { gradient.linear_before_reset; })
    attributes.linear_before_reset = gradient.linear_before_reset;
  Node node{.op = make_op(std::move(attributes)), .name = "forward"};
  std::vector<Operand> operands;
  std::vector<ConstTensorView> views;
  for (const size_t i : std::initializer_list<size_t>{0, 1, 2, 4, 5, 6, 9, 10}) {
    if (i >= 9 && node.kind() != OpKind::LSTM) continue;
    const bool present = i < values.size() && values[i];
    node.inputs.push_back(present ? static_cast<ValueId>(operands.size()) : kNoValue);
    operands.push_back(present ? Operand{true, values[i]->info, values[i]->bytes.data()} : Operand{});
    views.push_back(present ? values[i]->view() : ConstTensorView{});
  }
  for (size_t i = 0; i < (node.kind() == OpKind::LSTM ? 3 : 2); ++i)
    node.outputs.push_back(static_cast<ValueId>(operands.size() + i));
  return ops::evaluate_node({.node = node, .inputs = operands}, views).value()[0];
}

/// Gradients of recurrent operators are given what the forward pass saved for the same lengths.
void save_for_gradient(const Case& c, CaseValues& values) {
  switch (c.op.type) {
    case OpKind::LSTMGrad: values[3] = saved_for<op::LSTMAttributes>(*c.op.AsLSTMGrad(), values); break;
    case OpKind::GRUGrad: values[3] = saved_for<op::GRUAttributes>(*c.op.AsGRUGrad(), values); break;
    case OpKind::RNNGrad: values[3] = saved_for<op::RNNAttributes>(*c.op.AsRNNGrad(), values); break;
    default: break;
  }
}

HostileCase hostile_indices(const Case& c, const CaseValues& values,
                            const std::vector<IndexOperand>& operands, DType dtype) {
  HostileCase hostile{c, values, {}};
  for (const auto& [input, meaning] : operands) {
    hostile.test_case.inputs[input]->constant = false;
    ops::HostTensor& operand = *hostile.values[input];
    if (dtype == operand.info.dtype || size_of(operand.info.dtype) == 1) continue;
    ops::HostTensor cast({.dtype = dtype, .shape = operand.info.shape});
    for (int64_t i = 0; i < operand.info.elements(); ++i)
      store_integer(cast.bytes.data(), dtype, i, load_integer(operand.bytes.data(), operand.info.dtype, i));
    hostile.test_case.inputs[input]->info = cast.info;
    operand = std::move(cast);
  }
  static constexpr int64_t kMixture[] = {
      kLeast,     0,         kMost,         -1,         kWord,         -kWord,
      1,          1 - kWord, 1'000'000'007, -kWord / 2, kWord / 2 - 1, kWord / 2,
      kLeast + 1, 255,       kMost - 1,     kWord + 2,  -1'000'003,    2,
      -7};
  struct {
    const char* name;
    int64_t (*value)(int64_t i, int64_t valid);
  } static constexpr kRounds[] = {
      {"lowest", [](int64_t, int64_t) { return kLeast; }},
      {"highest", [](int64_t, int64_t) { return kMost; }},
      {"valid low words", [](int64_t i, int64_t valid) { return valid + (2 * i + 1) * kWord; }},
      {"valid low words, negative", [](int64_t i, int64_t valid) { return valid - (2 * i + 1) * kWord; }},
      {"mixture", [](int64_t i, int64_t) { return kMixture[static_cast<size_t>(i) % std::size(kMixture)]; }},
      {"mixture, reversed",
       [](int64_t i, int64_t) {
         return kMixture[std::size(kMixture) - 1 - static_cast<size_t>(i) % std::size(kMixture)];
       }},
  };
  for (const auto& [name, value] : kRounds) {
    HostileRound round{name, hostile.values, hostile.values};
    for (const auto& [input, meaning] : operands) {
      Replaced both = replaced(*hostile.values[input], meaning, value);
      round.given[input] = std::move(both.given);
      round.meant[input] = std::move(both.meant);
    }
    save_for_gradient(c, round.given);
    save_for_gradient(c, round.meant);
    hostile.rounds.push_back(std::move(round));
  }
  return hostile;
}

bool takes_both_widths(OpKind kind) {
  switch (kind) {
    case OpKind::Gather:
    case OpKind::GatherElements:
    case OpKind::GatherND:
    case OpKind::ScatterAdd:
    case OpKind::ScatterElements:
    case OpKind::ScatterND:
    case OpKind::RoiAlign:
    case OpKind::RoiAlignGrad:
    case OpKind::TensorScatter:
    case OpKind::CtcLoss:
    case OpKind::SoftmaxCrossEntropy:
    case OpKind::CrossEntropy:
    case OpKind::CrossEntropyGrad: return true;
    default: return false;
  }
}

// --- integer arithmetic

bool takes_integers(OpKind kind) {
  switch (kind) {
    case OpKind::Add:
    case OpKind::Sub:
    case OpKind::Mul:
    case OpKind::Div:
    case OpKind::Mod:
    case OpKind::Pow:
    case OpKind::Minimum:
    case OpKind::Maximum:
    case OpKind::Abs:
    case OpKind::Neg:
    case OpKind::Sign:
    case OpKind::Relu:
    case OpKind::Clip:
    case OpKind::BitShift:
    case OpKind::ReduceSum:
    case OpKind::ReduceMean:
    case OpKind::ReduceProd:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin:
    case OpKind::ArgMax:
    case OpKind::ArgMin:
    case OpKind::CumSum:
    case OpKind::CumProd:
    case OpKind::TopK:
    case OpKind::MaxPool:
    case OpKind::Cast: return true;
    default: return false;
  }
}

/// The extremes of an integer type, in an order that depends on `turn`.
int64_t extreme(DType dtype, int64_t i, int64_t turn, bool zero) {
  const auto bits = static_cast<int>(8 * size_of(dtype));
  const bool is_signed = is_signed_integer(dtype);
  const int64_t least = is_signed ? kLeast >> (64 - bits) : 0;
  const int64_t most = is_signed ? ~least : bits == 64 ? -1 : (int64_t{1} << bits) - 1;  // u64 by its bits
  const int64_t numbers[] = {least,    most, is_signed ? -1 : most, 1, least + 1, most - 1, 2, bits, 3,
                             bits - 1, 0};
  const size_t count = std::size(numbers) - (zero ? 0 : 1);
  int64_t number = numbers[static_cast<size_t>(i * (2 * turn + 1) + turn) % count];
  return number == 0 && !zero ? 1 : number;
}

std::vector<HostileCase> hostile_integers(const Case& c, const CaseValues& values) {
  HostileCase hostile{c, values, {}};
  const bool divides = c.op.type == OpKind::Div || c.op.type == OpKind::Mod;
  for (int64_t turn = 0; turn < 4; ++turn) {
    HostileRound round{text("extremes ", turn), values, {}};
    bool any = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i] || c.inputs[i]->constant || is_float(values[i]->info.dtype) ||
          values[i]->info.dtype == DType::Bool)
        continue;
      any = true;
      for (int64_t k = 0; k < values[i]->info.elements(); ++k)
        store_integer(round.given[i]->bytes.data(), values[i]->info.dtype, k,
                      extreme(values[i]->info.dtype, k + static_cast<int64_t>(i),
                              turn + static_cast<int64_t>(i), !(divides && i == 1)));
    }
    if (!any) return {};
    round.meant = round.given;
    hostile.rounds.push_back(std::move(round));
  }
  // Divided by 0: 0, which is also 0 / 1 and 0 modulo 1.
  if (divides && values[0]->info == values[1]->info) {
    HostileRound round{"divided by 0", hostile.rounds[0].given, hostile.rounds[0].given};
    for (int64_t k = 0; k < values[1]->info.elements(); k += 2) {
      store_integer(round.given[1]->bytes.data(), values[1]->info.dtype, k, 0);
      store_integer(round.meant[0]->bytes.data(), values[0]->info.dtype, k, 0);
      store_integer(round.meant[1]->bytes.data(), values[1]->info.dtype, k, 1);
    }
    hostile.rounds.push_back(std::move(round));
  }
  return {std::move(hostile)};
}

// --- floats that become integers

/// Whether a large negative number is 0 in f32 and tiny in f64 after the activation: divided by 0, it is NaN
/// or -infinity.
bool vanishes(const op::EpilogueAttributes* epilogue) {
  using enum op::Activation;
  return epilogue != nullptr &&
         (epilogue->activation == Silu || epilogue->activation == Gelu || epilogue->activation == GeluTanh);
}

/// Operands that quotients are made with, and values that are rounded or truncated.
std::vector<size_t> rounded_operands(const Case& c) {
  switch (c.op.type) {
    case OpKind::Cast: return {0};
    case OpKind::QuantizeLinear: return {0, 1};
    case OpKind::Requantize: return {1, 2, 3};
    case OpKind::QuantizedAdd: return {2, 4, 6};
    case OpKind::QuantizedConv:
      if (vanishes(c.op.AsQuantizedConv()->epilogue.get())) return {2, 4};
      return {2, 4, 5};
    case OpKind::QuantizedMatMul:
      if (vanishes(c.op.AsQuantizedMatMul()->epilogue.get())) return {2, 4};
      return {2, 4, 5};
    case OpKind::DynamicQuantizeLinear: return {0};
    default: return {};
  }
}

std::vector<HostileCase> hostile_floats(const Case& c, const CaseValues& values, size_t input) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  HostileCase hostile{c, values, {}};
  hostile.test_case.inputs[input]->constant = false;
  const bool scale = input != 0;
  // No scales at the ends of f32, where kernels multiply in f32 and pages in f64.
  const std::vector<double> numbers =
      scale ? std::vector<double>{0, kNan, kInfinity, 1}
            : std::vector<double>{kNan,   kInfinity, -kInfinity, 0x1p31,       -0x1p31, 0x1p63,       -0x1p63,
                                  0x1p64, 1e30,      -1e30,      255.5,        256,     -0.5,         -1,
                                  65536,  -129,      127.9,      32768,        -32769,  4294967295.0, 1e-41,
                                  0.5,    65535.5,   -256,       2147483520.0, 3e9,     -3e9};
  const TensorInfo info = values[input]->info;
  for (size_t first = 0; first < (scale ? numbers.size() : 3); ++first) {
    HostileRound round{text("x", input, " from ", numbers[first]), values, {}};
    for (int64_t k = 0; k < info.elements(); ++k)
      store_element(round.given[input]->bytes.data(), info.dtype, k,
                    numbers[(first + static_cast<size_t>(k)) % numbers.size()]);
    round.meant = round.given;
    hostile.rounds.push_back(std::move(round));
  }
  std::vector<HostileCase> all;
  if (c.inputs[input]->constant)  // kernels may read constants when they are made
    for (const HostileRound& round : hostile.rounds) all.push_back({c, round.given, {round}});
  all.push_back(std::move(hostile));
  return all;
}

}  // namespace

std::vector<HostileCase> hostile_cases(const Case& test_case, const CaseValues& values) {
  std::vector<HostileCase> all;
  if (const auto operands = index_operands(test_case, values); !operands.empty()) {
    const bool both = takes_both_widths(test_case.op.type);
    all.push_back(hostile_indices(test_case, values, operands,
                                  both ? DType::I64 : values[operands[0].input]->info.dtype));
    if (both) all.push_back(hostile_indices(test_case, values, operands, DType::I32));
  }
  if (takes_integers(test_case.op.type))
    for (HostileCase& hostile : hostile_integers(test_case, values)) all.push_back(std::move(hostile));
  for (const size_t input : rounded_operands(test_case))
    if (input < values.size() && values[input] && is_float(values[input]->info.dtype))
      for (HostileCase& hostile : hostile_floats(test_case, values, input)) all.push_back(std::move(hostile));
  return all;
}

}  // namespace librt::test
