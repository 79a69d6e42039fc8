// cuBLASLt for the emulated device, with the toolkit's declarations: transposes, strided batches, bias, ReLU
// and GELU epilogues, int8 GEMMs, accumulation in double. Rejects what the library rejects: leading
// dimensions that are too short, shapes and batches that disagree, attributes of the wrong size.
#include "tests/cuda_emulator/fake_cublaslt.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "cuda_emulator/device.h"
#include "tests/cuda_emulator/fake_numbers.h"

namespace {

using cuda_emulator::load;
using cuda_emulator::size_of;
using cuda_emulator::store;
using cuda_emulator::tf32;

// The contents of the library's opaque handles in this fake.
struct Layout {
  cudaDataType_t type;
  int32_t batch;
  uint64_t rows, columns;
  int64_t leading, stride;
};
struct MatmulDescriptor {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transposed[2];  // CUBLAS_OP_N or CUBLAS_OP_T
  uint32_t epilogue;
  const void* bias;
};
Layout& layout_of(cublasLtMatrixLayout_t layout) {
  return *reinterpret_cast<Layout*>(layout);
}
MatmulDescriptor& descriptor_of(cublasLtMatmulDesc_t matmul) {
  return *reinterpret_cast<MatmulDescriptor*>(matmul);
}

/// One matrix of a batch as a GEMM operand.
struct Matrix {
  const char* base;
  Layout layout;
  bool transposed;
  bool rounded;  // to TF32

  Matrix(const void* from, const Layout& own, bool is_transposed, bool is_rounded, int64_t number)
      : base(static_cast<const char*>(from) + static_cast<size_t>(number * own.stride) * size_of(own.type)),
        layout(own),
        transposed(is_transposed),
        rounded(is_rounded) {}
  double at(int64_t row, int64_t column) const {
    if (transposed) std::swap(row, column);
    const float value = load(base, layout.type, column * layout.leading + row);
    return static_cast<double>(rounded ? tf32(value) : value);
  }
};

double activated(uint32_t epilogue, double x) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return x > 0 ? x : std::isnan(x) ? x : 0;
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) return cuda_emulator::gelu_tanh(x);
  return x;
}

bool is_known(const Layout& layout) {
  return (layout.type == CUDA_R_32F || layout.type == CUDA_R_16F || layout.type == CUDA_R_16BF ||
          layout.type == CUDA_R_8I || layout.type == CUDA_R_32I) &&
         layout.leading >= static_cast<int64_t>(layout.rows) && layout.batch >= 1;
}

