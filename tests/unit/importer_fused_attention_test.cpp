// ONNX Runtime's attention operators against plain loops: masks, caches, rotary embeddings, sinks.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/node_model.h"

namespace librt::onnx {
namespace {

using test::at;
using test::expect_near;
using test::NodeModel;
using test::sample_values;
using Numbers = std::vector<double>;

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// The operands of attention, in any layout.
struct Plain {
  size_t batch, heads, queries, keys, width;
  double scale;
  std::function<double(size_t b, size_t h, size_t s, size_t d)> query;
  std::function<double(size_t b, size_t h, size_t t, size_t d)> key, value;
  /// Added to the score; -infinity masks the key.
  std::function<double(size_t b, size_t h, size_t s, size_t t)> mask;
  /// A logit in the softmax that belongs to no key; -infinity: none.
  std::function<double(size_t h)> sink = [](size_t) { return kHidden; };
  double softcap = 0;

  /// [B,S,H D]
  Numbers result() const {
    Numbers y;
    for (size_t b = 0; b < batch; ++b)
      for (size_t s = 0; s < queries; ++s)
        for (size_t h = 0; h < heads; ++h) {
          Numbers weights(keys);
          double largest = sink(h);
          for (size_t t = 0; t < keys; ++t) {
            for (size_t d = 0; d < width; ++d) weights[t] += scale * query(b, h, s, d) * key(b, h, t, d);
            if (softcap != 0) weights[t] = softcap * std::tanh(weights[t] / softcap);
            weights[t] += mask(b, h, s, t);
            largest = std::max(largest, weights[t]);
          }
          double sum = std::exp(sink(h) - largest);
          for (double& weight : weights) sum += weight = std::exp(weight - largest);
          for (size_t d = 0; d < width; ++d) {
            double mean = 0;
            for (size_t t = 0; t < keys; ++t)
              if (weights[t] > 0) mean += weights[t] / sum * value(b, h, t, d);
            y.push_back(mean);
          }
        }
    return y;
  }
};

// --- Attention

struct SelfAttention {
  size_t batch = 2, queries = 3, past = 2, heads = 2, width = 2, input = 3;
  std::vector<float> x = sample_values(18, 1), w = sample_values(36, 2), bias = sample_values(12, 3);
  std::vector<float> cache = sample_values(32, 4);  // [2,B,H,P,D]

