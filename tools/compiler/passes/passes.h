// The passes, one file each. pipeline.cpp knows their order and names.
#pragma once

#include "tools/compiler/pass.h"

namespace librt::compiler {

Status dead_code(Graph& graph, const PassContext& context);
Status canonicalize(Graph& graph, const PassContext& context);
Status fold(Graph& graph, const PassContext& context);
/// fold until nothing is left to fold: extents may follow from what was folded, and more from those.
Status fold_all(Graph& graph, const PassContext& context);
/// fold, but DequantizeLinear of constants is kept where they have two axes and more, as weights have.
Status fold_known(Graph& graph, const PassContext& context);
Status branches(Graph& graph, const PassContext& context);
Status common_subexpr(Graph& graph, const PassContext& context);
Status half(Graph& graph, const PassContext& context);
Status precision(Graph& graph, const PassContext& context);
Status batch_norm(Graph& graph, const PassContext& context);
Status parallel_conv(Graph& graph, const PassContext& context);
Status layout(Graph& graph, const PassContext& context);
Status recognize(Graph& graph, const PassContext& context);
Status one_hot(Graph& graph, const PassContext& context);
Status attention(Graph& graph, const PassContext& context);
Status rotary(Graph& graph, const PassContext& context);
Status fuse(Graph& graph, const PassContext& context);
Status quantize(Graph& graph, const PassContext& context);
/// The inverse of elementwise.
Status write_out_elementwise(Graph& graph, const PassContext& context);
Status elementwise(Graph& graph, const PassContext& context);
Status expand(Graph& graph, const PassContext& context);
Status order(Graph& graph, const PassContext& context);

}  // namespace librt::compiler
