#include "backends/cuda/libraries/cublaslt.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include "backends/cuda/libraries/library.h"

namespace librt::cuda {
namespace {

constexpr size_t kMaxWorkspace = size_t{32} << 20;

// All functions that are called, by their names after `cublasLt`.
#define RT_CUBLASLT(X)            \
  X(GetVersion)                   \
  X(Create)                       \
  X(Destroy)                      \
  X(MatrixLayoutCreate)           \
  X(MatrixLayoutDestroy)          \
  X(MatrixLayoutSetAttribute)     \
  X(MatmulDescCreate)             \
  X(MatmulDescDestroy)            \
  X(MatmulDescSetAttribute)       \
  X(MatmulPreferenceCreate)       \
  X(MatmulPreferenceDestroy)      \
  X(MatmulPreferenceSetAttribute) \
  X(MatmulAlgoGetHeuristic)       \
  X(Matmul)

struct Functions {
#define RT_FUNCTION(name) decltype(&cublasLt##name) name = nullptr;
  RT_CUBLASLT(RT_FUNCTION)
#undef RT_FUNCTION
};

struct Loaded {
  LibraryHandle library;
  Functions call;
  size_t version = 0;

  std::string version_text() const {
    return text(version / 10000, ".", version / 100 % 100, ".", version % 100);
  }
};

Result<Loaded> load() {
  Loaded loaded;
  RT_ASSIGN(loaded.library, open_library(text("libcublasLt.so.", CUBLAS_VER_MAJOR)));
  const char* missing = nullptr;
#define RT_FUNCTION(name)                                                                          \
  loaded.call.name =                                                                               \
      reinterpret_cast<decltype(loaded.call.name)>(function_of(loaded.library, "cublasLt" #name)); \
  if (loaded.call.name == nullptr) missing = "cublasLt" #name;
  RT_CUBLASLT(RT_FUNCTION)
#undef RT_FUNCTION
  if (missing != nullptr) return unsupported("cuBLASLt: the library found has no function ", missing);
  loaded.version = loaded.call.GetVersion();
  if (loaded.version / 10000 != CUBLAS_VER_MAJOR)
    return unsupported("cuBLASLt ", loaded.version_text(), " was found, this build expects ",
                       CUBLAS_VER_MAJOR, ".x");
  return loaded;
}

Status check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return unsupported("cuBLASLt: ", what, " failed with status ", static_cast<int>(status));
}

cudaError_t as_cuda_error(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return cudaSuccess;
    case CUBLAS_STATUS_ALLOC_FAILED: return cudaErrorMemoryAllocation;
    case CUBLAS_STATUS_ARCH_MISMATCH: return cudaErrorNoKernelImageForDevice;
    case CUBLAS_STATUS_EXECUTION_FAILED: return cudaErrorLaunchFailure;
    default: return cudaErrorInvalidValue;
  }
}

struct Library {
  Loaded loaded;
  cublasLtHandle_t handle = nullptr;
  ~Library() {
    if (handle != nullptr) loaded.call.Destroy(handle);
  }
};

/// A matrix as stored. The library is column-major: it sees our row-major matrix transposed.
class Layout {
 public:
  explicit Layout(const Functions& call) : call_(call) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (layout_ != nullptr) call_.MatrixLayoutDestroy(layout_);
  }
  Status make(cudaDataType_t type, int64_t columns, int64_t rows, int64_t row_stride, int64_t matrices,
              int64_t stride) {
    RT_TRY(check(call_.MatrixLayoutCreate(&layout_, type, static_cast<uint64_t>(columns),
                                          static_cast<uint64_t>(rows), row_stride),
                 "describing a matrix"));
    const auto count = static_cast<int32_t>(matrices);
    RT_TRY(check(
        call_.MatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
        "describing a batch"));
    return check(call_.MatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                sizeof(stride)),
                 "describing a batch");
  }
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  const Functions& call_;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

cudaDataType_t data_type(ElementType type) {
  switch (type) {
    case ElementType::F32: return CUDA_R_32F;
    case ElementType::F16: return CUDA_R_16F;
    case ElementType::I8: return CUDA_R_8I;
    default: return CUDA_R_16BF;
  }
}

/// The library is column-major: it computes the transposed matmul, second' first', whose bias runs along the
/// rows.
class PlannedMatmul final : public CublasLtMatmul {
 public:
  explicit PlannedMatmul(std::shared_ptr<const Library> library)
      : library_(std::move(library)), first_(call()), second_(call()), result_(call()) {}
  ~PlannedMatmul() override {
    if (descriptor_ != nullptr) call().MatmulDescDestroy(descriptor_);
  }

