// Infers a node whose shape rule refuses data-dependent extents because some of them must be equal to others.
//
// Knows: how to find assignments under which the extents fit; only what all of them agree on is known of the
// result. Must not know: shape rules, symbols.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "tools/compiler/shape/probe.h"

namespace librt::compiler {

class AssumedExtents {
 public:
  /// Runs the shape rule on these inputs; false where it refuses them.
  using Infer = std::function<bool(const std::vector<Probes>& inputs, std::vector<Probes>& outputs)>;

  AssumedExtents(std::vector<Probes> inputs, Infer infer)
      : given_(std::move(inputs)), infer_(std::move(infer)) {}
  /// Axis `axis` of input `input` depends on data. Such axes with the same extent are treated as one.
  void open(size_t input, int axis);
  /// False when no assignment was found, or when they disagree on the ranks.
  bool run(std::vector<Probes>& outputs);

 private:
  using Extent = std::array<int64_t, kProbes>;
  using Changes = std::vector<std::pair<Extent, Extent>>;

  static Extent at(const Probes& value, int axis) {
    return {value[0].info.shape[axis], value[1].info.shape[axis]};
  }
  bool is_open(const Extent& extent) const;
  bool infer(const Changes& changes, std::vector<Probes>& results) const;
  Changes without_idle(Changes changes) const;
  void attempt(const Changes& changes);
  Changes equal_by_axis(bool first) const;

  std::vector<Probes> given_;
  Infer infer_;
  std::vector<Extent> open_, candidates_;
  bool found_ = false, one_rank_ = true;
  std::vector<Probes> results_;
};

}  // namespace librt::compiler
