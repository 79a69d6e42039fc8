// Collectives, forwarded to the application's communicator. Without one there is a single rank.
//
// A running operation is identified by its result's address and owns that result until CollectiveWait, which
// is therefore in place on that address, or copies from it.
#include <cstring>

#include "backends/common/ranks.h"
#include "backends/cpu/kernel.h"

namespace librt::cpu {
namespace {

template <class Attributes>
Status supports_ranks(const CpuDevice& device, const NodeView& node) {
  return expect_ranks(device.communicator(), node.as<Attributes>().ranks);
}

void copy(const Call& call, size_t bytes) noexcept {
  if (call.in<std::byte>(0) != call.out<std::byte>())
    std::memcpy(call.out<std::byte>(), call.in<std::byte>(0), bytes);
}

Result<KernelPtr> create_all_reduce(CpuDevice& device, const NodeView& node, Producers) {
  return make_kernel(
      [communicator = device.communicator(), bytes = node.input(0).bytes(),
       count = static_cast<size_t>(node.input(0).elements()),
       dtype = static_cast<int32_t>(node.dtype(0))](const Call& call) noexcept {
        copy(call, bytes);
        if (communicator == nullptr) return Status();
        return said(communicator->all_reduce(communicator->user, call.out<void>(), count, dtype));
      },
      in_place());
}

Result<KernelPtr> create_all_gather(CpuDevice& device, const NodeView& node, Producers) {
  return make_kernel(
      [communicator = device.communicator(), bytes = node.input(0).bytes()](const Call& call) noexcept {
        if (communicator == nullptr) {
          copy(call, bytes);
          return Status();
        }
        std::memcpy(call.out<std::byte>() + static_cast<size_t>(communicator->rank) * bytes,
                    call.in<std::byte>(0), bytes);
        return said(communicator->all_gather(communicator->user, call.out<void>(), bytes));
      });
}

Result<KernelPtr> create_wait(CpuDevice& device, const NodeView& node, Producers) {
  return make_kernel(
      [communicator = device.communicator(), bytes = node.input(0).bytes()](const Call& call) noexcept {
        if (communicator != nullptr)
          RT_TRY(said(communicator->wait(communicator->user, const_cast<void*>(call.in<void>(0)))));
        copy(call, bytes);
        return Status();
      },
      in_place());
}

Result<KernelPtr> create_rank_shard(CpuDevice& device, const NodeView& node, Producers) {
  const size_t rank = own_rank(device.communicator());
  const size_t all = node.input(0).bytes(), part = node.output(0).bytes();
  const size_t first = std::min(rank * part, all), there = std::min(part, all - first);
  return make_kernel([=](const Call& call) noexcept {
    if (there > 0) std::memcpy(call.out<std::byte>(), call.in<std::byte>(0) + first, there);
    if (there < part) std::memset(call.out<std::byte>() + there, 0, part - there);
  });
}

}  // namespace

std::span<const KernelRow> rows_collective();
std::span<const KernelRow> rows_collective() {
  static constexpr KernelRow kRows[] = {
      row<create_all_reduce>(OpKind::AllReduce, "collective", DTypeSet{DType::F32, DType::F64}),
      row<create_all_gather, supports_ranks<op::AllGatherAttributes>>(OpKind::AllGather, "collective",
                                                                      kAnyDType),
      row<create_wait>(OpKind::CollectiveWait, "collective", kAnyDType),
      row<create_rank_shard, supports_ranks<op::RankShardAttributes>>(OpKind::RankShard, "collective",
                                                                      kAnyDType)};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
