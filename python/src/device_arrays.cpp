#include "python/src/device_arrays.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "python/src/arrays.h"
#include "python/src/errors.h"
#include "python/src/session.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

/// NumPy's name of an element type, as the protocol spells it; null for bf16, which has none.
const char* typestr_of(rt_dtype dtype) noexcept {
  switch (dtype) {
    case RT_F32: return "<f4";
    case RT_F16: return "<f2";
    case RT_BF16: return nullptr;
    case RT_F64: return "<f8";
    case RT_I8: return "|i1";
    case RT_U8: return "|u1";
    case RT_I16: return "<i2";
    case RT_U16: return "<u2";
    case RT_I32: return "<i4";
    case RT_U32: return "<u4";
    case RT_I64: return "<i8";
    case RT_U64: return "<u8";
    case RT_BOOL: return "|b1";
  }
  return nullptr;
}

rt_dtype dtype_of_typestr(const std::string& typestr, const std::string& name) {
  for (int i = RT_F32; i <= RT_BOOL; ++i) {
    const char* known = typestr_of(static_cast<rt_dtype>(i));
    if (known != nullptr && (typestr == known || (typestr.size() == 3 && typestr.substr(1) == known + 1 &&
                                                  (typestr[0] == '|' || typestr[0] == '='))))
      return static_cast<rt_dtype>(i);
  }
  fail(Code::InvalidArgument, "input '" + name + "': __cuda_array_interface__ has elements of type '" +
                                  typestr + "'; expected one of librt's, such as '<f4'");
}

nb::object entry(const nb::dict& dict, const char* key) {
  return dict.contains(key) ? nb::object(dict[key]) : nb::none();
}

/// Whether strides in bytes are those of a dense, row-major array.
bool is_dense(const nb::object& strides, const rt_tensor& tensor) {
  if (strides.is_none()) return true;
  const nb::tuple given = nb::cast<nb::tuple>(strides);
  auto expected = static_cast<int64_t>(rt_dtype_size(tensor.dtype));
  for (int32_t i = tensor.rank; i-- > 0;) {
    if (tensor.dims[i] != 1 && nb::cast<int64_t>(given[static_cast<size_t>(i)]) != expected) return false;
    expected *= tensor.dims[i];
  }
  return true;
}

}  // namespace

DeviceTensor::DeviceTensor(MemoryPointer memory, const rt_tensor& tensor, std::shared_ptr<Turns> turns,
                           const std::string& backend)
    : memory_(std::move(memory)),
      tensor_(tensor),
      turns_(std::move(turns)),
      backend_(backend),
      forks_(forks()) {
  tensor_.memory = memory_.get();
  tensor_.data = nullptr;
}

// After a fork the memory is the parent's.
DeviceTensor::~DeviceTensor() {
  if (forks_ != forks()) (void)memory_.release();
}

void DeviceTensor::set_dims(const rt_tensor& written) noexcept {
  tensor_.rank = written.rank;
  std::memcpy(tensor_.dims, written.dims, sizeof written.dims);
  tensor_.bytes = bytes_of(tensor_);
}

nb::object DeviceTensor::to_host() const {
  if (forks_ != forks())
    fail(Code::InvalidArgument, "the tensor is of a device, and from before the process was forked");
  Tensor copy(tensor_);
  copy.handle().memory = nullptr;
  const Turn turn(*turns_);
  if (copy.handle().bytes > 0)
    check(rt_memory_read(memory_.get(), tensor_.offset, copy.handle().data, copy.handle().bytes));
  return nb::cast(std::move(copy));
}

nb::dict DeviceTensor::cuda_array_interface() const {
  const char* typestr = typestr_of(tensor_.dtype);
  const std::string problem = !backend_.starts_with("cuda")
                                  ? "the memory is of the backend " + backend_ + ", not CUDA's"
                              : typestr == nullptr ? "the protocol has no bf16"
                                                   : "";
  if (!problem.empty()) throw nb::attribute_error(("__cuda_array_interface__: " + problem).c_str());
  nb::dict all;
  all["shape"] = shape_of(tensor_);
  all["typestr"] = typestr;
  // Null for an array without elements, as the protocol wants it.
  const auto address = reinterpret_cast<uintptr_t>(rt_memory_pointer(memory_.get()));
  all["data"] = nb::make_tuple(bytes_of(tensor_) > 0 ? address : uintptr_t{0}, false);
  all["strides"] = nb::none();
  all["version"] = 3;
  all["stream"] = nb::none();  // the run that wrote it has ended
  return all;
}

void DeviceInput::release() noexcept {
  memory_.reset();
  owner_.reset();
  tensor_ = RT_TENSOR_INIT;
}

bool DeviceInput::take(nb::handle value, const std::string& name, rt_session* session) {
  release();
  if (PyObject_CheckBuffer(value.ptr()) != 0) return false;  // most are
  if (nb::isinstance<DeviceTensor>(value)) {
    owner_ = nb::borrow(value);
    tensor_ = nb::cast<DeviceTensor&>(value).handle();
    return true;
  }
  if (nb::isinstance<Tensor>(value) || !nb::hasattr(value, "__cuda_array_interface__")) return false;
  take_interface(value, name, session);
  return true;
}