  NodeModel model(int outputs) const {
    NodeModel made("Attention", outputs);
    made.constant<float>({2, 3, 3}, x).constant<float>({3, 12}, w).constant<float>({12}, bias);
    made.integer("num_heads", 2);
    return made;
  }
  double projected(size_t b, size_t s, size_t column) const {
    double sum = at(bias, column);
    for (size_t k = 0; k < input; ++k) sum += at(x, (b * queries + s) * input + k) * at(w, k * 12 + column);
    return sum;
  }
  double cached(size_t part, size_t b, size_t h, size_t t, size_t d, size_t length) const {
    if (t < length) return at(cache, (((part * batch + b) * heads + h) * past + t) * width + d);
    return projected(b, t - length, (part + 1) * 4 + h * width + d);
  }
  Plain plain(size_t length) const {
    return {.batch = batch,
            .heads = heads,
            .queries = queries,
            .keys = queries + length,
            .width = width,
            .scale = 1 / std::sqrt(2.0),
            .query = [this](auto b, auto h, auto s, auto d) { return projected(b, s, h * width + d); },
            .key = [=, this](auto b, auto h, auto t, auto d) { return cached(0, b, h, t, d, length); },
            .value = [=, this](auto b, auto h, auto t, auto d) { return cached(1, b, h, t, d, length); },
            .mask = [](auto, auto, auto, auto) { return 0.0; }};
  }
};

TEST(ImporterFusedAttention, MasksAddAFilterToTheScores) {
  const SelfAttention a;
  Plain plain = a.plain(0);
  const std::vector<int32_t> raw{1, 0, 1, 0, 0, 0};  // the second row is fully masked
  plain.mask = [&](auto b, auto, auto, auto t) { return raw[b * 3 + t] > 0 ? 0.0 : -50.0; };
  NodeModel two = a.model(1);
  two.constant<int32_t>({2, 3}, raw).real("mask_filter_value", -50);
  expect_near(two.values()[0], plain.result(), 1e-4);

  const std::vector<int32_t> square{1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0};
  plain.mask = [&](auto b, auto, auto s, auto t) { return square[(b * 3 + s) * 3 + t] > 0 ? 0.0 : -50.0; };
  NodeModel three = a.model(1);
  three.constant<int32_t>({2, 3, 3}, square).real("mask_filter_value", -50);
  expect_near(three.values()[0], plain.result(), 1e-4);

  const size_t ends[] = {2, 3}, starts[] = {0, 1};
  plain.mask = [&](auto b, auto, auto, auto t) { return t < ends[b] && t >= starts[b] ? 0.0 : -10000.0; };
  expect_near(a.model(1).constant<int32_t>({4}, {2, 3, 0, 1}).values()[0], plain.result(), 1e-4);
  plain.mask = [&](auto b, auto, auto, auto t) { return t < ends[b] ? 0.0 : -10000.0; };
  expect_near(a.model(1).constant<int32_t>({2}, {2, 3}).values()[0], plain.result(), 1e-4);
}

TEST(ImporterFusedAttention, APastComesFirstAndIsGivenBack) {
  const SelfAttention a;
  Plain plain = a.plain(2);
  plain.mask = [](auto, auto, auto s, auto t) { return t <= s + 2 ? 0.0 : kHidden; };
  NodeModel causal = a.model(2);
  causal.absent().constant<float>({2, 2, 2, 2, 2}, a.cache).integer("unidirectional", 1);
  const auto found = causal.values();
  expect_near(found[0], plain.result(), 1e-5);
  Numbers present;
  for (size_t part = 0; part < 2; ++part)
    for (size_t b = 0; b < 2; ++b)
      for (size_t h = 0; h < 2; ++h)
        for (size_t t = 0; t < 5; ++t)
          for (size_t d = 0; d < 2; ++d) present.push_back(a.cached(part, b, h, t, d, 2));
  expect_near(found[1], present, 1e-5);
  // Without the attribute nothing is masked, although the queries follow the past.
  NodeModel open = a.model(1);
  open.absent().constant<float>({2, 2, 2, 2, 2}, a.cache);
  expect_near(open.values()[0], a.plain(2).result(), 1e-5);
}

TEST(ImporterFusedAttention, SquareMasksAreSlicedToTheQueriesAndKeys) {
  const SelfAttention a;
  std::vector<int32_t> square(2 * 6 * 6);
  for (size_t i = 0; i < square.size(); ++i) square[i] = i % 3 != 1 ? 1 : 0;
  Plain plain = a.plain(2);
  plain.mask = [&](auto b, auto, auto s, auto t) {
    return square[(b * 6 + s + 2) * 6 + t] > 0 ? 0.0 : -10000.0;
  };
  NodeModel model = a.model(1);
  model.constant<int32_t>({2, 1, 6, 6}, square).constant<float>({2, 2, 2, 2, 2}, a.cache);
  expect_near(model.values()[0], plain.result(), 1e-4);
}

// --- MultiHeadAttention

TEST(ImporterFusedAttention, PackedQueriesKeysAndValuesTakeTheirBiases) {
  const auto packed = sample_values(24, 1), bias = sample_values(12, 2);  // [1,2,H,3,D], H = D = 2
  const auto part = [&](size_t i) {
    return [&, i](size_t, size_t h, size_t s, size_t d) {
      return at(packed, ((s * 2 + h) * 3 + i) * 2 + d) + at(bias, i * 4 + h * 2 + d);
    };
  };
  const Plain plain{.batch = 1,
                    .heads = 2,
                    .queries = 2,
                    .keys = 2,
                    .width = 2,
                    .scale = 0.3,
                    .query = part(0),
                    .key = part(1),
                    .value = part(2),
                    .mask = [](auto, auto, auto, auto) { return 0.0; }};
  NodeModel model("MultiHeadAttention");
  model.constant<float>({1, 2, 2, 3, 2}, packed).absent(2).constant<float>({12}, bias);
  model.integer("num_heads", 2).real("scale", 0.3f);
  expect_near(model.values()[0], plain.result(), 1e-5);
}

TEST(ImporterFusedAttention, BuffersThatAreSharedAreRefused) {
  NodeModel model("MultiHeadAttention");
  model.constant<float>({1, 1, 2}, {1, 2})
      .constant<float>({1, 1, 2}, {1, 2})
      .constant<float>({1, 1, 2}, {1, 2});
  model.absent(5).constant<int32_t>({1}, {3}).integer("num_heads", 1);
  EXPECT_FALSE(model.convert().ok());
  EXPECT_NE(model.report.unsupported.at(0).reason.find("past_sequence_length"), std::string::npos);
}

// --- GroupQueryAttention

/// Four query heads, two key/value heads; a cache with capacity for 8 positions, of which each sequence fills
/// a different number.
struct Decoder {
  size_t queries = 1, capacity = 8;
  std::vector<size_t> valid{6, 4};
  std::vector<float> q = sample_values(2 * 4 * 4, 1), k = sample_values(2 * 2 * 4, 2),
                     v = sample_values(2 * 2 * 4, 3);
  std::vector<float> past_k = sample_values(2 * 2 * 8 * 4, 4), past_v = sample_values(2 * 2 * 8 * 4, 5);
  std::vector<float> cosines = sample_values(20, 6), sines = sample_values(20, 7);  // [10,2]

