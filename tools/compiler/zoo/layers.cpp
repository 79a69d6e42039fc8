#include "tools/compiler/zoo/layers.h"

#include <cmath>
#include <cstring>

#include "runtime/core/random.h"

namespace librt::compiler {

float SeededUniform::next() noexcept {
  return static_cast<float>(static_cast<int64_t>(split_mix(state_) >> 40) - (1 << 23)) * 0x1p-23f;
}

namespace {
ModelGraph empty_model(std::string network) {
  ModelGraph model;
  model.producer = "librt zoo";
  model.entries.push_back({.name = "infer", .graph = {}});
  model.entries.back().graph.name = std::move(network);
  return model;
}
}  // namespace

Layers::Layers(std::string network, uint64_t seed)
    : model_(empty_model(std::move(network))), builder_(model_.entries.front().graph), uniform_(seed) {}

ValueId Layers::input(const std::string& name, DType dtype, std::vector<std::string> dims) {
  std::vector<Dim> parsed;
  for (const std::string& dim : dims) {
    const bool number = !dim.empty() && dim.find_first_not_of("0123456789") == std::string::npos;
    parsed.push_back(number ? Dim{.extent = std::stoll(dim)} : Dim{.symbol = builder_.symbol(dim)});
  }
  return builder_.input(name, dtype, std::move(parsed));
}

ValueId Layers::named_constant(const std::string& name, const Shape& shape, std::vector<float> numbers) {
  auto owner = std::make_shared<std::vector<float>>(std::move(numbers));
  Blob blob;
  blob.data = reinterpret_cast<const std::byte*>(owner->data());
  blob.size = owner->size() * sizeof(float);
  blob.owner = std::move(owner);
  const ValueId id = builder_.constant({.dtype = DType::F32, .shape = shape}, std::move(blob));
  if (id != kNoValue) builder_.graph().values[id].name = name;
  return id;
}

ValueId Layers::weight(const std::string& name, const Shape& shape, int64_t fan_in, double gain) {
  const float limit = static_cast<float>(std::sqrt(3 * gain / static_cast<double>(fan_in)));
  std::vector<float> numbers(static_cast<size_t>(shape.elements()));
  for (float& number : numbers) number = limit * uniform_.next();
  return named_constant(name, shape, std::move(numbers));
}

ValueId Layers::vector(const std::string& name, int64_t size, float value, float deviation) {
  std::vector<float> numbers(static_cast<size_t>(size));
  for (float& number : numbers) number = value + deviation * uniform_.next();
  return named_constant(name, {size}, std::move(numbers));
}

ValueId Layers::conv(const std::string& name, ValueId x, int64_t out_channels, const ConvOptions& options) {
  if (!builder_.status().ok()) return kNoValue;
  builder_.set_scope(name);
  const int64_t in_channels = channels(x) / options.groups;
  const ValueId w = weight(name + ".weight", {out_channels, options.kernel, options.kernel, in_channels},
                           in_channels * options.kernel * options.kernel);
  op::ConvAttributes attributes;
  attributes.strides = {options.stride, options.stride};
  attributes.pads = std::vector<int64_t>(4, options.padding);
  attributes.groups = options.groups;
  const ValueId y = builder_.emit(std::move(attributes), {x, w});
  if (!options.bias) return y;
  return builder_.add(y, vector(name + ".bias", out_channels, 0.0f, 0.05f));
}

ValueId Layers::batch_norm(const std::string& name, ValueId x) {
  if (!builder_.status().ok()) return kNoValue;
  builder_.set_scope(name);
  const int64_t size = channels(x);
  const ValueId scale = vector(name + ".weight", size, 1.0f, 0.1f);
  const ValueId bias = vector(name + ".bias", size, 0.0f, 0.1f);
  const ValueId mean = vector(name + ".running_mean", size, 0.0f, 0.1f);
  const ValueId variance = vector(name + ".running_var", size, 1.0f, 0.2f);
  return builder_.emit(op::BatchNormAttributes{}, {x, scale, bias, mean, variance});
}

ValueId Layers::relu6(ValueId x) {
  op::ClipAttributes attributes;
  attributes.minimum = 0;
  attributes.maximum = 6;
  return builder_.emit(std::move(attributes), {x});
}

ValueId Layers::max_pool(ValueId x, int64_t kernel, int64_t stride, int64_t padding) {
  op::MaxPoolAttributes attributes;
  attributes.kernel = {kernel, kernel};
  attributes.strides = {stride, stride};
  attributes.pads = std::vector<int64_t>(4, padding);
  return builder_.emit(std::move(attributes), {x});
}

ValueId Layers::flatten(ValueId x) {
  if (!builder_.status().ok()) return kNoValue;
  int64_t features = 1;
  const std::vector<Dim>& dims = builder_.value(x).dims;
  for (size_t i = 1; i < dims.size(); ++i) features *= dims[i].extent;
  return builder_.reshape(x, builder_.ints(std::vector<int64_t>{-1, features}));
}

ValueId Layers::linear(const std::string& name, ValueId x, int64_t out_features, bool bias, double gain) {
  if (!builder_.status().ok()) return kNoValue;
  builder_.set_scope(name);
  const int64_t in_features = channels(x);
  const ValueId w = weight(name + ".weight", {in_features, out_features}, in_features, gain);
  const ValueId y = builder_.emit(op::MatMulAttributes{}, {x, w});
  return bias ? builder_.add(y, vector(name + ".bias", out_features, 0.0f, 0.02f)) : y;
}

ValueId Layers::layer_norm(const std::string& name, ValueId x) {
  if (!builder_.status().ok()) return kNoValue;
  builder_.set_scope(name);
  const int64_t size = channels(x);
  op::LayerNormAttributes attributes;
  attributes.epsilon = 1e-12f;
  return builder_.emit(std::move(attributes), {x, vector(name + ".weight", size, 1.0f, 0.1f),
                                               vector(name + ".bias", size, 0.0f, 0.1f)});
}

ValueId Layers::self_attention(const std::string& name, ValueId x, int64_t heads, ValueId hidden) {
  if (!builder_.status().ok()) return kNoValue;
  const int64_t width = channels(x);
  const int64_t head_width = width / heads;
  op::ShapeAttributes leading;
  leading.start = 0;
  leading.end = 2;
  const ValueId batch_and_sequence = builder_.emit(std::move(leading), {x});
  auto with_last = [&](std::vector<int64_t> last) {
    op::ConcatAttributes concat;
    concat.axis = 0;
    return builder_.emit(std::move(concat), {batch_and_sequence, builder_.ints(last)});
  };
  const ValueId split_shape = with_last({heads, head_width});
  auto project = [&](const char* part) {
    const ValueId y = linear(name + "." + part, x, width);
    return builder_.transpose(builder_.reshape(y, split_shape), {0, 2, 1, 3});
  };
  const ValueId query = project("query");
  const ValueId key = project("key");
  const ValueId value = project("value");
  builder_.set_scope(name + ".scores");
  op::MatMulAttributes scores_op;
  scores_op.transpose_b = true;
  ValueId scores = builder_.emit(std::move(scores_op), {query, key});
  scores = builder_.mul(scores, builder_.scalar_like(1 / std::sqrt(static_cast<double>(head_width)), scores));
  if (hidden != kNoValue)
    scores = builder_.emit(op::WhereAttributes{}, {hidden, builder_.scalar_like(-1e9, scores), scores});
  builder_.set_scope(name + ".context");
  const ValueId weights = builder_.emit(op::SoftmaxAttributes{}, {scores});
  const ValueId context = builder_.emit(op::MatMulAttributes{}, {weights, value});
  const ValueId merged = builder_.reshape(builder_.transpose(context, {0, 2, 1, 3}), with_last({width}));
  return linear(name + ".output", merged, width);
}

Result<ModelGraph> Layers::finish(const std::vector<std::pair<std::string, ValueId>>& outputs) {
  RT_TRY(Status(builder_.status()));
  for (const auto& [name, id] : outputs) {
    builder_.graph().values[id].name = name;
    builder_.output(id);
  }
  return std::move(model_);
}

}  // namespace librt::compiler
