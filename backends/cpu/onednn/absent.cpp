// What the other files of this directory are in a build without oneDNN (RT_ONEDNN=OFF): every row that needs
// it says so, and own kernels take its place.
#include "backends/cpu/device/openmp.h"
#include "backends/cpu/onednn/kernels.h"

namespace librt::cpu {

bool onednn_uses_teams() noexcept {
  return false;
}
int set_foreign_threads(int) noexcept {
  return 0;
}
void restore_foreign_threads(int) noexcept {}

namespace onednn {

Status usable() {
  return unsupported("this build has no oneDNN (RT_ONEDNN)");
}
Status usable_for(const ConvGeometry&) {
  return usable();
}
Status usable_for_weight_gradient(const ConvGeometry&) {
  return usable();
}
std::string version() {
  return "own kernels";
}
bool has_winograd() {
  return false;
}
bool has_bf16() noexcept {
  return false;
}
bool exact_integer_matmuls() noexcept {
  return false;
}
Result<KernelPtr> make_matmul(const CpuDevice&, const MatMul&) {
  return usable();
}
Result<KernelPtr> make_convolution(const CpuDevice&, const Convolution&) {
  return usable();
}
Result<KernelPtr> make_convolution_data_gradient(const CpuDevice&, const Convolution&) {
  return usable();
}
Result<KernelPtr> make_convolution_weight_gradient(const CpuDevice&, const Convolution&) {
  return usable();
}
Result<KernelPtr> make_matmul_integer(const CpuDevice&, const IntegerMatMul&) {
  return usable();
}
Result<KernelPtr> make_convolution_integer(const CpuDevice&, const IntegerConvolution&) {
  return usable();
}
Result<KernelPtr> make_quantized_matmul(const IntegerMatMul&, const Requantization&) {
  return usable();
}
Result<KernelPtr> make_quantized_convolution(const IntegerConvolution&, const Requantization&) {
  return usable();
}

}  // namespace onednn
}  // namespace librt::cpu
