// A test device: the reference's kernels with memory that the host cannot address, like a discrete GPU, with
// kernels only for chosen operators, and in-place kernels.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/backend/kernel_table.h"
#include "runtime/backend/registry.h"

namespace librt::test {

class FarSlab final : public Slab {
 public:
  explicit FarSlab(SlabPtr inner) : inner_(std::move(inner)) {}
  size_t size() const noexcept override { return inner_->size(); }
  void* host() noexcept override { return nullptr; }
  Slab& inner() const noexcept { return *inner_; }

 private:
  SlabPtr inner_;
};

/// Declares that output 0 may overwrite input 0.
class InPlaceKernel final : public Kernel {
 public:
  explicit InPlaceKernel(KernelPtr inner) : inner_(std::move(inner)) {}
  Requirements requirements() const noexcept override {
    Requirements needs = inner_->requirements();
    needs.in_place = InPlace{0, 0};
    return needs;
  }
  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    return inner_->record(commands, bindings);
  }

 private:
  KernelPtr inner_;
};

inline Result<KernelPtr> create_in_place(Device& device, const NodeView& node,
                                         std::span<const LayoutId> layouts) noexcept;

class FarDevice final : public Device {
 public:
  FarDevice(const std::set<OpKind>& operators, const std::set<OpKind>& in_place)
      : inner_(open_device("reference", {}).value()),
        rows_(choose(*inner_, operators, in_place)),
        table_({std::span<const KernelRow>(rows_)}) {
    info_ = inner_->info();
    info_.backend = "far";
    info_.name = "far device";
    info_.host_memory = false;
    info_.alignment = 256;
    info_.type = DeviceType::DiscreteGpu;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  const KernelTable& kernels() const noexcept override { return table_; }
  Device& inner() noexcept { return *inner_; }

  Result<SlabPtr> allocate(size_t bytes) noexcept override {
    RT_ASSIGN(SlabPtr slab, inner_->allocate(bytes));
    allocated += bytes;
    return SlabPtr(std::make_unique<FarSlab>(std::move(slab)));
  }
  Result<SlabPtr> wrap(void*, size_t) noexcept override { return unsupported("far memory is far"); }
  Status upload(Slab& slab, size_t offset, std::span<const std::byte> bytes) noexcept override {
    return inner_->upload(static_cast<FarSlab&>(slab).inner(), offset, bytes);
  }
  Status download(const Slab& slab, size_t offset, std::span<std::byte> bytes) noexcept override {
    return inner_->download(static_cast<const FarSlab&>(slab).inner(), offset, bytes);
  }
  Result<CommandListPtr> begin(const RecordOptions& options) noexcept override {
    std::vector<Slab*> slabs;
    for (Slab* slab : options.slots)
      slabs.push_back(slab != nullptr ? &static_cast<FarSlab*>(slab)->inner() : nullptr);
    ++recordings;
    return inner_->begin({.slots = slabs, .spans = options.spans, .profile = options.profile});
  }

  size_t allocated = 0;
  int recordings = 0;

 private:
  static std::vector<KernelRow> choose(const Device& reference, const std::set<OpKind>& operators,
                                       const std::set<OpKind>& in_place) {
    std::vector<KernelRow> rows;
    for (const KernelRow* row : reference.kernels().all()) {
      if (!operators.contains(row->op)) continue;
      rows.push_back(*row);
      if (in_place.contains(row->op)) rows.back().create = create_in_place;
    }
    return rows;
  }
  DevicePtr inner_;
  std::vector<KernelRow> rows_;
  KernelTable table_;
  DeviceInfo info_;
};

inline Result<KernelPtr> create_in_place(Device& device, const NodeView& node,
                                         std::span<const LayoutId> layouts) noexcept {
  Device& inner = static_cast<FarDevice&>(device).inner();
  RT_ASSIGN(KernelPtr kernel, inner.kernels().rows(node.kind())[0]->create(inner, node, layouts));
  return KernelPtr(std::make_unique<InPlaceKernel>(std::move(kernel)));
}

}  // namespace librt::test
