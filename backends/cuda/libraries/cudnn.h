// Convolutions by cuDNN, if installed: forward with bias, residual and activation in the same graph, and both
// gradients.
//
// Knows: how a convolution becomes a graph of the library (cudnn_graph.h), which plan is chosen. Must not
// know: nodes, rows of the kernel table.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/conv.h"
#include "runtime/core/status.h"

namespace librt::cuda {

/// What a plan depends on: the types, form, windows and activation of `arguments`, whose addresses are
/// ignored.
struct CudnnRequest {
  const ConvArguments& arguments;
  bool has_bias = false, has_residual = false;
  bool tf32 = false;  ///< f32 convolutions may round their operands
};

/// One convolution with the first plan proposed by the library's heuristics that meets our rules: f32
/// accumulation in the same order in every run, f32 rounded only if TF32 was requested.
class CudnnConvolution {
 public:
  virtual ~CudnnConvolution() = default;
  /// Device memory for each run.
  virtual size_t workspace_bytes() const noexcept = 0;
  /// Enqueues the convolution; arguments as in the request, now with addresses. Gemm::partial is the
  /// workspace.
  virtual cudaError_t run(const ConvArguments& arguments, cudaStream_t stream) const = 0;
};

/// The library's engines for a graph.
struct CudnnEngines {
  int64_t all = 0;       ///< engines that support graphs of its kind
  int64_t proposed = 0;  ///< up to the one that was chosen
  int64_t workspace_bytes = 0;
};

class Cudnn {
 public:
  virtual ~Cudnn() = default;
  /// The library of the major version that this build supports; initialized with the first plan. Fails with a
  /// message: not found, another version, functions missing.
  static Result<std::shared_ptr<Cudnn>> open();
  /// Version, "9.19.0", or why there is none; unloaded again.
  static Result<std::string> installed_version();

  /// Unsupported, with the reason, for what has no graph: other types than f32, f16 and bf16, empty
  /// convolutions, windows that begin past the end of the image's padding, some activations. Needs neither
  /// device nor library.
  static Status takes(const CudnnRequest& request);
  /// For the calling thread's device, which must stay the same. Plans are cached: a second one for the same
  /// convolution costs nothing. Unsupported, with the library's own text, if it has none.
  virtual Result<std::shared_ptr<const CudnnConvolution>> plan(const CudnnRequest& request) = 0;
  /// Does all of plan() except keeping it, without a device: for one with these properties, as the library
  /// serializes them in JSON. With empty properties it stops after checking the graph, with only `all` set.
  virtual Result<CudnnEngines> dry_run(const CudnnRequest& request, std::string_view properties) = 0;
};

}  // namespace librt::cuda
