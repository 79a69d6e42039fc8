// The CPU backend for tests, as a librt_cpu.so that takes the place of the real one: each kernel works on
// copies of its operands, in memory that ends where they do.
//
// Knows: how a session and kernels of the CPU backend meet. Must not know: any operator. A read or write
// after the end of an operand, or before it, ends the program with a message; what a kernel reads and nothing
// has written is NaN. Kernels that are compiled while the program runs (oneDNN's) are watched as well.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "backends/cpu/device/commands.h"
#include "backends/cpu/device/open.h"
#include "guarded_memory/fence.h"
#include "runtime/backend/abi.h"
#include "runtime/backend/kernel_table.h"
#include "runtime/backend/module.h"
#include "runtime/core/exception.h"
#include "runtime/core/text.h"

namespace librt::guarded {
namespace {

/// Operands that share memory: of one value, of a result that takes its input's place, of inputs that are
/// joined in place.
struct Group {
  BufferRef range;   ///< where the session keeps it
  std::string name;  ///< "input 0, output 0"
  bool read = false, written = false;
  Block block;
};

/// The operands of one node, and the memory that its kernel sees.
struct Guard {
  std::string kernel;  ///< "node 'conv1' (Conv), kernel conv.dnnl"
  std::vector<Group> groups;
};

std::atomic<const Guard*> running{nullptr};

std::string complaint(const Guard& guard, const Group& group, const char* access, const void* address) {
  const auto offset = static_cast<const std::byte*>(address) - group.block.data;
  return text(guard.kernel, access, " byte ", offset, " of the ", group.block.bytes, " of ", group.name);
}

/// Says which kernel accesses what, and lets the program end as it would have.
void on_fault(int signal, siginfo_t* info, void*) {
  if (const Guard* guard = running.load()) {
    for (const Group& group : guard->groups) {
      if (!group.block.near(info->si_addr)) continue;
      const std::string message = complaint(*guard, group, " reads or writes", info->si_addr) + "\n";
      if (write(STDERR_FILENO, message.data(), message.size()) < 0) _exit(127);
    }
  }
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);  // the access is repeated
}

class GuardTask : public cpu::Task {
 public:
  explicit GuardTask(std::shared_ptr<const Guard> guard) : guard_(std::move(guard)) {}
  Status resolve(const cpu::Addresses& addresses) noexcept override {
    for (size_t i = 0; i < guard_->groups.size(); ++i) addresses_[i] = addresses.of(guard_->groups[i].range);
    return {};
  }

 protected:
  std::shared_ptr<const Guard> guard_;
  std::vector<std::byte*> addresses_ = std::vector<std::byte*>(guard_->groups.size());  ///< the session's
};

class Enter final : public GuardTask {
 public:
  using GuardTask::GuardTask;
  Status run() noexcept override {
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const Group& group = guard_->groups[i];
      if (group.block.bytes == 0) continue;
      if (group.read)
        std::memcpy(group.block.data, addresses_[i], group.block.bytes);
      else
        std::memset(group.block.data, static_cast<int>(kFill), group.block.bytes);
    }
    running = guard_.get();
    return {};
  }
};

/// The first byte around a block that was written; null: none.
const std::byte* overwritten(const Block& block) noexcept {
  for (const std::span<const std::byte> around : {block.before(), block.after()})
    for (const std::byte& byte : around)
      if (byte != kFill) return &byte;
  return nullptr;
}

class Leave final : public GuardTask {
 public:
  using GuardTask::GuardTask;
  Status run() noexcept override {
    running = nullptr;
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const Group& group = guard_->groups[i];
      if (const std::byte* address = overwritten(group.block))
        return Status(Code::Internal, complaint(*guard_, group, " writes", address));
      if (group.written && group.block.bytes > 0)
        std::memcpy(addresses_[i], group.block.data, group.block.bytes);
    }
    return {};
  }
};

/// Keeps the fence of a command list for as long as its tasks.
class Keep final : public cpu::Task {
 public:
  explicit Keep(std::shared_ptr<Fence> fence) : fence_(std::move(fence)) {}
  Status resolve(const cpu::Addresses&) noexcept override { return {}; }
  Status run() noexcept override { return {}; }

 private:
  std::shared_ptr<Fence> fence_;
};

class FenceSlab final : public Slab {
 public:
  explicit FenceSlab(const Fence& fence) : base_(fence.base()) {}
  size_t size() const noexcept override { return 0; }
  void* host() noexcept override { return base_; }

 private:
  std::byte* base_;
};

class GuardedDevice;

class GuardedKernel final : public Kernel {
 public:
  GuardedKernel(KernelPtr kernel, GuardedDevice& device, std::string name)
      : kernel_(std::move(kernel)), device_(device), name_(std::move(name)) {}