  Status prepare(const MatMulArguments& a, bool tf32, bool has_bias, bool has_residual) {
    const Gemm& p = a.gemm;
    has_residual_ = has_residual;
    const cudaDataType_t type = data_type(a.type);
    const auto stride = [&](GemmBatch::Operand operand) {
      return p.batch.rank == 0 ? int64_t{0} : p.batch.stride[operand][0];
    };
    const bool fast = a.type == ElementType::F32 && tf32, integer = a.type == ElementType::I8;
    const cublasComputeType_t compute = integer ? CUBLAS_COMPUTE_32I
                                        : fast  ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                : CUBLAS_COMPUTE_32F;
    RT_TRY(check(call().MatmulDescCreate(&descriptor_, compute, integer ? CUDA_R_32I : CUDA_R_32F),
                 "describing a matmul"));
    RT_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, a.transposed_second ? CUBLAS_OP_T : CUBLAS_OP_N));
    RT_TRY(set(CUBLASLT_MATMUL_DESC_TRANSB, a.transposed_first ? CUBLAS_OP_T : CUBLAS_OP_N));
    RT_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(p.epilogue.activation.function, has_bias)));
    has_bias_ = has_bias;
    const int64_t second_width = a.transposed_second ? p.k : p.n,
                  first_width = a.transposed_first ? p.m : p.k;
    RT_TRY(second_.make(type, second_width, a.transposed_second ? p.n : p.k, second_width, p.matrices,
                        stride(GemmBatch::Second)));
    RT_TRY(first_.make(type, first_width, a.transposed_first ? p.k : p.m, first_width, p.matrices,
                       stride(GemmBatch::First)));
    RT_TRY(result_.make(integer ? CUDA_R_32I : type, p.n, p.m, p.result_row, p.matrices,
                        stride(GemmBatch::Result)));
    return choose();
  }

  size_t workspace_bytes() const noexcept override { return choice_.workspaceSize; }

  cudaError_t run(const MatMulArguments& a, cudaStream_t stream) const override {
    const Gemm& p = a.gemm;
    if (has_bias_) {
      const cublasStatus_t status = call().MatmulDescSetAttribute(
          descriptor_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.epilogue.bias, sizeof(p.epilogue.bias));
      if (status != CUBLAS_STATUS_SUCCESS) return as_cuda_error(status);
    }
    // alpha and beta (for the residual), in the accumulator type.
    const float factors[] = {1, has_residual_ ? 1.0f : 0.0f};
    const int32_t whole_factors[] = {1, 0};
    const bool integer = a.type == ElementType::I8;
    const void* alpha = integer ? static_cast<const void*>(&whole_factors[0]) : &factors[0];
    const void* beta = integer ? static_cast<const void*>(&whole_factors[1]) : &factors[1];
    return as_cuda_error(call().Matmul(library_->handle, descriptor_, alpha, a.second, second_.get(), a.first,
                                       first_.get(), beta, has_residual_ ? p.epilogue.residual : p.result,
                                       result_.get(), p.result, result_.get(), &choice_.algo, p.partial,
                                       choice_.workspaceSize, stream));
  }

 private:
  const Functions& call() const { return library_->loaded.call; }

  template <class Value>
  Status set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    return check(call().MatmulDescSetAttribute(descriptor_, attribute, &value, sizeof(value)),
                 "describing a matmul");
  }

  static cublasLtEpilogue_t epilogue(Function activation, bool bias) {
    switch (activation) {
      case Function::Relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
      case Function::GeluTanh: return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      default: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
  }

  Status choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    RT_TRY(check(call().MatmulPreferenceCreate(&preference), "describing limits"));
    int found = 0;
    cublasStatus_t status = call().MatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kMaxWorkspace, sizeof(kMaxWorkspace));
    if (status == CUBLAS_STATUS_SUCCESS)
      status = call().MatmulAlgoGetHeuristic(library_->handle, descriptor_, second_.get(), first_.get(),
                                             result_.get(), result_.get(), preference, 1, &choice_, &found);
    call().MatmulPreferenceDestroy(preference);
    RT_TRY(check(status, "looking for an algorithm"));
    return found > 0 ? Status() : unsupported("cuBLASLt has no algorithm for this matmul");
  }

  std::shared_ptr<const Library> library_;
  cublasLtMatmulDesc_t descriptor_ = nullptr;
  Layout first_, second_, result_;
  cublasLtMatmulHeuristicResult_t choice_{};
  bool has_bias_ = false, has_residual_ = false;
};

