#include "python/src/arrays.h"

#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>
#include <new>
#include <span>

#include "python/src/errors.h"
#include "python/src/tensor.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

/// The element type of a struct format of this machine's byte order.
std::optional<rt_dtype> dtype_of(const char* format, Py_ssize_t size) noexcept {
  if (format == nullptr) return size == 1 ? std::optional(RT_U8) : std::nullopt;
  constexpr char kNative = std::endian::native == std::endian::little ? '<' : '>';
  if (*format == '@' || *format == '=' || *format == kNative) ++format;
  if (*format == 0 || format[1] != 0) return std::nullopt;
  const auto sized = [&](rt_dtype one, rt_dtype two, rt_dtype four,
                         rt_dtype eight) -> std::optional<rt_dtype> {
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : eight;
  };
  switch (*format) {
    case 'f': return RT_F32;
    case 'd': return RT_F64;
    case 'e': return RT_F16;
    case '?': return RT_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': return sized(RT_I8, RT_I16, RT_I32, RT_I64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': return sized(RT_U8, RT_U16, RT_U32, RT_U64);
    default: return std::nullopt;
  }
}

/// Copies a tensor with strides in bytes, axis by axis before `last`; from there on `size` bytes are dense.
std::byte* gather(std::byte* to, const std::byte* from, const rt_tensor& tensor, const int64_t* strides,
                  int32_t axis, int32_t last, size_t size) noexcept {
  if (axis == last) {
    std::memcpy(to, from, size);
    return to + size;
  }
  for (int64_t i = 0; i < tensor.dims[axis]; ++i)
    to = gather(to, from + i * strides[axis], tensor, strides, axis + 1, last, size);
  return to;
}

/// Whether the sizes are ones that memory can have: broadcast arrays of other libraries may say any.
bool is_countable(const rt_tensor& tensor) noexcept {
  auto bytes = static_cast<int64_t>(rt_dtype_size(tensor.dtype));
  for (int32_t i = 0; i < tensor.rank; ++i)
    if (tensor.dims[i] < 0) return false;
  for (int32_t i = 0; i < tensor.rank; ++i)
    if (tensor.dims[i] == 0) return true;
  for (int32_t i = 0; i < tensor.rank; ++i)
    if (__builtin_mul_overflow(bytes, tensor.dims[i], &bytes)) return false;
  return true;
}

std::string text_of_dims(const rt_tensor& tensor) {
  std::string text = std::string(rt_dtype_name(tensor.dtype)) + "[";
  for (int32_t i = 0; i < tensor.rank; ++i) text += (i > 0 ? "," : "") + std::to_string(tensor.dims[i]);
  return text + "]";
}

/// Copies of fewer bytes do not give up the interpreter's lock.
constexpr size_t kLongCopy = size_t{1} << 20;

std::string with_type(const char* name, nb::handle value) {
  return std::string(name) + ": " + nb::cast<std::string>(nb::str(value.type().attr("__name__")));
}

}  // namespace

rt_dtype dtype_named(const std::string& name) {
  std::string names;
  for (int i = RT_F32; i <= RT_BOOL; ++i) {
    const auto dtype = static_cast<rt_dtype>(i);
    if (name == rt_dtype_name(dtype)) return dtype;
    names += (names.empty() ? "" : ", ") + std::string(rt_dtype_name(dtype));
  }
  fail(Code::InvalidArgument, "dtype: expected one of " + names + ", found '" + name + "'");
}

void Borrowed::release() noexcept {
  if (has_view_) PyBuffer_Release(&view_);
  has_view_ = false;
  owner_.reset();
  dlpack_.reset();
  copy_.reset();
}

void Borrowed::take(nb::handle value, const char* name, std::optional<rt_dtype> wanted) {
  release();
  if (take_buffer(value.ptr(), name)) return;
  if (nb::isinstance<Tensor>(value)) {
    owner_ = nb::borrow(value);
    tensor_ = nb::cast<Tensor&>(value).handle();
  } else if (nb::hasattr(value, "__dlpack_device__") && !nb::hasattr(value, "__array_interface__")) {
    take_dlpack(value, name);
  } else {
    take_slowly(value, name, wanted);
  }
}

