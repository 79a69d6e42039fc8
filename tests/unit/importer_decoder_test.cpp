// What language models are exported with for ONNX Runtime beside attention: mixtures of experts, embeddings
// of few bits, states and caches of fixed size, positions in three directions. Against plain loops.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/node_model.h"

namespace librt::onnx {
namespace {

using test::expect_near;
using test::NodeModel;
using test::sample_values;
using test::sigmoid;
using Numbers = std::vector<double>;

/// Pseudorandom bytes.
std::vector<uint8_t> sample_bytes(size_t count, int seed) {
  const std::vector<float> numbers = sample_values(count, seed, 128);
  std::vector<uint8_t> bytes;
  for (const float number : numbers) bytes.push_back(static_cast<uint8_t>(static_cast<int>(number) + 128));
  return bytes;
}
/// Value i of those packed from the low bits on.
int packed_value(const std::vector<uint8_t>& bytes, size_t i, size_t bits) {
  const size_t per_byte = 8 / bits;
  return bytes[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1);
}

// --- GatherBlockQuantized

TEST(ImporterDecoder, RowsOfFewBitsAreGatheredAndDequantized) {
  constexpr size_t kRows = 5, kColumns = 48, kBlock = 32, kBlocks = 2;
  const std::vector<int64_t> rows{3, 0, -1};
  const std::vector<float> scales = sample_values(kRows * kBlocks, 3);
  for (const size_t bits : {size_t{2}, size_t{4}, size_t{8}})
    for (const bool has_zeros : {false, true}) {
      const size_t per_byte = 8 / bits, zero_bytes = (kBlocks + per_byte - 1) / per_byte;
      const std::vector<uint8_t> data = sample_bytes(kRows * kColumns / per_byte, 1);
      const std::vector<uint8_t> zeros = sample_bytes(kRows * zero_bytes, 2);
      NodeModel model("GatherBlockQuantized");
      model.constant<uint8_t>({kRows, static_cast<int64_t>(kColumns / per_byte)}, data)
          .input<int64_t>({3}, rows, {{0, "count"}})
          .constant<float>({kRows, kBlocks}, scales);
      if (has_zeros) model.constant<uint8_t>({kRows, static_cast<int64_t>(zero_bytes)}, zeros);
      model.integer("bits", static_cast<int64_t>(bits))
          .integer("block_size", kBlock)
          .integer("quantize_axis", 1);
      Numbers expected;
      for (const int64_t row : rows)
        for (size_t column = 0; column < kColumns; ++column) {
          const size_t at = static_cast<size_t>(row < 0 ? row + 5 : row), block = column / kBlock;
          const int zero =
              has_zeros ? packed_value(zeros, at * zero_bytes * per_byte + block, bits) : 1 << (bits - 1);
          expected.push_back((packed_value(data, at * kColumns + column, bits) - zero) *
                             test::at(scales, at * kBlocks + block));
        }
      expect_near(model.values()[0], expected, 1e-5);
    }
}

// The first value of a byte is in its high bits; blocks run over the flattened weight.
TEST(ImporterDecoder, WeightsOfFourBitFloats) {
  constexpr size_t kRows = 2, kOut = 3, kIn = 8, kBlock = 16;
  const std::vector<float> x = sample_values(kRows * kIn, 1), largest = sample_values(2, 2);
  const std::vector<uint8_t> bytes = sample_bytes(kOut * kIn / 2, 3);
  const double float4[] = {0, 1.0 / 192, 2.0 / 3, 1, 1.0 / 3, 0.5, 1.0 / 6, 0.25};
  const double normal4[] = {-1,         -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734,
                            -0.0910500, 0,          0.0795803,  0.1609302,  0.2461123,  0.3379152,
                            0.4407098,  0.5626170,  0.7229568,  1};
  for (const int64_t type : {0, 1}) {
    Numbers expected(kRows * kOut);
    for (size_t i = 0; i < kOut * kIn; ++i) {
      const size_t code = i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
      const double value = type == 1 ? normal4[code] : (code < 8 ? 1 : -1) * float4[code % 8];
      for (size_t row = 0; row < kRows; ++row)
        expected[row * kOut + i / kIn] +=
            value * test::at(largest, i / kBlock) * test::at(x, row * kIn + i % kIn);
    }
    NodeModel model("MatMulBnb4");
    model.input<float>({2, 8}, x, {{0, "rows"}}).constant<uint8_t>({12}, bytes).constant<float>({2}, largest);
    model.integer("K", kIn).integer("N", kOut).integer("block_size", kBlock).integer("quant_type", type);
    expect_near(model.values()[0], expected, 1e-5);
  }
}

// --- mixtures of experts

constexpr size_t kExperts = 4, kHidden = 16, kInner = 32;

/// Each token's sum over its two best experts, of interleaved SwiGLU with a slope of 1.702, a shift of 1 and
/// a limit.
struct Mixture {
  std::function<double(size_t expert, size_t row, size_t column)> first, second;
  std::vector<float> first_bias = sample_values(kExperts * 2 * kInner, 11);
  std::vector<float> second_bias = sample_values(kExperts * kHidden, 12);
  double limit = 0.75;

