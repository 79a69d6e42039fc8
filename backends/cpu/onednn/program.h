// A kernel built from oneDNN's primitives and our own functions: how it is assembled, and run without
// allocating.
//
// Knows: operand locations, scratch, constants packed once. Must not know: which operation it is. Only
// included by the files of onednn/, which see oneDNN's types and exceptions.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <string_view>

#include "backends/cpu/device/openmp.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/compat.h"
#include "runtime/core/exception.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
constexpr auto kF32 = dnnl::memory::data_type::f32;

/// Plans keep the primitives that they use. oneDNN's own primitive cache is bounded by count only, and a
/// primitive with its JIT code may take a few hundred KB.
inline constexpr int kMostCachedPrimitives = 256;

inline const dnnl::engine& engine() {
  static const dnnl::engine kEngine = [] {
    if (dnnl::get_primitive_cache_capacity() > kMostCachedPrimitives)
      dnnl::set_primitive_cache_capacity(kMostCachedPrimitives);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return kEngine;
}

inline Status failure(std::string_view what, const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory)
    return Status::make(Code::OutOfMemory, "oneDNN: ", what, ": no memory");
  if (error.status == dnnl_unimplemented) return unsupported("oneDNN has no implementation of ", what);
  if (error.status == dnnl_invalid_arguments)
    return unsupported("oneDNN refuses ", what, ": ", error.message);
  return Status::make(Code::Internal, "oneDNN: ", what, ": ", error.message);
}

/// Whether there is memory for a primitive: a matmul makes dozens of kernels, each in a buffer of its own,
/// and another thread may take 64 MiB of addresses for its heap meanwhile (with 64 MiB left, one of 1,000
/// trainings under a limit crashed). oneDNN writes through the null pointer where malloc fails, so it is not
/// called when little is left.
inline bool has_memory() noexcept {
  constexpr size_t kReserve = size_t{128} << 20;
  void* volatile reserve = std::malloc(kReserve);  // volatile: else the compiler leaves malloc and free out
  std::free(reserve);
  return reserve != nullptr;
}

/// Empties oneDNN's cache. Plans keep the primitives that they use.
inline void forget_cached_primitives() noexcept {
  int capacity = kMostCachedPrimitives;
  dnnl_get_primitive_cache_capacity(&capacity);
  dnnl_set_primitive_cache_capacity(0);
  dnnl_set_primitive_cache_capacity(capacity);
}

/// Creates a primitive. An exception inside oneDNN leaves an entry in its cache that holds no primitive, only
/// a promise that nobody keeps (std::future_error for the next one to ask for it), under a key that refers to
/// `desc`: so the cache is emptied while that still exists.
template <class Primitive>
Primitive made(const typename Primitive::primitive_desc& desc) {
  for (bool again = false;; again = true) {
    try {
      return Primitive(desc);
    } catch (const dnnl::error&) {  // oneDNN has removed its entry
      throw;
    } catch (const std::future_error&) {  // another thread's failure
      forget_cached_primitives();
      if (again) throw;
    } catch (...) {
      forget_cached_primitives();
      throw;
    }
  }
}

/// Calls a function that uses oneDNN, and returns dnnl::error as a Status.
template <class Made = Result<KernelPtr>, class Make>
Made caught(std::string_view what, const Make& make) {
  if (!has_memory()) return Status::make(Code::OutOfMemory, "oneDNN: ", what, ": no memory");
  try {
    return make();
  } catch (const dnnl::error& error) {
    return failure(what, error);
  }
}

/// Row-major strides.
inline Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

// --- a kernel made of primitives
// ----------------------------------------------------------------------------

/// A memory location, in terms of the kernel's bindings.
struct Location {
  enum class Kind : uint8_t { Input, Output, Scratch, Packed, Own };
  Kind kind = Kind::Input;
  size_t index = 0;
  size_t offset = 0;
  std::byte* own = nullptr;  ///< Kind::Own: memory of the program

