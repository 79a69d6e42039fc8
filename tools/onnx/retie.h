// Makes one weight again of what an exporter folded into several.
//
// Knows: what PyTorch's exporters make of a layer that is called several times or on zeros, of an embedding
// that is also the output layer, and of a parameter that is expanded for each sample of a batch; what tf2onnx
// makes of a recurrent layer's bias. Must not know: graphs of librt, training. Private to the importer's
// folder.
#pragma once

#include <set>
#include <string>

namespace rt_onnx {
class ModelProto;
}

namespace librt::onnx {

/// An initializer that only matmuls read, and that is the transpose of one that a Gather reads, becomes a
/// Transpose of that: in the framework both are one parameter, unless all elements are equal or the file
/// lists both as parameters. Copies that all stand for one parameter of the list become one initializer. One
/// that PyTorch's newer exporter made by an expansion along its first axis becomes an Expand of its first
/// part, "NAME.one". The bias of a Keras LSTM, which ONNX has twice, becomes a Pad of its half, "NAME.input".
/// The model computes the same. kept: names of initializers to leave; external_folder: of external data.
void retie(rt_onnx::ModelProto& model, const std::string& external_folder,
           const std::set<std::string>& kept = {});

}  // namespace librt::onnx
