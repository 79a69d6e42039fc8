// Splits parameters that an exporter stored once because they were equal.
//
// Knows: how exporters share initializers and what distinguishes a shared value from a shared parameter. Must
// not know: graphs of librt, training.
//
// PyTorch's exporters keep one of several equal tensors: all scales and running variances of newly
// initialized batch normalizations are one initializer of ones, and the layers of a new transformer, which
// are copies of each other, share all of their weights. In PyTorch these are separate parameters. One
// parameter with several uses (an embedding that is also the output layer, a module that is called twice)
// must stay one. The criteria:
//  * an Identity of an initializer: this is how the exporter keeps the name of a parameter that it merged;
//  * the modules that the reading nodes belong to, where node names or metadata have them: uses in one module
//    are one parameter, uses in several are several;
//  * without either, every operand of a layer is a separate parameter;
//  * uses of different kinds (Gather and MatMul) are tied, whatever the modules, and so are embeddings only
//    (of an encoder and its decoder: embeddings are no parts of layers that are copied);
//  * a weight named after a module that reads it nowhere ("shared.weight", which encoder and decoder read) is
//    tied: of copies one would have the name;
//  * where all elements are equal, as in a new bias or scale, the last two do not hold.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace rt_onnx {
class ModelProto;
}

namespace librt::onnx {

/// An initializer with several uses.
struct SharedWeight {
  std::string name;
  std::vector<std::string> parameters;  ///< the result of the split, with `name` if it is still read; empty:
                                        ///< it stays one
  std::string kept;                     ///< why it stays one; empty: it was split
};

struct UntieOptions {
  std::vector<std::string> tie;  ///< shell patterns of names that stay tied, except running statistics
  std::string external_folder;   ///< of external data
};

struct Untied {
  std::vector<SharedWeight> shared;
  /// Weights of linear layers that got their name in PyTorch here, and that the file holds transposed,
  /// [inputs, outputs], as its exporters fold them.
  std::set<std::string> transposed;
};

/// Gives every parameter its own initializer, in the main graph (nested_weights.h). The model computes the
/// same.
Untied untie(rt_onnx::ModelProto& model, const UntieOptions& options);

}  // namespace librt::onnx