  std::byte* in(const Addresses& addresses, const Bindings& bindings) const noexcept {
    if (kind == Kind::Own) return own;
    const BufferRef* ref = kind == Kind::Input     ? &bindings.inputs[index]
                           : kind == Kind::Output  ? &bindings.outputs[index]
                           : kind == Kind::Scratch ? &bindings.scratch
                                                   : &bindings.packed;
    std::byte* address = addresses.of(*ref);
    return address == nullptr ? nullptr : address + offset;
  }
};
inline Location input(int index) {
  return {Location::Kind::Input, static_cast<size_t>(index), 0, nullptr};
}
inline Location output() {
  return {Location::Kind::Output, 0, 0, nullptr};
}

/// A memory location and its layout.
struct Tensor {
  Location location;
  Desc desc;
};

/// Whether a step runs, given the tests before it. oneDNN's max and min turn NaN into a number.
enum class When : uint8_t { Always, AllFinite, NotFinite };

/// A primitive, or our own function on the addresses of its operands, or a test on them.
struct Step {
  dnnl::primitive primitive;
  std::vector<std::pair<int, Tensor>> arguments;
  std::function<void(std::byte* const* addresses)> function;
  std::function<bool(std::byte* const* addresses)> is_finite;
  When when = When::Always;
  bool moves_stack = false;  ///< the primitive is to run without signals: see moves_stack()
};

/// Whether oneDNN uses these instructions, or more.
inline bool uses_isa(dnnl::cpu_isa isa) {
  // Values are bit sets, which include those of the instructions that the CPU then has, too.
  const auto needed = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

/// Whether a primitive's kernels may move the stack pointer to a buffer on the heap, where the handler of a
/// signal would overwrite what lies before the buffer. oneDNN's f32 GEMM for AVX and later does, once the
/// rows that it packs, 16 or with AVX-512 48, do not fit into 16 KiB of the stack. To block signals and to
/// unblock them takes 0.65 us in a virtual machine, as long as 30,000 multiply-adds.
inline bool moves_stack(const dnnl::primitive& primitive, const Desc& source) {
  if (type_of(source) != kF32) return false;
  const char* name = nullptr;
  if (dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &name) !=
      dnnl_success)
    return true;
  const std::string_view implementation = name;
  if (implementation.find("gemm") == std::string_view::npos || implementation.starts_with("brg"))
    return false;
  const int64_t rows = uses_isa(dnnl::cpu_isa::avx512_core) ? 48 : 16;
  const int64_t most_on_stack = (4 * 4096 - 256) / (rows * static_cast<int64_t>(sizeof(float)));
  return primitive.get_kind() != dnnl::primitive::kind::matmul || dims_of(source).back() > most_on_stack;
}

/// What a kernel and the tasks that it records share.
struct Program {
  std::vector<Step> steps;
  std::vector<std::vector<float>> numbers;  ///< constants that steps read
  dnnl::stream stream{engine()};
};

class ProgramTask final : public Task {
 public:
  ProgramTask(std::shared_ptr<const Program> program, const Bindings& bindings)
      : program_(std::move(program)),
        inputs_(bindings.inputs.begin(), bindings.inputs.end()),
        outputs_(bindings.outputs.begin(), bindings.outputs.end()),
        scratch_(bindings.scratch),
        packed_(bindings.packed) {
    for (const Step& step : program_->steps) {
      Execution execution;
      for (const auto& [argument, tensor] : step.arguments) {
        execution.addresses.push_back(nullptr);
        if (!step.primitive) continue;
        execution.memories.push_back(dnnl::memory(tensor.desc, engine(), DNNL_MEMORY_NONE));
        execution.arguments.push_back({argument, execution.memories.back().get()});
      }
      executions_.push_back(std::move(execution));
    }
  }

