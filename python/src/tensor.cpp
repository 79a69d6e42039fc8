#include "python/src/tensor.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "python/src/arrays.h"
#include "python/src/errors.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

/// Large results that nothing refers to any more, for the next ones. The system gives new memory of this size
/// with a page fault for each 4 KiB: a Relu of 16 MiB took 9 ms, and takes 1.2 in memory used before.
class KeptResults {
 public:
  /// Of at least `bytes`, and its size; null: there is none. Who does not get the lock does without, so that
  /// a process forked meanwhile is not stuck.
  std::pair<std::byte*, size_t> take(size_t bytes) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (bytes < kLeast || !lock) return {};
    for (auto& [memory, size] : blocks_)
      if (memory != nullptr && size >= bytes && size / 2 <= bytes) {
        kept_ -= size;
        return {std::exchange(memory, nullptr), size};
      }
    return {};
  }
  /// Whether it was kept; the oldest ones are freed for it.
  bool keep(std::byte* memory, size_t size) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (size < kLeast || size > kMost || !lock) return false;
    while (blocks_[next_].first != nullptr || kept_ + size > kMost) free_next();
    blocks_[next_] = {memory, size};
    next_ = (next_ + 1) % std::size(blocks_);
    kept_ += size;
    return true;
  }
  void clear() noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    for (size_t i = 0; lock && i < std::size(blocks_); ++i) free_next();
  }

 private:
  static constexpr size_t kLeast = size_t{1} << 20, kMost = size_t{1} << 30;

  void free_next() noexcept {
    auto& [memory, size] = blocks_[next_];
    ::operator delete (memory, std::align_val_t{64});
    if (memory != nullptr) kept_ -= size;
    memory = nullptr;
    next_ = (next_ + 1) % std::size(blocks_);
  }

  std::mutex mutex_;
  std::pair<std::byte*, size_t> blocks_[8]{};
  size_t next_ = 0, kept_ = 0;
};
KeptResults& kept_results() {
  static auto* const all = new KeptResults;  // results may outlive everything else
  return *all;
}

