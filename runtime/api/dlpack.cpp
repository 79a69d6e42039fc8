// rt/dlpack.h: tensors of other libraries as tensors and memory of librt, and the other way.
//
// Knows: DLPack's structs, of which nothing is believed. Must not know: Python, which reads them with the
// functions here.
#include <algorithm>

#include "rt/dlpack.h"

#include "runtime/api/handles.h"

namespace {

using librt::DType;
using librt::Result;
using librt::Status;
using librt::TensorInfo;
using librt::api::guarded;

struct ElementType {
  uint8_t code, bits;
};
/// By rt_dtype.
constexpr ElementType kTypes[] = {{RT_DLPACK_FLOAT, 32}, {RT_DLPACK_FLOAT, 16}, {RT_DLPACK_BFLOAT, 16},
                                  {RT_DLPACK_FLOAT, 64}, {RT_DLPACK_INT, 8},    {RT_DLPACK_UINT, 8},
                                  {RT_DLPACK_INT, 16},   {RT_DLPACK_UINT, 16},  {RT_DLPACK_INT, 32},
                                  {RT_DLPACK_UINT, 32},  {RT_DLPACK_INT, 64},   {RT_DLPACK_UINT, 64},
                                  {RT_DLPACK_BOOL, 8}};
static_assert(std::size(kTypes) == librt::kDTypeCount);

Result<DType> dtype_of(const rt_dlpack_tensor& tensor) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const ElementType& type) {
    return type.code == tensor.code && type.bits == tensor.bits && tensor.lanes == 1;
  });
  if (found == std::end(kTypes))
    return librt::unsupported("DLPack: expected an element type of librt, found type ", int{tensor.code},
                              " of ", int{tensor.bits}, " bits and ", tensor.lanes,
                              " lanes; convert the tensor");
  return static_cast<DType>(found - kTypes);
}

struct Elements {
  TensorInfo info;
  std::byte* data = nullptr;  ///< the first
};

/// strides: receives them, or is null where the tensor must be dense.
Result<Elements> read(const rt_dlpack_tensor& tensor, int64_t* strides) {
  if (tensor.ndim < 0 || tensor.ndim > RT_MAX_RANK)
    return librt::invalid_argument("DLPack: expected 0 to ", RT_MAX_RANK, " axes, found ", tensor.ndim);
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    return librt::invalid_argument("DLPack: the shape of a tensor with ", tensor.ndim, " axes is null");
  Elements elements;
  RT_ASSIGN(elements.info.dtype, dtype_of(tensor));
  librt::Shape& shape = elements.info.shape;
  for (int32_t i = 0; i < tensor.ndim; ++i) shape.push_back(tensor.shape[i]);
  const auto count = shape.checked_elements();
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, int64_t{tensor.bits} / 8, &bytes))
    return librt::invalid_argument("DLPack: invalid shape ", shape,
                                   "; no extent is below 0, and all elements fit in memory" RT_FEW_ELEMENTS);
  int64_t dense = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : dense;
    if (strides != nullptr)
      strides[i] = stride;
    else if (stride != dense && shape[i] != 1 && bytes > 0)
      return librt::invalid_argument("DLPack: expected elements that are dense and row-major; axis ", i,
                                     " of ", shape, " has stride ", stride, " instead of ", dense,
                                     "; make a contiguous copy");
    dense *= shape[i];
  }
  if (bytes == 0) return elements;
  if (tensor.data == nullptr)
    return librt::invalid_argument("DLPack: the data of a tensor of shape ", shape, " is null");
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  uintptr_t first = 0, end = 0;
  if (__builtin_add_overflow(address, tensor.byte_offset, &first) ||
      __builtin_add_overflow(first, static_cast<uintptr_t>(bytes), &end))
    return librt::invalid_argument("DLPack: the byte offset ", tensor.byte_offset, " is too large");
  elements.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  return elements;
}

rt_dlpack* layout_of(DLManagedTensorVersioned* tensor) noexcept {
  return reinterpret_cast<rt_dlpack*>(tensor);
}
rt_dlpack_unversioned* layout_of(DLManagedTensor* tensor) noexcept {
  return reinterpret_cast<rt_dlpack_unversioned*>(tensor);
}

Result<const rt_dlpack*> known(const DLManagedTensorVersioned* from) {
  if (from == nullptr) return librt::invalid_argument("DLPack: the tensor is null");
  const auto* managed = reinterpret_cast<const rt_dlpack*>(from);
  if (managed->major != 1)
    return librt::unsupported("DLPack: expected a tensor of version 1, found ", managed->major, '.',
                              managed->minor, "; export it with max_version (1, 0)");
  return managed;
}