  Status resolve(const Addresses& addresses) noexcept override {
    try {
      return set_addresses(addresses);
    } catch (...) {
      return caught_exception("oneDNN: binding operands");
    }
  }

  Status run() noexcept override {
    try {
      return run_steps();
    } catch (...) {
      return caught_exception("oneDNN: running a primitive");
    }
  }

 private:
  Status set_addresses(const Addresses& addresses) {
    const Bindings bindings{inputs_, outputs_, scratch_, packed_};
    for (size_t s = 0; s < executions_.size(); ++s) {
      Execution& execution = executions_[s];
      const Step& step = program_->steps[s];
      for (size_t i = 0; i < execution.addresses.size(); ++i) {
        std::byte* address = step.arguments[i].second.location.in(addresses, bindings);
        if (address == execution.addresses[i]) continue;
        execution.addresses[i] = address;
        if (!step.primitive) continue;
        if (dnnl_memory_set_data_handle(execution.arguments[i].memory, address) != dnnl_success)
          return Status(Code::Device, "oneDNN: an operand's address was refused");
      }
    }
    return {};
  }

  Status run_steps() const {
    bool finite = true;
    for (size_t s = 0; s < executions_.size(); ++s) {
      const Execution& execution = executions_[s];
      const Step& step = program_->steps[s];
      if (step.when != When::Always && (step.when == When::AllFinite) != finite) continue;
      if (step.is_finite) {
        finite = finite && step.is_finite(execution.addresses.data());
        continue;
      }
      if (step.function) {
        step.function(execution.addresses.data());
        continue;
      }
      std::optional<BlockedSignalsOfPrimitive> blocked;
      if (step.moves_stack) blocked.emplace();
      const dnnl_status_t status =
          dnnl_primitive_execute(step.primitive.get(), program_->stream.get(),
                                 static_cast<int>(execution.arguments.size()), execution.arguments.data());
      if (status != dnnl_success)
        return Status(status == dnnl_out_of_memory ? Code::OutOfMemory : Code::Device,
                      text("oneDNN: a primitive failed with status ", static_cast<int>(status)));
    }
    return {};
  }

  struct Execution {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<std::byte*> addresses;
  };
  std::shared_ptr<const Program> program_;
  std::vector<BufferRef> inputs_, outputs_;
  BufferRef scratch_, packed_;
  std::vector<Execution> executions_;
};

/// A constant to be packed from the graph's layout into another one.
struct Packing {
  const void* constant = nullptr;
  Desc from, to;
  std::optional<Desc> through;  ///< intermediate layout, where oneDNN has no direct reorder
  bool flip_signs = false;      ///< u8 values are packed minus 128
};

class ProgramKernel final : public Kernel {
 public:
  ProgramKernel(Program program, const Requirements& requirements, const Packing& packing,
                const Layouts& layouts)
      : program_(std::make_shared<const Program>(std::move(program))),
        requirements_(requirements),
        packing_(packing),
        layouts_(layouts) {}

  Requirements requirements() const noexcept override { return requirements_; }
  LayoutId input_layout(size_t i) const noexcept override { return bit(layouts_.inputs, i); }
  LayoutId output_layout(size_t i) const noexcept override { return bit(layouts_.outputs, i); }

