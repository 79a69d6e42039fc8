// Layers with seeded weights, for the zoo: thin wrappers over the builder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

/// Deterministic uniform values (SplitMix64, Steele, Lea & Flood 2014).
class SeededUniform {
 public:
  explicit SeededUniform(uint64_t seed) : state_(seed) {}
  /// In [-1, 1).
  float next() noexcept;

 private:
  uint64_t state_;
};

struct ConvOptions {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
};

/// Writes one network. Names follow PyTorch's convention ("layer1.0.conv1.weight"), so that patterns such as
/// "fc.*" choose what is trained.
class Layers {
 public:
  Layers(std::string network, uint64_t seed);

  Builder& builder() noexcept { return builder_; }
  ValueId input(const std::string& name, DType dtype, std::vector<std::string> dims);

  /// Uniform in +-sqrt(3 gain / fan_in): variance gain / fan_in (He et al. 2015 for gain 2).
  ValueId weight(const std::string& name, const Shape& shape, int64_t fan_in, double gain = 2);
  /// Every element `value` plus a small seeded deviation, so that no two vectors are equal.
  ValueId vector(const std::string& name, int64_t size, float value, float deviation);

  ValueId conv(const std::string& name, ValueId x, int64_t out_channels, const ConvOptions& options);
  ValueId batch_norm(const std::string& name, ValueId x);
  ValueId relu(ValueId x) { return builder_.emit(op::ReluAttributes{}, {x}); }
  ValueId relu6(ValueId x);
  ValueId max_pool(ValueId x, int64_t kernel, int64_t stride, int64_t padding = 0);
  /// [N,H,W,C] -> [N,C]
  ValueId global_average_pool(ValueId x) { return builder_.reduce_mean(x, {1, 2}, false); }
  /// [N, ...] -> [N, rest]
  ValueId flatten(ValueId x);
  ValueId linear(const std::string& name, ValueId x, int64_t out_features, bool bias = true, double gain = 1);
  ValueId layer_norm(const std::string& name, ValueId x);
  /// Self-attention over x [B,S,D]; `hidden` (a bool value broadcastable to [B,H,S,S], or kNoValue) is true
  /// for masked keys.
  ValueId self_attention(const std::string& name, ValueId x, int64_t heads, ValueId hidden);

  /// Ends the network. Output names are given to the values.
  Result<ModelGraph> finish(const std::vector<std::pair<std::string, ValueId>>& outputs);

 private:
  int64_t channels(ValueId x) const { return builder_.value(x).dims.back().extent; }
  ValueId named_constant(const std::string& name, const Shape& shape, std::vector<float> numbers);

  ModelGraph model_;
  Builder builder_;
  SeededUniform uniform_;
};

}  // namespace librt::compiler
