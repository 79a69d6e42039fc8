// States and checkpoints of librt.Session.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/errors.h"
#include "python/src/session.h"
#include "rt/status.h"
#include "tools/weights/adapter.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

std::string path_of(nb::handle value) {
  const nb::object path = nb::steal(PyOS_FSPath(value.ptr()));
  if (!path.is_valid()) throw nb::python_error();
  const auto bytes = nb::borrow<nb::bytes>(nb::module_::import_("os").attr("fsencode")(path));
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

nb::object read(Session& self, const std::string& name) {
  const Turn turn(*self.turns());
  rt_tensor c = RT_TENSOR_INIT;
  check(rt_session_read_state(self.handle(), name.c_str(), &c));
  Tensor tensor(c);
  check(rt_session_read_state(self.handle(), name.c_str(), &tensor.handle()));
  return nb::cast(std::move(tensor));
}

void write(Session& self, const std::string& name, nb::handle value) {
  const Turn turn(*self.turns());
  rt_tensor declared = RT_TENSOR_INIT;
  check(rt_session_read_state(self.handle(), name.c_str(), &declared));
  Borrowed source;
  source.take(value, name.c_str(), declared.dtype);
  check(rt_session_write_state(self.handle(), name.c_str(), &source.tensor()));
}

void save(Session& self, nb::handle path, const std::vector<std::pair<std::string, std::string>>& notes) {
  const std::string file = path_of(path);
  const Turn turn(*self.turns());
  const nb::gil_scoped_release released;
  check(rt::Session::borrow(self.handle()).save_checkpoint(file, notes));
}

void load(Session& self, nb::handle path, rt_status* (*function)(rt_session*, const char*)) {
  const std::string file = path_of(path);
  const Turn turn(*self.turns());
  const nb::gil_scoped_release released;
  check(function(self.handle(), file.c_str()));
}

/// Of a checkpoint, an adapter, or a safetensors file.
rt_status* load_adapter_file(rt_session* session, const char* path) {
  const librt::Status status = librt::tools::load_adapter(session, path);
  return status.ok() ? nullptr
                     : rt_status_create(static_cast<rt_code>(status.code()), status.message().c_str());
}

}  // namespace

void bind_states(nb::class_<Session>& session) {
  session
      .def("read_state", read, nb::arg("name"), nb::sig("def read_state(self, name: str) -> Tensor"),
           "A copy of a state, by its name.")
      .def("write_state", write, nb::arg("name"), nb::arg("value"),
           nb::sig("def write_state(self, name: str, value: typing.Any) -> None"),
           "Copies an array of the state's element type and shape to the state.")
      .def(
          "reset_states",
          [](Session& self) {
            const Turn turn(*self.turns());
            check(rt_session_reset_states(self.handle()));
          },
          "Gives the states the model's initial values.")
      .def("save_checkpoint", save, nb::arg("path"),
           nb::arg("notes") = std::vector<std::pair<std::string, std::string>>(),
           nb::sig("def save_checkpoint(self, path: str | os.PathLike[str], notes: "
                   "collections.abc.Sequence[tuple[str, str]] = ()) -> None"),
           "Writes all states and pairs of texts to a file, which is replaced once the new one is complete; "
           "InvalidArgument if the file is a model.")
      .def(
          "load_checkpoint",
          [](Session& self, nb::handle path) { load(self, path, rt_session_load_checkpoint); },
          nb::arg("path"), nb::sig("def load_checkpoint(self, path: str | os.PathLike[str]) -> None"),
          "Restores all states; on error they are unchanged. Works across backends.")
      .def(
          "load_adapter", [](Session& self, nb::handle path) { load(self, path, load_adapter_file); },
          nb::arg("path"), nb::sig("def load_adapter(self, path: str | os.PathLike[str]) -> None"),
          "Loads only parameters and statistics, between two runs: of a checkpoint, or of an adapter in "
          "librt's format or as safetensors.")
      .def(
          "checkpoint_value",
          [](Session& self, const std::string& key) {
            const Turn turn(*self.turns());
            return rt::Session::borrow(self.handle()).checkpoint_value(key);
          },
          nb::arg("key"), nb::sig("def checkpoint_value(self, key: str) -> str | None"),
          "A text saved with the checkpoint that was loaded last.");
}

}  // namespace rt::python
