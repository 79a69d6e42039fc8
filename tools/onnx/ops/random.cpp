// Random numbers and sampling. A given seed determines a stream that is the same in every run and on every
// device; without one it is derived from the node's name, so that nodes differ.
#include <bit>
#include <optional>

#include "runtime/core/hash.h"
#include "tools/compiler/train/training_graph.h"
#include "tools/onnx/narrow.h"
#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// Hash of the node's name and its first output.
int64_t seed_of_name(const NodeContext& c) {
  const std::string name = c.node.name() + '\n' + (c.node.output_size() > 0 ? c.node.output(0) : "");
  return static_cast<int64_t>(hash_bytes(name.data(), name.size()));
}

int64_t float_seed(NodeContext& c) {
  if (c.attribute("seed") == nullptr) return seed_of_name(c);
  return static_cast<int64_t>(std::bit_cast<uint32_t>(c.real("seed", 0)));
}

int64_t integer_seed(NodeContext& c) {
  return c.attribute("seed") == nullptr ? seed_of_name(c) : c.integer("seed", 0);
}

/// The attribute dtype, a type number of TensorProto.
Result<DType> dtype_attribute(NodeContext& c, DType otherwise) {
  if (c.attribute("dtype") == nullptr) return otherwise;
  RT_ASSIGN(const OnnxType type, onnx_type(c.integer("dtype", 0)));
  if (type.narrow != nullptr) return cannot("random numbers of a type narrower than 16 bits");
  return type.dtype;
}

ValueId uniform(NodeContext& c, ValueId shape, DType dtype, int64_t seed, float low = 0, float high = 1) {
  op::RandomUniformAttributes attributes;
  attributes.to = static_cast<uint8_t>(dtype);
  attributes.low = low;
  attributes.high = high;
  attributes.seed = seed;
  return c.emit.emit(attributes, {shape});
}

ValueId draw(NodeContext& c, ValueId shape, DType dtype, bool is_normal) {
  const int64_t seed = float_seed(c);
  if (!is_normal) return uniform(c, shape, dtype, seed, c.real("low", 0), c.real("high", 1));
  op::RandomNormalAttributes attributes;
  attributes.to = static_cast<uint8_t>(dtype);
  attributes.mean = c.real("mean", 0);
  attributes.scale = c.real("scale", 1);
  attributes.seed = seed;
  return c.emit.emit(attributes, {shape});
}

template <bool kNormal>
Status random_values(NodeContext& c) {
  RT_TRY(c.expect_inputs(0, 0));
  RT_ASSIGN(const DType dtype, dtype_attribute(c, DType::F32));
  return c.result(draw(c, c.emit.ints(c.integers("shape")), dtype, kNormal));
}

template <bool kNormal>
Status random_like(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const DType dtype, dtype_attribute(c, c.dtype()));
  if (!is_float(dtype))
    return cannot("random numbers of type ", name_of(dtype), "; set dtype to a float type");
  return c.result(draw(c, shape_vector(c.emit, extents_of(c.emit, c.input(0))), dtype, kNormal));
}

// 1 with the probability given by the input
Status bernoulli(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const DType dtype, dtype_attribute(c, c.dtype()));
  const ValueId shape = shape_vector(c.emit, extents_of(c.emit, c.input(0)));
  const ValueId number = uniform(c, shape, c.dtype(), float_seed(c));
  return c.result(c.emit.cast(c.emit.emit(op::LessAttributes{}, {number, c.input(0)}), dtype));
}

