/// @file
/// rt::CustomOperator: operators of the application from C++20. Header-only, over custom.h.
///
///     rt::CustomOperator scale("com.example", "Scale", [](const rt::CustomCall& call) {
///       const float factor = call.real("factor", 1);
///       ...
///       return rt::Status();
///     });
///     const auto operators = rt::handles_of(scale);
///     auto session = rt::Session::create(*model, {.custom_operators = operators});
#pragma once

#include <cstdio>
#include <exception>
#include <functional>

#include "rt/rt.hpp"

namespace rt {
inline namespace v0 {

/// What a kernel gets: see rt_custom_call. Valid during the call.
class CustomCall {
 public:
  /// Of a call, which outlives it.
  explicit CustomCall(const rt_custom_call& c) : c_(c) {}
  /// Of the node, with those that are left out.
  size_t input_count() const noexcept { return c_.input_count; }
  /// Of the node.
  size_t output_count() const noexcept { return c_.output_count; }
  /// Whether the node has input `i`.
  bool has(size_t i) const noexcept { return i < c_.input_count && c_.inputs[i].rank >= 0; }
  /// Input `i`, which must be there. Not to be written to.
  Tensor input(size_t i) const { return tensor(c_.inputs[i]); }
  /// Result `i`, to be written; its data() is null if the model does not use it.
  Tensor output(size_t i = 0) const { return tensor(c_.outputs[i]); }
  /// The attribute's only or first value; `otherwise` without one.
  int64_t integer(std::string_view name, int64_t otherwise) const noexcept {
    const auto all = integers(name);
    return all.empty() ? otherwise : all[0];
  }
  /// The attribute's only or first value; `otherwise` without one.
  float real(std::string_view name, float otherwise) const noexcept {
    const auto all = reals(name);
    return all.empty() ? otherwise : all[0];
  }
  /// The attribute's values; none if there is no such attribute of integers.
  std::span<const int64_t> integers(std::string_view name) const noexcept {
    const rt_custom_attribute* found = find(name, RT_CUSTOM_INTS);
    return found != nullptr ? std::span(found->ints, found->count) : std::span<const int64_t>();
  }
  /// The attribute's values; none if there is no such attribute of floats.
  std::span<const float> reals(std::string_view name) const noexcept {
    const rt_custom_attribute* found = find(name, RT_CUSTOM_FLOATS);
    return found != nullptr ? std::span(found->floats, found->count) : std::span<const float>();
  }
  /// The attribute's text; empty if there is no such attribute of text.
  std::string_view text(std::string_view name) const noexcept {
    const rt_custom_attribute* found = find(name, RT_CUSTOM_TEXT);
    return found != nullptr ? std::string_view(found->text, found->count) : std::string_view();
  }
  /// The cudaStream_t to launch on, in a kernel for CUDA; else null.
  void* stream() const noexcept { return c_.stream; }
  /// The C struct.
  const rt_custom_call& handle() const noexcept { return c_; }

 private:
  static Tensor tensor(const rt_custom_tensor& c) {
    return Tensor::borrow(static_cast<DType>(c.dtype),
                          std::span<const int64_t>(c.dims, static_cast<size_t>(c.rank < 0 ? 0 : c.rank)),
                          c.data);
  }
  const rt_custom_attribute* find(std::string_view name, rt_custom_kind kind) const noexcept {
    for (size_t i = 0; i < c_.attribute_count; ++i)
      if (c_.attributes[i].name == name && c_.attributes[i].kind == kind) return &c_.attributes[i];
    return nullptr;
  }
  const rt_custom_call& c_;
};

/// An operator with kernels that return a Status: a failure fails the run, and so does an exception. Must
/// outlive the sessions that it is given to; neither copied nor moved, since sessions refer to it.
class CustomOperator {
 public:
  /// Called in each run; see rt_custom_function.
  using Kernel = std::function<Status(const CustomCall& call)>;
  /// run: in host memory. run_cuda: launches on CustomCall::stream(), on CUDA pointers. One may be empty.
  CustomOperator(std::string domain, std::string name, Kernel run, Kernel run_cuda = nullptr)
      : domain_(std::move(domain)),
        name_(std::move(name)),
        run_(std::move(run)),
        run_cuda_(std::move(run_cuda)) {}
  CustomOperator(const CustomOperator&) = delete;
  CustomOperator& operator=(const CustomOperator&) = delete;
  /// The C struct, which refers to this object.
  rt_custom_operator handle() const noexcept {
    rt_custom_operator c = RT_CUSTOM_OPERATOR_INIT;
    c.domain = domain_.c_str();
    c.name = name_.c_str();
    c.user = const_cast<CustomOperator*>(this);
    if (run_) c.run = call<&CustomOperator::run_>;
    if (run_cuda_) c.run_cuda = call<&CustomOperator::run_cuda_>;
    return c;
  }

 private:
  template <auto kKernel>
  static int call(void* user, const rt_custom_call* c) {
    const auto& self = *static_cast<const CustomOperator*>(user);
    const auto fail = [&](Code code, const char* message) {
      std::snprintf(c->message, c->message_bytes, "%s", message);
      return static_cast<int>(code);
    };
    try {
      const Status status = (self.*kKernel)(CustomCall(*c));
      return status.ok() ? 0 : fail(status.code(), status.message().c_str());
    } catch (const std::bad_alloc&) {
      return fail(Code::OutOfMemory, "no memory");
    } catch (const std::exception& error) {
      return fail(Code::Internal, error.what());
    } catch (...) {
      return fail(Code::Internal, "an exception that is no std::exception");
    }
  }
  std::string domain_, name_;
  Kernel run_, run_cuda_;
};

/// For SessionOptions::custom_operators; the returned list need not outlive the creation of the session.
template <class... Operators>
std::vector<rt_custom_operator> handles_of(const Operators&... operators) {
  return {operators.handle()...};
}

}  // namespace v0
}  // namespace rt