bool Borrowed::take_buffer(PyObject* value, const char* name) {
  if (PyObject_CheckBuffer(value) == 0) return false;
  if (PyObject_GetBuffer(value, &view_, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // other protocols are tried, and say what is wrong
    return false;
  }
  has_view_ = true;
  const auto dtype = dtype_of(view_.format, view_.itemsize);
  if (!dtype || view_.ndim > RT_MAX_RANK || view_.suboffsets != nullptr) {
    release();
    return false;
  }
  tensor_.dtype = *dtype;
  tensor_.rank = view_.ndim;
  int64_t strides[RT_MAX_RANK];
  for (int32_t i = 0; i < view_.ndim; ++i) {
    tensor_.dims[i] = view_.shape[i];
    strides[i] = view_.strides[i];
  }
  set_data(view_.buf, strides, name);
  return true;
}

void Borrowed::set_data(const void* data, const int64_t* strides, const char* name) {
  if (!is_countable(tensor_))
    fail(Code::InvalidArgument,
         std::string(name) + ": expected an array that fits in memory, found " + text_of_dims(tensor_));
  tensor_.bytes = bytes_of(tensor_);
  tensor_.data = const_cast<void*>(data);  // inputs are only read
  if (tensor_.bytes == 0) return;
  int32_t last = tensor_.rank;  // the axes from here on are dense
  auto size = static_cast<int64_t>(rt_dtype_size(tensor_.dtype));
  while (last > 0 && (tensor_.dims[last - 1] == 1 || strides[last - 1] == size)) size *= tensor_.dims[--last];
  if (last == 0) return;
  copy_.reset(new (std::nothrow) std::byte[tensor_.bytes]);
  if (copy_ == nullptr)
    fail(Code::OutOfMemory, std::string(name) + ": no memory for a dense copy of " + text_of_dims(tensor_) +
                                ", whose elements are not adjacent");
  const auto copy = [&] {
    gather(copy_.get(), static_cast<const std::byte*>(data), tensor_, strides, 0, last,
           static_cast<size_t>(size));
  };
  if (tensor_.bytes < kLongCopy) {
    copy();
  } else {
    const nb::gil_scoped_release released;
    copy();
  }
  tensor_.data = copy_.get();
}

void Borrowed::take_dlpack(nb::handle value, const char* name) {
  const nb::object device = value.attr("__dlpack_device__")();
  int type = 0;
  if (!nb::isinstance<nb::tuple>(device) || nb::len(device) != 2 || !nb::try_cast(device[0], type))
    throw nb::type_error(
        (with_type(name, value) + ": expected (device type, device) of its __dlpack_device__()").c_str());
  if (type != RT_DLPACK_CPU && type != RT_DLPACK_CUDA_HOST)
    fail(Code::Unsupported,
         with_type(name, value) + " in the memory of a device (DLPack device type " + std::to_string(type) +
             "): expected memory of the CPU; copy it there first, for example with .cpu()");
  // PyTorch exports the memory of a negated view (x.conj().imag) as it is, without the sign.
  nb::object exporter = nb::borrow(value);
  if (nb::hasattr(value, "resolve_neg")) exporter = value.attr("resolve_neg")();
  nb::object capsule;
  try {
    capsule = exporter.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = exporter.attr("__dlpack__")();  // before version 1 of the protocol
  }
  dlpack_ = taken_from(capsule);
  if (dlpack_ == nullptr)
    fail(Code::InvalidArgument, with_type(name, value) + " returned no DLPack capsule that can be read");
  int64_t strides[RT_MAX_RANK];
  if (const auto status = Status::take(rt_dlpack_view(dlpack_.get(), &tensor_, strides)); !status)
    fail(status.code(), with_type(name, value) + ": " + status.message());
  for (int64_t& stride : std::span(strides).first(static_cast<size_t>(tensor_.rank)))
    stride *= static_cast<int64_t>(rt_dtype_size(tensor_.dtype));
  set_data(tensor_.data, strides, name);
}

void Borrowed::take_slowly(nb::handle value, const char* name, std::optional<rt_dtype> wanted) {
  const nb::object helper = nb::module_::import_("librt._arrays").attr("to_buffer");
  const nb::object dtype = wanted ? nb::object(nb::str(rt_dtype_name(*wanted))) : nb::none();
  const nb::tuple made = nb::cast<nb::tuple>(helper(value, name, dtype));
  if (!take_buffer(made[0].ptr(), name))
    fail(Code::InvalidArgument, with_type(name, value) + " cannot be read as an array of at most " +
                                    std::to_string(RT_MAX_RANK) + " axes");
  if (!made[1].is_none()) tensor_.dtype = dtype_named(nb::cast<std::string>(made[1]));
}

}  // namespace rt::python
