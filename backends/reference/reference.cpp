#include "backends/reference/reference.h"

#include <chrono>
#include <cstring>
#include <new>

#include "runtime/backend/custom_call.h"
#include "runtime/backend/kernel_table.h"
#include "runtime/core/exception.h"
#include "runtime/ops/evaluate.h"

namespace librt::reference {
namespace {

constexpr size_t kAlignment = 64;

class ReferenceSlab final : public Slab {
 public:
  ReferenceSlab(std::byte* data, size_t size, bool owned) noexcept
      : data_(data), size_(size), owned_(owned) {}
  ~ReferenceSlab() override {
    if (owned_) ::operator delete (data_, std::align_val_t{kAlignment});
  }
  size_t size() const noexcept override { return size_; }
  void* host() noexcept override { return data_; }

 private:
  std::byte* data_;
  size_t size_;
  bool owned_;
};

class ReferenceKernel;

/// Commands are kept as they were recorded; addresses are looked up at each submit, because slots can be
/// rebound.
class ReferenceCommands final : public CommandList {
 public:
  explicit ReferenceCommands(const RecordOptions& options)
      : profile_(options.profile),
        stop_(options.stop),
        stoppable_(options.stoppable),
        nanoseconds_(options.spans) {
    for (Slab* slab : options.slots)
      slots_.push_back({slab != nullptr ? static_cast<std::byte*>(slab->host()) : nullptr,
                        slab != nullptr ? slab->size() : 0});
  }
  Status mark(uint32_t span) noexcept override {
    span_ = span;
    return {};
  }
  Status copy(const BufferRef& destination, const BufferRef& source) noexcept override {
    return add({.span = span_, .destination = destination, .source = source});
  }
  Status run_kernel(const ReferenceKernel& kernel, const Bindings& bindings) {
    Command command{.span = span_, .kernel = &kernel};
    command.inputs.assign(bindings.inputs.begin(), bindings.inputs.end());
    command.outputs.assign(bindings.outputs.begin(), bindings.outputs.end());
    return add(std::move(command));
  }
  Status finish() noexcept override { return {}; }
  Status bind_host(uint32_t slot, void* address, size_t bytes) noexcept override {
    if (slot >= slots_.size()) return internal_error("reference: slot ", slot, " of ", slots_.size());
    slots_[slot] = {static_cast<std::byte*>(address), bytes};
    return {};
  }
  Status submit() noexcept override;
  Status wait() noexcept override { return {}; }
  Status timings(std::span<uint64_t> nanoseconds) noexcept override {
    for (size_t i = 0; i < nanoseconds.size() && i < nanoseconds_.size(); ++i)
      nanoseconds[i] += nanoseconds_[i];
    return {};
  }

  Result<void*> address(const BufferRef& ref) const noexcept {
    if (ref.slot >= slots_.size() || ref.offset + ref.bytes > slots_[ref.slot].bytes)
      return internal_error("reference: ", ref.bytes, " bytes at ", ref.offset, " are outside slot ",
                            ref.slot);
    return static_cast<void*>(slots_[ref.slot].data + ref.offset);
  }

 private:
  struct Slot {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  struct Command {
    uint32_t span = 0;
    const ReferenceKernel* kernel = nullptr;  ///< null: copy source to destination
    std::vector<BufferRef> inputs, outputs;
    BufferRef destination, source;
  };
  Status add(Command command) noexcept {
    try {
      commands_.push_back(std::move(command));
      return {};
    } catch (...) {
      return caught_exception("recording a kernel");
    }
  }
  Status execute(const Command& command);

  std::vector<Slot> slots_;
  std::vector<Command> commands_;
  uint32_t span_ = 0;
  bool profile_;
  const StopSignal* stop_;
  uint32_t stoppable_;
  std::vector<uint64_t> nanoseconds_;
};

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const Device& device, const NodeView& view) : node_(view.node) {
    if (view.kind() == OpKind::Custom)
      custom_ = std::make_unique<CustomCall>(find_custom(device, view)->functions, view);
    const ops::Page* page = ops::page_of(view.kind());
    for (size_t i = 0; i < view.input_count(); ++i) {
      const Operand& operand = view.inputs[i];
      const bool shape_operand = page != nullptr && i < 32 && ((page->shape_operands >> i) & 1u) != 0;
      inputs_.push_back({.present = operand.present, .info = operand.info});
      if (operand.present && shape_operand && operand.value != nullptr)
        inputs_.back().value = Blob::copy_of(operand.value, operand.info.bytes());
    }
    outputs_.assign(view.outputs.begin(), view.outputs.end());
  }
  Requirements requirements() const noexcept override { return {}; }
  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    try {
      return static_cast<ReferenceCommands&>(commands).run_kernel(*this, bindings);
    } catch (...) {
      return caught_exception("recording a kernel");
    }
  }

