// A backend's table of kernels: "supported" is the existence of a row.
//
// Knows: how to find the rows for a node, and why a row does not support it. The support query, the coverage
// report and the creation of kernels all go through here, so they cannot diverge.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace librt {

/// One implementation of one operator. Several rows for an operator are alternatives.
struct KernelRow {
  OpKind op;
  const char* name;  ///< "conv.winograd": unique in the backend, appears in plans and profiles
  DTypeSet dtypes;   ///< of input 0
  /// Ok, or the reason why this row does not support this node on this device. Null: always supported.
  /// Depends on attributes, dtypes and shapes only.
  Status (*supports)(const Device& device, const NodeView& node) noexcept;
  /// Creates the kernel for concrete shapes; called only if supports() returned ok. producer_layouts[i] is
  /// the layout in which input i is produced.
  Result<KernelPtr> (*create)(Device& device, const NodeView& node,
                              std::span<const LayoutId> producer_layouts) noexcept;
  /// Static preference when tuning is off: the highest among the supporting rows wins.
  int priority = 0;
};

class KernelTable {
 public:
  explicit KernelTable(std::vector<std::span<const KernelRow>> families);

  /// Rows for this operator, best priority first.
  std::span<const KernelRow* const> rows(OpKind op) const noexcept;
  /// The supporting rows, best first; if there are none, the reasons of all rows in one message.
  Result<std::vector<const KernelRow*>> candidates(const Device& device, const NodeView& node) const;
  /// Every row, in table order, for coverage reports.
  const std::vector<const KernelRow*>& all() const noexcept { return all_; }

 private:
  std::vector<const KernelRow*> all_;
  std::vector<std::vector<const KernelRow*>> by_op_;
};

}  // namespace librt
