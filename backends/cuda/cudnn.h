// Convolutions by cuDNN, where it is found: forward with bias, residual and activation in the same graph, and
// both gradients.
//
// Knows: how a convolution becomes a graph of the library (cudnn_graph.h), which plan is taken. Must not
// know: nodes, rows of the kernel table.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/conv.h"
#include "runtime/core/status.h"

namespace rt::cuda {

/// What a plan is made for: the types, form, windows and activation of `arguments`, whose addresses are not
/// looked at.
struct CudnnRequest {
  const ConvArguments& arguments;
  bool has_bias = false, has_residual = false;
  bool tf32 = false;  ///< convolutions of f32 may round their factors
};

/// One convolution with the first plan that the library's heuristics propose and that keeps to our rules:
/// sums in f32, in an order that is the same in every run, f32 rounded only where TF32 was asked for.
class CudnnConvolution {
 public:
  virtual ~CudnnConvolution() = default;
  /// Of device memory, for each run.
  virtual size_t workspace_bytes() const noexcept = 0;
  /// Queues the convolution; arguments as the request had them, now with addresses. Product::partial is the
  /// workspace.
  virtual cudaError_t run(const ConvArguments& arguments, cudaStream_t stream) const = 0;
};

/// What the library has for a graph.
struct CudnnEngines {
  int64_t all = 0;       ///< engines that know graphs of its kind
  int64_t proposed = 0;  ///< until one was taken
  int64_t workspace_bytes = 0;
};

class Cudnn {
 public:
  virtual ~Cudnn() = default;
  /// The library of the major version that this build knows. It starts with the first plan. Fails with a
  /// sentence: not found, another version, functions missing.
  static Result<std::shared_ptr<Cudnn>> open();
  /// Unloaded again: "9.19.0", or why there is none.
  static Result<std::string> installed_version();

  /// Unsupported, with the reason, for what has no graph: other types than f32, f16 and bf16, empty
  /// convolutions, windows that begin behind the end of the image's padding, some activations. Needs neither
  /// device nor library.
  static Status takes(const CudnnRequest& request);
  /// For the calling thread's device, which must stay the same. Plans are kept: a second one for the same
  /// convolution costs nothing. Unsupported, with the library's own text, where it has none.
  virtual Result<std::shared_ptr<const CudnnConvolution>> plan(const CudnnRequest& request) = 0;
  /// Does all of plan() but keep it, without a device: for one with these properties, as the library writes
  /// them down in JSON. An empty text stops behind the graph's check, with `all` only.
  virtual Result<CudnnEngines> rehearse(const CudnnRequest& request, std::string_view properties) = 0;
};

}  // namespace rt::cuda