  Status pack(std::span<std::byte> bytes) noexcept override {
    if (packing_.constant == nullptr) return {};
    if (bytes.size() < requirements_.packed)
      return internal_error("packing ", requirements_.packed, " bytes into ", bytes.size());
    try {
      return caught<Status>("packing weights", [&] { return reorder_into(bytes); });
    } catch (...) {
      return caught_exception("packing weights");
    }
  }

  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    try {
      return caught<Status>("recording a primitive", [&] {
        return static_cast<Commands&>(commands).add(std::make_unique<ProgramTask>(program_, bindings));
      });
    } catch (...) {
      return caught_exception("recording a kernel");
    }
  }

 private:
  Status reorder_into(std::span<std::byte> bytes) const {
    const ThreadScope threads(workers_);  // sessions pack outside of the device's scopes
    std::vector<std::byte> flipped;
    const auto* constant = static_cast<const std::byte*>(packing_.constant);
    if (packing_.flip_signs) {
      flipped.assign(constant, constant + packing_.from.get_size());
      for (std::byte& byte : flipped) byte ^= std::byte{0x80};
      constant = flipped.data();
    }
    // oneDNN's reorder only reads its source.
    dnnl::memory from(packing_.from, engine(), const_cast<std::byte*>(constant));
    dnnl::memory to(packing_.to, engine(), bytes.data());
    dnnl::stream stream(engine());
    const auto reorder = [&stream](dnnl::memory& source, dnnl::memory& target) {
      const dnnl::reorder::primitive_desc desc(source, target);
      made<dnnl::reorder>(desc).execute(stream, source, target);
    };
    if (packing_.through) {
      dnnl::memory between(*packing_.through, engine());
      reorder(from, between);
      reorder(between, to);
    } else {
      reorder(from, to);
    }
    stream.wait();
    return {};
  }
  LayoutId bit(uint32_t bits, size_t i) const noexcept {
    return i < 32 && ((bits >> i) & 1u) != 0 ? layouts_.layout : kDense;
  }
  std::shared_ptr<const Program> program_;
  Requirements requirements_;
  Packing packing_;
  Layouts layouts_;
  Workers workers_ = current_workers();  ///< of the device that the kernel is made for
};

/// Collects steps, and reserves scratch and packed bytes for them.
class ProgramBuilder {
 public:
  /// `tensor` in the layout `wanted`: itself, or the result of a new reorder step.
  Tensor converted(const Tensor& tensor, const Desc& wanted) {
    if (tensor.desc == wanted) return tensor;
    const Tensor result{scratch(wanted.get_size()), wanted};
    reorder(tensor, result);
    return result;
  }
  /// A constant in the layout `wanted`, packed once.
  Tensor packed(int input_index, const Desc& from, const Desc& wanted, const void* constant,
                std::optional<Desc> through = {}, bool flip_signs = false) {
    if (from == wanted && !flip_signs) return {input(input_index), from};
    // Includes `from`: one training step packs the same bytes from a matrix and from its transpose.
    uint64_t key = 31 * key_of(wanted) + key_of(from) + (flip_signs ? 2u : 0u);
    if (through) key = 31 * key + key_of(*through);
    packing_ = {constant, from, wanted, std::move(through), flip_signs};
    requirements_.packed = wanted.get_size();
    requirements_.packed_key = key_of(wanted) == 0 ? 0 : key | 1u;
    requirements_.replaced_inputs = 1u << input_index;
    return {{Location::Kind::Packed, 0, 0, nullptr}, wanted};
  }
  /// The destination of a primitive whose result belongs in `tensor`; call finish_output() after it.
  Tensor output_for(const Tensor& tensor, const Desc& produced) {
    if (tensor.desc == produced) return tensor;
    return {scratch(produced.get_size()), produced};
  }
  void finish_output(const Tensor& produced, const Tensor& tensor) {
    if (produced.location.kind == Location::Kind::Scratch) reorder(produced, tensor);
  }
  void reorder(const Tensor& from, const Tensor& to) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc desc(engine(), from.desc, engine(), to.desc, attributes);
    add(made<dnnl::reorder>(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, desc.scratchpad_desc());
  }
  void add(dnnl::primitive primitive, std::vector<std::pair<int, Tensor>> arguments, const Desc& scratchpad,
           When when = When::Always) {
    if (const size_t bytes = scratchpad.get_size(); bytes > 0) {
      // Steps run one after another and share one region, placed after all other scratch in build().
      scratchpad_ = std::max(scratchpad_, bytes);
      arguments.push_back(
          {DNNL_ARG_SCRATCHPAD, {{Location::Kind::Scratch, kSharedScratchpad, 0, nullptr}, scratchpad}});
    }
    const bool moves = moves_stack(primitive, arguments.front().second.desc);
    program_.steps.push_back({std::move(primitive), std::move(arguments), {}, {}, when, moves});
  }
  void call(const std::vector<Location>& buffers, std::function<void(std::byte* const*)> function,
            When when = When::Always) {
    Step step = step_on(buffers);
    step.function = std::move(function);
    step.when = when;
    program_.steps.push_back(std::move(step));
  }
  /// Adds a test; the conditional steps after it depend on all tests so far.
  void test(const std::vector<Location>& buffers, std::function<bool(std::byte* const*)> is_finite) {
    Step step = step_on(buffers);
    step.is_finite = std::move(is_finite);
    program_.steps.push_back(std::move(step));
  }
  /// Scratch bytes for the whole program.
  Location region(size_t bytes) { return scratch(bytes); }
  /// Constants owned by the program.
  Tensor numbers(std::vector<float> values, const Dims& dims) {
    program_.numbers.push_back(std::move(values));
    auto* bytes = reinterpret_cast<std::byte*>(program_.numbers.back().data());
    return {{Location::Kind::Own, 0, 0, bytes}, Desc(dims, kF32, dense_strides(dims))};
  }
  Tensor temporary(const Desc& desc) { return {scratch(desc.get_size()), desc}; }
  Requirements& requirements() noexcept { return requirements_; }

