// How the kernels of this backend are written: a callable that gets its operands' device addresses and a
// stream, and rows for it.
//
// Knows: the Kernel contract and how to satisfy it with one lambda. Must not know: any operator.
//
//   return make_kernel([=](const Call& call) { return unary({call.in(0), call.out(), ...}, call.stream); },
//   in_place());
//
// The callable launches kernels (kernels/FAMILY.h) and does nothing else: it runs once, and once more while a
// graph is captured. It must not allocate device memory, wait, or copy from the host.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/device/commands.h"
#include "kernels/types.h"
#include "runtime/core/exception.h"

namespace librt::cuda {

/// Device addresses of the operands of one recorded node. Values begin at multiples of 256 bytes.
struct Call {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch_bytes = nullptr;
  const std::byte* packed_bytes = nullptr;
  cudaStream_t stream = nullptr;

  /// Null for an absent input.
  template <class T = void>
  const T* in(size_t i) const noexcept {
    return i < inputs.size() ? reinterpret_cast<const T*>(inputs[i]) : nullptr;
  }
  /// Null for an absent output.
  template <class T = void>
  T* out(size_t i = 0) const noexcept {
    return i < outputs.size() ? reinterpret_cast<T*>(outputs[i]) : nullptr;
  }
  template <class T = void>
  T* scratch(size_t offset = 0) const noexcept {
    return reinterpret_cast<T*>(scratch_bytes + offset);
  }
  template <class T = void>
  const T* packed(size_t offset = 0) const noexcept {
    return reinterpret_cast<const T*>(packed_bytes + offset);
  }
};

/// Fills the packed bytes on the host; see Kernel::pack.
using Packer = std::function<void(std::span<std::byte>)>;

template <class Body>
class FunctionTask final : public Task {
 public:
  FunctionTask(std::shared_ptr<const Body> body, const CudaCommands& commands, const Bindings& bindings)
      : body_(std::move(body)) {
    for (const BufferRef& ref : bindings.inputs) inputs_.push_back(commands.address_of(ref));
    for (const BufferRef& ref : bindings.outputs) outputs_.push_back(commands.address_of(ref));
    call_ = {inputs_, outputs_, commands.address_of(bindings.scratch), commands.address_of(bindings.packed)};
  }
  cudaError_t run(cudaStream_t stream) noexcept override {
    call_.stream = stream;
    try {
      return (*body_)(call_);
    } catch (...) {  // host memory of a library, or of the emulated device
      return cudaErrorMemoryAllocation;
    }
  }

 private:
  std::shared_ptr<const Body> body_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  Call call_;
};

template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Body body, const Requirements& requirements, Packer packer, Replay replay)
      : body_(std::make_shared<const Body>(std::move(body))),
        requirements_(requirements),
        packer_(std::move(packer)),
        replay_(replay) {}

  Requirements requirements() const noexcept override { return requirements_; }
  Status pack(std::span<std::byte> bytes) noexcept override {
    try {
      if (packer_) packer_(bytes);
    } catch (...) {
      return caught_exception("packing constants");
    }
    return {};
  }
  Status record(CommandList& list, const Bindings& bindings) noexcept override {
    try {
      auto& commands = static_cast<CudaCommands&>(list);
      return commands.add(std::make_unique<FunctionTask<Body>>(body_, commands, bindings), replay_);
    } catch (...) {
      return caught_exception("recording a kernel");
    }
  }

 private:
  std::shared_ptr<const Body> body_;
  Requirements requirements_;
  Packer packer_;
  Replay replay_;
};

/// body(const Call&) -> cudaError_t launches the node's kernels.
template <class Body>
KernelPtr make_kernel(Body body, const Requirements& requirements = {}, Packer packer = nullptr,
                      Replay replay = Replay::Graph) {
  return std::make_unique<FunctionKernel<Body>>(std::move(body), requirements, std::move(packer), replay);
}

inline Requirements in_place(uint8_t input = 0, uint8_t output = 0) {
  Requirements requirements;
  requirements.in_place = InPlace{input, output};
  return requirements;
}

/// Appends `bytes` to the scratch; returns their offset.
inline size_t reserve_scratch(Requirements& requirements, size_t bytes) {
  const size_t offset = requirements.scratch;
  requirements.scratch += (bytes + 255) / 256 * 256;
  return offset;
}

/// y = x, byte by byte; nothing if y aliases x. `replaced`: see Requirements::replaced_inputs.
inline KernelPtr make_copy(size_t bytes, uint32_t replaced = 0) {
  Requirements requirements = in_place();
  requirements.replaced_inputs = replaced;
  return make_kernel(
      [bytes](const Call& call) {
        if (bytes == 0 || call.in(0) == call.out()) return cudaSuccess;
        return cudaMemcpyAsync(call.out(), call.in(0), bytes, cudaMemcpyDeviceToDevice, call.stream);
      },
      requirements);
}

inline ElementType element_type(DType dtype) noexcept {
  static_assert(static_cast<int>(ElementType::Bool) == static_cast<int>(DType::Bool) &&
                static_cast<int>(ElementType::BF16) == static_cast<int>(DType::BF16) &&
                static_cast<int>(ElementType::I64) == static_cast<int>(DType::I64));
  return static_cast<ElementType>(dtype);
}

/// Ok when input `i` is known on the host (or absent, or without elements).
inline Status known_on_host(const NodeView& node, size_t i, const char* what) {
  if (!node.has(i) || node.inputs[i].value != nullptr || node.input(i).elements() == 0) return {};
  return unsupported(what, " must be known before the run");
}

/// Bits for Requirements::replaced_inputs: the inputs whose values the factory has read.
inline uint32_t known_inputs(const NodeView& node, size_t first) {
  uint32_t bits = 0;
  for (size_t i = first; i < node.input_count() && i < 32; ++i)
    if (node.has(i) && node.inputs[i].value != nullptr) bits |= 1u << i;
  return bits;
}

/// 16-bit floats and f32: supported by nearly every floating-point kernel.
inline constexpr DTypeSet kShortFloats{DType::F32, DType::F16, DType::BF16};

using Producers = std::span<const LayoutId>;

namespace detail {
template <auto Create>
Result<KernelPtr> create_guarded(Device& device, const NodeView& node, Producers) noexcept {
  try {
    return Create(cast(device), node);
  } catch (...) {
    return caught_exception("creating a kernel");
  }
}
template <auto Supports>
Status supports_guarded(const Device& device, const NodeView& node) noexcept {
  try {
    return Supports(cast(device), node);
  } catch (...) {
    return caught_exception("looking for a kernel");
  }
}
}  // namespace detail

/// Rows from plain functions:
///   Status supports(const CudaDevice&, const NodeView&)
///   Result<KernelPtr> create(CudaDevice&, const NodeView&)
template <auto Create, auto Supports = nullptr>
constexpr KernelRow row(OpKind op, const char* name, DTypeSet dtypes, int priority = 0) {
  if constexpr (std::is_same_v<decltype(Supports), std::nullptr_t>)
    return {op, name, dtypes, nullptr, &detail::create_guarded<Create>, priority};
  else
    return {op, name, dtypes, &detail::supports_guarded<Supports>, &detail::create_guarded<Create>, priority};
}

}  // namespace librt::cuda