// For each sample the class at which the cumulative sum of probabilities exceeds a uniform random number.
Status multinomial(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  if (c.rank() != 2) return invalid_model("expected an input [batch, classes], found rank ", c.rank());
  RT_ASSIGN(const DType dtype, dtype_attribute(c, DType::I32));
  const int64_t samples = c.integer("sample_size", 1);
  if (samples < 0) return invalid_model("sample_size: expected 0 or more, found ", samples);
  op::SoftmaxAttributes softmax;
  softmax.axis = 1;
  op::CumSumAttributes running;
  running.axis = 1;
  const ValueId sums = c.emit.emit(running, {c.emit.emit(softmax, {c.input(0)})});
  const Extent batch = Extent::dim(c.emit, c.input(0), 0);
  const std::vector<Extent> wanted{batch, Extent::of(samples), Extent::of(1)};
  const ValueId number = uniform(c, shape_vector(c.emit, wanted), c.dtype(), float_seed(c));
  const int axes[] = {1};
  const ValueId passed = c.emit.emit(op::LessOrEqualAttributes{}, {unsqueeze(c.emit, sums, axes), number});
  const ValueId count = c.emit.reduce_sum(c.emit.cast(passed, DType::I64), {2}, false);
  // Rounding may leave the last sum below 1.
  const ValueId classes = reshape_to(c.emit, dims_product(c.emit, c.input(0), 1, 2), {});
  const ValueId last = c.emit.sub(classes, c.emit.scalar(1, DType::I64));
  return c.result(c.emit.cast(c.emit.emit(op::MinimumAttributes{}, {count, last}), dtype));
}

// --- Dropout
// -----------------------------------------------------------------------------------------------

compiler::Dropped drop(NodeContext& c, ValueId ratio) {
  const ValueId x = c.input(0);
  if (c.value(ratio).dtype != c.dtype()) ratio = c.emit.cast(ratio, c.dtype());
  return compiler::emit_dropout(c.emit, x, ratio, shape_vector(c.emit, extents_of(c.emit, x)),
                                integer_seed(c));
}

ValueId all_true(NodeContext& c, DType dtype) {
  op::ConstantOfShapeAttributes ones;
  ones.dtype = static_cast<uint8_t>(dtype);
  ones.value = 1;
  return c.emit.emit(ones, {shape_vector(c.emit, extents_of(c.emit, c.input(0)))});
}

// Before opset 12 nothing is dropped: these versions train by another attribute, or not at all.
Status dropout_attributes(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"ratio", "is_test", "consumed_inputs"});
  c.outputs = {c.input(0)};
  if (c.wants(1)) c.outputs.push_back(all_true(c, c.opset < 10 ? c.dtype() : DType::Bool));
  return {};
}

/// True or false where it is known.
std::optional<bool> trains(const NodeContext& c) {
  if (!c.has(2)) return false;
  const auto known = c.known_integers(2, "training_mode");
  if (!known.ok() || known->empty()) return std::nullopt;
  return (*known)[0] != 0;
}

Status dropout_inputs(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 3));
  const std::optional<bool> training = trains(c);
  if (training == false) {
    c.ignore({"seed"});
    c.outputs = {c.input(0)};
    if (c.wants(1)) c.outputs.push_back(all_true(c, DType::Bool));
    return {};
  }
  compiler::Dropped dropped = drop(c, c.has(1) ? c.input(1) : c.emit.scalar(0.5, c.dtype()));
  if (!training) {  // decided at run time
    const ValueId rests = c.emit.emit(op::NotAttributes{}, {c.input(2)});
    dropped.y = c.emit.emit(op::WhereAttributes{}, {c.input(2), dropped.y, c.input(0)});
    dropped.mask = c.emit.emit(op::OrAttributes{}, {rests, dropped.mask});
  }
  c.outputs = {dropped.y};
  if (c.wants(1)) c.outputs.push_back(dropped.mask);
  return {};
}

constexpr ImportRow kRandomRows[] = {
    {"", "RandomUniform", 1, kNewestOpset, random_values<false>},
    {"", "RandomNormal", 1, kNewestOpset, random_values<true>},
    {"", "RandomUniformLike", 1, kNewestOpset, random_like<false>},
    {"", "RandomNormalLike", 1, kNewestOpset, random_like<true>},
    {"", "Bernoulli", 15, kNewestOpset, bernoulli},
    {"", "Multinomial", 7, kNewestOpset, multinomial},
    {"", "Dropout", 1, 11, dropout_attributes},
    {"", "Dropout", 12, kNewestOpset, dropout_inputs},
};

}  // namespace

std::span<const ImportRow> rows_random() {
  return kRandomRows;
}

}  // namespace librt::onnx