  Numbers network(size_t expert, const float* x) const {
    Numbers rows(kInner), y;
    for (size_t i = 0; i < kInner; ++i) {
      double half[2];
      for (size_t part = 0; part < 2; ++part) {
        half[part] = test::at(first_bias, expert * 2 * kInner + 2 * i + part);
        for (size_t k = 0; k < kHidden; ++k)
          half[part] += first(expert, 2 * i + part, k) * static_cast<double>(x[k]);
      }
      const double gate = std::min(half[0], limit), linear = std::clamp(half[1], -limit, limit);
      rows[i] = gate * sigmoid(1.702 * gate) * (linear + 1);
    }
    for (size_t o = 0; o < kHidden; ++o) {
      double sum = test::at(second_bias, expert * kHidden + o);
      for (size_t i = 0; i < kInner; ++i) sum += second(expert, o, i) * rows[i];
      y.push_back(sum);
    }
    return y;
  }

  Numbers result(const std::vector<float>& x, const std::vector<float>& scores, bool normalizes) const {
    Numbers y;
    for (size_t t = 0; t * kHidden < x.size(); ++t) {
      std::vector<size_t> order{0, 1, 2, 3};
      std::ranges::sort(order, [&](size_t a, size_t b) { return scores[t * 4 + a] > scores[t * 4 + b]; });
      double all = 0, best = 0;
      const auto power = [&](size_t e) { return std::exp(test::at(scores, t * kExperts + e)); };
      for (size_t i = 0; i < kExperts; ++i) (i < 2 ? best : all) += power(order[i]);
      Numbers sum(kHidden);
      for (size_t i = 0; i < 2; ++i) {
        const Numbers own = network(order[i], x.data() + t * kHidden);
        for (size_t o = 0; o < kHidden; ++o)
          sum[o] += power(order[i]) / (normalizes ? best : all + best) * own[o];
      }
      y.insert(y.end(), sum.begin(), sum.end());
    }
    return y;
  }