/// Requirements of the library on i8 matmuls in row-major order.
Status takes_bytes(const MatMulArguments& a, bool has_bias, bool has_residual) {
  const Gemm& p = a.gemm;
  if (a.transposed_first || !a.transposed_second)
    return unsupported("cuBLASLt: an i8 matmul needs A untransposed and B transposed");
  if (p.k % 4 != 0 || p.n % 4 != 0)
    return unsupported("cuBLASLt: an i8 matmul needs n and k to be multiples of 4, found ", p.n, " and ",
                       p.k);
  if (has_bias || has_residual || p.epilogue.activation.function != Function::Identity)
    return unsupported("cuBLASLt: an i8 matmul has no epilogue");
  return {};
}

Status takes(const MatMulArguments& a, bool has_bias, bool has_residual) {
  const Gemm& p = a.gemm;
  if (a.type == ElementType::I8) RT_TRY(takes_bytes(a, has_bias, has_residual));
  if (a.type != ElementType::I8 && a.type != ElementType::F32 && a.type != ElementType::F16 &&
      a.type != ElementType::BF16)
    return unsupported("cuBLASLt: no matmul of this type");
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.matrices == 0) return unsupported("cuBLASLt: an empty matmul");
  if (p.batch.rank > 1) return unsupported("cuBLASLt: expected one batch stride, found ", p.batch.rank);
  if (p.matrices > 1 && p.batch.rank == 0) return unsupported("cuBLASLt: a batch without strides");
  if (has_bias && (p.epilogue.bias_row != 0 || p.epilogue.bias_column != 1 ||
                   (p.batch.rank == 1 && p.batch.stride[GemmBatch::Bias][0] != 0)))
    return unsupported("cuBLASLt: the bias must be one row for all matrices");
  if (!CublasLt::has_activation(p.epilogue.activation.function))
    return unsupported("cuBLASLt: no such activation");
  return {};
}

class Opened final : public CublasLt {
 public:
  explicit Opened(std::shared_ptr<const Library> library) : library_(std::move(library)) {}

  Result<std::shared_ptr<const CublasLtMatmul>> plan(const MatMulArguments& arguments, bool tf32,
                                                     bool has_bias, bool has_residual) override {
    RT_TRY(takes(arguments, has_bias, has_residual));
    auto planned = std::make_shared<PlannedMatmul>(library_);
    RT_TRY(planned->prepare(arguments, tf32, has_bias, has_residual));
    return std::shared_ptr<const CublasLtMatmul>(std::move(planned));
  }

 private:
  std::shared_ptr<const Library> library_;
};

}  // namespace

bool CublasLt::has_activation(Function function) noexcept {
  return function == Function::Identity || function == Function::Relu || function == Function::GeluTanh;
}

Result<std::shared_ptr<CublasLt>> CublasLt::open() {
  auto library = std::make_shared<Library>();
  RT_ASSIGN(library->loaded, load());
  RT_TRY(check(library->loaded.call.Create(&library->handle), "starting"));
  return std::shared_ptr<CublasLt>(std::make_shared<Opened>(std::move(library)));
}

Result<std::string> CublasLt::installed_version() {
  RT_ASSIGN(const Loaded loaded, load());
  return loaded.version_text();
}

}  // namespace librt::cuda

#else  // without the header

namespace librt::cuda {

bool CublasLt::has_activation(Function) noexcept {
  return false;
}
Result<std::shared_ptr<CublasLt>> CublasLt::open() {
  return unsupported("this build has no cuBLASLt: its header was not found");
}
Result<std::string> CublasLt::installed_version() {
  return unsupported("this build has no cuBLASLt: its header was not found");
}

}  // namespace librt::cuda
#endif