/// The struct module's letter of an element type; NULL: it has none.
const char* format_of(rt_dtype dtype) noexcept {
  switch (dtype) {
    case RT_F32: return "f";
    case RT_F16: return "e";
    case RT_BF16: return nullptr;
    case RT_F64: return "d";
    case RT_I8: return "b";
    case RT_U8: return "B";
    case RT_I16: return "h";
    case RT_U16: return "H";
    case RT_I32: return "i";
    case RT_U32: return "I";
    case RT_I64: return "q";
    case RT_U64: return "Q";
    case RT_BOOL: return "?";
  }
  return nullptr;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  rt_tensor& c = tensor.handle();
  const char* format = format_of(c.dtype);
  view->obj = nullptr;
  if (format == nullptr) {
    PyErr_SetString(PyExc_BufferError, "bf16 has no format in the buffer protocol; use DLPack or numpy()");
    return -1;
  }
  auto* const numbers = static_cast<Py_ssize_t*>(PyMem_Malloc(sizeof(Py_ssize_t) * 2 * RT_MAX_RANK));
  if (numbers == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  auto stride = static_cast<Py_ssize_t>(rt_dtype_size(c.dtype));
  view->itemsize = stride;
  for (int32_t i = c.rank - 1; i >= 0; --i) {
    numbers[i] = static_cast<Py_ssize_t>(c.dims[i]);
    numbers[RT_MAX_RANK + i] = stride;
    stride *= numbers[i];
  }
  view->buf = c.data;
  view->len = static_cast<Py_ssize_t>(bytes_of(c));
  view->readonly = 0;
  view->ndim = c.rank;
  view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = (flags & PyBUF_ND) == PyBUF_ND ? numbers : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? numbers + RT_MAX_RANK : nullptr;
  view->suboffsets = nullptr;
  view->internal = numbers;
  view->obj = Py_NewRef(self);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  PyMem_Free(view->internal);
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                        {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                        {0, nullptr}};

nb::object dlpack(nb::handle self, const nb::kwargs& options) {
  Tensor& tensor = nb::cast<Tensor&>(self);
  nb::object owner = nb::borrow(self);
  nb::dict rest;
  for (auto [key, value] : options) {
    const bool is_copy = nb::cast<std::string>(key) == "copy";
    if (is_copy && nb::isinstance<nb::bool_>(value) && nb::cast<bool>(value))
      owner = nb::cast(Tensor::copy(tensor.handle()));
    else if (!is_copy)
      rest[key] = value;
  }
  return capsule_of(owner, nb::cast<Tensor&>(owner).handle(), rest);
}

std::string repr(const Tensor& tensor) {
  const rt_tensor& c = tensor.handle();
  std::string text = "librt.Tensor(" + std::string(rt_dtype_name(c.dtype)) + "[";
  for (int32_t i = 0; i < c.rank; ++i) text += (i > 0 ? "," : "") + std::to_string(c.dims[i]);
  return text + "])";
}

/// A librt.Tensor of anything that can be an input: a copy.
void make(Tensor* self, nb::handle value, const nb::object& dtype) {
  Borrowed source;
  const bool given = !dtype.is_none();
  source.take(value, "Tensor",
              given ? std::optional(dtype_named(nb::cast<std::string>(dtype))) : std::nullopt);
  if (given && source.tensor().dtype != dtype_named(nb::cast<std::string>(dtype)))
    fail(Code::InvalidArgument, "Tensor: expected " + nb::cast<std::string>(dtype) + ", found " +
                                    rt_dtype_name(source.tensor().dtype));
  new (self) Tensor(Tensor::copy(source.tensor()));
}

}  // namespace

size_t bytes_of(const rt_tensor& tensor) noexcept {
  size_t bytes = rt_dtype_size(tensor.dtype);
  for (int32_t i = 0; i < tensor.rank; ++i) bytes *= static_cast<size_t>(tensor.dims[i]);
  return bytes;
}

nb::tuple shape_of(const rt_tensor& tensor) {
  const nb::object shape = nb::steal(PyTuple_New(tensor.rank));
  for (int32_t i = 0; i < tensor.rank; ++i)
    PyTuple_SetItem(shape.ptr(), i, PyLong_FromLongLong(tensor.dims[i]));
  return nb::borrow<nb::tuple>(shape);
}

void free_kept_results() noexcept {
  kept_results().clear();
}

void Tensor::Free::operator()(std::byte* bytes) const noexcept {
  if (!kept_results().keep(bytes, capacity)) ::operator delete (bytes, std::align_val_t{64});
}

Tensor::Tensor(const rt_tensor& tensor) : tensor_(tensor) {
  tensor_.bytes = bytes_of(tensor);
  auto [memory, capacity] = kept_results().take(tensor_.bytes);
  if (memory == nullptr) {
    capacity = tensor_.bytes > 0 ? tensor_.bytes : 1;
    memory = static_cast<std::byte*>(::operator new (capacity, std::align_val_t{64}));
  }
  memory_ = {memory, Free{capacity}};
  tensor_.data = memory;
}

Tensor Tensor::copy(const rt_tensor& tensor) {
  Tensor made(tensor);
  if (made.tensor_.bytes > 0) std::memcpy(made.tensor_.data, tensor.data, made.tensor_.bytes);
  return made;
}

size_t Tensor::elements() const noexcept {
  return tensor_.bytes / rt_dtype_size(tensor_.dtype);
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(
      module, "Tensor", nb::type_slots(kSlots),
      "A dense, row-major array in memory of its own: what runs return.\n\n"
      "NumPy, PyTorch and others take it without a copy (buffer protocol, __dlpack__), and the\n"
      "memory lives as long as anything that refers to it.")
      .def("__init__", make, nb::arg("value").none(), nb::arg("dtype") = nb::none(),
           nb::sig("def __init__(self, value: typing.Any, dtype: str | None = None) -> None"),
           "A copy of an array, a list or a number. dtype: the element type of a list, 'f32' if not given.")
      .def_prop_ro(
          "shape", [](const Tensor& self) { return shape_of(self.handle()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Number of elements along each axis.")
      .def_prop_ro(
          "ndim", [](const Tensor& self) { return self.handle().rank; }, "Number of axes.")
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return rt_dtype_name(self.handle().dtype); },
          "Element type: 'f32', 'f16', 'bf16', 'f64', 'i8', ..., 'u64', 'bool'.")
      .def_prop_ro("size", &Tensor::elements, "Number of elements.")
      .def_prop_ro(
          "nbytes", [](const Tensor& self) { return self.handle().bytes; }, "Bytes of all elements.")
      .def("__dlpack__", dlpack,
           nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | None = "
                   "None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"),
           "The memory as a DLPack capsule, without a copy unless copy=True.")
      .def(
          "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(int{RT_DLPACK_CPU}, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"), "(1, 0): memory of the CPU.")
      .def(
          "__array__",
          [](nb::handle self, const nb::object& dtype, const nb::object& copy) {
            return nb::module_::import_("librt._arrays").attr("to_numpy")(self, dtype, copy);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> numpy.ndarray"),
          "What numpy.asarray() calls for bf16, which needs the package ml_dtypes.")
      .def(
          "numpy",
          [](nb::handle self) { return nb::module_::import_("librt._arrays").attr("to_numpy")(self); },
          nb::sig("def numpy(self) -> numpy.ndarray"), "A NumPy array of the same memory.")
      .def(
          "_bits",
          [](nb::handle self) {
            const rt_tensor& c = nb::cast<Tensor&>(self).handle();
            size_t shape[RT_MAX_RANK] = {};
            for (int32_t i = 0; i < c.rank; ++i) shape[i] = static_cast<size_t>(c.dims[i]);
            return nb::ndarray<nb::numpy, uint16_t>(c.data, static_cast<size_t>(c.rank), shape, self);
          },
          nb::sig("def _bits(self) -> numpy.ndarray"), "The memory of a bf16 tensor as 16-bit integers.")
      .def(
          "tolist", [](nb::handle self) { return self.attr("numpy")().attr("tolist")(); },
          nb::sig("def tolist(self) -> typing.Any"), "Nested lists of Python numbers.")
      .def(
          "item", [](nb::handle self) { return self.attr("numpy")().attr("item")(); },
          nb::sig("def item(self) -> int | float | bool"), "The only element, as a Python number.")
      .def("__len__",
           [](const Tensor& self) {
             if (self.handle().rank == 0) throw nb::type_error("len() of a tensor without axes");
             return self.handle().dims[0];
           })
      .def("__float__", [](nb::handle self) { return nb::float_(self.attr("item")()); })
      .def("__int__", [](nb::handle self) { return nb::int_(self.attr("item")()); })
      .def("__repr__", repr);
}

}  // namespace rt::python