  KernelPtr build(const Layouts& layouts) {
    for (Step& step : program_.steps)
      for (auto& [argument, tensor] : step.arguments)
        if (tensor.location.kind == Location::Kind::Scratch && tensor.location.index == kSharedScratchpad)
          tensor.location = {Location::Kind::Scratch, 0, requirements_.scratch, nullptr};
    requirements_.scratch += scratchpad_;
    return std::make_unique<ProgramKernel>(std::move(program_), requirements_, packing_, layouts);
  }

 private:
  static constexpr size_t kSharedScratchpad = ~size_t{0};
  static Step step_on(const std::vector<Location>& buffers) {
    Step step;
    for (const Location& location : buffers) step.arguments.push_back({0, {location, {}}});
    return step;
  }
  Location scratch(size_t bytes) {
    const Location location{Location::Kind::Scratch, 0, requirements_.scratch, nullptr};
    requirements_.scratch += (bytes + 63) / 64 * 64;
    return location;
  }
  Program program_;
  Requirements requirements_;
  Packing packing_;
  size_t scratchpad_ = 0;
};

// --- descriptions

inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

inline void append_activation(dnnl::post_ops& operations, op::Activation activation, float alpha,
                              float beta) {
  using dnnl::algorithm;
  switch (activation) {
    case op::Activation::None: break;
    case op::Activation::Relu: append_eltwise(operations, algorithm::eltwise_relu, 0, 0); break;
    case op::Activation::Clip: append_eltwise(operations, algorithm::eltwise_clip, alpha, beta); break;
    case op::Activation::Sigmoid: append_eltwise(operations, algorithm::eltwise_logistic, 0, 0); break;
    case op::Activation::Tanh: append_eltwise(operations, algorithm::eltwise_tanh, 0, 0); break;
    case op::Activation::HardSwish: append_hard_swish(operations); break;
    case op::Activation::Silu: append_eltwise(operations, algorithm::eltwise_swish, 1, 0); break;
    case op::Activation::Gelu: append_eltwise(operations, algorithm::eltwise_gelu_erf, 0, 0); break;
    case op::Activation::GeluTanh: append_eltwise(operations, algorithm::eltwise_gelu_tanh, 0, 0); break;
    case op::Activation::LeakyRelu: append_eltwise(operations, algorithm::eltwise_relu, alpha, 0); break;
    case op::Activation::HardSigmoid:  // no single algorithm before 3.0
      append_eltwise(operations, algorithm::eltwise_linear, alpha, beta);
      append_eltwise(operations, algorithm::eltwise_clip, 0, 1);
      break;
  }
}