  Requirements requirements() const noexcept override { return kernel_->requirements(); }
  LayoutId input_layout(size_t i) const noexcept override { return kernel_->input_layout(i); }
  LayoutId output_layout(size_t i) const noexcept override { return kernel_->output_layout(i); }
  Status pack(std::span<std::byte> bytes) noexcept override;
  Status record(CommandList& commands, const Bindings& bindings) noexcept override;

 private:
  KernelPtr kernel_;
  GuardedDevice& device_;
  std::string name_;
};

template <class Name>
Result<KernelPtr> guarded(KernelPtr kernel, GuardedDevice& device, const Name& name) noexcept {
  try {
    return KernelPtr(std::make_unique<GuardedKernel>(std::move(kernel), device, name()));
  } catch (...) {
    return caught_exception("creating a guarded kernel");
  }
}

constexpr size_t kMostRows = 512;

class GuardedDevice final : public Device {
 public:
  explicit GuardedDevice(DevicePtr device)
      : device_(std::move(device)), rows_(make_rows(device_->kernels())), table_({rows_}) {}

  const DeviceInfo& info() const noexcept override { return device_->info(); }
  const KernelTable& kernels() const noexcept override { return table_; }
  Result<SlabPtr> allocate(size_t bytes) noexcept override { return device_->allocate(bytes); }
  Result<SlabPtr> wrap(void* bytes, size_t size) noexcept override { return device_->wrap(bytes, size); }
  Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept override {
    return device_->upload(destination, offset, bytes);
  }
  Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept override {
    return device_->download(source, offset, bytes);
  }
  size_t layout_bytes(LayoutId layout, const TensorInfo& info) const noexcept override {
    return device_->layout_bytes(layout, info);
  }
  void for_each(size_t count, void (*work)(void* context, size_t index) noexcept,
                void* context) noexcept override {
    device_->for_each(count, work, context);
  }
  std::string layout_name(LayoutId layout) const override { return device_->layout_name(layout); }

  Result<KernelPtr> make_reorder(const TensorInfo& info, LayoutId from, LayoutId to) noexcept override {
    RT_ASSIGN(KernelPtr kernel, device_->make_reorder(info, from, to));
    return guarded(std::move(kernel), *this,
                   [&] { return text("reorder from ", layout_name(from), " to ", layout_name(to)); });
  }

  /// The command list has one slot more than the session gives, whose blocks stand for all operands.
  Result<CommandListPtr> begin(const RecordOptions& options) noexcept override {
    try {
      auto fence = std::make_shared<Fence>();
      FenceSlab slab(*fence);
      std::vector<Slab*> slots(options.slots.begin(), options.slots.end());
      slots.push_back(&slab);
      RecordOptions extended = options;
      extended.slots = slots;
      RT_ASSIGN(CommandListPtr list, device_->begin(extended));
      RT_TRY(static_cast<cpu::Commands&>(*list).add(std::make_unique<Keep>(fence)));
      recordings_[list.get()] = {static_cast<uint32_t>(options.slots.size()), fence};
      return list;
    } catch (...) {
      return caught_exception("beginning a guarded command list");
    }
  }

  struct Recording {
    uint32_t slot = 0;
    std::weak_ptr<Fence> fence;
  };
  const Recording& recording(const CommandList& list) const { return recordings_.at(&list); }

 private:
  /// The device, and its row, of a row of the table below.
  template <size_t row>
  static Status supports(const Device& device, const NodeView& node) noexcept {
    const Device& inside = entered(device);
    const KernelRow& kernel = *inside.kernels().all()[row];
    return kernel.supports == nullptr ? Status() : kernel.supports(inside, node);
  }
  template <size_t row>
  static Result<KernelPtr> create(Device& device, const NodeView& node,
                                  std::span<const LayoutId> layouts) noexcept {
    Device& inside = entered(device);
    const KernelRow& kernel = *inside.kernels().all()[row];
    RT_ASSIGN(KernelPtr made, kernel.create(inside, node, layouts));
    if (is_collective(kernel.op)) return made;
    return guarded(std::move(made), static_cast<GuardedDevice&>(device),
                   [&] { return text(describe(node.node), ", kernel ", kernel.name); });
  }
  /// These work on the session's memory from one node to another.
  static bool is_collective(OpKind op) noexcept {
    return op == OpKind::AllReduce || op == OpKind::AllGather || op == OpKind::CollectiveWait;
  }
  static Device& entered(const Device& device) noexcept {
    Device& inside = *static_cast<const GuardedDevice&>(device).device_;
    inside.custom_operators = device.custom_operators;  // set after the device is opened
    return inside;
  }
  template <size_t... row>
  static constexpr auto functions(std::index_sequence<row...>) {
    using Functions = std::pair<decltype(KernelRow::supports), decltype(KernelRow::create)>;
    return std::array<Functions, sizeof...(row)>{Functions{&supports<row>, &create<row>}...};
  }
  static std::vector<KernelRow> make_rows(const KernelTable& table) {
    static constexpr auto kFunctions = functions(std::make_index_sequence<kMostRows>());
    if (table.all().size() > kMostRows) end_program("guarded: kMostRows is too small");
    std::vector<KernelRow> rows;
    for (const KernelRow* row : table.all()) {
      rows.push_back(*row);
      std::tie(rows.back().supports, rows.back().create) = kFunctions[rows.size() - 1];
    }
    return rows;
  }

