// The graphs that the backend builds for cuDNN, checked by the installed library if there is one. This needs
// no device: the library reports how many of its engines support a graph, or what is wrong with it. argv[1]
// is a folder with a library of that name and another version.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/libraries/cudnn_api.h"
#include "tests/support/cudnn_requests.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

namespace librt::cuda {
namespace {

#if __has_include(<cudnn.h>)
// Our enum values match cuDNN's.
#define RT_SAME(ours, theirs) static_assert(static_cast<int>(cudnn_api::ours) == static_cast<int>(theirs))
RT_SAME(Status::Success, CUDNN_STATUS_SUCCESS);
RT_SAME(Status::BadParameter, CUDNN_STATUS_BAD_PARAM);
RT_SAME(Status::NotSupported, CUDNN_STATUS_NOT_SUPPORTED);
RT_SAME(Status::HostAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
RT_SAME(Status::DeviceAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
RT_SAME(Status::ExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
RT_SAME(DataType::Float, CUDNN_DATA_FLOAT);
RT_SAME(DataType::Half, CUDNN_DATA_HALF);
RT_SAME(DataType::BFloat16, CUDNN_DATA_BFLOAT16);
RT_SAME(ConvolutionMode::CrossCorrelation, CUDNN_CROSS_CORRELATION);
RT_SAME(HeuristicMode::A, CUDNN_HEUR_MODE_A);
RT_SAME(PointwiseMode::Add, CUDNN_POINTWISE_ADD);
RT_SAME(PointwiseMode::ReluForward, CUDNN_POINTWISE_RELU_FWD);
RT_SAME(PointwiseMode::TanhForward, CUDNN_POINTWISE_TANH_FWD);
RT_SAME(PointwiseMode::SigmoidForward, CUDNN_POINTWISE_SIGMOID_FWD);
RT_SAME(PointwiseMode::GeluForward, CUDNN_POINTWISE_GELU_FWD);
RT_SAME(PointwiseMode::SwishForward, CUDNN_POINTWISE_SWISH_FWD);
RT_SAME(PointwiseMode::GeluTanhForward, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD);
RT_SAME(NumericalNote::TensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
RT_SAME(NumericalNote::DownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
RT_SAME(NumericalNote::ReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
RT_SAME(NumericalNote::Fft, CUDNN_NUMERICAL_NOTE_FFT);
RT_SAME(NumericalNote::NonDeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
RT_SAME(NumericalNote::Winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
RT_SAME(NumericalNote::WinogradTile4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
RT_SAME(NumericalNote::WinogradTile6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
RT_SAME(NumericalNote::WinogradTile13x13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
static_assert(cudnn_api::kMaxNumericalNotes >= CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
RT_SAME(DescriptorKind::Pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
RT_SAME(DescriptorKind::Convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
RT_SAME(DescriptorKind::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
RT_SAME(DescriptorKind::EngineConfiguration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
RT_SAME(DescriptorKind::EngineHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
RT_SAME(DescriptorKind::ExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
RT_SAME(DescriptorKind::OperationConvolutionForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
RT_SAME(DescriptorKind::OperationConvolutionBackwardFilter,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
RT_SAME(DescriptorKind::OperationConvolutionBackwardData,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
RT_SAME(DescriptorKind::OperationPointwise, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
RT_SAME(DescriptorKind::OperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
RT_SAME(DescriptorKind::VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
RT_SAME(DescriptorKind::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
RT_SAME(DescriptorKind::DeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
RT_SAME(AttributeType::LibraryHandle, CUDNN_TYPE_HANDLE);
RT_SAME(AttributeType::DataType, CUDNN_TYPE_DATA_TYPE);
RT_SAME(AttributeType::Boolean, CUDNN_TYPE_BOOLEAN);
RT_SAME(AttributeType::Int64, CUDNN_TYPE_INT64);
RT_SAME(AttributeType::Float, CUDNN_TYPE_FLOAT);
RT_SAME(AttributeType::Double, CUDNN_TYPE_DOUBLE);
RT_SAME(AttributeType::VoidPointer, CUDNN_TYPE_VOID_PTR);
RT_SAME(AttributeType::ConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
RT_SAME(AttributeType::HeuristicMode, CUDNN_TYPE_HEUR_MODE);
RT_SAME(AttributeType::NumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
RT_SAME(AttributeType::PointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
RT_SAME(AttributeType::BackendDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
RT_SAME(AttributeType::Char, CUDNN_TYPE_CHAR);
RT_SAME(Attribute::PointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
RT_SAME(Attribute::PointwiseMathPrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
RT_SAME(Attribute::PointwiseReluLowerClip, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP);
RT_SAME(Attribute::PointwiseReluUpperClip, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
RT_SAME(Attribute::PointwiseReluLowerClipSlope, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
RT_SAME(Attribute::PointwiseSwishBeta, CUDNN_ATTR_POINTWISE_SWISH_BETA);
RT_SAME(Attribute::ConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
RT_SAME(Attribute::ConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
RT_SAME(Attribute::ConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
RT_SAME(Attribute::ConvolutionFilterStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
RT_SAME(Attribute::ConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
RT_SAME(Attribute::ConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
RT_SAME(Attribute::ConvolutionSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
RT_SAME(Attribute::HeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
RT_SAME(Attribute::HeuristicsOperationGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
RT_SAME(Attribute::HeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
RT_SAME(Attribute::HeuristicsDeviceProperties, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
RT_SAME(Attribute::ConfigurationEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
RT_SAME(Attribute::PlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
RT_SAME(Attribute::PlanConfiguration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
RT_SAME(Attribute::PlanWorkspaceSize, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
RT_SAME(Attribute::PlanDeviceProperties, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
RT_SAME(Attribute::ForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
RT_SAME(Attribute::ForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
RT_SAME(Attribute::ForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
RT_SAME(Attribute::ForwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
RT_SAME(Attribute::ForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
RT_SAME(Attribute::ForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
RT_SAME(Attribute::BackwardDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
RT_SAME(Attribute::BackwardDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
RT_SAME(Attribute::BackwardDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
RT_SAME(Attribute::BackwardDataW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
RT_SAME(Attribute::BackwardDataDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
RT_SAME(Attribute::BackwardDataDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
RT_SAME(Attribute::BackwardFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
RT_SAME(Attribute::BackwardFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
RT_SAME(Attribute::BackwardFilterConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
RT_SAME(Attribute::BackwardFilterDw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
RT_SAME(Attribute::BackwardFilterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
RT_SAME(Attribute::BackwardFilterDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
RT_SAME(Attribute::OperationPointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
RT_SAME(Attribute::OperationPointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
RT_SAME(Attribute::OperationPointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
RT_SAME(Attribute::OperationPointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
RT_SAME(Attribute::GraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
RT_SAME(Attribute::GraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
RT_SAME(Attribute::GraphEngineCount, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
RT_SAME(Attribute::TensorByteAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
RT_SAME(Attribute::TensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
RT_SAME(Attribute::TensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
RT_SAME(Attribute::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
RT_SAME(Attribute::TensorUniqueId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
RT_SAME(Attribute::TensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
RT_SAME(Attribute::PackUniqueIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
RT_SAME(Attribute::PackDataPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
RT_SAME(Attribute::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
RT_SAME(Attribute::EngineNumericalNote, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
RT_SAME(Attribute::DevicePropertiesJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#undef RT_SAME
#endif

std::string wrong_folder;

std::shared_ptr<Cudnn> library(std::string& why) {
  auto opened = Cudnn::open();
  if (opened.ok()) return std::move(opened).value();
  why = opened.status().message();
  return nullptr;
}

TEST(Cudnn, IsFoundOrSaysWhereItLooks) {
  const auto version = Cudnn::installed_version();
  if (version.ok()) {
    std::printf("cuDNN %s\n", version->c_str());
    EXPECT_GE(std::stoi(*version), 9) << *version;
  } else {
    for (const char* word : {"libcudnn.so.9", "was not found", "RT_CUDA_LIBRARY_PATH"})
      EXPECT_NE(version.status().message().find(word), std::string::npos) << version.status().message();
  }
}

/// An H200's published properties, in the format in which the library (9.19) serializes a device.
constexpr const char* kDevice =
    R"({"deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "deviceName": "NVIDIA H200",
        "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
        "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
        "l2CacheSize": 62914560, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
        "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150000000000})";

TEST(Cudnn, IsRefusedInAnotherVersion) {
  setenv("RT_CUDA_LIBRARY_PATH", wrong_folder.c_str(), 1);
  const auto version = Cudnn::installed_version();
  unsetenv("RT_CUDA_LIBRARY_PATH");
  ASSERT_FALSE(version.ok()) << *version;
  EXPECT_EQ(version.status().message(), "cuDNN 10.2.0 was found, this build expects 9.x");
}

TEST(Cudnn, IsNotLookedForWhereItIsNotListed) {
  for (const char* listed : {"", "cublasLt", "cudnn_graph,dnn"}) {
    setenv("RT_CUDA_LIBRARIES", listed, 1);
    const auto version = Cudnn::installed_version();
    ASSERT_FALSE(version.ok()) << listed;
    EXPECT_EQ(version.status().message(),
              text("libcudnn.so.9 is not looked for: RT_CUDA_LIBRARIES is '", listed, "'"));
  }
  setenv("RT_CUDA_LIBRARIES", "cublasLt,cudnn", 1);
  const auto listed = Cudnn::installed_version();
  unsetenv("RT_CUDA_LIBRARIES");
  EXPECT_EQ(listed.ok(), Cudnn::installed_version().ok());
}

TEST(Cudnn, KnowsOurGraphs) {
  std::string why;
  const auto cudnn = library(why);
  if (cudnn == nullptr) GTEST_SKIP() << why;
  int graphs = 0;
  for (const ElementType type : {ElementType::F32, ElementType::F16, ElementType::BF16})
    each_cudnn_request(type, false, true, [&](const std::string& name, const CudnnRequest& request) {
      const auto engines = cudnn->dry_run(request, "");
      ++graphs;
      ASSERT_TRUE(engines.ok()) << name << ": " << engines.status().message();
      EXPECT_GT(engines->all, 0) << name;
    });
  std::printf("%d graphs\n", graphs);
}

TEST(Cudnn, PlansOurGraphsForADescribedDevice) {
  std::string why;
  const auto cudnn = library(why);
  if (cudnn == nullptr) GTEST_SKIP() << why;
  int planned = 0, refused = 0;
  std::string unread;
  const auto plan = [&](const std::string& name, const CudnnRequest& request) {
    if (!unread.empty()) return;
    const auto engines = cudnn->dry_run(request, kDevice);
    if (!engines.ok() &&
        engines.status().message().find("reading a device's properties") != std::string::npos) {
      unread = engines.status().message();
      return;
    }
    ++(engines.ok() ? planned : refused);
    std::printf("%s: %s\n", name.c_str(),
                engines.ok() ? text("proposal ", engines->proposed, ", workspace of ",
                                    engines->workspace_bytes / 1024, " KiB")
                                   .c_str()
                             : engines.status().message().c_str());
  };
  each_cudnn_request(ElementType::F16, false, false, plan);
  each_cudnn_request(ElementType::F32, false, false, plan);
  if (!unread.empty()) GTEST_SKIP() << "another version writes down devices in another form: " << unread;
  std::printf("%d graphs planned, %d refused\n", planned, refused);
  EXPECT_GT(planned, refused);
}

/// The library's message is passed on.
TEST(Cudnn, SaysWhatIsWrongWithAGraph) {
  std::string why;
  const auto cudnn = library(why);
  if (cudnn == nullptr) GTEST_SKIP() << why;
  ConvArguments arguments{.type = ElementType::F16, .windows = conv_windows_of(1, 8, 9, 8, 3, 1, 1, 1, 4)};
  const auto engines = cudnn->dry_run({arguments}, "");
  ASSERT_FALSE(engines.ok());
  std::printf("%s\n", engines.status().message().c_str());
  EXPECT_NE(engines.status().message().find("CUDNN_STATUS_BAD_PARAM"), std::string::npos)
      << engines.status().message();
}

/// Without a device there is no plan, but an error message.
TEST(Cudnn, StartsOrSaysWhyNot) {
  std::string why;
  const auto cudnn = library(why);
  if (cudnn == nullptr) GTEST_SKIP() << why;
  ConvArguments arguments{.type = ElementType::F16, .windows = conv_windows_of(8, 64, 64, 56, 3, 1, 1)};
  const auto plan = cudnn->plan({arguments});
  if (plan.ok()) GTEST_SKIP() << "there is a device";
  std::printf("%s\n", plan.status().message().c_str());
  EXPECT_NE(plan.status().message().find("cuDNN: starting failed: CUDNN_STATUS_"), std::string::npos)
      << plan.status().message();
}

/// Arguments for which no graph is built, with or without the library.
TEST(Cudnn, Refuses) {
  const auto refused = [](const ConvArguments& arguments) {
    const Status status = Cudnn::takes({arguments});
    return status.ok() ? std::string("taken") : status.message();
  };
  ConvArguments a{.type = ElementType::F16, .windows = conv_windows_of(1, 8, 8, 8, 3, 1, 1)};
  EXPECT_EQ(refused(a), "taken");
  a.gemm.epilogue.activation.function = Function::HardSwish;
  EXPECT_NE(refused(a).find("no such activation"), std::string::npos);
  a.gemm.epilogue.activation = {};
  a.type = ElementType::I8;
  EXPECT_NE(refused(a).find("of this type"), std::string::npos);
  a.type = ElementType::F32;
  a.windows.batch = 0;
  EXPECT_NE(refused(a).find("empty"), std::string::npos);
  a.windows.batch = 1;
  a.windows.output[1] = 3;  // 5 image columns are not covered by any window
  EXPECT_NE(refused(a).find("spatial axis 1"), std::string::npos);
}

}  // namespace
}  // namespace librt::cuda

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  librt::cuda::wrong_folder = argc > 1 ? argv[1] : ".";
  return RUN_ALL_TESTS();
}