  Status run(const ReferenceCommands& commands, std::span<const BufferRef> inputs,
             std::span<const BufferRef> outputs) const {
    std::vector<Operand> operands;
    std::vector<ConstTensorView> values;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      const void* data = nullptr;
      if (input.value.data != nullptr) {
        data = input.value.data;
      } else if (input.present && i < inputs.size() && inputs[i].present()) {
        RT_ASSIGN(data, commands.address(inputs[i]));
      }
      operands.push_back({.present = input.present, .info = input.info, .value = data});
      values.push_back({data, input.info});
    }
    std::vector<TensorView> results;
    std::vector<std::vector<std::byte>> unwanted;  // absent outputs are computed into these
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (i < outputs.size() && outputs[i].present()) {
        RT_ASSIGN(void* data, commands.address(outputs[i]));
        results.push_back({data, outputs_[i]});
      } else {
        unwanted.emplace_back(outputs_[i].bytes() + 1);
        results.push_back({unwanted.back().data(), outputs_[i]});
      }
    }
    if (custom_ != nullptr) return run_custom(values, results);
    return ops::evaluate_node({.node = node_, .inputs = operands, .outputs = outputs_}, values, results);
  }

 private:
  struct Input {
    bool present = false;
    TensorInfo info;
    Blob value;
  };
  Status run_custom(std::span<const ConstTensorView> values, std::span<const TensorView> results) const {
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (const ConstTensorView& value : values) from.push_back(static_cast<const std::byte*>(value.data));
    for (const TensorView& result : results) to.push_back(static_cast<std::byte*>(result.data));
    return custom_->run_on_host(from, to);
  }

  Node node_;
  std::unique_ptr<CustomCall> custom_;  ///< an operator of the application, which has no page with a value
  std::vector<Input> inputs_;
  std::vector<TensorInfo> outputs_;
};

Status ReferenceCommands::execute(const Command& command) {
  if (command.kernel != nullptr) return command.kernel->run(*this, command.inputs, command.outputs);
  RT_ASSIGN(void* to, address(command.destination));
  RT_ASSIGN(void* from, address(command.source));
  if (command.source.bytes > 0) std::memmove(to, from, static_cast<size_t>(command.source.bytes));
  return {};
}

Status ReferenceCommands::submit() noexcept {
  try {
    nanoseconds_.assign(nanoseconds_.size(), 0);
    for (const Command& command : commands_) {
      if (stop_ != nullptr && command.span < stoppable_) RT_TRY(stop_->check());
      const auto start = std::chrono::steady_clock::now();
      RT_TRY(execute(command));
      if (profile_ && command.span < nanoseconds_.size())
        nanoseconds_[command.span] += static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
                .count());
    }
    return {};
  } catch (...) {
    return caught_exception("the reference backend");
  }
}

Status supports(const Device& device, const NodeView& view) noexcept {
  if (view.kind() == OpKind::Custom) return supports_custom(device, view, &rt_custom_operator::run, "run");
  if (ops::can_evaluate(view.node)) return {};
  return unsupported("the page of ", name_of(view.kind()), " has no reference value");
}

Result<KernelPtr> create(Device& device, const NodeView& view, std::span<const LayoutId>) noexcept {
  try {
    return KernelPtr(std::make_unique<ReferenceKernel>(device, view));
  } catch (...) {
    return caught_exception("the reference backend");
  }
}

constexpr KernelRow kRows[] = {
#define RT_OP(Name) {OpKind::Name, "reference." #Name, kAnyDType, supports, create, 0},
#include "schema/op_list.inc"
#undef RT_OP
};

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(DeviceInfo info)
      : info_(std::move(info)), table_({std::span<const KernelRow>(kRows)}) {}
  const DeviceInfo& info() const noexcept override { return info_; }
  const KernelTable& kernels() const noexcept override { return table_; }

  Result<SlabPtr> allocate(size_t bytes) noexcept override {
    void* data = ::operator new (bytes > 0 ? bytes : 1, std::align_val_t{kAlignment}, std::nothrow);
    if (data == nullptr)
      return Status::make(Code::OutOfMemory, "reference: cannot allocate ", bytes_text(bytes));
    return make_slab(data, bytes, true);
  }
  Result<SlabPtr> wrap(void* data, size_t size) noexcept override { return make_slab(data, size, false); }
  Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept override {
    if (bytes.size() > destination.size() || offset > destination.size() - bytes.size())
      return internal_error("reference: upload outside a slab");
    if (!bytes.empty())
      std::memcpy(static_cast<std::byte*>(destination.host()) + offset, bytes.data(), bytes.size());
    return {};
  }
  Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept override {
    if (bytes.size() > source.size() || offset > source.size() - bytes.size())
      return internal_error("reference: download outside a slab");
    void* data = const_cast<Slab&>(source).host();
    if (!bytes.empty()) std::memcpy(bytes.data(), static_cast<const std::byte*>(data) + offset, bytes.size());
    return {};
  }
  Result<CommandListPtr> begin(const RecordOptions& options) noexcept override {
    try {
      return CommandListPtr(std::make_unique<ReferenceCommands>(options));
    } catch (...) {
      return caught_exception("the reference backend");
    }
  }

 private:
  static Result<SlabPtr> make_slab(void* data, size_t size, bool owned) noexcept {
    auto* slab = new (std::nothrow) ReferenceSlab(static_cast<std::byte*>(data), size, owned);
    if (slab != nullptr) return SlabPtr(slab);
    if (owned) ::operator delete (data, std::align_val_t{kAlignment});
    return Status(Code::OutOfMemory, "reference: out of memory");
  }

  DeviceInfo info_;
  KernelTable table_;
};

DeviceInfo reference_info() {
  DeviceInfo info;
  info.backend = "reference";
  info.name = "reference values of the operators' pages";
  info.driver = "librt";
  info.host_memory = true;
  return info;
}

}  // namespace

Status probe(std::vector<DeviceInfo>& devices, std::string& /*reason*/) noexcept {
  try {
    devices.push_back(reference_info());
    return {};
  } catch (...) {
    return caught_exception("the reference backend");
  }
}

Result<DevicePtr> open(const DeviceOptions& options) noexcept {
  try {
    if (options.communicator != nullptr)
      return unsupported(
          "reference: collectives support one rank only; train data parallel on cpu or vulkan");
    return DevicePtr(std::make_unique<ReferenceDevice>(reference_info()));
  } catch (...) {
    return caught_exception("the reference backend");
  }
}

}  // namespace librt::reference
