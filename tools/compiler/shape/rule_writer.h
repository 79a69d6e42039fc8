// Shared by the rules of rules.cpp and window_rules.cpp. Private to this folder.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/shape.h"
#include "tools/compiler/shape/rules.h"

namespace librt::compiler {

class RuleWriter {
 public:
  RuleWriter(ExtentTable& table, const Node& node, std::span<const Known* const> inputs,
             std::vector<std::vector<Extent>>& results, std::vector<Demand>& demands)
      : t_(table), node_(node), inputs_(inputs), results_(results), demands_(demands) {}
  void run();

 private:
  void own();
  void identity();
  void reshape();
  void concat();
  void slice();
  void pad();
  void expand();
  void tile();
  void resize();
  void range();
  void top_k();
  void matmul(bool transpose_a, bool transpose_b);
  void windows();  // window_rules.cpp, as far as pool
  void conv(std::span<const int64_t> strides, std::span<const int64_t> pads,
            std::span<const int64_t> dilations, int64_t groups);
  /// At both ends of an axis.
  Extent padding(std::span<const int64_t> pads, size_t axis, size_t rank);
  void conv_transpose();
  void conv_weight_grad();
  void pool(std::span<const int64_t> kernel, std::span<const int64_t> strides, std::span<const int64_t> pads,
            std::span<const int64_t> dilations, bool ceil_mode);

  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const std::vector<Extent>& dims(size_t i) const { return inputs_[i]->dims; }
  /// The elements of a shape operand; empty where they are not known.
  std::vector<Extent> entries(size_t input) const;
  /// The page determines the rank; a shape of another rank is not proven.
  void set(size_t result, const std::vector<Extent>& shape) {
    if (result < results_.size() && results_[result].size() == shape.size()) results_[result] = shape;
  }
  /// The page requires both to be equal; returns the shorter expression.
  Extent equal(Extent a, Extent b);
  std::vector<Extent> broadcast(std::span<const Extent> a, std::span<const Extent> b);
  /// A position of a Slice, counted from the end if negative, within [low, high].
  Extent clamped(Extent position, Extent extent, Extent low, Extent high);
  /// floor(extent scale) in f32
  Extent scaled(Extent extent, float scale);

  ExtentTable& t_;
  const Node& node_;
  std::span<const Known* const> inputs_;
  std::vector<std::vector<Extent>>& results_;
  std::vector<Demand>& demands_;
};

}  // namespace librt::compiler
