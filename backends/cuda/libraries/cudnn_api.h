// The part of cuDNN 9's backend graph API that is called here: types, values and signatures, so that a build
// needs neither the library nor its headers. tests/cuda compares the values with the headers where they are
// installed.
//
// Knows: the binary interface, documented in NVIDIA's "cuDNN backend API". Must not know: our convolutions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace librt::cuda::cudnn_api {

/// The soname's version; minor versions add to the interface.
inline constexpr size_t kMajorVersion = 9;

using Handle = struct Context*;
using Descriptor = void*;

/// Thousands are categories.
enum class Status : int {
  Success = 0,
  BadParameter = 2000,
  NotSupported = 3000,
  HostAllocationFailed = 4003,
  DeviceAllocationFailed = 4004,
  ExecutionFailed = 5000,
};

enum class DataType : int { Float = 0, Half = 2, BFloat16 = 9 };
enum class ConvolutionMode : int { CrossCorrelation = 1 };
enum class HeuristicMode : int { A = 3 };

enum class PointwiseMode : int {
  Add = 0,
  ReluForward = 100,
  TanhForward = 101,
  SigmoidForward = 102,
  GeluForward = 104,
  SwishForward = 106,
  GeluTanhForward = 107,
};

/// An engine's numerical behaviour.
enum class NumericalNote : int {
  TensorCore = 0,
  DownConvertInputs = 1,
  ReducedPrecisionReduction = 2,
  Fft = 3,
  NonDeterministic = 4,
  Winograd = 5,
  WinogradTile4x4 = 6,
  WinogradTile6x6 = 7,
  WinogradTile13x13 = 8,
};
/// More than any version has.
inline constexpr int64_t kMaxNumericalNotes = 32;

enum class DescriptorKind : int {
  Pointwise = 0,
  Convolution = 1,
  Engine = 2,
  EngineConfiguration = 3,
  EngineHeuristics = 4,
  ExecutionPlan = 5,
  OperationConvolutionForward = 10,
  OperationConvolutionBackwardFilter = 11,
  OperationConvolutionBackwardData = 12,
  OperationPointwise = 13,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17,
  DeviceProperties = 38,
};

enum class AttributeType : int {
  LibraryHandle = 0,
  DataType = 1,
  Boolean = 2,
  Int64 = 3,
  Float = 4,
  Double = 5,
  VoidPointer = 6,
  ConvolutionMode = 7,
  HeuristicMode = 8,
  NumericalNote = 11,
  PointwiseMode = 14,
  BackendDescriptor = 15,
  Char = 24,
};

enum class Attribute : int {
  PointwiseMode = 0,
  PointwiseMathPrecision = 1,
  PointwiseReluLowerClip = 3,
  PointwiseReluUpperClip = 4,
  PointwiseReluLowerClipSlope = 5,
  PointwiseSwishBeta = 8,
  ConvolutionComputeType = 100,
  ConvolutionMode = 101,
  ConvolutionDilations = 102,
  ConvolutionFilterStrides = 103,
  ConvolutionPostPaddings = 104,
  ConvolutionPrePaddings = 105,
  ConvolutionSpatialDims = 106,
  HeuristicsMode = 200,
  HeuristicsOperationGraph = 201,
  HeuristicsResults = 202,
  HeuristicsDeviceProperties = 204,
  ConfigurationEngine = 300,
  PlanHandle = 400,
  PlanConfiguration = 401,
  PlanWorkspaceSize = 402,
  PlanDeviceProperties = 407,
  ForwardAlpha = 700,
  ForwardBeta = 701,
  ForwardConvolution = 702,
  ForwardW = 703,
  ForwardX = 704,
  ForwardY = 705,
  BackwardDataAlpha = 706,
  BackwardDataBeta = 707,
  BackwardDataConvolution = 708,
  BackwardDataW = 709,
  BackwardDataDx = 710,
  BackwardDataDy = 711,
  BackwardFilterAlpha = 712,
  BackwardFilterBeta = 713,
  BackwardFilterConvolution = 714,
  BackwardFilterDw = 715,
  BackwardFilterX = 716,
  BackwardFilterDy = 717,
  OperationPointwiseDescriptor = 750,
  OperationPointwiseX = 751,
  OperationPointwiseB = 752,
  OperationPointwiseY = 753,
  GraphHandle = 800,
  GraphOperations = 801,
  GraphEngineCount = 802,
  TensorByteAlignment = 900,
  TensorDataType = 901,
  TensorDimensions = 902,
  TensorStrides = 903,
  TensorUniqueId = 906,
  TensorIsVirtual = 907,
  PackUniqueIds = 1000,
  PackDataPointers = 1001,
  PackWorkspace = 1003,
  EngineNumericalNote = 1303,
  DevicePropertiesJson = 2702,
};

using GetVersion = size_t();
using GetErrorString = const char*(Status);
using GetLastErrorString = void(char* message, size_t capacity);
using Create = Status(Handle*);
using Destroy = Status(Handle);
using SetStream = Status(Handle, cudaStream_t);
using BackendCreateDescriptor = Status(DescriptorKind, Descriptor*);
using BackendDestroyDescriptor = Status(Descriptor);
using BackendSetAttribute = Status(Descriptor, Attribute, AttributeType, int64_t count, const void* values);
/// `count` receives how many there are, possibly more than requested.
using BackendGetAttribute = Status(Descriptor, Attribute, AttributeType, int64_t asked, int64_t* count,
                                   void* values);
using BackendFinalize = Status(Descriptor);
using BackendExecute = Status(Handle, Descriptor plan, Descriptor pack);

/// All functions that are called, by their names after `cudnn`.
#define RT_CUDNN_FUNCTIONS(X) \
  X(GetVersion)               \
  X(GetErrorString)           \
  X(GetLastErrorString)       \
  X(Create)                   \
  X(Destroy)                  \
  X(SetStream)                \
  X(BackendCreateDescriptor)  \
  X(BackendDestroyDescriptor) \
  X(BackendSetAttribute)      \
  X(BackendGetAttribute)      \
  X(BackendFinalize)          \
  X(BackendExecute)

struct Functions {
#define RT_FUNCTION(name) name* name##_ = nullptr;
  RT_CUDNN_FUNCTIONS(RT_FUNCTION)
#undef RT_FUNCTION
};

}  // namespace librt::cuda::cudnn_api
