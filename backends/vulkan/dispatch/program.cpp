#include "backends/vulkan/dispatch/program.h"

#include <algorithm>
#include <string_view>

#include "backends/vulkan/dispatch/capabilities.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {
namespace {
constexpr uint64_t align(uint64_t bytes, uint64_t alignment = 64) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}
/// No device may require a larger alignment of bindings. Bindings without elements are bound as well.
constexpr uint64_t reserved(uint64_t bytes) {
  return align(std::max<uint64_t>(bytes, 1), 256);
}
}  // namespace

Step& Step::push_axes(std::span<const int64_t> values, int64_t filler) {
  constexpr size_t kWords = 6;
  for (size_t i = 0; i < kWords; ++i) push(i < values.size() ? values[i] : filler);
  return *this;
}

Step& Program::dispatch(Shader shader, uint64_t groups, uint32_t lanes) {
  Step& step = steps_.emplace_back();
  step.shader_ = shader;
  step.groups_ = groups;
  step.spec(lanes);
  return step;
}

void Program::fill(const Ref& destination, uint32_t word) {
  Step& step = steps_.emplace_back();
  step.kind_ = Step::Kind::Fill;
  step.word_ = word;
  step.write(0, destination);
}

void Program::copy(const Ref& destination, const Ref& source) {
  Step& step = steps_.emplace_back();
  step.kind_ = Step::Kind::Copy;
  step.write(0, destination);
  step.read(1, source);
}

void Program::update(const Ref& destination, std::vector<uint32_t> words) {
  Step& step = steps_.emplace_back();
  step.kind_ = Step::Kind::Update;
  step.push_ = std::move(words);
  step.write(0, destination);
}

Ref Program::scratch(uint64_t bytes) {
  const Ref ref{Ref::Kind::Scratch, 0, requirements_.scratch, bytes};
  requirements_.scratch += reserved(bytes);
  return ref;
}

Ref Program::packed(uint64_t bytes, std::function<void(std::span<std::byte>)> write) {
  const Ref ref{Ref::Kind::Packed, 0, requirements_.packed, bytes};
  requirements_.packed += reserved(bytes);
  packers_.push_back({ref.offset, bytes, std::move(write)});
  return ref;
}

Status Program::pack(std::span<std::byte> bytes) noexcept {
  RT_ATTEMPT {
    for (const Packer& packer : packers_) {
      if (packer.offset + packer.bytes > bytes.size())
        return internal_error(name_, ": ", requirements_.packed, " packed bytes were reserved, ",
                              bytes.size(), " were given");
      packer.write(bytes.subspan(packer.offset, packer.bytes));
    }
    return {};
  }
  RT_CAUGHT {
    return caught_exception("packing constants");
  }
}

Result<BufferRef> Program::resolve(const Ref& ref, const Bindings& bindings) const {
  BufferRef whole;
  switch (ref.kind) {
    case Ref::Kind::Input:
      if (ref.index < bindings.inputs.size()) whole = bindings.inputs[ref.index];
      break;
    case Ref::Kind::Output:
      if (ref.index < bindings.outputs.size()) whole = bindings.outputs[ref.index];
      break;
    case Ref::Kind::Scratch: whole = bindings.scratch; break;
    case Ref::Kind::Packed: whole = bindings.packed; break;
  }
  if (!whole.present()) return internal_error(name_, ": an operand is not bound");
  const uint64_t bytes = ref.bytes == 0 ? whole.bytes - ref.offset : ref.bytes;
  if (ref.offset + bytes > align(whole.bytes))
    return internal_error(name_, ": an operand of ", whole.bytes, " bytes is bound, ", ref.offset + bytes,
                          " are needed");
  return BufferRef{whole.slot, whole.offset + ref.offset, bytes};
}

Status Program::check_interfaces() const {
  for (const Step& step : steps_) {
    if (step.kind_ != Step::Kind::Dispatch) continue;
    const ShaderCode& code = shader_code(step.shader_);
    const std::string_view wanted = code.push, found = step.push_types_;
    bool same = wanted.empty() || wanted.size() == found.size();
    for (size_t i = 0; same && i < wanted.size(); ++i) same = wanted[i] == found[i] || wanted[i] == '.';
    if (!same)
      return internal_error(name_, ": shader ", code.name, ": expected the push constants ", wanted,
                            ", found ", found);
    if (step.constants_.size() < code.constants)
      return internal_error(name_, ": shader ", code.name, ": expected ", code.constants,
                            " specialization constants, found ", step.constants_.size());
    for (const Step::Use& use : step.uses_) {
      const uint32_t binding = use.texel ? kStorageBindings + use.binding : use.binding;
      if (((code.bindings >> binding) & 1) == 0)
        return internal_error(name_, ": shader ", code.name, " has no binding ", binding,
                              ", to which an operand is bound");
    }
  }
  return {};
}

Status Program::runs_on(const VulkanDevice& device) const {
  const int64_t most = device.plan().most_iterations;
  for (const Step& step : steps_) {
    if (step.kind_ != Step::Kind::Dispatch) continue;
    RT_TRY(runs(device.facts(), shader_code(step.shader_)));
    if (most > 0 && step.iterations_ > most)
      return unsupported("shader ", shader_code(step.shader_).name, " needs ", step.iterations_,
                         " iterations of its loops; the software device leaves them after ", most);
  }
  return {};
}

Status Program::record(CommandList& commands, const Bindings& bindings) noexcept {
  RT_ATTEMPT {
    RT_TRY(check_interfaces());
    auto& vulkan = static_cast<VulkanCommands&>(commands);
    if (alternative_)
      if (const std::optional<Status> status = alternative_(vulkan, bindings)) return *status;
    double dispatches = 0, lanes = 0;
    for (const Step& step : steps_) {
      if (step.kind_ != Step::Kind::Dispatch) continue;
      dispatches += 1;
      lanes += static_cast<double>(step.groups_) * step.constants_[0];
    }
    for (const Step& step : steps_) {
      BoundRange ranges[kStorageBindings + kTexelBindings];
      size_t count = 0;
      for (const Step::Use& use : step.uses_) {
        RT_ASSIGN(ranges[count].range, resolve(use.ref, bindings));
        ranges[count].binding = use.binding;
        ranges[count].texel = use.texel;
        ranges[count].pairs = use.pairs;
        ranges[count].write = use.write;
        ++count;
      }
      switch (step.kind_) {
        case Step::Kind::Fill: RT_TRY(vulkan.fill(ranges[0].range, step.word_)); break;
        case Step::Kind::Update: RT_TRY(vulkan.update(ranges[0].range, step.push_)); break;
        case Step::Kind::Copy: {
          const BufferRef& to = ranges[0].range;
          const BufferRef& from = ranges[1].range;
          if (to.slot != from.slot || to.offset != from.offset) RT_TRY(vulkan.copy(to, from));
          break;
        }
        case Step::Kind::Dispatch: {
          // By its invocations; they may do much more than those of the others.
          const double share =
              std::max(static_cast<double>(step.groups_) * step.constants_[0] / lanes, 1 / dispatches);
          const Dispatch dispatch{step.shader_,    step.constants_, step.push_,
                                  {ranges, count}, step.groups_,    share};
          if (Status status = vulkan.dispatch(dispatch); !status.ok()) return std::move(status).in(name_);
          break;
        }
      }
    }
    return {};
  }
  RT_CAUGHT {
    return caught_exception("recording a kernel");
  }
}

}  // namespace librt::vulkan
