#include "tools/compiler/zoo/transformers.h"

#include "tools/compiler/zoo/layers.h"

namespace librt::compiler {
namespace {

constexpr int64_t kWidth = 768;
constexpr int64_t kHeads = 12;

ValueId gelu(Layers& net, ValueId x, bool tanh_approximation) {
  op::GeluAttributes attributes;
  attributes.tanh_approximation = tanh_approximation;
  return net.builder().emit(std::move(attributes), {x});
}

ValueId sequence_length(Layers& net, ValueId tokens) {
  op::ShapeAttributes attributes;
  attributes.start = 1;
  attributes.end = 2;
  return net.builder().emit(std::move(attributes), {tokens});
}

// Row p of the position table for position p: [S, width].
ValueId position_embedding(Layers& net, const std::string& name, ValueId tokens, int64_t positions,
                           int64_t width) {
  Builder& builder = net.builder();
  const ValueId table = net.weight(name, {positions, width}, width, 1);
  op::SliceAttributes slice;
  slice.axes = {0};
  slice.steps = {1};
  return builder.emit(std::move(slice),
                      {table, builder.ints(std::vector<int64_t>{0}), sequence_length(net, tokens)});
}

// Devlin et al. 2019: post-norm encoder layer.
ValueId bert_layer(Layers& net, const std::string& name, ValueId x) {
  Builder& builder = net.builder();
  const ValueId attended = net.self_attention(name + ".attention", x, kHeads, kNoValue);
  x = net.layer_norm(name + ".attention.norm", builder.add(attended, x));
  ValueId y = gelu(net, net.linear(name + ".intermediate", x, 4 * kWidth), false);
  y = net.linear(name + ".output", y, kWidth);
  return net.layer_norm(name + ".output.norm", builder.add(y, x));
}

// Radford et al. 2019: pre-norm decoder layer.
ValueId gpt2_layer(Layers& net, const std::string& name, ValueId x, int64_t heads, ValueId hidden) {
  Builder& builder = net.builder();
  if (!builder.status().ok()) return kNoValue;
  const int64_t width = builder.value(x).dims.back().extent;
  x = builder.add(x, net.self_attention(name + ".attn", net.layer_norm(name + ".ln_1", x), heads, hidden));
  ValueId y = net.linear(name + ".mlp.fc", net.layer_norm(name + ".ln_2", x), 4 * width);
  y = net.linear(name + ".mlp.proj", gelu(net, y, true), width);
  return builder.add(x, y);
}

// True where key position > query position: [S, S].
ValueId future_mask(Layers& net, ValueId tokens) {
  Builder& builder = net.builder();
  builder.set_scope("causal_mask");
  auto scalar = [&](int64_t number) {
    return builder.constant({.dtype = DType::I64, .shape = {}}, Blob::copy_of(&number, sizeof number));
  };
  const ValueId length =
      builder.reshape(sequence_length(net, tokens), builder.ints(std::span<const int64_t>{}));
  const ValueId keys = builder.emit(op::RangeAttributes{}, {scalar(0), length, scalar(1)});
  const ValueId queries = builder.reshape(keys, builder.ints(std::vector<int64_t>{-1, 1}));
  return builder.emit(op::GreaterAttributes{}, {keys, queries});
}

}  // namespace

Result<ModelGraph> build_bert_base() {
  Layers net("bert_base", 6);
  Builder& builder = net.builder();
  const ValueId tokens = net.input("input_ids", DType::I64, {"batch", "sequence"});
  if (!builder.status().ok()) return Status(builder.status());
  builder.graph().symbols[1].bound = 512;
  const ValueId words = net.weight("embeddings.word.weight", {30522, kWidth}, kWidth, 1);
  ValueId x = builder.emit(op::GatherAttributes{}, {words, tokens});
  x = builder.add(x, position_embedding(net, "embeddings.position.weight", tokens, 512, kWidth));
  x = builder.add(x, net.vector("embeddings.token_type.weight", kWidth, 0.0f, 0.04f));
  x = net.layer_norm("embeddings.norm", x);
  for (int layer = 0; layer < 12; ++layer) x = bert_layer(net, text("encoder.", layer), x);
  return net.finish({{"last_hidden_state", x}});
}

Result<ModelGraph> build_bert_layer() {
  Layers net("bert_layer", 7);
  const ValueId x = net.input("hidden_state", DType::F32, {"batch", "sequence", "768"});
  return net.finish({{"output", bert_layer(net, "layer", x)}});
}

namespace {

struct Decoder {
  const char* name;
  uint64_t seed;
  int64_t vocabulary, positions, width, heads;
  int layers;
};

// GPT-2's structure at any size: token ids [batch, sequence] -> logits [batch, sequence, vocabulary].
Result<ModelGraph> build_decoder(const Decoder& size) {
  Layers net(size.name, size.seed);
  Builder& builder = net.builder();
  const ValueId tokens = net.input("input_ids", DType::I64, {"batch", "sequence"});
  if (!builder.status().ok()) return Status(builder.status());
  builder.graph().symbols[1].bound = size.positions;
  const ValueId words = net.weight("wte.weight", {size.vocabulary, size.width}, size.width, 1);
  ValueId x = builder.emit(op::GatherAttributes{}, {words, tokens});
  x = builder.add(x, position_embedding(net, "wpe.weight", tokens, size.positions, size.width));
  const ValueId hidden = future_mask(net, tokens);
  for (int layer = 0; layer < size.layers; ++layer)
    x = gpt2_layer(net, text("h.", layer), x, size.heads, hidden);
  x = net.layer_norm("ln_f", x);
  op::MatMulAttributes head;  // the classifier shares the embedding
  head.transpose_b = true;
  return net.finish({{"logits", builder.emit(std::move(head), {x, words})}});
}

}  // namespace

Result<ModelGraph> build_gpt2_small() {
  return build_decoder({.name = "gpt2_small",
                        .seed = 8,
                        .vocabulary = 50257,
                        .positions = 1024,
                        .width = kWidth,
                        .heads = kHeads,
                        .layers = 12});
}

Result<ModelGraph> build_char_transformer() {
  return build_decoder({.name = "char_transformer",
                        .seed = 9,
                        .vocabulary = 256,
                        .positions = 256,
                        .width = 128,
                        .heads = 4,
                        .layers = 4});
}

// Kim 2014, over bytes: convolutions of several widths, the maximum of each over time, a linear classifier.
Result<ModelGraph> build_text_classifier() {
  constexpr int64_t kEmbedding = 32, kChannels = 64;
  Layers net("text_classifier", 10);
  Builder& builder = net.builder();
  const ValueId tokens = net.input("input_ids", DType::I64, {"batch", "sequence"});
  const ValueId table = net.weight("embedding.weight", {256, kEmbedding}, kEmbedding, 1);
  const ValueId x = builder.emit(op::GatherAttributes{}, {table, tokens});
  std::vector<ValueId> answers;
  for (int64_t width : {3, 5, 7}) {
    const std::string name = text("conv", width);
    builder.set_scope(name);
    op::ConvAttributes conv;
    conv.strides = {1};
    conv.pads = {width / 2, width / 2};
    const ValueId weight = net.weight(name + ".weight", {kChannels, width, kEmbedding}, width * kEmbedding);
    const ValueId y = builder.emit(std::move(conv), {x, weight});
    op::ReduceMaxAttributes largest;
    largest.axes = {1};
    largest.keep_dims = false;
    answers.push_back(builder.emit(
        std::move(largest), {net.relu(builder.add(y, net.vector(name + ".bias", kChannels, 0.0f, 0.05f)))}));
  }
  op::ConcatAttributes concat;
  concat.axis = 1;
  return net.finish(
      {{"logits",
        net.linear("fc", builder.emit(std::move(concat), {answers[0], answers[1], answers[2]}), 2)}});
}

}  // namespace librt::compiler
