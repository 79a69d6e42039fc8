#include "backends/cuda/device/device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/common/ranks.h"
#include "backends/cuda/device/commands.h"
#include "backends/cuda/device/errors.h"
#include "backends/cuda/kernel_families.h"
#include "runtime/core/exception.h"

namespace librt::cuda {
namespace {

constexpr size_t kPartBytes = size_t{4} << 20;

Status check_range(const char* what, size_t slab, size_t offset, size_t bytes) {
  if (offset <= slab && bytes <= slab - offset) return {};
  return invalid_argument(what, " of ", bytes, " bytes at ", offset, " in a slab of ", slab);
}

}  // namespace

CudaSlab::~CudaSlab() {
  if (kind_.owned && cudaSetDevice(ordinal_) == cudaSuccess) cudaFree(address_);
}

Status Transfers::open() {
  RT_CUDA_TRY(cudaStreamCreateWithFlags(&upload_, cudaStreamNonBlocking), "creating the stream for uploads");
  RT_CUDA_TRY(cudaStreamCreateWithFlags(&download_, cudaStreamNonBlocking),
              "creating the stream for downloads");
  for (Part& part : parts_) {
    RT_CUDA_TRY(cudaHostAlloc(&part.memory, kPartBytes, cudaHostAllocDefault), "pinning ", kPartBytes,
                " bytes");
    RT_CUDA_TRY(cudaEventCreateWithFlags(&part.done, cudaEventDisableTiming), "creating an event");
  }
  return {};
}

Transfers::~Transfers() {
  if (upload_ != nullptr) cudaStreamSynchronize(upload_);
  for (Part& part : parts_) {
    if (part.done != nullptr) cudaEventDestroy(part.done);
    if (part.memory != nullptr) cudaFreeHost(part.memory);
  }
  if (upload_ != nullptr) cudaStreamDestroy(upload_);
  if (download_ != nullptr) cudaStreamDestroy(download_);
}

Status Transfers::upload(std::byte* to, std::span<const std::byte> bytes) {
  for (size_t done = 0, index = 0; done < bytes.size(); ++index) {
    Part& part = parts_[index % 2];
    const size_t size = std::min(bytes.size() - done, kPartBytes);
    RT_CUDA_TRY(cudaEventSynchronize(part.done), "waiting for an upload");
    std::memcpy(part.memory, bytes.data() + done, size);
    RT_CUDA_TRY(cudaMemcpyAsync(to + done, part.memory, size, cudaMemcpyHostToDevice, upload_), "uploading ",
                size, " bytes");
    RT_CUDA_TRY(cudaEventRecord(part.done, upload_), "recording an event");
    done += size;
  }
  return {};
}

Status Transfers::download(std::span<std::byte> to, const std::byte* from) {
  const size_t parts = (to.size() + kPartBytes - 1) / kPartBytes;
  const auto size_of_part = [&](size_t i) { return std::min(to.size() - i * kPartBytes, kPartBytes); };
  for (Part& part : parts_) RT_CUDA_TRY(cudaEventSynchronize(part.done), "waiting for an upload");
  // Part i is in flight while the host empties part i - 1.
  for (size_t i = 0; i <= parts; ++i) {
    if (i < parts) {
      Part& part = parts_[i % 2];
      RT_CUDA_TRY(cudaMemcpyAsync(part.memory, from + i * kPartBytes, size_of_part(i), cudaMemcpyDeviceToHost,
                                  download_),
                  "downloading ", size_of_part(i), " bytes");
      RT_CUDA_TRY(cudaEventRecord(part.done, download_), "recording an event");
    }
    if (i > 0) {
      Part& part = parts_[(i - 1) % 2];
      RT_CUDA_TRY(cudaEventSynchronize(part.done), "waiting for a download");
      std::memcpy(to.data() + (i - 1) * kPartBytes, part.memory, size_of_part(i - 1));
    }
  }
  return {};
}

Result<DevicePtr> CudaDevice::open(const DeviceOptions& options) {
  try {
    std::vector<DeviceFacts> devices;
    RT_TRY(list_devices(devices));
    RT_ASSIGN(const size_t index, choose_device(devices, options.device, options.local_rank));
    std::unique_ptr<CudaDevice> self(new CudaDevice);
    self->facts_ = devices[index];
    self->info_ = describe(self->facts_);
    self->deterministic_ = options.deterministic;
    self->validation_ = options.validation;
    self->tf32_ = options.tf32;
    // Part of the key of tuning results: other kernels are candidates.
    if (options.tf32) self->info_.driver += ", f32 matmuls in TF32";
    RT_TRY(self->activate());
    RT_CUDA_TRY(cudaStreamCreateWithFlags(&self->own_, cudaStreamNonBlocking), "creating a stream on '",
                self->info_.name, "'");
    RT_CUDA_TRY(cudaEventCreateWithFlags(&self->ordered_, cudaEventDisableTiming), "creating an event");
    RT_TRY(self->transfers_.open());
    if (auto library = CublasLt::open(); library.ok())
      self->cublaslt_ = std::move(library).value();
    else
      self->cublaslt_status_ = std::move(library).status();
    if (auto library = Cudnn::open(); library.ok())
      self->cudnn_ = std::move(library).value();
    else
      self->cudnn_status_ = std::move(library).status();
    RT_TRY(self->open_nccl(options));
    self->kernels_ = std::make_unique<KernelTable>(kernel_families());
    return DevicePtr(std::move(self));
  } catch (...) {
    return caught_exception("opening a CUDA device");
  }
}

Status CudaDevice::open_nccl(const DeviceOptions& options) {
  communicator_ = options.communicator;
  if (rank_count(communicator_) == 1) return {};
  if (options.same_backend) {
    RT_ASSIGN(nccl_, Nccl::open(*communicator_, nccl_status_));
  } else {
    nccl_status_ = unsupported("not all ranks run on " RT_CUDA_BACKEND);
  }
  if (nccl_ != nullptr)
    info_.collectives = "NCCL " + nccl_->version();
  else
    info_.no_collectives = nccl_status_.message();
  return {};
}

CudaDevice::~CudaDevice() {
  if (cudaSetDevice(facts_.ordinal) != cudaSuccess) return;
  nccl_.reset();
  if (own_ != nullptr) {
    cudaStreamSynchronize(compute_stream());
    cudaStreamDestroy(own_);
  }
  if (ordered_ != nullptr) cudaEventDestroy(ordered_);
}

Status CudaDevice::activate() const noexcept {
  return check(cudaSetDevice(facts_.ordinal), "CUDA device '", info_.name, "'");
}

Status CudaDevice::order(cudaStream_t earlier, cudaStream_t later) noexcept {
  RT_CUDA_TRY(cudaEventRecord(ordered_, earlier), "recording an event");
  return check(cudaStreamWaitEvent(later, ordered_, 0), "ordering two streams");
}

Status CudaDevice::use_stream(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  RT_CUDA_TRY(cudaStreamIsCapturing(stream, &capturing), "the given CUDA stream");
  if (capturing != cudaStreamCaptureStatusNone)
    return invalid_argument(
        "the given CUDA stream is being captured into a graph; end that, a session's runs have graphs of "
        "their own");
  RT_CUDA_TRY(cudaEventRecord(ordered_, stream), "the given CUDA stream, which must be one of '", info_.name,
              "'");
  given_ = stream;
  return {};
}

Result<SlabPtr> CudaDevice::allocate(size_t bytes, bool exchange) noexcept {
  RT_TRY(activate());
  void* address = nullptr;
  RT_CUDA_TRY(cudaMalloc(&address, std::max<size_t>(bytes, 1)), "allocating ", bytes_text(bytes), " on '",
              info_.name, "'");
  auto* slab = new (std::nothrow)
      CudaSlab(facts_.ordinal, static_cast<std::byte*>(address), bytes, {.exchange = exchange});
  if (slab == nullptr) {
    cudaFree(address);
    return Status(Code::OutOfMemory, "allocating device memory: no memory on the host");
  }
  return SlabPtr(slab);
}

Result<SlabPtr> CudaDevice::wrap(void*, size_t) noexcept {
  return unsupported("the CUDA backend does not adopt host memory; copy with upload()");
}

Status CudaDevice::upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept {
  RT_TRY(check_range("upload", destination.size(), offset, bytes.size()));
  if (bytes.empty()) return {};
  RT_TRY(activate());
  auto& slab = static_cast<CudaSlab&>(destination);
  if (!slab.exchange()) RT_TRY(order(compute_stream(), transfers_.upload_stream()));
  RT_TRY(transfers_.upload(slab.address() + offset, bytes));
  return order(transfers_.upload_stream(), compute_stream());
}

Status CudaDevice::download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept {
  RT_TRY(check_range("download", source.size(), offset, bytes.size()));
  if (bytes.empty()) return {};
  RT_TRY(activate());
  const auto& slab = static_cast<const CudaSlab&>(source);
  if (!slab.exchange()) RT_TRY(order(compute_stream(), transfers_.download_stream()));
  RT_TRY(transfers_.download(bytes, slab.address() + offset));
  return ranks_status();
}

Result<CommandListPtr> CudaDevice::begin(const RecordOptions& options) noexcept {
  RT_TRY(activate());
  return CudaCommands::create(*this, options);
}

}  // namespace librt::cuda
