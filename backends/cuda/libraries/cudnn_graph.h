// A convolution and its epilogue as a graph of cuDNN's operations.
//
// Knows: descriptors, tensors' strides, operations. Must not know: devices, engines, plans.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/libraries/cudnn_api.h"

namespace librt::cuda {

/// Ok, or "cuDNN: what failed: the library's name for the error (its last message)".
Status check_cudnn(const cudnn_api::Functions& call, cudnn_api::Status status, const char* what);

/// Descriptors made one after the other with a common lifetime. The first failure is kept, and everything
/// after it does nothing.
class CudnnDescriptors {
 public:
  using Descriptor = cudnn_api::Descriptor;
  explicit CudnnDescriptors(const cudnn_api::Functions& call) : call_(call) {}
  CudnnDescriptors(const CudnnDescriptors&) = delete;
  CudnnDescriptors& operator=(const CudnnDescriptors&) = delete;
  ~CudnnDescriptors();

  /// `what`: the action named in messages about this descriptor and its attributes.
  Descriptor make(cudnn_api::DescriptorKind kind, const char* what);
  template <class T>
  void set(cudnn_api::Attribute attribute, cudnn_api::AttributeType type, std::span<const T> values) {
    if (!status_.ok()) return;
    status_ = check_cudnn(call_,
                          call_.BackendSetAttribute_(last_, attribute, type,
                                                     static_cast<int64_t>(values.size()), values.data()),
                          what_);
  }
  template <class T>
  void set(cudnn_api::Attribute attribute, cudnn_api::AttributeType type, const T& value) {
    set(attribute, type, std::span<const T>(&value, 1));
  }
  /// Finalizes the descriptor made last, to which set() also applies.
  Descriptor finalize();
  /// Reads up to `values.size()` values; returns how many there are.
  template <class T>
  int64_t get(Descriptor from, cudnn_api::Attribute attribute, cudnn_api::AttributeType type,
              std::span<T> values) {
    int64_t count = 0;
    if (!status_.ok()) return 0;
    status_ =
        check_cudnn(call_,
                    call_.BackendGetAttribute_(from, attribute, type, static_cast<int64_t>(values.size()),
                                               &count, values.data()),
                    what_);
    return count;
  }
  const Status& status() const { return status_; }

 private:
  const cudnn_api::Functions& call_;
  std::vector<Descriptor> made_;
  Descriptor last_ = nullptr;
  const char* what_ = "";
  Status status_;
};

/// The tensors' ids in a variant pack.
enum class CudnnOperand : int64_t { X = 1, W, Y, Bias, Residual, kIntermediate };

/// The graph's descriptor, finalized; without a handle it can only be checked.
CudnnDescriptors::Descriptor cudnn_graph(CudnnDescriptors& descriptors, const CudnnRequest& request,
                                         cudnn_api::Handle handle);

/// Ok if the library has the activation as an operation.
Status cudnn_has_activation(const FunctionCall& activation);

/// Padding after the image along one axis with which the library counts `output` windows: the same as before
/// the image where possible, since most engines accept nothing else; false if there is none.
bool cudnn_pad_end(const ConvWindows& windows, int axis, int64_t& pad_end);

}  // namespace librt::cuda
