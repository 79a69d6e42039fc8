// One API for oneDNN 2.6 to 3.x. Included through program.h alone.
//
// Version 3 has no operation descriptors: the arguments go straight into the primitive descriptor, engine
// first, attributes last. Memory descriptors became opaque, and element-wise post-operations lost their
// scale.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

namespace librt::cpu::onednn {

#if DNNL_VERSION_MAJOR >= 3

template <class Primitive, class... Arguments>
auto describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes, Arguments&&... arguments) {
  return typename Primitive::primitive_desc(engine, std::forward<Arguments>(arguments)..., attributes);
}
template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes, const Hint& hint,
                       Arguments&&... arguments) {
  return typename Primitive::primitive_desc(engine, std::forward<Arguments>(arguments)..., hint, attributes);
}
inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha, float beta) {
  operations.append_eltwise(algorithm, alpha, beta);
}
inline void append_hard_swish(dnnl::post_ops& operations) {
  operations.append_eltwise(dnnl::algorithm::eltwise_hardswish, 1.0f / 6.0f, 0.5f);
}
inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) {
  return desc.get_dims();
}
inline dnnl::memory::data_type type_of(const dnnl::memory::desc& desc) {
  return desc.get_data_type();
}
/// Scales are a run-time argument of the primitive; the bias is added after scaling.
inline constexpr bool kBiasIsScaled = false;
inline constexpr int kFactorsArgument = DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS;
inline void set_factors(dnnl::primitive_attr& attributes, int, int weights_mask, const std::vector<float>&) {
  attributes.set_scales_mask(DNNL_ARG_WEIGHTS, weights_mask);
}
/// 0: packed bytes are not shared between kernels.
inline uint64_t key_of(const dnnl::memory::desc&) {
  return 0;
}

#else

template <class Primitive, class... Arguments>
auto describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes, Arguments&&... arguments) {
  return typename Primitive::primitive_desc(typename Primitive::desc(std::forward<Arguments>(arguments)...),
                                            attributes, engine);
}
template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes, const Hint& hint,
                       Arguments&&... arguments) {
  return typename Primitive::primitive_desc(typename Primitive::desc(std::forward<Arguments>(arguments)...),
                                            attributes, engine, hint);
}
inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha, float beta) {
  operations.append_eltwise(1.0f, algorithm, alpha, beta);
}
inline void append_hard_swish(dnnl::post_ops& operations) {
  operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_hardswish, 0.0f, 0.0f);
}
inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) {
  return desc.dims();
}
inline dnnl::memory::data_type type_of(const dnnl::memory::desc& desc) {
  return desc.data_type();
}
/// Scales are attributes of the primitive, applied to the accumulators with the bias.
inline constexpr bool kBiasIsScaled = true;
inline constexpr int kFactorsArgument = 0;  // none
inline void set_factors(dnnl::primitive_attr& attributes, int result_mask, int,
                        const std::vector<float>& factors) {
  attributes.set_output_scales(factors.size() == 1 ? 0 : result_mask, factors);
}
/// A hash of the descriptor (FNV-1a over its fields).
inline uint64_t key_of(const dnnl::memory::desc& desc) {
  uint64_t hash = 14695981039346656037u;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&desc.data);
  for (size_t i = 0; i < sizeof desc.data; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash | 1u;
}

#endif

}  // namespace librt::cpu::onednn
