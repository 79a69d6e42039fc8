// Parameters that an exporter stored once because they were equal, as the separate parameters that they are.
//
// Knows: how exporters share initializers and what tells a shared value from a shared parameter. Must not
// know: graphs of librt, training.
//
// PyTorch's exporters keep one of several equal tensors: all scales and running variances of fresh batch
// normalizations are one initializer of ones, and the layers of a fresh transformer, which are copies of each
// other, share all that they have. In PyTorch these are parameters of their own. One parameter with several
// uses (an embedding that is also the output layer, a module that is called twice) must stay one. What tells:
//  * an Identity of an initializer: the exporter gives a parameter that it merged its name back this way;
//  * the modules that the reading nodes belong to, where node names or metadata say so: uses in one module
//  are
//    one parameter, uses in several are several;
//  * without either, every operand of a layer is a parameter of its own;
//  * uses of different kinds (Gather and MatMul) are tied, whatever the modules, unless all elements are
//  equal,
//    as they are in a fresh bias or scale: nothing is tied to those.
#pragma once

#include <string>
#include <vector>

namespace rt_onnx {
class ModelProto;
}

namespace rt::onnx {

/// An initializer with several uses.
struct SharedWeight {
  std::string name;
  std::vector<std::string> parameters;  ///< what became of it, `name` among them if it is still read; empty:
                                        ///< it stays one
  std::string kept;                     ///< why it stays one; empty: it does not
};

struct UntieOptions {
  std::vector<std::string> tie;  ///< shell patterns of names: these stay one, but for running statistics
  std::string external_folder;   ///< of external data
};

/// Gives every parameter an initializer of its own, in the main graph. The model computes the same.
std::vector<SharedWeight> untie(rt_onnx::ModelProto& model, const UntieOptions& options);

}  // namespace rt::onnx
