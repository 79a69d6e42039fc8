// The operators that an application has given to a session.
//
// Knows: their names and functions. Must not know: how a backend calls them (custom_call.h).
#pragma once

#include "runtime/backend/backend.h"

namespace librt {

/// The operator of a Custom node; null if the device's session has none of this name.
const CustomOperator* find_custom(const Device& device, const NodeView& node) noexcept;

/// An error for the first operator in the graph and its bodies that is not among these; null: none.
Status check_custom(const Graph& graph, const CustomOperators* operators);

}  // namespace librt