cublasStatus_t check(const MatmulDescriptor& matmul, const Layout& a, const Layout& b, const Layout& d) {
  if (!is_known(a) || !is_known(b) || !is_known(d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.type == CUDA_R_8I) {
    // int8 in column-major order: A transposed, multiples of 4, int32 results.
    if (b.type != CUDA_R_8I || d.type != CUDA_R_32I || matmul.scale != CUDA_R_32I ||
        matmul.compute != CUBLAS_COMPUTE_32I || matmul.transposed[0] == CUBLAS_OP_N ||
        matmul.transposed[1] != CUBLAS_OP_N || a.rows % 4 != 0 || a.columns % 4 != 0 || a.leading % 4 != 0 ||
        b.leading % 4 != 0 || d.leading % 4 != 0 || matmul.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
      return CUBLAS_STATUS_NOT_SUPPORTED;
  } else if (a.type != b.type || a.type != d.type || matmul.scale != CUDA_R_32F) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  } else if (matmul.compute != CUBLAS_COMPUTE_32F &&
             (matmul.compute != CUBLAS_COMPUTE_32F_FAST_TF32 || a.type != CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool ta = matmul.transposed[0] != CUBLAS_OP_N, tb = matmul.transposed[1] != CUBLAS_OP_N;
  const uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  if (k != (tb ? b.columns : b.rows) || m != d.rows || (tb ? b.rows : b.columns) != d.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  return a.batch == d.batch && b.batch == d.batch ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/// Sets a field if the size is right.
template <class Field>
cublasStatus_t assign(Field& field, const void* value, size_t size) {
  if (value == nullptr || size != sizeof(field)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

size_t version() {
  return CUBLAS_VERSION;
}
cublasStatus_t create(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(1));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_create(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                             uint64_t columns, int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, 1, rows, columns, leading, 0});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout) {
  delete &layout_of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                          const void* value, size_t size) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return assign(layout_of(layout).batch, value, size);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return assign(layout_of(layout).stride, value, size);
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t descriptor_create(cublasLtMatmulDesc_t* matmul, cublasComputeType_t compute,
                                 cudaDataType_t scale) {
  *matmul = reinterpret_cast<cublasLtMatmulDesc_t>(
      new MatmulDescriptor{compute, scale, {CUBLAS_OP_N, CUBLAS_OP_N}, CUBLASLT_EPILOGUE_DEFAULT, nullptr});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t descriptor_destroy(cublasLtMatmulDesc_t matmul) {
  delete &descriptor_of(matmul);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t descriptor_set(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
                              const void* value, size_t size) {
  MatmulDescriptor& matmul = descriptor_of(descriptor);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return assign(matmul.transposed[0], value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return assign(matmul.transposed[1], value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return assign(matmul.epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return assign(matmul.bias, value, size);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}
cublasStatus_t preference_create(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_set(cublasLtMatmulPreference_t preference,
                              cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                              size_t size) {
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_INVALID_VALUE;
  return assign(preference->data[0], value, size);
}
/// Reports a nonzero workspace, which the GEMM then requires.
constexpr size_t kWorkspace = 512;
cublasStatus_t find(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                    cublasLtMatmulPreference_t, int wanted, cublasLtMatmulHeuristicResult_t* results,
                    int* found) {
  *found = 0;
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t status = check(descriptor_of(matmul), layout_of(a), layout_of(b), layout_of(d));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = {};
  results[0].workspaceSize = kWorkspace;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor, const void* alpha, const void* a,
                        cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                        const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                        cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void* workspace,
                        size_t workspace_bytes, cudaStream_t stream) {
  const MatmulDescriptor matmul = descriptor_of(descriptor);
  const Layout first = layout_of(a_layout), second = layout_of(b_layout), result = layout_of(d_layout);
  const cublasStatus_t status = check(matmul, first, second, result);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const bool biased = (matmul.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  if (workspace == nullptr || workspace_bytes < kWorkspace || (biased && matmul.bias == nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto scalar = [&](const void* of) {
    return matmul.scale == CUDA_R_32I ? static_cast<float>(*static_cast<const int32_t*>(of))
                                      : *static_cast<const float*>(of);
  };
  const float factor = scalar(alpha), before = scalar(beta);
  const auto body = [=] {
    std::memset(workspace, 0x5a, kWorkspace);  // scratch of the GEMM while it runs
    const bool rounded = matmul.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const bool ta = matmul.transposed[0] != CUBLAS_OP_N, tb = matmul.transposed[1] != CUBLAS_OP_N;
    const auto depth = static_cast<int64_t>(ta ? first.rows : first.columns);
    for (int64_t number = 0; number < result.batch; ++number) {
      const Matrix left(a, first, ta, rounded, number), right(b, second, tb, rounded, number);
      const size_t offset = static_cast<size_t>(number * result.stride) * size_of(result.type);
      for (int64_t j = 0; j < static_cast<int64_t>(result.columns); ++j)
        for (int64_t i = 0; i < static_cast<int64_t>(result.rows); ++i) {
          const int64_t at = j * result.leading + i;
          double sum = 0;
          for (int64_t k = 0; k < depth; ++k) sum += left.at(i, k) * right.at(k, j);
          sum *= static_cast<double>(factor);
          if (before != 0)
            sum += static_cast<double>(before) *
                   static_cast<double>(load(static_cast<const char*>(c) + offset, result.type, at));
          if (biased) sum += static_cast<double>(load(matmul.bias, result.type, i));
          store(static_cast<char*>(d) + offset, result.type, at, activated(matmul.epilogue, sum));
        }
    }
  };
  const cudaError_t error =
      cuda_emulator::launch(body, reinterpret_cast<const void*>(&multiply), dim3(1), dim3(1), 0, stream);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Entry {
  std::string_view name;
  void* function;
};

}  // namespace

namespace cuda_emulator {

void* fake_cublaslt_function(const char* name) noexcept {
  static const Entry entries[] = {
      {"cublasLtGetVersion", reinterpret_cast<void*>(&version)},
      {"cublasLtCreate", reinterpret_cast<void*>(&create)},
      {"cublasLtDestroy", reinterpret_cast<void*>(&destroy)},
      {"cublasLtMatrixLayoutCreate", reinterpret_cast<void*>(&layout_create)},
      {"cublasLtMatrixLayoutDestroy", reinterpret_cast<void*>(&layout_destroy)},
      {"cublasLtMatrixLayoutSetAttribute", reinterpret_cast<void*>(&layout_set)},
      {"cublasLtMatmulDescCreate", reinterpret_cast<void*>(&descriptor_create)},
      {"cublasLtMatmulDescDestroy", reinterpret_cast<void*>(&descriptor_destroy)},
      {"cublasLtMatmulDescSetAttribute", reinterpret_cast<void*>(&descriptor_set)},
      {"cublasLtMatmulPreferenceCreate", reinterpret_cast<void*>(&preference_create)},
      {"cublasLtMatmulPreferenceDestroy", reinterpret_cast<void*>(&preference_destroy)},
      {"cublasLtMatmulPreferenceSetAttribute", reinterpret_cast<void*>(&preference_set)},
      {"cublasLtMatmulAlgoGetHeuristic", reinterpret_cast<void*>(&find)},
      {"cublasLtMatmul", reinterpret_cast<void*>(&multiply)}};
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.function;
  return nullptr;
}

}  // namespace cuda_emulator
#else
namespace cuda_emulator {

void* fake_cublaslt_function(const char*) noexcept {
  return nullptr;
}

}  // namespace cuda_emulator
#endif
