// --open-batch: operators of a file hold the batch of 1 that it was exported with, in constants.
//
// Knows: where operators hold it, and what to put there. Must not know: whether samples stay apart, which is
// checked by runs once the model is imported. Private to the importer's folder.
//
// All of this does nothing without ImportOptions::open_batch.
#pragma once

#include <optional>
#include <span>

#include "tools/onnx/shapes.h"

namespace librt::onnx {

class NodeContext;

/// Whether the first axis of the value is the batch.
bool leads_with_batch(const NodeContext& c, ValueId x);
/// The batch, if the first axis of one of the values is it.
std::optional<Extent> leading_batch(const NodeContext& c, std::span<const ValueId> values);

/// x with an axis of 1 (of a class token, of an initial state) broadcast to the batch; x itself if the axis
/// is not 1. x may be absent.
ValueId with_batch(NodeContext& c, ValueId x, int axis, const Extent& batch);

/// The node's input 0 in a constant shape, one entry of which takes the batch; kNoValue: the shape is no
/// constant, or the input has no batch, or not as one axis that is a multiple of it.
ValueId reshape_with_batch(NodeContext& c, ValueId shape, bool allow_zero);

}  // namespace librt::onnx
