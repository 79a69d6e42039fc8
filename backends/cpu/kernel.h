// How kernels of this backend are written: a callable on its operands' addresses, and its kernel table rows.
//
// Knows: the Kernel contract and how to satisfy it with one lambda. Must not know: any operator.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/cpu/device/commands.h"
#include "backends/cpu/device/device.h"
#include "backends/cpu/device/parallel.h"
#include "runtime/backend/kernel_table.h"
#include "runtime/backend/rows_in_build.h"
#include "runtime/core/exception.h"

namespace librt::cpu {

/// Operand addresses of one run.
struct Call {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch_bytes = nullptr;
  const std::byte* packed_bytes = nullptr;

  /// Null for an absent input.
  template <class T>
  const T* in(size_t i) const noexcept {
    return i < inputs.size() ? reinterpret_cast<const T*>(inputs[i]) : nullptr;
  }
  template <class T>
  T* out(size_t i = 0) const noexcept {
    return reinterpret_cast<T*>(outputs[i]);
  }
  template <class T>
  T* scratch() const noexcept {
    return reinterpret_cast<T*>(scratch_bytes);
  }
  template <class T>
  const T* packed() const noexcept {
    return reinterpret_cast<const T*>(packed_bytes);
  }
};

template <class Body>
class FunctionTask final : public Task {
 public:
  FunctionTask(std::shared_ptr<const Body> body, const Bindings& bindings)
      : body_(std::move(body)),
        input_refs_(bindings.inputs.begin(), bindings.inputs.end()),
        output_refs_(bindings.outputs.begin(), bindings.outputs.end()),
        scratch_ref_(bindings.scratch),
        packed_ref_(bindings.packed),
        inputs_(input_refs_.size()),
        outputs_(output_refs_.size()) {}

  Status resolve(const Addresses& addresses) noexcept override {
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = addresses.of(input_refs_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = addresses.of(output_refs_[i]);
    call_ = {inputs_, outputs_, addresses.of(scratch_ref_), addresses.of(packed_ref_)};
    return {};
  }
  Status run() noexcept override {
    if constexpr (std::is_same_v<decltype((*body_)(call_)), Status>) {
      return (*body_)(call_);
    } else {
      (*body_)(call_);
      return {};
    }
  }

 private:
  std::shared_ptr<const Body> body_;
  std::vector<BufferRef> input_refs_, output_refs_;
  BufferRef scratch_ref_, packed_ref_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  Call call_;
};

/// Layouts of a kernel whose tensor operands all share one layout.
struct Layouts {
  LayoutId layout = kDense;
  uint32_t inputs = 0;  ///< bit i: input i has `layout`; others are dense
  uint32_t outputs = 0;
};

/// Kernel::record() of a kernel that is one function, body(const Call&).
template <class Body>
Status record_body(CommandList& commands, std::shared_ptr<const Body> body,
                   const Bindings& bindings) noexcept {
  RT_ATTEMPT {
    return static_cast<Commands&>(commands).add(
        std::make_unique<FunctionTask<Body>>(std::move(body), bindings));
  }
  RT_CAUGHT {
    return caught_exception("recording a kernel");
  }
}

template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Body body, const Requirements& requirements, const Layouts& layouts)
      : body_(std::make_shared<const Body>(std::move(body))),
        requirements_(requirements),
        layouts_(layouts) {}

  Requirements requirements() const noexcept override { return requirements_; }
  LayoutId input_layout(size_t i) const noexcept override { return bit(layouts_.inputs, i); }
  LayoutId output_layout(size_t i) const noexcept override { return bit(layouts_.outputs, i); }
  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    return record_body(commands, body_, bindings);
  }

 private:
  LayoutId bit(uint32_t bits, size_t i) const noexcept {
    return i < 32 && ((bits >> i) & 1u) != 0 ? layouts_.layout : kDense;
  }
  std::shared_ptr<const Body> body_;
  Requirements requirements_;
  Layouts layouts_;
};

/// body(const Call&) is run at every submit; it must neither allocate nor throw. It may return a Status.
template <class Body>
KernelPtr make_kernel(Body body, const Requirements& requirements = {}, const Layouts& layouts = {}) {
  return std::make_unique<FunctionKernel<Body>>(std::move(body), requirements, layouts);
}

inline Requirements in_place(uint8_t input = 0, uint8_t output = 0) {
  Requirements requirements;
  requirements.in_place = InPlace{input, output};
  return requirements;
}

using Producers = std::span<const LayoutId>;

namespace detail {
template <auto Create>
Result<KernelPtr> create_guarded(Device& device, const NodeView& node, Producers producers) noexcept {
  auto& cpu = static_cast<CpuDevice&>(device);
  const ThreadScope threads(cpu.workers());
  RT_ATTEMPT {
    return Create(cpu, node, producers);
  }
  RT_CAUGHT {
    return caught_exception("creating a kernel");
  }
}
template <auto Supports>
Status supports_guarded(const Device& device, const NodeView& node) noexcept {
  RT_ATTEMPT {
    return Supports(static_cast<const CpuDevice&>(device), node);
  }
  RT_CAUGHT {
    return caught_exception("looking for a kernel");
  }
}
}  // namespace detail

/// Kernel table rows from plain functions:
///   Status supports(const CpuDevice&, const NodeView&)
///   Result<KernelPtr> create(CpuDevice&, const NodeView&, Producers)
template <auto Create, auto Supports = nullptr>
constexpr KernelRow row(OpKind op, const char* name, DTypeSet dtypes, int priority = 0) {
  if constexpr (std::is_same_v<decltype(Supports), std::nullptr_t>)
    return {op, name, dtypes, nullptr, &detail::create_guarded<Create>, priority};
  else
    return {op, name, dtypes, &detail::supports_guarded<Supports>, &detail::create_guarded<Create>, priority};
}

}  // namespace librt::cpu
