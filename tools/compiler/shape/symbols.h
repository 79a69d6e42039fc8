// Symbols of whole graphs: replacing, copying, and dropping unused ones.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/graph/graph.h"
#include "tools/compiler/shape/symbol_index.h"

namespace librt::compiler {

/// Replaces the symbol by an extent, or by the symbol named `other` if that is not empty, everywhere, also in
/// definitions and in bodies of control flow that use the same name, and drops it: indices of later symbols
/// become one less. False when nothing has the symbol.
bool replace_symbol(Graph& graph, std::string_view name, int64_t extent, std::string_view other = "");

/// The symbol of `to` that has the name, bound and definition of one of `from`; added where there is none.
/// names: those of `to`.
int32_t copy_symbol(const Graph& from, int32_t symbol, Graph& to, SymbolIndex& names);

/// Drops symbols that no value has and no definition of a used one refers to.
void drop_unused_symbols(Graph& graph);

}  // namespace librt::compiler
