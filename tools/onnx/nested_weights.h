// Gives the weights of graphs inside nodes, and of functions, one name each.
//
// Knows: where ONNX stores weights, the scopes of names. Must not know: graphs of librt, training. Private to
// the importer's folder.
//
// A body may hold its own initializers and Constant nodes, and two bodies may give theirs the same names. A
// body that is imported several times (one copy for each iteration of a Loop over sequences) still has one
// weight. They become initializers of the main graph, which bodies can read. Functions cannot: theirs stay
// Constant nodes.
#pragma once

namespace rt_onnx {
class ModelProto;
}

namespace librt::onnx {

/// For every tensor with a weight's type. It keeps its name where no other value of the
/// file has it, else it is renamed "NODE/NAME" or "FUNCTION/NAME". The model computes the same.
void name_nested_weights(rt_onnx::ModelProto& model);

}  // namespace librt::onnx
