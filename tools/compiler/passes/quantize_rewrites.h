// The rewrites of the pass `quantize`, one file for each kind, and what they share. Private to the pass.
//
// Knows: how a quantized tensor is written in a graph. Must not know: calibration, which nodes are quantized
// (tools/compiler/quantize).
//
// In the pictures before each rewrite DQ is DequantizeLinear, Q is QuantizeLinear, x8 a tensor in 8 bits and
// x32 one in i32.
#pragma once

#include <optional>

#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/pass.h"

namespace librt::compiler {

/// A quantized tensor: its real values are scale (quantized value - zero); zero may be kNoValue.
struct Quantized {
  ValueId quantized = kNoValue, scale = kNoValue, zero = kNoValue;
  int64_t axis = -1;  ///< axis of a vector of scales
};
/// The operands of a DequantizeLinear from 8 bits to f32.
std::optional<Quantized> quantized_of(GraphEdit& edit, ValueId id);
/// The same with one scale for the whole tensor.
std::optional<Quantized> whole_quantized(GraphEdit& edit, ValueId id);

/// A QuantizeLinear of an f32 tensor to 8 bits, with one scale for the whole tensor.
struct Target {
  NodeId node = kNoNode;
  ValueId scale = kNoValue, zero = kNoValue;
  DType to = DType::F32;
};
std::optional<Target> target_of(GraphEdit& edit, NodeId id);

/// Whether one node reads the value, and nothing else.
bool is_inner(GraphEdit& edit, ValueId id);
/// The zero point, or a constant 0 of this type where it is absent.
ValueId zero_or(GraphEdit& edit, ValueId zero, DType dtype);
/// A constant weight as i8, if its zero point is then 0.
ValueId symmetric_weight(GraphEdit& edit, ValueId quantized, ValueId zero);

/// The window of one convolution operator as that of another.
template <class Attributes>
Attributes with_window(const auto& from) {
  Attributes attributes;
  attributes.strides = from.strides;
  attributes.pads = from.pads;
  attributes.dilations = from.dilations;
  attributes.groups = from.groups;
  return attributes;
}

// --- the rewrites; each leaves a node that does not match as it is

// quantize_matmul.cpp: matmuls and convolutions in integers
void quantize_matmul(GraphEdit& edit, NodeId id);
void fuse_requantize(GraphEdit& edit, NodeId id);

// quantize_conv_transpose.cpp: transposed convolutions whose windows lie side by side, as matmuls in integers
void quantize_conv_transpose(GraphEdit& edit, NodeId id);

// quantize_epilogue.cpp: what follows them becomes part of them
void take_scale(GraphEdit& edit, NodeId id);
void take_bias(GraphEdit& edit, NodeId id);
void take_activation(GraphEdit& edit, NodeId id);
bool take_quantize(GraphEdit& edit, const Target& target);

// quantize_movement.cpp: data is moved in 8 bits
bool moves_quantized(OpKind kind);
void move_quantized(GraphEdit& edit, NodeId id);
Status move_constants(Graph& graph, const PassContext& context);

// quantize_function.cpp: functions of one tensor as tables
bool quantize_function(GraphEdit& edit, const Target& target);

// quantize_affine.cpp: factors and offsets of channels
bool quantize_affine(GraphEdit& edit, const Target& target);

// quantize_sum.cpp: operators of several tensors
bool quantize_sum(GraphEdit& edit, const Target& target);
bool quantize_concat(GraphEdit& edit, const Target& target);

}  // namespace librt::compiler
