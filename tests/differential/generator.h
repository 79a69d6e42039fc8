// Generates random models whose shapes depend on dynamic dimensions.
//
// A model grows by blocks: a few nodes as exporters write them. After each block the model is evaluated at
// some sample extents: a block that makes it invalid there is undone, and the extents of its values there
// guide the next one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/random.h"
#include "tests/differential/draft.h"

namespace librt::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { state_ = split_mix(state_); }
  int64_t below(int64_t end) {
    return static_cast<int64_t>((split_mix(state_) >> 11) % static_cast<uint64_t>(end));
  }
  /// In [first, last].
  int64_t between(int64_t first, int64_t last) { return first + below(last - first + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }

 private:
  uint64_t state_;
};

/// A tensor of the model, with its extents at each sample.
struct Item {
  std::string name;
  std::vector<Extents> dims;
  bool exact = true;  ///< its values are sums of small fractions, equal in every summation order
  bool used = false;  ///< something reads it

  int rank() const { return static_cast<int>(dims[0].size()); }
  size_t axes() const { return dims[0].size(); }
  /// The same at every sample.
  bool is_fixed(size_t axis) const;
  bool is_open(size_t axis) const { return !is_fixed(axis); }
  int64_t least(size_t axis) const;
};

/// A scalar integer, with its value at each sample.
struct Scalar {
  std::string name;
  std::vector<int64_t> values;

  int64_t least() const;
  int64_t most() const;
};

class Generator {
 public:
  explicit Generator(uint64_t seed);

  /// The finished model.
  rt_onnx::ModelProto generate();

  // --- interface for blocks
  Random random;
  Draft draft;

  const std::vector<Item>& tensors() const { return tensors_; }
  /// A tensor with a rank in [least, most], preferring later ones; null if there is none.
  const Item* any(int least = 1, int most = 5);
  /// One of its axes, preferring dynamic ones.
  size_t axis_of(const Item& item);
  /// The axis in one of ONNX's two forms: counted from the front or from the back.
  int64_t spelled(const Item& item, size_t axis) {
    return random.chance(25) ? static_cast<int64_t>(axis) - item.rank() : static_cast<int64_t>(axis);
  }
  /// An extent as a scalar integer.
  std::string extent(const std::string& tensor, size_t axis, size_t rank);
  /// A scalar of the model, an extent, or an arithmetic expression of one.
  Scalar scalar();
  /// Helpers of a block; their results' sample values are not tracked.
  std::string as_list(const std::string& scalar);
  std::string binary(const std::string& op, const std::string& a, const std::string& b) {
    return draft.node(op, {a, b});
  }
  std::string times(const std::string& a, int64_t factor) { return binary("Mul", a, draft.number(factor)); }
  std::string plus(const std::string& a, int64_t term) { return binary("Add", a, draft.number(term)); }
  std::string floor_div(const std::string& a, int64_t divisor);
  std::string ceil_div(const std::string& a, int64_t divisor);
  std::string mean(const std::string& tensor, const Extents& axes, bool keep);
  std::string reduce(const std::string& op, const std::string& tensor, const Extents& axes, bool keep);
  std::string unsqueeze(const std::string& tensor, const Extents& axes) {
    return draft.node("Unsqueeze", {tensor, draft.ints(axes)});
  }
  /// One axis from start to end, as names of rank-1 operands.
  std::string slice(const std::string& tensor, const std::string& start, const std::string& end, int64_t axis,
                    int64_t step = 1);
  /// The shape of the tensor, with the extents of some axes replaced.
  std::string shape_with(const Item& item, const std::vector<std::pair<size_t, std::string>>& replaced);
  std::string weights(const Extents& dims);

  /// Adds a result of the block to the model.
  void give(const std::string& tensor, bool exact);
  void give_scalar(const std::string& name) { new_scalars_.push_back(name); }

 private:
  struct State;
  void add_inputs();
  bool try_block();
  bool measure();
  std::optional<std::string> derived(const Scalar& from, std::vector<int64_t>& values);

  std::vector<Assignment> samples_;
  std::vector<Item> tensors_;
  std::vector<Scalar> scalars_;
  std::vector<std::pair<std::string, bool>> new_tensors_;
  Names new_scalars_;
};

/// Adds one pattern; false when the model has no suitable operand.
using BlockFunction = bool (*)(Generator&);
struct Block {
  const char* name;
  int weight;
  BlockFunction add;
};
std::vector<Block> all_blocks();

/// Extents for a model's symbols: ones, small values, primes, multiples of the factors that exporters round
/// to, sometimes 0, and one above every constant in the model.
std::vector<Assignment> random_assignments(const rt_onnx::ModelProto& model, int count, uint64_t seed,
                                           bool with_empty = true);

}  // namespace librt::test