void DeviceInput::take_interface(nb::handle value, const std::string& name, rt_session* session) {
  owner_ = nb::borrow(value);
  const auto wrong = [&](const std::string& what) {
    fail(Code::InvalidArgument, "input '" + name + "': __cuda_array_interface__ " + what);
  };
  const nb::dict given = nb::cast<nb::dict>(value.attr("__cuda_array_interface__"));
  for (const char* key : {"shape", "typestr", "data"})
    if (!given.contains(key)) wrong(std::string("has no '") + key + "'");
  tensor_.dtype = dtype_of_typestr(nb::cast<std::string>(given["typestr"]), name);
  const nb::tuple shape = nb::cast<nb::tuple>(given["shape"]);
  if (shape.size() > RT_MAX_RANK) wrong("has " + std::to_string(shape.size()) + " axes");
  tensor_.rank = static_cast<int32_t>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    tensor_.dims[i] = nb::cast<int64_t>(shape[i]);
    if (tensor_.dims[i] < 0) wrong("has a negative extent");
  }
  tensor_.bytes = bytes_of(tensor_);
  if (!entry(given, "mask").is_none()) wrong("has a mask; expected an array of all its elements");
  if (!is_dense(entry(given, "strides"), tensor_))
    wrong(
        "has strides; expected a dense, row-major array: make one, for example with "
        "cupy.ascontiguousarray()");
  // What writes the array has to be complete. librt's runs are on a stream of their own.
  if (const nb::object stream = entry(given, "stream"); !stream.is_none())
    nb::module_::import_("librt._arrays").attr("synchronize")(stream);
  if (tensor_.bytes == 0) return;  // nothing to read
  const auto pointer = nb::cast<uintptr_t>(nb::cast<nb::tuple>(given["data"])[0]);
  rt_memory_options options = RT_MEMORY_OPTIONS_INIT;
  options.kind = RT_MEMORY_CUDA;
  options.pointer = reinterpret_cast<void*>(pointer);
  options.bytes = tensor_.bytes;
  options.read_only = 1;
  rt_memory* memory = nullptr;
  if (rt_status* status = rt_memory_create(session, &options, &memory); status != nullptr) {
    const std::string message = rt_status_message(status);
    const auto code = static_cast<Code>(rt_status_code(status));
    rt_status_free(status);
    if (code == Code::Unsupported)
      fail(code,
           "input '" + name + "': " + nb::cast<std::string>(nb::str(value.type().attr("__name__"))) +
               " in the memory of a CUDA device: expected memory of the CPU, or a session on CUDA; copy it "
               "there first (" +
               message + ")");
    fail(code, "input '" + name + "': " + message);
  }
  memory_.reset(memory);
  tensor_.memory = memory;
}

void bind_device_arrays(nb::module_& module) {
  nb::class_<DeviceTensor>(
      module, "DeviceTensor",
      "A dense, row-major array in the memory of a device: what Session.run(.., on_device=True) returns.\n\n"
      "Of a CUDA device, CuPy, Numba, PyTorch and others take it without a copy by\n"
      "__cuda_array_interface__. It can be an input of sessions on the same device.")
      .def_prop_ro(
          "shape", [](const DeviceTensor& self) { return shape_of(self.handle()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Number of elements along each axis.")
      .def_prop_ro(
          "dtype", [](const DeviceTensor& self) { return rt_dtype_name(self.handle().dtype); },
          "Element type: 'f32', 'f16', 'bf16', 'f64', 'i8', ..., 'u64', 'bool'.")
      .def_prop_ro(
          "nbytes", [](const DeviceTensor& self) { return bytes_of(self.handle()); },
          "Bytes of all elements.")
      .def_prop_ro("backend", &DeviceTensor::backend, "Of the session: 'cuda', 'vulkan', 'cpu'.")
      .def_prop_ro("__cuda_array_interface__", &DeviceTensor::cuda_array_interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"),
                   "Version 3; no stream, since the run has ended. Only of a CUDA device.")
      .def("to_host", &DeviceTensor::to_host, nb::sig("def to_host(self) -> Tensor"),
           "A copy in the memory of the CPU.")
      .def(
          "numpy", [](const DeviceTensor& self) { return self.to_host().attr("numpy")(); },
          nb::sig("def numpy(self) -> numpy.ndarray"), "A copy as a NumPy array.")
      .def("__repr__", [](const DeviceTensor& self) {
        const rt_tensor& c = self.handle();
        std::string text = "librt.DeviceTensor(" + self.backend() + ", " + rt_dtype_name(c.dtype) + "[";
        for (int32_t i = 0; i < c.rank; ++i) text += (i > 0 ? "," : "") + std::to_string(c.dims[i]);
        return text + "])";
      });
}

}  // namespace rt::python