/// oneDNN's logical dimensions ([N,C,S..], [O,I,K..]) over channels-last memory ([N,S..,C], [O,K..,I]).
inline Desc channels_last(const Dims& ours, bool grouped = false,
                          dnnl::memory::data_type type = dnnl::memory::data_type::f32) {
  // Memory order: [G, O, K.., I] when grouped. The last dimension moves after the first one or two.
  const Dims strides = dense_strides(ours);
  const size_t front = grouped ? 2 : 1;
  Dims dims(ours.begin(), ours.begin() + static_cast<ptrdiff_t>(front));
  Dims moved(strides.begin(), strides.begin() + static_cast<ptrdiff_t>(front));
  dims.push_back(ours.back());
  moved.push_back(strides.back());
  dims.insert(dims.end(), ours.begin() + static_cast<ptrdiff_t>(front), ours.end() - 1);
  moved.insert(moved.end(), strides.begin() + static_cast<ptrdiff_t>(front), strides.end() - 1);
  return Desc(dims, type, moved);
}

/// Descriptors of a convolution's operands as the graph stores them, its strides, dilations and padding.
struct ConvDescs {
  Desc x, weight, y;
  Dims strides, dilations, pads_begin, pads_end;
};
struct ConvTypes {
  using Type = dnnl::memory::data_type;
  Type x = Type::f32, weight = Type::f32, y = Type::f32;
};
inline ConvDescs conv_descs(const ConvGeometry& g, const ConvTypes& types = {}) {
  Dims x{g.batch}, y{g.batch}, weight;
  if (g.groups > 1) weight.push_back(g.groups);
  weight.push_back(g.output_channels_per_group());
  ConvDescs descs;
  for (int i = 0; i < g.rank; ++i) {
    const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
    x.push_back(axis.input);
    y.push_back(axis.output);
    weight.push_back(axis.kernel);
    descs.strides.push_back(axis.stride);
    descs.dilations.push_back(axis.dilation - 1);
    descs.pads_begin.push_back(axis.pad_begin);
    descs.pads_end.push_back(axis.effective_pad_end());
  }
  x.push_back(g.input_channels);
  y.push_back(g.output_channels);
  weight.push_back(g.input_channels_per_group());
  descs.x = channels_last(x, false, types.x);
  descs.y = channels_last(y, false, types.y);
  descs.weight = channels_last(weight, g.groups > 1, types.weight);
  return descs;
}

/// The same operand in a layout of oneDNN's choice.
inline Desc any_of(const Desc& desc, dnnl::memory::data_type type) {
  return Desc(dims_of(desc), type, dnnl::memory::format_tag::any);
}
inline Desc any_of(const Desc& desc) {
  return any_of(desc, type_of(desc));
}

/// Reference implementations are named "ref:any" and the like: plain loops, up to 200 times slower than
/// others.
template <class PrimitiveDesc>
bool is_reference(const PrimitiveDesc& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("ref");
}

/// The first primitive descriptor that is not a reference implementation; else the first one found. Each
/// attempt may throw; the last error propagates when none succeeds.
template <class Describe>
auto first_fast(const Describe& describe_attempt) {
  using PrimitiveDesc = decltype(describe_attempt(false));
  PrimitiveDesc slow;
  bool found = false;
  for (const bool free_layouts : {false, true}) {
    try {
      PrimitiveDesc desc = describe_attempt(free_layouts);
      if (!is_reference(desc)) return desc;
      if (!found) slow = desc;
      found = true;
    } catch (const dnnl::error&) {
      if (free_layouts && !found) throw;
    }
  }
  return slow;
}

}  // namespace librt::cpu::onednn