  static void set(NodeModel& model, bool normalizes) {
    model.integer("k", 2).string("activation_type", "swiglu").integer("swiglu_fusion", 1);
    model.real("activation_alpha", 1.702f).real("activation_beta", 1).real("swiglu_limit", 0.75f);
    model.integer("normalize_routing_weights", normalizes ? 1 : 0);
  }
};

// With an open number of tokens, one token reads only its own experts' weights.
TEST(ImporterDecoder, TokensGoThroughTheirBestExperts) {
  const std::vector<float> w1 = sample_values(kExperts * 2 * kInner * kHidden, 1, 0.5f);
  const std::vector<float> w2 = sample_values(kExperts * kHidden * kInner, 2, 0.5f);
  Mixture mixture;
  mixture.first = [&](size_t e, size_t row, size_t k) {
    return test::at(w1, (e * 2 * kInner + row) * kHidden + k);
  };
  mixture.second = [&](size_t e, size_t row, size_t k) {
    return test::at(w2, (e * kHidden + row) * kInner + k);
  };
  for (const int64_t tokens : {1, 3})
    for (const bool open : {false, true})
      for (const bool normalizes : {false, true}) {
        const auto count = static_cast<size_t>(tokens);
        const std::vector<float> x = sample_values(count * kHidden, 3),
                                 scores = sample_values(count * kExperts, 4, 2);
        std::map<size_t, std::string> axes;
        if (open) axes = {{0, "tokens"}};
        NodeModel model("MoE");
        model.input<float>({tokens, kHidden}, x, axes).input<float>({tokens, kExperts}, scores, axes);
        model.constant<float>({kExperts, 2 * kInner, kHidden}, w1);
        model.constant<float>({kExperts, 2 * kInner}, mixture.first_bias);
        model.constant<float>({kExperts, kHidden, kInner}, w2);
        model.constant<float>({kExperts, kHidden}, mixture.second_bias);
        Mixture::set(model, normalizes);
        expect_near(model.values()[0], mixture.result(x, scores, normalizes), 1e-4);
      }
}

TEST(ImporterDecoder, ExpertsOfFourBitsHaveBlocksAndZeroPoints) {
  constexpr size_t kBlock = 16, kBlocks1 = kHidden / kBlock, kBlocks2 = kInner / kBlock;
  const std::vector<uint8_t> w1 = sample_bytes(kExperts * 2 * kInner * kHidden / 2, 1);
  const std::vector<uint8_t> w2 = sample_bytes(kExperts * kHidden * kInner / 2, 2);
  const std::vector<float> s1 = sample_values(kExperts * 2 * kInner * kBlocks1, 5, 0.05f);
  const std::vector<float> s2 = sample_values(kExperts * kHidden * kBlocks2, 6, 0.05f);
  const std::vector<uint8_t> z1 = sample_bytes(kExperts * 2 * kInner, 7);  // a byte for one zero point
  const std::vector<uint8_t> z2 = sample_bytes(kExperts * kHidden, 8);     // a byte for two
  Mixture mixture;
  mixture.first = [&](size_t e, size_t row, size_t k) {
    const size_t at = e * 2 * kInner + row;
    return (packed_value(w1, at * kHidden + k, 4) - (z1[at] & 15)) * test::at(s1, at * kBlocks1 + k / kBlock);
  };
  mixture.second = [&](size_t e, size_t row, size_t k) {
    const size_t at = e * kHidden + row;
    return (packed_value(w2, at * kInner + k, 4) - packed_value(z2, at * 2 + k / kBlock, 4)) *
           test::at(s2, at * kBlocks2 + k / kBlock);
  };
  for (const int64_t tokens : {1, 3}) {
    const auto count = static_cast<size_t>(tokens);
    const std::vector<float> x = sample_values(count * kHidden, 3),
                             scores = sample_values(count * kExperts, 4, 2);
    NodeModel model("QMoE");
    model.input<float>({tokens, kHidden}, x, {{0, "tokens"}})
        .input<float>({tokens, kExperts}, scores, {{0, "tokens"}});
    model.constant<uint8_t>({kExperts, 2 * kInner, kHidden / 2}, w1);
    model.constant<float>({kExperts, 2 * kInner, kBlocks1}, s1);
    model.constant<float>({kExperts, 2 * kInner}, mixture.first_bias);
    model.constant<uint8_t>({kExperts, kHidden, kInner / 2}, w2);
    model.constant<float>({kExperts, kHidden, kBlocks2}, s2);
    model.constant<float>({kExperts, kHidden}, mixture.second_bias).absent(3);
    model.constant<uint8_t>({kExperts, 2 * kInner, 1}, z1).constant<uint8_t>({kExperts, kHidden, 1}, z2);
    Mixture::set(model, true);
    model.integer("expert_weight_bits", 4).integer("block_size", kBlock);
    expect_near(model.values()[0], mixture.result(x, scores, true), 1e-4);
  }
}

TEST(ImporterDecoder, ExpertsThatAreNotSupportedAreNamed) {
  const auto reason = [](const std::function<void(NodeModel&)>& set) {
    NodeModel model("MoE");
    model.constant<float>({1, 2}, sample_values(2)).constant<float>({1, 2}, sample_values(2));
    model.constant<float>({2, 4, 2}, sample_values(16))
        .absent()
        .constant<float>({2, 2, 4}, sample_values(16));
    set(model);
    const auto found = model.convert();
    return found.ok()                         ? std::string()
           : model.report.unsupported.empty() ? found.status().message()
                                              : model.report.unsupported[0].reason;
  };
  EXPECT_EQ(reason([](NodeModel&) {}), "");
  EXPECT_NE(reason([](NodeModel& m) { m.integer("use_sparse_mixer", 1); }).find("use_sparse_mixer"),
            std::string::npos);
  EXPECT_NE(reason([](NodeModel& m) { m.integer("k", 3); }).find("expected 1 to 2 experts, found 3"),
            std::string::npos);
  EXPECT_NE(reason([](NodeModel& m) { m.string("activation_type", "geglu"); }).find("geglu"),
            std::string::npos);
}

// --- states of fixed size

struct Recurrence {
  size_t tokens, queries, keys, states;  ///< heads
  static constexpr size_t kWidth = 4, kValues = 3, kBatch = 2;
  std::vector<float> q, k, v, decay, beta, past;

