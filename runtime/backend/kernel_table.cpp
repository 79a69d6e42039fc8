#include "runtime/backend/kernel_table.h"

#include <algorithm>

namespace librt {

// NOLINTNEXTLINE(performance-unnecessary-value-param): called once, in a widely included header
KernelTable::KernelTable(std::vector<std::span<const KernelRow>> families) : by_op_(kOpCount) {
  for (const auto& family : families)
    for (const KernelRow& row : family) {
      all_.push_back(&row);
      auto& rows = by_op_[static_cast<size_t>(row.op)];  // by priority; among equals in table order
      rows.insert(
          std::ranges::find_if(rows, [&](const KernelRow* other) { return other->priority < row.priority; }),
          &row);
    }
}

std::span<const KernelRow* const> KernelTable::rows(OpKind op) const noexcept {
  const auto index = static_cast<size_t>(op);
  if (index >= by_op_.size()) return {};
  return by_op_[index];
}

Result<std::vector<const KernelRow*>> KernelTable::candidates(const Device& device,
                                                              const NodeView& node) const {
  std::vector<const KernelRow*> supporting;
  std::string reasons;
  for (const KernelRow* row : rows(node.kind())) {
    Status status;
    if (node.has(0) && !row->dtypes.contains(node.dtype(0)))
      status = unsupported("no kernel for ", name_of(node.dtype(0)));
    else if (row->supports != nullptr)
      status = row->supports(device, node);
    if (status.ok()) {
      supporting.push_back(row);
    } else {
      append(reasons, reasons.empty() ? "" : "; ", row->name, ": ", status.message());
    }
  }
  if (!supporting.empty()) return supporting;
  if (reasons.empty())
    reasons = text("backend ", device.info().backend, " has no kernel for ", name_of(node.kind()));
  return Status(Code::Unsupported, reasons);
}

}  // namespace librt