  DevicePtr device_;
  std::vector<KernelRow> rows_;
  KernelTable table_;
  std::map<const CommandList*, Recording> recordings_;
};

Status GuardedKernel::pack(std::span<std::byte> bytes) noexcept {
  try {
    Fence fence;
    Guard guard{name_, {{{}, "its packed bytes", false, true, fence.take(bytes.size())}}};
    const Block& block = guard.groups[0].block;
    running = &guard;
    const Status status = kernel_->pack({block.data, block.bytes});
    running = nullptr;
    RT_TRY(status);
    if (const std::byte* address = overwritten(block))
      return Status(Code::Internal, complaint(guard, guard.groups[0], " writes", address));
    if (!bytes.empty()) std::memcpy(bytes.data(), block.data, block.bytes);
    return {};
  } catch (...) {
    return caught_exception("packing guarded weights");
  }
}

/// Adds a range to the groups, and joins those that it overlaps.
void add(std::vector<Group>& groups, const BufferRef& range, std::string name, bool read, bool written) {
  if (!range.present()) return;
  Group joined{range, std::move(name), read, written, {}};
  for (size_t i = 0; i < groups.size();) {
    const BufferRef &a = groups[i].range, &b = joined.range;
    if (a.slot != b.slot || a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes) {
      ++i;
      continue;
    }
    const uint64_t begin = std::min(a.offset, b.offset);
    const uint64_t end = std::max(a.offset + a.bytes, b.offset + b.bytes);
    joined = {{a.slot, begin, end - begin},
              groups[i].name + ", " + joined.name,
              groups[i].read || joined.read,
              groups[i].written || joined.written,
              {}};
    groups.erase(groups.begin() + static_cast<ptrdiff_t>(i));
    i = 0;
  }
  groups.push_back(std::move(joined));
}

Status GuardedKernel::record(CommandList& commands, const Bindings& bindings) noexcept {
  try {
    const auto& [slot, weak] = device_.recording(commands);
    const std::shared_ptr<Fence> fence = weak.lock();
    auto guard = std::make_shared<Guard>();
    guard->kernel = name_;
    std::vector<Group>& groups = guard->groups;
    for (size_t i = 0; i < bindings.inputs.size(); ++i)
      add(groups, bindings.inputs[i], text("input ", i), true, false);
    for (size_t i = 0; i < bindings.outputs.size(); ++i)
      add(groups, bindings.outputs[i], text("output ", i), false, true);
    add(groups, bindings.scratch, "its scratch", false, false);
    add(groups, bindings.packed, "its packed bytes", true, false);
    for (Group& group : groups) group.block = fence->take(group.range.bytes);

    const auto moved = [&, slot = slot](const BufferRef& range) {
      for (const Group& group : groups)
        if (range.present() && range.slot == group.range.slot && range.offset >= group.range.offset &&
            range.offset + range.bytes <= group.range.offset + group.range.bytes)
          return BufferRef{
              slot,
              static_cast<uint64_t>(group.block.data - fence->base()) + range.offset - group.range.offset,
              range.bytes};
      return range;  // not present
    };
    std::vector<BufferRef> inputs, outputs;
    for (const BufferRef& range : bindings.inputs) inputs.push_back(moved(range));
    for (const BufferRef& range : bindings.outputs) outputs.push_back(moved(range));
    auto& list = static_cast<cpu::Commands&>(commands);
    RT_TRY(list.add(std::make_unique<Enter>(guard)));
    RT_TRY(kernel_->record(commands, {inputs, outputs, moved(bindings.scratch), moved(bindings.packed)}));
    return list.add(std::make_unique<Leave>(guard));
  } catch (...) {
    return caught_exception("recording a guarded kernel");
  }
}

Result<DevicePtr> open(const DeviceOptions& options) noexcept {
  try {
    RT_ASSIGN(DevicePtr device, cpu::open(options));
    struct sigaction action = {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    return DevicePtr(std::make_unique<GuardedDevice>(std::move(device)));
  } catch (...) {
    return caught_exception("opening the guarded CPU");
  }
}

}  // namespace
}  // namespace librt::guarded

const librt::BackendModule* rt_backend_module(void) {
  static constexpr librt::BackendModule kModule{sizeof(librt::BackendModule), RT_BACKEND_ABI, "cpu",
                                                &librt::cpu::probe, &librt::guarded::open};
  return &kModule;
}
