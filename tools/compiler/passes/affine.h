// What a node with constant operands does to each channel: y = factor x + offset.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {

/// y = factor x + offset, per channel, computed in double.
struct Affine {
  std::vector<double> factor, offset;
};

/// A constant of floats, or DequantizeLinear of a constant, with one entry for each channel of the last axis,
/// or one for all.
std::optional<std::vector<double>> numbers_per_channel(GraphEdit& edit, ValueId id, int64_t channels);

/// A constant of a float type with these elements, rounded once; name: may be empty.
ValueId constant_of(GraphEdit& edit, const TensorInfo& info, std::span<const double> numbers,
                    std::string name = {});

/// Whether a matmul or convolution ends with a bias at most.
bool has_plain_epilogue(const op::EpilogueAttributes* epilogue);

/// What a BatchNorm, Mul, Div, Add or Sub applies to its input `operand`, whose last axis has `channels`;
/// nullopt for any other node, and where the other operands are not constant.
std::optional<Affine> affine_of(GraphEdit& edit, const Node& node, size_t operand, int64_t channels);

}  // namespace librt::compiler
