// Program: a kernel as a list of dispatches, fills and copies over its operands, scratch and packed bytes.
//
// Knows: how such a list is described and recorded. Must not know: any operator. Almost every kernel of this
// backend is a Program that its factory builds.
#pragma once

#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/vulkan/dispatch/commands.h"

namespace librt::vulkan {

/// A byte range that a step reads or writes.
struct Ref {
  enum class Kind : uint8_t { Input, Output, Scratch, Packed };
  Kind kind = Kind::Input;
  size_t index = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  ///< 0: all of an input or output
};
inline Ref in(size_t index) {
  return {Ref::Kind::Input, index};
}
inline Ref out(size_t index) {
  return {Ref::Kind::Output, index};
}

class Step {
 public:
  enum class Kind : uint8_t { Dispatch, Fill, Copy, Update };

  /// The next specialization constant (constant_id 0 is the workgroup's size).
  Step& spec(uint64_t value) {
    constants_.push_back(static_cast<uint32_t>(value));
    return *this;
  }
  /// The next words of the push constants.
  template <class Word>
  Step& push(Word value) {
    if constexpr (std::is_same_v<Word, float>)
      push_.push_back(std::bit_cast<uint32_t>(value));
    else
      push_.push_back(static_cast<uint32_t>(value));
    push_types_ += std::is_same_v<Word, float> ? 'f' : 'i';
    return *this;
  }
  /// Six words: the values, then `filler`.
  Step& push_axes(std::span<const int64_t> values, int64_t filler);
  /// Iterations of the loops of an invocation, all together, where they grow with the extents of tensors.
  Step& loops(int64_t iterations) {
    iterations_ = iterations;
    return *this;
  }
  Step& read(uint32_t binding, const Ref& ref) { return add({ref, binding, false, false}); }
  Step& write(uint32_t binding, const Ref& ref) { return add({ref, binding, false, true}); }
  /// Read through a texel buffer if `texel`, else as a storage buffer; see load.glsl. A texel is four
  /// elements of `element` bytes, 4 or 2.
  Step& matrix(uint32_t binding, const Ref& ref, bool texel, size_t element = 4) {
    return add({ref, binding, texel, false, texel && element == 2});
  }

 private:
  friend class Program;
  struct Use {
    Ref ref;
    uint32_t binding;
    bool texel;
    bool write;
    bool pairs = false;
  };
  Step& add(const Use& use) {
    uses_.push_back(use);
    return *this;
  }
  Kind kind_ = Kind::Dispatch;
  Shader shader_{};
  uint64_t groups_ = 0;
  int64_t iterations_ = 0;
  uint32_t word_ = 0;
  std::vector<uint32_t> constants_;
  std::vector<uint32_t> push_;  ///< Update: the words
  std::string push_types_;      ///< as in ShaderCode
  std::vector<Use> uses_;
};

class Program final : public Kernel {
 public:
  explicit Program(const char* name) : name_(name) {}

  /// A dispatch of `groups` workgroups of `lanes`.
  Step& dispatch(Shader shader, uint64_t groups, uint32_t lanes);
  /// A dispatch with one invocation for each of `count` pieces of work.
  Step& dispatch_each(Shader shader, int64_t count, uint32_t lanes) {
    return dispatch(shader, (static_cast<uint64_t>(count) + lanes - 1) / lanes, lanes);
  }
  void fill(const Ref& destination, uint32_t word);
  void copy(const Ref& destination, const Ref& source);
  /// Sets the first bytes to these words, at most 64 KiB.
  void update(const Ref& destination, std::vector<uint32_t> words);

  /// Allocates scratch, alive during the whole program.
  Ref scratch(uint64_t bytes);
  /// Allocates packed bytes that `write` fills on the host.
  Ref packed(uint64_t bytes, std::function<void(std::span<std::byte>)> write);
  /// The node cannot be computed this way after all; finish() then returns the first such reason.
  void decline(Status reason) {
    if (declined_.ok()) declined_ = std::move(reason);
  }
  const Status& declined() const noexcept { return declined_; }
  void in_place(uint8_t input, uint8_t output = 0) { requirements_.in_place = InPlace{input, output}; }
  /// Further pairs under the same rule.
  void also_in_place(uint8_t input, uint8_t output) { more_in_place_.push_back({input, output}); }
  /// The device need not keep this input.
  void replaces(size_t input) { requirements_.replaced_inputs |= 1u << input; }
  /// Kernels with the same key and constants have the same packed bytes.
  void packed_key(uint64_t key) { requirements_.packed_key = key; }

  /// Called by record(): has recorded the node in another way, or nothing, and the program is recorded.
  using Alternative = std::function<std::optional<Status>(VulkanCommands&, const Bindings&)>;
  void or_else(Alternative alternative) { alternative_ = std::move(alternative); }

  /// Shaders match push constants and specialization constants by position, operands by binding: an error
  /// when a dispatch has others than its shader was compiled for, in number or in type.
  Status check_interfaces() const;
  /// Ok if the device runs every shader of the program, else what it lacks.
  Status runs_on(const VulkanDevice& device) const;

  Requirements requirements() const noexcept override {
    Requirements requirements = requirements_;
    requirements.more_in_place = more_in_place_;
    return requirements;
  }
  Status pack(std::span<std::byte> bytes) noexcept override;
  Status record(CommandList& commands, const Bindings& bindings) noexcept override;

 private:
  struct Packer {
    uint64_t offset;
    uint64_t bytes;
    std::function<void(std::span<std::byte>)> write;
  };
  Result<BufferRef> resolve(const Ref& ref, const Bindings& bindings) const;

  const char* name_;
  Status declined_;
  Requirements requirements_;
  std::vector<InPlace> more_in_place_;
  std::vector<Step> steps_;
  std::vector<Packer> packers_;
  Alternative alternative_;
};

}  // namespace librt::vulkan
