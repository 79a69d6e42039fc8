// A kernel from two callables: one that packs constants once, and the body that reads what it packed.
#pragma once

#include "backends/cpu/kernel.h"

namespace librt::cpu {

/// pack(float*) fills requirements.packed bytes; body as in make_kernel().
template <class Pack, class Body>
class PackingKernel final : public Kernel {
 public:
  PackingKernel(Pack pack, Body body, const Requirements& requirements, const Workers& workers)
      : pack_(std::move(pack)),
        body_(std::make_shared<const Body>(std::move(body))),
        requirements_(requirements),
        workers_(workers) {}

  Requirements requirements() const noexcept override { return requirements_; }
  Status pack(std::span<std::byte> bytes) noexcept override {
    if (requirements_.packed == 0) return {};
    if (bytes.size() < requirements_.packed)
      return internal_error("packing ", requirements_.packed, " bytes into ", bytes.size());
    const ThreadScope threads(workers_);  // sessions pack outside of the device's scopes
    pack_(reinterpret_cast<float*>(bytes.data()));
    return {};
  }
  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    return record_body(commands, body_, bindings);
  }

 private:
  Pack pack_;
  std::shared_ptr<const Body> body_;
  Requirements requirements_;
  Workers workers_;
};

template <class Pack, class Body>
KernelPtr make_packing_kernel(const CpuDevice& device, Pack pack, Body body,
                              const Requirements& requirements) {
  return std::make_unique<PackingKernel<Pack, Body>>(std::move(pack), std::move(body), requirements,
                                                     device.workers());
}

/// A second operand that kernels read as panels: packed once where it is constant, in scratch at each run
/// otherwise. `key` differs between layouts of one constant (Requirements::packed_key).
struct PackedOperand {
  const void* constant = nullptr;
  size_t offset = 0;  ///< in scratch, of bytes that are packed at each run

  PackedOperand(const void* known, size_t bytes, uint64_t key, uint32_t input, Requirements& requirements)
      : constant(known) {
    if (constant == nullptr) {
      offset = (requirements.scratch + 63) / 64 * 64;
      requirements.scratch = offset + bytes;
      return;
    }
    requirements.packed = bytes;
    requirements.packed_key = key;
    requirements.replaced_inputs |= 1u << input;
  }
  /// Where the panels are in a run; pack(to) is called first where they are not constant.
  template <class Pack>
  const float* panels(const Call& call, const Pack& pack) const noexcept {
    if (constant != nullptr) return call.packed<float>();
    auto* const to = reinterpret_cast<float*>(call.scratch<std::byte>() + offset);
    pack(to);
    return to;
  }
};

}  // namespace librt::cpu
