#include "backends/cpu/device/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/cpu/device/commands.h"
#include "backends/cpu/device/parallel.h"
#include "backends/cpu/kernel.h"

namespace librt::cpu {

#define RT_FAMILY(stem) std::span<const KernelRow> rows_##stem();
#include "cpu_families.inc"
#undef RT_FAMILY

namespace {

KernelTable make_table() {
  return KernelTable({
#define RT_FAMILY(stem) rows_##stem(),
#include "cpu_families.inc"
#include "runtime/core/exception.h"
#undef RT_FAMILY
  });
}

/// How a block was allocated; alignment 0: it is not the slab's.
struct Origin {
  rt_allocator allocator = {};  ///< allocate null: the C library
  size_t bytes = 0, alignment = 0;
  void free(void* block) const noexcept {
    if (alignment == 0) return;
    if (allocator.allocate != nullptr)
      allocator.free(allocator.user, block, bytes, alignment);
    else
      std::free(block);
  }
};

class HostSlab final : public Slab {
 public:
  HostSlab(void* bytes, size_t size, const Origin& origin) : bytes_(bytes), size_(size), origin_(origin) {}
  ~HostSlab() override { origin_.free(bytes_); }
  size_t size() const noexcept override { return size_; }
  void* host() noexcept override { return bytes_; }
  const void* bytes() const noexcept { return bytes_; }

 private:
  void* bytes_;
  size_t size_;
  Origin origin_;
};

Result<SlabPtr> make_slab(void* bytes, size_t size, const Origin& origin) noexcept {
  auto* slab = new (std::nothrow) HostSlab(bytes, size, origin);
  if (slab != nullptr) return SlabPtr(slab);
  origin.free(bytes);
  return Status(Code::OutOfMemory, "no memory for a slab");
}

}  // namespace

bool can_block(const TensorInfo& info) noexcept {
  const Shape& shape = info.shape;
  return (info.dtype == DType::F32 || info.dtype == DType::Bool) && shape.rank() >= 3 && shape.rank() <= 5 &&
         shape.back() > 0 && shape.back() % kBlock == 0;
}

CpuDevice::CpuDevice(DeviceInfo info, const DeviceOptions& options)
    : info_(std::move(info)),
      simd_(best_simd()),
      communicator_(options.communicator),
      allocator_(options.allocator),
      pool_(options.parallel.run != nullptr ? std::make_unique<Team>(options.parallel) : nullptr),
      workers_(info_.threads, Team::placement({options.cpus, options.priority})),
      table_(make_table()) {
  if (pool_ != nullptr)
    workers_ = Workers(*pool_);
  else
    Team::reserve(workers_);
}

Result<SlabPtr> CpuDevice::allocate(size_t bytes) noexcept {
  // Own blocks of 2 MiB and more are aligned to 2 MiB, so that the OS can back them with huge pages.
  constexpr size_t kLine = 64, kHugePage = size_t{2} << 20;
  const bool own = allocator_.allocate == nullptr;
  const size_t alignment = own && bytes >= kHugePage ? kHugePage : kLine;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* block = rounded < bytes ? nullptr
                : own           ? std::aligned_alloc(alignment, rounded)
                                : allocator_.allocate(allocator_.user, rounded, alignment);
  if (block == nullptr)
    return Status::make(Code::OutOfMemory, "host memory: ", own ? "" : "the arena or rt_allocator ",
                        "cannot allocate ", bytes_text(bytes));
  const Origin origin{allocator_, rounded, alignment};
  if (reinterpret_cast<uintptr_t>(block) % alignment != 0) {
    origin.free(block);
    return invalid_argument("rt_allocator: expected an address that is a multiple of ", alignment, ", found ",
                            reinterpret_cast<uintptr_t>(block) % alignment, " more");
  }
  // Only a hint: an OS without huge pages returns an error and uses small pages.
  if (alignment == kHugePage && own) madvise(block, rounded, MADV_HUGEPAGE);
  return make_slab(block, bytes, origin);
}

Result<SlabPtr> CpuDevice::wrap(void* bytes, size_t size) noexcept {
  return make_slab(bytes, size, {});
}

Status CpuDevice::upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept {
  if (offset > destination.size() || bytes.size() > destination.size() - offset)
    return internal_error("upload of ", bytes.size(), " bytes at ", offset, " into a slab of ",
                          destination.size());
  if (!bytes.empty())
    std::memcpy(static_cast<std::byte*>(destination.host()) + offset, bytes.data(), bytes.size());
  return {};
}

Status CpuDevice::download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept {
  if (offset > source.size() || bytes.size() > source.size() - offset)
    return internal_error("download of ", bytes.size(), " bytes at ", offset, " from a slab of ",
                          source.size());
  const auto& slab = static_cast<const HostSlab&>(source);
  if (!bytes.empty())
    std::memcpy(bytes.data(), static_cast<const std::byte*>(slab.bytes()) + offset, bytes.size());
  return {};
}

Result<CommandListPtr> CpuDevice::begin(const RecordOptions& options) noexcept {
  RT_ATTEMPT {
    return CommandListPtr(std::make_unique<Commands>(options, workers_));
  }
  RT_CAUGHT {
    return caught_exception("beginning a command list");
  }
}

size_t CpuDevice::layout_bytes(LayoutId layout, const TensorInfo& info) const noexcept {
  if (layout == kDense || (layout == kBlocked16 && can_block(info))) return info.bytes();
  return 0;
}

Result<KernelPtr> CpuDevice::make_reorder(const TensorInfo& info, LayoutId from, LayoutId to) noexcept {
  if (!can_block(info) || from == to || from > kBlocked16 || to > kBlocked16)
    return unsupported("no reorder of ", info, " from ", layout_name(from), " to ", layout_name(to));
  const Shape& shape = info.shape;
  const int64_t batch = shape[0], channels = shape.back(), points = shape.elements(1, shape.rank() - 1);
  const bool block = to == kBlocked16;
  const auto line = static_cast<int64_t>(size_of(info.dtype)) * kBlock;
  RT_ATTEMPT {
    return make_kernel([=](const Call& call) noexcept {
      const auto* x = call.in<std::byte>(0);
      auto* y = call.out<std::byte>();
      const int64_t blocks = channels / kBlock;
      // Item i is one point of one sample: it reads or writes one line per block of channels.
      parallel_for(batch * points, channels, 1, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t sample = i / points, point = i % points;
          for (int64_t b = 0; b < blocks; ++b) {
            const int64_t dense = (i * blocks + b) * line;
            const int64_t blocked = ((sample * blocks + b) * points + point) * line;
            const size_t read = static_cast<size_t>(block ? dense : blocked);
            const size_t written = static_cast<size_t>(block ? blocked : dense);
            if (line == kBlock)
              std::memcpy(y + written, x + read, kBlock);
            else
              std::memcpy(y + written, x + read, kBlock * sizeof(float));
          }
        }
      });
    });
  }
  RT_CAUGHT {
    return caught_exception("creating a reorder");
  }
}

void CpuDevice::for_each(size_t count, void (*work)(void* context, size_t index) noexcept,
                         void* context) noexcept {
  const ThreadScope scope(workers_);
  std::atomic<size_t> next{0};
  parallel_region(static_cast<int>(std::min<size_t>(count, static_cast<size_t>(max_threads()))),
                  [&](int, int) noexcept {
                    for (size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
                      work(context, i);
                  });
}

std::string CpuDevice::layout_name(LayoutId layout) const {
  return layout == kDense ? "dense" : layout == kBlocked16 ? "nChw16c" : "unknown";
}

}  // namespace librt::cpu
