#include "backends/cuda/libraries/cudnn_graph.h"

#include <algorithm>
#include <array>

namespace librt::cuda {

using cudnn_api::Attribute;
using cudnn_api::AttributeType;
using cudnn_api::ConvolutionMode;
using cudnn_api::DataType;
using cudnn_api::Descriptor;
using cudnn_api::DescriptorKind;
using cudnn_api::Functions;
using cudnn_api::Handle;
using cudnn_api::PointwiseMode;

Status check_cudnn(const Functions& call, cudnn_api::Status status, const char* what) {
  if (status == cudnn_api::Status::Success) return {};
  char message[512] = {};
  call.GetLastErrorString_(message, sizeof(message) - 1);
  const char* name = call.GetErrorString_(status);
  return unsupported("cuDNN: ", what, " failed: ", name == nullptr ? "an unknown error" : name, " (",
                     message[0] == '\0' ? "without a message" : static_cast<const char*>(message), ")");
}

CudnnDescriptors::~CudnnDescriptors() {
  for (auto each = made_.rbegin(); each != made_.rend(); ++each) call_.BackendDestroyDescriptor_(*each);
}

Descriptor CudnnDescriptors::make(DescriptorKind kind, const char* what) {
  what_ = what;
  last_ = nullptr;
  if (!status_.ok()) return nullptr;
  status_ = check_cudnn(call_, call_.BackendCreateDescriptor_(kind, &last_), what);
  if (status_.ok()) made_.push_back(last_);
  return last_;
}

Descriptor CudnnDescriptors::finalize() {
  if (status_.ok()) status_ = check_cudnn(call_, call_.BackendFinalize_(last_), what_);
  return last_;
}

namespace {

/// An operation and its attributes.
struct Form {
  DescriptorKind operation;
  Attribute x, w, y, convolution, alpha, beta;
};
constexpr Form kForward{DescriptorKind::OperationConvolutionForward,
                        Attribute::ForwardX,
                        Attribute::ForwardW,
                        Attribute::ForwardY,
                        Attribute::ForwardConvolution,
                        Attribute::ForwardAlpha,
                        Attribute::ForwardBeta};
constexpr Form kData{DescriptorKind::OperationConvolutionBackwardData,
                     Attribute::BackwardDataDx,
                     Attribute::BackwardDataW,
                     Attribute::BackwardDataDy,
                     Attribute::BackwardDataConvolution,
                     Attribute::BackwardDataAlpha,
                     Attribute::BackwardDataBeta};
constexpr Form kWeight{DescriptorKind::OperationConvolutionBackwardFilter,
                       Attribute::BackwardFilterX,
                       Attribute::BackwardFilterDw,
                       Attribute::BackwardFilterDy,
                       Attribute::BackwardFilterConvolution,
                       Attribute::BackwardFilterAlpha,
                       Attribute::BackwardFilterBeta};

const Form& form_of(ConvForm form) {
  return form == ConvForm::Data ? kData : form == ConvForm::Weight ? kWeight : kForward;
}

DataType data_type(ElementType type) {
  return type == ElementType::F32   ? DataType::Float
         : type == ElementType::F16 ? DataType::Half
                                    : DataType::BFloat16;
}

/// Engines support two and three spatial axes.
int spatial_axes(const ConvWindows& w) {
  const bool plane = w.input[2] == 1 && w.output[2] == 1 && w.kernel[2] == 1 && w.pad[2] == 0;
  return plane ? 2 : 3;
}

PointwiseMode mode_of(Function function) {
  switch (function) {
    case Function::Sigmoid: return PointwiseMode::SigmoidForward;
    case Function::Tanh: return PointwiseMode::TanhForward;
    case Function::Silu: return PointwiseMode::SwishForward;
    case Function::Gelu: return PointwiseMode::GeluForward;
    case Function::GeluTanh: return PointwiseMode::GeluTanhForward;
    default: return PointwiseMode::ReluForward;  // with limits and a slope
  }
}

class Builder {
 public:
  Builder(CudnnDescriptors& to, const CudnnRequest& request)
      : to_(to), request_(request), windows_(request.arguments.windows), axes_(spatial_axes(windows_)) {}

