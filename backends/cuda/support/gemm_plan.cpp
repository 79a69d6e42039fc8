#include "backends/cuda/support/gemm_plan.h"

namespace librt::cuda {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 30;

}  // namespace

EpilogueInputs epilogue_inputs(const op::EpilogueAttributes* epilogue, const NodeView& node) {
  EpilogueInputs inputs;
  if (epilogue == nullptr) return inputs;
  if (epilogue->has_bias) inputs.bias = 2;
  if (epilogue->has_residual) inputs.residual = node.input_count() - 1;
  return inputs;
}

void bind_gemm(Gemm& gemm, const EpilogueInputs& inputs, const Call& call) {
  gemm.result = call.out();
  if (inputs.bias != EpilogueInputs::kNone) gemm.epilogue.bias = call.in(inputs.bias);
  if (inputs.residual != EpilogueInputs::kNone) gemm.epilogue.residual = call.in(inputs.residual);
  gemm.partial = call.scratch();
}

void bind_requantization(Requantization& requantization, const RequantizeInputs& inputs, const Call& call) {
  requantization.scale = call.in<float>(inputs.scale);
  requantization.bias = call.in<float>(inputs.bias);
  requantization.y_scale = call.in<float>(inputs.y_scale);
  requantization.y_zero = call.in(inputs.y_zero);
}

Status tensor_cores_support(const CudaDevice& device, DType dtype) {
  if (dtype == DType::F32 && !device.tf32())
    return unsupported("f32 stays off tensor cores: precision tf32 was not requested");
  if (dtype != DType::F16 && device.facts().compute_capability < 80)
    return unsupported(name_of(dtype), " on tensor cores needs compute capability 8.0");
  return {};
}

Status tiles_occupy(const CudaDevice& device, const Gemm& gemm, const MatMulTile& tile) {
  const int64_t tiles =
      (gemm.m + tile.rows - 1) / tile.rows * ((gemm.n + tile.columns - 1) / tile.columns) * gemm.matrices;
  if (tiles < device.facts().multiprocessors)
    return unsupported(tiles, " large tiles do not occupy ", device.facts().multiprocessors,
                       " multiprocessors");
  return {};
}

Status gemm_fits(int64_t m, int64_t n, int64_t k, int64_t matrices) {
  if (m >= kMaxExtent || n >= kMaxExtent || k >= kMaxExtent)
    return unsupported("a matmul of ", m, " x ", n, " x ", k, ", extents must be below 2^30");
  constexpr int64_t kTile = 64;
  const int64_t tiles = ((m + kTile - 1) / kTile) * ((n + kTile - 1) / kTile);
  if (tiles > 0 && matrices > 2 * kMaxExtent / tiles)
    return unsupported("a matmul of ", matrices, " matrices of ", tiles,
                       " tiles, one launch has at most 2^31 tiles");
  return {};
}

Result<ConvWindows> conv_windows(const ConvGeometry& geometry) {
  ConvWindows windows;
  int64_t input = geometry.batch, output = geometry.batch;
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    const WindowAxis& axis = geometry.axes[static_cast<size_t>(i)];
    if (axis.input >= kMaxExtent || axis.output >= kMaxExtent || axis.reach() >= kMaxExtent ||
        axis.pad_begin >= kMaxExtent || axis.stride >= kMaxExtent || axis.dilation >= kMaxExtent)
      return unsupported("a spatial axis with a value of 2^30 or more");
    input *= axis.input;
    output *= axis.output;
    if (input >= kMaxExtent || output >= kMaxExtent) return unsupported("images of 2^30 pixels or more");
    windows.input[i] = static_cast<int>(axis.input);
    windows.output[i] = static_cast<int>(axis.output);
    windows.kernel[i] = static_cast<int>(axis.kernel);
    windows.stride[i] = static_cast<int>(axis.stride);
    windows.pad[i] = static_cast<int>(axis.pad_begin);
    windows.dilation[i] = static_cast<int>(axis.dilation);
  }
  if (geometry.input_channels >= kMaxExtent || geometry.output_channels >= kMaxExtent)
    return unsupported("2^30 channels or more");
  windows.batch = static_cast<int>(geometry.batch);
  windows.groups = static_cast<int>(geometry.groups);
  windows.input_channels = static_cast<int>(geometry.input_channels);
  windows.output_channels = static_cast<int>(geometry.output_channels);
  return windows;
}

Status conv_fits(const ConvGeometry& geometry, ConvForm form) {
  RT_ASSIGN(const ConvWindows w, conv_windows(geometry));
  const auto product = [](int64_t a, int64_t b) { return b > 0 && a > kMaxExtent / b ? kMaxExtent : a * b; };
  int64_t taps = 1;
  for (const int kernel : w.kernel) taps = product(taps, kernel);
  switch (form) {
    case ConvForm::Data:
      return gemm_fits(w.input_pixels(), w.group_in(), product(taps, w.group_out()), w.groups);
    case ConvForm::Weight:
      return gemm_fits(w.group_out(), product(taps, w.group_in()), w.output_pixels(), w.groups);
    case ConvForm::Forward: break;
  }
  return gemm_fits(w.output_pixels(), w.group_out(), product(taps, w.group_in()), w.groups);
}

}  // namespace librt::cuda