  Recurrence(size_t count, size_t query_heads, size_t key_heads, size_t heads)
      : tokens(count), queries(query_heads), keys(key_heads), states(heads) {
    q = sample_values(kBatch * tokens * queries * kWidth, 1);
    k = sample_values(kBatch * tokens * keys * kWidth, 2, 0.5f);
    v = sample_values(kBatch * tokens * states * kValues, 3);
    decay = sample_values(kBatch * tokens * states, 4, 0.5f);
    for (float& x : decay) x = -std::abs(x);
    beta = sample_values(kBatch * tokens * states, 5, 0.5f);
    past = sample_values(kBatch * states * kWidth * kValues, 6);
  }

  /// The results, then the state: S = exp(g) S + beta k (v - exp(g) S^T k), o = q^T S / 2.
  std::array<Numbers, 2> result() const {
    const size_t heads = std::max(queries, states);
    Numbers y(kBatch * tokens * heads * kValues), state(past.begin(), past.end());
    for (size_t b = 0; b < kBatch; ++b)
      for (size_t t = 0; t < tokens; ++t)
        for (size_t h = 0; h < states; ++h) {
          double* s = state.data() + (b * states + h) * kWidth * kValues;
          const size_t at = b * tokens + t, key = h / (states / keys);
          const auto of_key = [&](size_t i) { return test::at(k, (at * keys + key) * kWidth + i); };
          for (size_t i = 0; i < kWidth * kValues; ++i) s[i] *= std::exp(test::at(decay, at * states + h));
          for (size_t o = 0; o < kValues; ++o) {
            double stored = 0;
            for (size_t i = 0; i < kWidth; ++i) stored += s[i * kValues + o] * of_key(i);
            const double change =
                test::at(beta, at * states + h) * (test::at(v, (at * states + h) * kValues + o) - stored);
            for (size_t i = 0; i < kWidth; ++i) s[i * kValues + o] += of_key(i) * change;
          }
          for (size_t head = 0; head < heads; ++head) {
            if (head / (heads / states) != h) continue;
            const size_t query = queries >= states ? head : head / (states / queries);
            for (size_t o = 0; o < kValues; ++o)
              for (size_t i = 0; i < kWidth; ++i)
                y[(at * heads + head) * kValues + o] +=
                    test::at(q, (at * queries + query) * kWidth + i) * s[i * kValues + o] / 2;
          }
        }
    return {y, state};
  }
};

// A short sequence of known length is written out, a longer or open one becomes a Loop.
TEST(ImporterDecoder, LinearAttentionUpdatesItsStateByToken) {
  for (const auto& [queries, keys, states] : {std::array<size_t, 3>{4, 2, 2}, {2, 2, 4}, {2, 2, 2}})
    for (const size_t tokens : {size_t{3}, size_t{40}})
      for (const bool open : {false, true}) {
        const Recurrence r(tokens, queries, keys, states);
        const auto dims = [&](size_t heads, size_t width) {
          return std::vector<int64_t>{2, static_cast<int64_t>(tokens), static_cast<int64_t>(heads * width)};
        };
        std::map<size_t, std::string> axes;
        if (open) axes = {{1, "tokens"}};
        NodeModel model("LinearAttention", 2);
        model.input<float>(dims(queries, 4), r.q, axes).input<float>(dims(keys, 4), r.k, axes);
        model.input<float>(dims(states, 3), r.v, axes);
        model.input<float>({2, static_cast<int64_t>(states), 4, 3}, r.past, {});
        model.input<float>(dims(states, 1), r.decay, axes).input<float>(dims(states, 1), r.beta, axes);
        model.integer("q_num_heads", static_cast<int64_t>(queries));
        model.integer("kv_num_heads", static_cast<int64_t>(states));
        const auto found = model.values(), expected = std::vector<Numbers>{r.result()[0], r.result()[1]};
        expect_near(found[0], expected[0], 1e-4);
        expect_near(found[1], expected[1], 1e-4);
      }
}

TEST(ImporterDecoder, ACausalConvolutionKeepsItsLastInputs) {
  constexpr size_t kBatch = 2, kChannels = 3, kLength = 4, kTaps = 3, kDilation = 2, kPast = 4;
  const std::vector<float> x = sample_values(kBatch * kChannels * kLength, 1);
  const std::vector<float> w = sample_values(kChannels * kTaps, 2), bias = sample_values(kChannels, 3);
  const std::vector<float> past = sample_values(kBatch * kChannels * kPast, 4);
  for (const bool channels_last : {false, true}) {
    const auto read = [&](size_t b, size_t channel, size_t t) {
      const auto& data = t < kPast ? past : x;
      const size_t length = t < kPast ? kPast : kLength, at = t < kPast ? t : t - kPast;
      return test::at(data, channels_last ? (b * length + at) * kChannels + channel
                                          : (b * kChannels + channel) * length + at);
    };
    Numbers y(kBatch * kChannels * kLength), present(kBatch * kChannels * kPast);
    const auto place = [&](size_t b, size_t channel, size_t t, size_t length) {
      return channels_last ? (b * length + t) * kChannels + channel : (b * kChannels + channel) * length + t;
    };
    for (size_t b = 0; b < kBatch; ++b)
      for (size_t channel = 0; channel < kChannels; ++channel) {
        for (size_t t = 0; t < kLength; ++t) {
          double sum = test::at(bias, channel);
          for (size_t tap = 0; tap < kTaps; ++tap)
            sum += test::at(w, channel * kTaps + tap) * read(b, channel, t + tap * kDilation);
          y[place(b, channel, t, kLength)] = sum * sigmoid(sum);
        }
        for (size_t t = 0; t < kPast; ++t)
          present[place(b, channel, t, kPast)] = read(b, channel, t + kLength);
      }
    NodeModel model("CausalConvWithState", 2);
    const int64_t last = channels_last ? 1 : 2;
    model.input<float>(channels_last ? std::vector<int64_t>{2, 4, 3} : std::vector<int64_t>{2, 3, 4}, x,
                       {{static_cast<size_t>(last), "length"}});
    model.constant<float>({3, 1, 3}, w).constant<float>({3}, bias);
    model.input<float>(channels_last ? std::vector<int64_t>{2, 4, 3} : std::vector<int64_t>{2, 3, 4}, past,
                       {});
    model.string("activation", "silu").integer("dilation", 2).integer("channels_last", channels_last ? 1 : 0);
    const auto found = model.values();
    expect_near(found[0], y, 1e-5);
    expect_near(found[1], present, 1e-6);
  }
}

// --- a cache that holds the last positions

/// One head of one number: the rows of the cache, oldest first, after steps of these lengths.
struct WindowRun {
  size_t window, capacity;
  Numbers keys = {}, values = {}, cache_keys = {}, cache_values = {};
  size_t resident = 0;

