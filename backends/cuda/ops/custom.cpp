// Operators of the application that launch kernels of their own: see rt/custom.h. Called in each run, outside
// of CUDA graphs, which replay launches without their host code.
#include "runtime/backend/custom_call.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

class CustomTask final : public Task {
 public:
  CustomTask(std::shared_ptr<CustomCall> custom, const CudaCommands& commands, const Bindings& bindings)
      : custom_(std::move(custom)) {
    for (const BufferRef& ref : bindings.inputs) inputs_.push_back(commands.address_of(ref));
    for (const BufferRef& ref : bindings.outputs) outputs_.push_back(commands.address_of(ref));
  }
  cudaError_t run(cudaStream_t stream) noexcept override {
    failure_ = custom_->run_on_cuda(inputs_, outputs_, stream);
    return failure_.ok() ? cudaSuccess : cudaErrorUnknown;
  }
  Status failure() const override { return failure_; }

 private:
  std::shared_ptr<CustomCall> custom_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  Status failure_;
};

class CustomKernel final : public Kernel {
 public:
  explicit CustomKernel(std::shared_ptr<CustomCall> custom) : custom_(std::move(custom)) {}
  Requirements requirements() const noexcept override { return {}; }
  Status record(CommandList& list, const Bindings& bindings) noexcept override {
    try {
      auto& commands = static_cast<CudaCommands&>(list);
      return commands.add(std::make_unique<CustomTask>(custom_, commands, bindings), Replay::Queue);
    } catch (...) {
      return caught_exception("recording a kernel");
    }
  }

 private:
  std::shared_ptr<CustomCall> custom_;
};

Status supports(const CudaDevice& device, const NodeView& node) {
  return supports_custom(device, node, &rt_custom_operator::run_cuda, "run_cuda");
}

Result<KernelPtr> create(CudaDevice& device, const NodeView& node) {
  return KernelPtr(std::make_unique<CustomKernel>(
      std::make_shared<CustomCall>(find_custom(device, node)->functions, node)));
}

}  // namespace

std::span<const KernelRow> rows_custom();
std::span<const KernelRow> rows_custom() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Custom, "custom", kAnyDType)};
  return kRows;
}

}  // namespace librt::cuda