  Descriptor build(Handle handle) {
    const bool forward = request_.arguments.form == ConvForm::Forward;
    const ConvWindows& w = windows_;
    image_ =
        forward ? shape(w.batch, w.output_channels, w.output) : shape(w.batch, w.input_channels, w.input);
    result_ = forward ? CudnnOperand::Y : CudnnOperand::X;
    const FunctionCall& activation = request_.arguments.gemm.epilogue.activation;
    const bool activated = activation.function != Function::Identity;
    left_ = int{request_.has_bias} + int{request_.has_residual} + int{activated};
    Descriptor value = convolution();
    if (request_.has_residual) value = add(value, tensor(CudnnOperand::Residual, image_));
    if (request_.has_bias) {
      constexpr int kOne[3] = {1, 1, 1};
      value = add(value, tensor(CudnnOperand::Bias, shape(1, image_.extent[1], kOne)));
    }
    if (activated) value = activate(value, activation);
    to_.make(DescriptorKind::OperationGraph, "checking a graph");
    if (handle != nullptr) to_.set(Attribute::GraphHandle, AttributeType::LibraryHandle, handle);
    to_.set(Attribute::GraphOperations, AttributeType::BackendDescriptor,
            std::span<const Descriptor>(operations_));
    return to_.finalize();
  }

 private:
  static constexpr size_t kMaxTensorRank = 5;
  struct TensorShape {
    std::array<int64_t, kMaxTensorRank> extent{}, stride{};
  };

  size_t rank() const { return static_cast<size_t>(axes_) + 2; }

  /// The library's dimension order is outer, channels, spatial axes; the strides give our channels-last
  /// layout.
  TensorShape shape(int64_t outer, int64_t channels, const int (&spatial)[3]) const {
    TensorShape s;
    s.extent[0] = outer;
    s.extent[1] = channels;
    s.stride[1] = 1;
    int64_t next = channels;
    for (size_t i = rank() - 1; i >= 2; --i) {
      s.extent[i] = spatial[i - 2];
      s.stride[i] = next;
      next *= s.extent[i];
    }
    s.stride[0] = next;
    return s;
  }

  Descriptor describe(int64_t number, DataType type, const TensorShape& s, bool is_virtual) {
    constexpr int64_t kAlignment = 16;
    const Descriptor made = to_.make(DescriptorKind::Tensor, "describing a tensor");
    to_.set(Attribute::TensorDataType, AttributeType::DataType, type);
    to_.set(Attribute::TensorDimensions, AttributeType::Int64, std::span(s.extent.data(), rank()));
    to_.set(Attribute::TensorStrides, AttributeType::Int64, std::span(s.stride.data(), rank()));
    to_.set(Attribute::TensorUniqueId, AttributeType::Int64, number);
    to_.set(Attribute::TensorByteAlignment, AttributeType::Int64, kAlignment);
    to_.set(Attribute::TensorIsVirtual, AttributeType::Boolean, is_virtual);
    to_.finalize();
    return made;
  }
  Descriptor tensor(CudnnOperand operand, const TensorShape& s) {
    return describe(static_cast<int64_t>(operand), data_type(request_.arguments.type), s, false);
  }
  /// The result, or a virtual tensor in f32 that the epilogue's next operation reads.
  Descriptor next_value() {
    if (left_-- == 0) return tensor(result_, image_);
    return describe(static_cast<int64_t>(CudnnOperand::kIntermediate) + left_, DataType::Float, image_, true);
  }

  Descriptor convolution() {
    const ConvWindows& w = windows_;
    const Form& form = form_of(request_.arguments.form);
    std::array<int64_t, 3> stride{}, dilation{}, before{}, after{};
    for (int i = 0; i < axes_; ++i) {
      const auto at = static_cast<size_t>(i);
      stride[at] = w.stride[i];
      dilation[at] = w.dilation[i];
      before[at] = w.pad[i];
      cudnn_pad_end(w, i, after[at]);
    }
    const auto axes = static_cast<size_t>(axes_);
    const auto axis_values = [&](const std::array<int64_t, 3>& of) { return std::span(of.data(), axes); };
    const Descriptor window = to_.make(DescriptorKind::Convolution, "describing a convolution");
    to_.set(Attribute::ConvolutionSpatialDims, AttributeType::Int64, int64_t{axes_});
    to_.set(Attribute::ConvolutionComputeType, AttributeType::DataType, DataType::Float);
    to_.set(Attribute::ConvolutionMode, AttributeType::ConvolutionMode, ConvolutionMode::CrossCorrelation);
    to_.set(Attribute::ConvolutionFilterStrides, AttributeType::Int64, axis_values(stride));
    to_.set(Attribute::ConvolutionDilations, AttributeType::Int64, axis_values(dilation));
    to_.set(Attribute::ConvolutionPrePaddings, AttributeType::Int64, axis_values(before));
    to_.set(Attribute::ConvolutionPostPaddings, AttributeType::Int64, axis_values(after));
    to_.finalize();

    const ConvForm which = request_.arguments.form;
    const Descriptor x = which == ConvForm::Data
                             ? next_value()
                             : tensor(CudnnOperand::X, shape(w.batch, w.input_channels, w.input));
    const Descriptor weight = tensor(CudnnOperand::W, shape(w.output_channels, w.group_in(), w.kernel));
    const Descriptor y = which == ConvForm::Forward
                             ? next_value()
                             : tensor(CudnnOperand::Y, shape(w.batch, w.output_channels, w.output));
    operations_.push_back(to_.make(form.operation, "describing the operation of a convolution"));
    to_.set(form.convolution, AttributeType::BackendDescriptor, window);
    to_.set(form.x, AttributeType::BackendDescriptor, x);
    to_.set(form.w, AttributeType::BackendDescriptor, weight);
    to_.set(form.y, AttributeType::BackendDescriptor, y);
    to_.set(form.alpha, AttributeType::Float, 1.0f);
    to_.set(form.beta, AttributeType::Float, 0.0f);
    to_.finalize();
    return which == ConvForm::Data ? x : y;
  }