  NodeModel model() const {
    NodeModel made("GroupQueryAttention", 3);
    made.constant<float>({2, 1, 16}, q).constant<float>({2, 1, 8}, k).constant<float>({2, 1, 8}, v);
    made.constant<float>({2, 2, 8, 4}, past_k).constant<float>({2, 2, 8, 4}, past_v);
    made.constant<int32_t>({2}, {5, 3}).number<int32_t>(6);
    made.integer("num_heads", 4).integer("kv_num_heads", 2);
    return made;
  }
  size_t position(size_t b) const { return valid[b] - 1; }
  // The pairs (d, d + 2) are rotated; nothing is without a position.
  double rotated(const std::vector<float>& x, size_t row, size_t d, int64_t position) const {
    const double own = at(x, row * 4 + d), other = at(x, row * 4 + (d + 2) % 4);
    if (position < 0) return own;
    const size_t i = static_cast<size_t>(position) * 2 + d % 2;
    return own * at(cosines, i) + (d < 2 ? -other : other) * at(sines, i);
  }
  double entry(const std::vector<float>& past, const std::vector<float>& fresh, size_t b, size_t group,
               size_t t, size_t d, bool rotary) const {
    if (t == position(b)) return rotated(fresh, b * 2 + group, d, rotary ? static_cast<int64_t>(t) : -1);
    return at(past, ((b * 2 + group) * capacity + t) * 4 + d);
  }
  Plain plain(bool rotary) const {
    return {
        .batch = 2,
        .heads = 4,
        .queries = 1,
        .keys = capacity,
        .width = 4,
        .scale = 0.5,
        .query =
            [=, this](auto b, auto h, auto, auto d) {
              return rotated(q, b * 4 + h, d, rotary ? static_cast<int64_t>(position(b)) : -1);
            },
        .key = [=, this](auto b, auto h, auto t, auto d) { return entry(past_k, k, b, h / 2, t, d, rotary); },
        .value = [this](auto b, auto h, auto t, auto d) { return entry(past_v, v, b, h / 2, t, d, false); },
        .mask = [this](auto b, auto, auto, auto t) { return t <= position(b) ? 0.0 : kHidden; }};
  }
};

TEST(ImporterFusedAttention, GroupsWriteIntoTheCacheWhereEachSequenceEnds) {
  const Decoder a;
  NodeModel model = a.model();
  model.constant<float>({10, 2}, a.cosines).constant<float>({10, 2}, a.sines).integer("do_rotary", 1);
  const auto found = model.values();
  expect_near(found[0], a.plain(true).result(), 1e-5);
  Numbers keys;
  for (size_t b = 0; b < 2; ++b)
    for (size_t g = 0; g < 2; ++g)
      for (size_t t = 0; t < 8; ++t)
        for (size_t d = 0; d < 4; ++d) keys.push_back(a.entry(a.past_k, a.k, b, g, t, d, true));
  expect_near(found[1], keys, 1e-5);
}

TEST(ImporterFusedAttention, WindowsCountTheQuerysOwnPosition) {
  const Decoder a;
  Plain plain = a.plain(false);
  plain.softcap = 0.7;
  plain.mask = [&](auto b, auto, auto, auto t) {
    return t <= a.position(b) && t + 3 > a.position(b) ? 0.0 : kHidden;
  };
  NodeModel model = a.model();
  model.integer("local_window_size", 3).real("softcap", 0.7f);
  expect_near(model.values()[0], plain.result(), 1e-5);
}

TEST(ImporterFusedAttention, SinksTakePartInTheSoftmaxOfAWindow) {
  const Decoder a;
  const auto sinks = sample_values(4, 9, 2), bias = sample_values(2 * 4 * 6, 10);
  Plain plain = a.plain(false);
  plain.sink = [&](size_t h) { return at(sinks, h); };
  plain.mask = [&](auto b, auto h, auto, auto t) {
    return t <= a.position(b) && t + 3 > a.position(b) ? at(bias, (b * 4 + h) * 6 + t) : kHidden;
  };
  NodeModel model = a.model();
  model.absent(3)
      .constant<float>({2, 4, 1, 6}, bias)
      .constant<float>({4}, sinks)
      .integer("local_window_size", 3);
  expect_near(model.values()[0], plain.result(), 1e-5);
  NodeModel smooth = a.model();
  smooth.integer("smooth_softmax", 1);
  plain = a.plain(false);
  plain.sink = [](size_t) { return 0.0; };
  expect_near(smooth.values()[0], plain.result(), 1e-5);
}

TEST(ImporterFusedAttention, HeadsAreNormalizedBeforeRotation) {
  Decoder a;
  const std::vector<float> of_query{1, 2, 0.5f, 1}, of_key{0.5f, 1, 1, 3};
  NodeModel model = a.model();
  model.constant<float>({10, 2}, a.cosines).constant<float>({10, 2}, a.sines).integer("do_rotary", 1);
  model.absent(5).constant<float>({4}, of_query).constant<float>({4}, of_key).real("qk_norm_epsilon", 0.1f);
  const auto found = model.values();
  const auto normalize = [](std::vector<float>& x, const std::vector<float>& weight) {
    for (size_t row = 0; row < x.size(); row += 4) {
      double square = 0;
      for (size_t d = 0; d < 4; ++d) square += at(x, row + d) * at(x, row + d) / 4;
      for (size_t d = 0; d < 4; ++d)
        x[row + d] = static_cast<float>(at(x, row + d) / std::sqrt(square + 0.1) * at(weight, d));
    }
  };
  normalize(a.q, of_query);
  normalize(a.k, of_key);
  expect_near(found[0], a.plain(true).result(), 1e-5);
}

TEST(ImporterFusedAttention, CachesOfBytesAreRefused) {
  NodeModel model = Decoder().model();
  model.string("k_quant_type", "PER_TENSOR");
  EXPECT_FALSE(model.convert().ok());
  EXPECT_NE(model.report.unsupported.at(0).reason.find("quantized caches"), std::string::npos);
}

// --- RotaryEmbedding

TEST(ImporterFusedAttention, PositionsBeginAtAScalarOffset) {
  const Decoder a;
  const auto x = sample_values(8, 1);  // [1,2 positions,4], one head
  Numbers expected;
  for (size_t s = 0; s < 2; ++s)
    for (size_t d = 0; d < 4; ++d) expected.push_back(a.rotated(x, s, d, static_cast<int64_t>(s) + 5));
  NodeModel model("RotaryEmbedding");
  model.constant<float>({1, 2, 4}, x).constant<int64_t>({1}, {5});
  model.constant<float>({10, 2}, a.cosines).constant<float>({10, 2}, a.sines);
  expect_near(model.values()[0], expected, 1e-5);
}

}  // namespace
}  // namespace librt::onnx