bool is_of_host(int32_t type) noexcept {
  return type == RT_DLPACK_CPU || type == RT_DLPACK_CUDA_HOST;
}

/// -1 without CUDA.
int cuda_ordinal(const librt::DeviceSet& devices) noexcept {
  librt::Interop* const interop = devices.interop();
  return interop != nullptr ? interop->handles().cuda_device : -1;
}

template <class Handle>
void delete_tensor(Handle* handle) {
  auto* managed = layout_of(handle);
  if (managed->deleter != nullptr) managed->deleter(handle);
}

/// What rt_memory_create needs for the tensor, and the tensor without its memory.
Status import(const librt::DeviceSet& devices, DLManagedTensorVersioned* from, rt_memory_options& options,
              rt_tensor& out) {
  RT_ASSIGN(const rt_dlpack* managed, known(from));
  const rt_dlpack_tensor& given = managed->tensor;
  const bool of_cuda = given.device_type == RT_DLPACK_CUDA || given.device_type == RT_DLPACK_CUDA_MANAGED;
  if (!of_cuda && !is_of_host(given.device_type))
    return librt::unsupported(
        "rt_memory_from_dlpack: expected memory of the host or of CUDA, found DLPack device type ",
        given.device_type, "; copy the tensor");
  RT_ASSIGN(const Elements elements, read(given, nullptr));
  if (elements.data == nullptr)
    return librt::invalid_argument("rt_memory_from_dlpack: expected at least one element, found shape ",
                                   elements.info.shape, "; bind an rt_tensor without memory");
  const int ordinal = cuda_ordinal(devices);
  if (given.device_type == RT_DLPACK_CUDA && ordinal >= 0 && given.device_id != ordinal)
    return librt::invalid_argument("rt_memory_from_dlpack: expected a tensor of CUDA device ", ordinal,
                                   ", found one of device ", given.device_id,
                                   "; copy it, or create the session there");
  if (!librt::is_aligned(elements.data, devices.alignment()))
    return librt::invalid_argument("rt_memory_from_dlpack: expected a first element at a multiple of ",
                                   devices.alignment(), " bytes; copy it, or bind its rt_dlpack_view");
  librt::api::fill(out, elements.info, nullptr);
  options.kind = of_cuda ? RT_MEMORY_CUDA : RT_MEMORY_HOST;
  options.read_only = (managed->flags & RT_DLPACK_READ_ONLY) != 0;
  options.bytes = elements.info.bytes();
  options.pointer = elements.data;
  options.release = [](void* user) { delete_tensor(static_cast<DLManagedTensorVersioned*>(user)); };
  options.user = from;
  return {};
}

struct Exported {
  rt_dlpack managed;
  int64_t shape[RT_MAX_RANK], strides[RT_MAX_RANK];
  std::shared_ptr<librt::DeviceMemory> memory;
  void (*release)(void* user);
  void* user;
};

/// Address and device of bytes in memory of a device.
Status locate(const librt::DeviceMemory& memory, uint64_t offset, size_t bytes, rt_dlpack_tensor& to) {
  if (offset > memory.bytes() || bytes > memory.bytes() - offset)
    return librt::invalid_argument("rt_tensor_to_dlpack: expected ", bytes, " bytes from ", offset,
                                   " on, the memory has ", memory.bytes());
  std::byte* const address = memory.address();
  if (address == nullptr)
    return librt::unsupported("rt_tensor_to_dlpack: memory of ", memory.devices()->chosen().info().backend,
                              " has no address; share it with rt_memory_export_fd, or copy it with "
                              "rt_memory_read");
  const int ordinal = cuda_ordinal(*memory.devices());
  to.data = address + offset;
  to.device_type = ordinal >= 0 ? RT_DLPACK_CUDA : RT_DLPACK_CPU;
  to.device_id = std::max(ordinal, 0);
  return {};
}

/// A tensor in the other form, which owns `from`.
template <class To, class From>
To* wrap(From* from) {
  auto* to = new To{};
  to->tensor = layout_of(from)->tensor;
  to->owner = from;
  to->deleter = [](auto* self) {
    const std::unique_ptr<To> wrapper(layout_of(self));
    delete_tensor(static_cast<From*>(wrapper->owner));
  };
  return to;
}

}  // namespace