  Descriptor pointwise(PointwiseMode mode, const char* what) {
    const Descriptor made = to_.make(DescriptorKind::Pointwise, what);
    to_.set(Attribute::PointwiseMode, AttributeType::PointwiseMode, mode);
    to_.set(Attribute::PointwiseMathPrecision, AttributeType::DataType, DataType::Float);
    return made;
  }
  /// `what` as in make(). `second`: null for a unary function.
  Descriptor apply(Descriptor function, Descriptor first, Descriptor second, const char* what) {
    const Descriptor result = next_value();
    operations_.push_back(to_.make(DescriptorKind::OperationPointwise, what));
    to_.set(Attribute::OperationPointwiseDescriptor, AttributeType::BackendDescriptor, function);
    to_.set(Attribute::OperationPointwiseX, AttributeType::BackendDescriptor, first);
    if (second != nullptr) to_.set(Attribute::OperationPointwiseB, AttributeType::BackendDescriptor, second);
    to_.set(Attribute::OperationPointwiseY, AttributeType::BackendDescriptor, result);
    to_.finalize();
    return result;
  }
  Descriptor add(Descriptor first, Descriptor second) {
    constexpr const char* kWhat = "describing a sum";
    const Descriptor sum = pointwise(PointwiseMode::Add, kWhat);
    to_.finalize();
    return apply(sum, first, second, kWhat);
  }
  Descriptor activate(Descriptor value, const FunctionCall& activation) {
    constexpr const char* kWhat = "describing an activation";
    const Descriptor function = pointwise(mode_of(activation.function), kWhat);
    if (activation.function == Function::Clip) {
      to_.set(Attribute::PointwiseReluLowerClip, AttributeType::Double,
              static_cast<double>(activation.alpha));
      to_.set(Attribute::PointwiseReluUpperClip, AttributeType::Double, static_cast<double>(activation.beta));
    } else if (activation.function == Function::LeakyRelu) {
      to_.set(Attribute::PointwiseReluLowerClipSlope, AttributeType::Double,
              static_cast<double>(activation.alpha));
    } else if (activation.function == Function::Silu) {
      to_.set(Attribute::PointwiseSwishBeta, AttributeType::Double, 1.0);
    }
    to_.finalize();
    return apply(function, value, nullptr, kWhat);
  }

  CudnnDescriptors& to_;
  const CudnnRequest& request_;
  const ConvWindows& windows_;
  const int axes_;
  TensorShape image_;  ///< of the result and all that is added to it
  CudnnOperand result_ = CudnnOperand::Y;
  int left_ = 0;  ///< operations that follow
  std::vector<Descriptor> operations_;
};

}  // namespace

Descriptor cudnn_graph(CudnnDescriptors& descriptors, const CudnnRequest& request, Handle handle) {
  return Builder(descriptors, request).build(handle);
}

Status cudnn_has_activation(const FunctionCall& activation) {
  switch (activation.function) {
    case Function::Identity:
    case Function::Relu:
    case Function::Clip:
    case Function::LeakyRelu:
    case Function::Sigmoid:
    case Function::Tanh:
    case Function::Silu:
    case Function::Gelu:
    case Function::GeluTanh: return {};
    default: return unsupported("cuDNN: no such activation");
  }
}

bool cudnn_pad_end(const ConvWindows& w, int axis, int64_t& pad_end) {
  const int64_t reach = int64_t{w.kernel[axis] - 1} * w.dilation[axis] + 1, stride = w.stride[axis];
  const int64_t least = (w.output[axis] - 1) * stride + reach - w.pad[axis] - w.input[axis];
  pad_end =
      std::clamp<int64_t>(w.pad[axis], std::max<int64_t>(least, 0), std::max<int64_t>(least + stride - 1, 0));
  return pad_end <= least + stride - 1;
}

}  // namespace librt::cuda
