// Collectives: by NCCL, or the identity of one rank. If ranks use host memory, the CPU backend has the
// kernels.
//
// An operation owns its result until CollectiveWait, so it works in place there, overlapping with the
// stream's later work.
#include "backends/common/ranks.h"
#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Status supports_sums(const CudaDevice& device, const NodeView&) {
  return rank_count(device.communicator()) == 1 ? Status() : device.nccl_status();
}
Status supports_gather(const CudaDevice& device, const NodeView& node) {
  RT_TRY(expect_ranks(device.communicator(), node.as<op::AllGatherAttributes>().ranks));
  return supports_sums(device, node);
}
Status supports_shard(const CudaDevice& device, const NodeView& node) {
  return expect_ranks(device.communicator(), node.as<op::RankShardAttributes>().ranks);
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes == 0 || to == from) return cudaSuccess;
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

Result<KernelPtr> create_all_reduce(CudaDevice& device, const NodeView& node) {
  const size_t bytes = node.input(0).bytes();
  Nccl* const nccl = device.nccl();
  if (nccl == nullptr) return make_copy(bytes);
  return make_kernel(
      [=, count = static_cast<size_t>(node.input(0).elements()), dtype = node.dtype(0)](const Call& call) {
        if (const cudaError_t error = copy(call.out(), call.in(0), bytes, call.stream); error != cudaSuccess)
          return error;
        return nccl->all_reduce(call.out(), count, dtype, call.stream);
      },
      in_place(), nullptr, Replay::Queue);
}

Result<KernelPtr> create_all_gather(CudaDevice& device, const NodeView& node) {
  const size_t bytes = node.input(0).bytes();
  Nccl* const nccl = device.nccl();
  if (nccl == nullptr) return make_copy(bytes);
  return make_kernel(
      [=, first = own_rank(device.communicator()) * bytes](const Call& call) {
        const cudaError_t error = copy(call.out<std::byte>() + first, call.in(0), bytes, call.stream);
        return error != cudaSuccess ? error : nccl->all_gather(call.out(), bytes, call.stream);
      },
      {}, nullptr, Replay::Queue);
}

Result<KernelPtr> create_wait(CudaDevice& device, const NodeView& node) {
  const size_t bytes = node.input(0).bytes();
  Nccl* const nccl = device.nccl();
  if (nccl == nullptr) return make_copy(bytes);
  return make_kernel(
      [=](const Call& call) {
        const cudaError_t error = nccl->wait(call.in(0), call.stream);
        return error != cudaSuccess ? error : copy(call.out(), call.in(0), bytes, call.stream);
      },
      in_place(), nullptr, Replay::Queue);
}

Result<KernelPtr> create_rank_shard(CudaDevice& device, const NodeView& node) {
  const size_t all = node.input(0).bytes(), part = node.output(0).bytes();
  const size_t first = std::min(own_rank(device.communicator()) * part, all),
               there = std::min(part, all - first);
  return make_kernel([=](const Call& call) {
    const cudaError_t error = copy(call.out(), call.in<std::byte>(0) + first, there, call.stream);
    if (error != cudaSuccess || there == part) return error;
    return cudaMemsetAsync(call.out<std::byte>() + there, 0, part - there, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_collective();
std::span<const KernelRow> rows_collective() {
  static constexpr KernelRow kRows[] = {
      row<create_all_reduce, supports_sums>(OpKind::AllReduce, "collective",
                                            DTypeSet{DType::F32, DType::F64}),
      row<create_all_gather, supports_gather>(OpKind::AllGather, "collective", kAnyDType),
      row<create_wait, supports_sums>(OpKind::CollectiveWait, "collective", kAnyDType),
      row<create_rank_shard, supports_shard>(OpKind::RankShard, "collective", kAnyDType)};
  return kRows;
}

}  // namespace librt::cuda