  static float number(size_t position, int seed) { return sample_values(64, seed)[position]; }

  void step(size_t count) {
    const size_t before = keys.size(), total = before + count;
    std::vector<float> q, k, v;
    for (size_t t = before; t < total; ++t) {
      q.push_back(number(t, 1));
      k.push_back(number(t, 2));
      v.push_back(number(t, 3));
      keys.push_back(static_cast<double>(k.back()));
      values.push_back(static_cast<double>(v.back()));
    }
    const auto rows = static_cast<int64_t>(cache_keys.size());
    const auto as_floats = [](const Numbers& numbers) {
      return std::vector<float>(numbers.begin(), numbers.end());
    };
    NodeModel model("GroupQueryAttention", 3);
    const auto fresh = static_cast<int64_t>(count);
    for (const std::vector<float>& part : {q, k, v}) model.input<float>({1, fresh, 1}, part, {{1, "fresh"}});
    model.input<float>({1, 1, rows, 1}, as_floats(cache_keys), {{2, "rows"}});
    model.input<float>({1, 1, rows, 1}, as_floats(cache_values), {{2, "rows"}});
    model.input<int32_t>({1}, {static_cast<int32_t>(total) - 1}, {});
    model.input<int32_t>({1}, {static_cast<int32_t>(total)}, {});
    model.integer("num_heads", 1).integer("kv_num_heads", 1).real("scale", 1);
    model.integer("local_window_size", static_cast<int64_t>(window)).integer("sliding_window_cache", 1);
    const auto found = model.values();
    Numbers expected;
    for (size_t t = before; t < total; ++t) {
      double sum = 0, weighted = 0;
      for (size_t at = t + 1 > window ? t + 1 - window : 0; at <= t; ++at) {
        const double power = std::exp(static_cast<double>(q[t - before]) * keys[at]);
        sum += power;
        weighted += power * values[at];
      }
      expected.push_back(weighted / sum);
    }
    expect_near(found[0], expected, 1e-5);
    // L(T) of the operator's definition.
    const size_t slack = capacity - window + 1;
    resident = total <= capacity ? total : total - slack * ((total - capacity + slack - 1) / slack);
    ASSERT_EQ(found[1].size(), capacity);
    for (size_t i = 0; i < resident; ++i) {
      EXPECT_NEAR(found[1][i], keys[total - resident + i], 1e-6) << total << " positions, row " << i;
      EXPECT_NEAR(found[2][i], values[total - resident + i], 1e-6);
    }
    cache_keys = found[1];
    cache_values = found[2];
  }
};

TEST(ImporterDecoder, ACacheOfTheWindowKeepsTheLastPositions) {
  for (const size_t capacity : {size_t{4}, size_t{5}, size_t{9}}) {
    WindowRun run{.window = 4, .capacity = capacity};
    run.cache_keys = run.cache_values = Numbers(capacity, 7.0);
    for (const size_t count : {6, 1, 1, 1, 3, 1, 1, 12, 1, 1}) run.step(count);
  }
}

// --- positions in time, height and width

TEST(ImporterDecoder, ThreePositionsRotateTheirOwnColumns) {
  constexpr size_t kSize = 8, kHalf = 4, kTokens = 2;
  const std::vector<float> x = sample_values(kTokens * kSize, 1);
  const std::vector<float> cosines = sample_values(6 * kHalf, 2), sines = sample_values(6 * kHalf, 3);
  const std::vector<int64_t> positions{0, 1, 2, 3, 4, 5};  // [3,1,2]
  for (const int64_t layout : {0, 1}) {
    const size_t streams[2][kHalf] = {{0, 0, 1, 2}, {0, 1, 2, 0}};
    Numbers expected(x.size());
    for (size_t t = 0; t < kTokens; ++t)
      for (size_t i = 0; i < kHalf; ++i) {
        const auto row = static_cast<size_t>(positions[streams[layout][i] * kTokens + t]);
        const double c = test::at(cosines, row * kHalf + i), s = test::at(sines, row * kHalf + i);
        const double a = test::at(x, t * kSize + i), b = test::at(x, t * kSize + kHalf + i);
        expected[t * kSize + i] = a * c - b * s;
        expected[t * kSize + kHalf + i] = b * c + a * s;
      }
    NodeModel model("MRotaryEmbedding");
    model.input<float>({1, 2, 8}, x, {{1, "tokens"}}).input<int64_t>({3, 1, 2}, positions, {{2, "tokens"}});
    model.constant<float>({6, 4}, cosines).constant<float>({6, 4}, sines);
    model.integers("mrope_section", {2, 1, 1}).integer("mrope_layout", layout).integer("num_heads", 1);
    model.integer("rotary_embedding_dim", 8);
    expect_near(model.values()[0], expected, 1e-5);
  }
}

// --- gates and biases

TEST(ImporterDecoder, ANormOfGroupsIsGated) {
  const std::vector<float> x = sample_values(12, 1), scale = sample_values(3, 2), gate = sample_values(12, 3);
  Numbers expected;
  for (size_t i = 0; i < 12; ++i) {
    double squares = 0;
    for (size_t k = 0; k < 3; ++k) squares += std::pow(test::at(x, i / 3 * 3 + k), 2) / 3;
    const double g = test::at(gate, i);
    expected.push_back(test::at(x, i) / std::sqrt(squares + 1e-5) * test::at(scale, i % 3) * g * sigmoid(g));
  }
  NodeModel model("GatedRMSNorm");
  model.input<float>({2, 6}, x, {{0, "rows"}})
      .constant<float>({3}, scale)
      .input<float>({2, 6}, gate, {{0, "rows"}});
  expect_near(model.values()[0], expected, 1e-5);
}

TEST(ImporterDecoder, HalvesSideBySideAreAGate) {
  const std::vector<float> x = sample_values(8, 1, 2);
  Numbers expected;
  for (size_t row = 0; row < 2; ++row)
    for (size_t i = 0; i < 2; ++i) {
      const double g = std::min(test::at(x, row * 4 + i), 0.5);
      const double l = std::clamp(test::at(x, row * 4 + 2 + i), -0.5, 0.5);
      expected.push_back(g * sigmoid(1.5 * g) * (l + 1));
    }
  NodeModel model("SwiGLU");
  model.constant<float>({2, 4}, x)
      .real("activation_alpha", 1.5f)
      .real("activation_beta", 1)
      .real("limit", 0.5f);
  expect_near(model.values()[0], expected, 1e-6);
}

// Buckets of T5 with 8 of them and a maximum of 20: 0 .. 3 of their own, then 4-5, 6-8, 9-13, 14 and more.
TEST(ImporterDecoder, ABiasDependsOnTheDistance) {
  const std::vector<float> table = sample_values(8, 1);
  const size_t buckets[] = {0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7};
  Numbers expected;
  for (size_t query = 0; query < 16; ++query)
    for (size_t key = 0; key < 16; ++key)
      expected.push_back(test::at(table, key > query ? 0 : buckets[query - key]));
  NodeModel model("RelativePositionBias");
  model.constant<float>({8, 1}, table).number<int64_t>(16).number<int64_t>(16).integer("max_distance", 20);
  expect_near(model.values()[0], expected, 0);
}

}  // namespace
}  // namespace librt::onnx