extern "C" {

rt_status* rt_dlpack_view(const DLManagedTensorVersioned* from, rt_tensor* view, int64_t* strides) {
  return guarded([&]() -> Status {
    RT_ASSIGN(const rt_dlpack* managed, known(from));
    if (!is_of_host(managed->tensor.device_type))
      return librt::unsupported("rt_dlpack_view: expected memory of the host, found DLPack device type ",
                                managed->tensor.device_type,
                                "; import it with rt_memory_from_dlpack, or copy it to the host");
    RT_ASSIGN(const Elements elements, read(managed->tensor, strides));
    rt_tensor out = RT_TENSOR_INIT;
    librt::api::fill(out, elements.info, elements.data);
    return librt::api::hand_out(out, view, "rt_tensor");
  });
}

rt_status* rt_memory_from_dlpack(rt_session* session, DLManagedTensorVersioned* from, rt_memory** memory,
                                 rt_tensor* tensor) {
  if (memory != nullptr) *memory = nullptr;
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  rt_tensor out = RT_TENSOR_INIT;
  rt_status* status = guarded(session, [&]() -> Status {
    if (memory == nullptr) return librt::invalid_argument("rt_memory_from_dlpack: a pointer is null");
    RT_TRY(librt::api::hand_out(out, tensor, "rt_tensor"));
    return import(session->session->devices(), from, options, out);
  });
  if (status == nullptr) status = rt_memory_create(session, &options, memory);
  if (status != nullptr) return status;
  out.memory = *memory;
  return guarded([&] { return librt::api::hand_out(out, tensor, "rt_tensor"); });
}

rt_status* rt_tensor_to_dlpack(const rt_tensor* tensor, int32_t read_only, void (*release)(void* user),
                               void* user, DLManagedTensorVersioned** to) {
  if (to != nullptr) *to = nullptr;
  return guarded([&]() -> Status {
    if (tensor == nullptr || to == nullptr)
      return librt::invalid_argument("rt_tensor_to_dlpack: a pointer is null");
    rt_tensor given;
    RT_TRY(librt::api::take_in(tensor, given, "rt_tensor"));
    RT_ASSIGN(const TensorInfo info, librt::api::info_of(given));
    auto made = std::make_unique<Exported>();
    rt_dlpack& managed = made->managed;
    rt_dlpack_tensor& out = managed.tensor;
    if (given.memory != nullptr) {
      RT_TRY(librt::api::check_memory_tensor(given, info.bytes()));
      RT_TRY(locate(*given.memory->memory, given.offset, info.bytes(), out));
      made->memory = given.memory->memory;
      read_only |= made->memory->read_only();
    } else {
      if (info.bytes() > given.bytes || (given.data == nullptr && info.bytes() > 0))
        return librt::invalid_argument("rt_tensor_to_dlpack: expected ", info.bytes(), " bytes, found ",
                                       given.data != nullptr ? given.bytes : 0);
      out.data = given.data;
      out.device_type = RT_DLPACK_CPU;
    }
    const ElementType type = kTypes[static_cast<size_t>(info.dtype)];
    out.ndim = info.shape.rank();
    out.code = type.code;
    out.bits = type.bits;
    out.lanes = 1;
    out.shape = made->shape;
    out.strides = made->strides;
    int64_t stride = 1;
    for (int i = out.ndim - 1; i >= 0; stride *= info.shape[i--]) {
      made->shape[i] = info.shape[i];
      made->strides[i] = stride;
    }
    made->release = release;
    made->user = user;
    managed.major = 1;
    managed.flags = read_only != 0 ? RT_DLPACK_READ_ONLY : 0;
    managed.owner = made.get();
    managed.deleter = [](DLManagedTensorVersioned* self) {
      const std::unique_ptr<Exported> exported(
          static_cast<Exported*>(reinterpret_cast<rt_dlpack*>(self)->owner));
      if (exported->release != nullptr) exported->release(exported->user);
    };
    *to = reinterpret_cast<DLManagedTensorVersioned*>(&made.release()->managed);
    return {};
  });
}

rt_status* rt_dlpack_from_unversioned(DLManagedTensor* from, DLManagedTensorVersioned** to) {
  return guarded([&]() -> Status {
    if (from == nullptr || to == nullptr)
      return librt::invalid_argument("rt_dlpack_from_unversioned: a pointer is null");
    auto* made = wrap<rt_dlpack>(from);
    made->major = 1;
    *to = reinterpret_cast<DLManagedTensorVersioned*>(made);
    return {};
  });
}

rt_status* rt_dlpack_to_unversioned(DLManagedTensorVersioned* from, DLManagedTensor** to) {
  return guarded([&]() -> Status {
    if (to == nullptr) return librt::invalid_argument("rt_dlpack_to_unversioned: a pointer is null");
    RT_ASSIGN(const rt_dlpack* managed, known(from));
    if ((managed->flags & RT_DLPACK_READ_ONLY) != 0)
      return librt::unsupported(
          "rt_dlpack_to_unversioned: the tensor is read-only, which DLPack before "
          "version 1 cannot say; copy it");
    *to = reinterpret_cast<DLManagedTensor*>(wrap<rt_dlpack_unversioned>(from));
    return {};
  });
}

}  // extern "C"
