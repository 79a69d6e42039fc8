// Writes random models whose shapes depend on open dimensions.
//
// A model grows by blocks: a few nodes that do what exporters write. After each block the model is fixed at
// some sample extents and evaluated: a block that makes it invalid there is taken back, and what its values
// are there guides the next one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/random.h"
#include "tests/differential/draft.h"

namespace rt::test {

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

/// A value of the model, with what it is at each sample.
struct Item {
  std::string name;
  std::vector<Extents> dims;
  bool exact = true;  ///< its numbers are sums of small fractions, the same in every order
  bool used = false;  ///< something reads it

  int rank() const { return static_cast<int>(dims[0].size()); }
  size_t axes() const { return dims[0].size(); }
  /// The same at every sample.
  bool is_fixed(size_t axis) const;
  bool is_open(size_t axis) const { return !is_fixed(axis); }
  int64_t least(size_t axis) const;
};

/// An integer of rank 0, with its values at each sample.
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

  // --- for blocks
  Random random;
  Draft draft;

  const std::vector<Item>& tensors() const { return tensors_; }
  /// A tensor with a rank in [least, most], later ones more often; null if there is none.
  const Item* any(int least = 1, int most = 5);
  /// One of its axes, open ones more often.
  size_t axis_of(const Item& item);
  /// The axis as ONNX may write it: from the front or from the back.
  int64_t spelled(const Item& item, size_t axis) {
    return random.chance(25) ? static_cast<int64_t>(axis) - item.rank() : static_cast<int64_t>(axis);
  }
  /// An extent as an integer of rank 0.
  std::string extent(const std::string& tensor, size_t axis, size_t rank);
  /// A scalar of the model, or an extent, or arithmetic on one of them.
  Scalar scalar();
  /// Values at the samples are not tracked for what a block adds to itself.
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
  /// The list [extents of the tensor, with those at some axes replaced].
  std::string shape_with(const Item& item, const std::vector<std::pair<size_t, std::string>>& replaced);
  std::string weights(const Extents& dims);

  /// What the block adds to the model.
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

/// A way to go on: false when the model has nothing that it could work on.
using BlockFunction = bool (*)(Generator&);
struct Block {
  const char* name;
  int weight;
  BlockFunction add;
};
std::vector<Block> all_blocks();

/// Extents for a model's symbols: ones, small numbers, primes, multiples of what exporters round to,
/// sometimes 0, and one beyond every constant in the model.
std::vector<Assignment> random_assignments(const rt_onnx::ModelProto& model, int count, uint64_t seed,
                                           bool with_empty = true);

}  // namespace rt::test
