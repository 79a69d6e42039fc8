// The class librt.Session, as Python sees it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/src/errors.h"
#include "python/src/session.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

void create(Session* self, nb::handle source, const nb::kwargs& keywords) {
  nb::object keep;
  const Model& model = model_of(source, keep);
  SessionOptions options = options_of(keywords, "Session");
  nb::object operators = CustomOperators::of(keywords);
  const std::vector<rt_custom_operator> handles = CustomOperators::handles(operators);
  options.custom_operators = handles;
  Sharing sharing(keywords);
  rt_session_options c = rt::Session::to_c(options);
  c.share_states_with = sharing.session;
  rt_session* handle = nullptr;
  rt_status* status = nullptr;
  {
    const Turn turn(*sharing.turns);
    const nb::gil_scoped_release released;
    status = rt_session_create(model.handle.get(), &c, &handle);
  }
  check(status);
  new (self) Session(handle, true, std::move(sharing.turns), model.handle, std::move(operators));
}

std::string plan(Session& self) {
  const Turn turn(*self.turns());
  const char* text = nullptr;
  check(rt_session_plan_text(self.handle(), &text));
  return text;
}

nb::dict memory(Session& self) {
  const Turn turn(*self.turns());
  rt_memory_stats stats = RT_MEMORY_STATS_INIT;
  check(rt_session_memory(self.handle(), &stats));
  nb::dict all;
  const std::pair<const char*, uint64_t> fields[] = {{"states", stats.states},
                                                     {"weights", stats.weights},
                                                     {"packed", stats.packed},
                                                     {"arena", stats.arena},
                                                     {"peak_planned", stats.peak_planned},
                                                     {"naive", stats.naive},
                                                     {"staging", stats.staging},
                                                     {"plans", stats.plans}};
  for (const auto& [name, value] : fields) all[name] = value;
  return all;
}

nb::list profile(Session& self) {
  const Turn turn(*self.turns());
  nb::list all;
  for (const rt_profile_entry& entry : rt::Session::borrow(self.handle()).profile()) {
    nb::dict row;
    row["name"] = entry.name;
    row["op"] = entry.op;
    row["kernel"] = entry.kernel;
    row["device"] = entry.device;
    row["seconds"] = static_cast<double>(entry.nanoseconds) * 1e-9;
    row["flops"] = entry.flops;
    row["bytes"] = entry.bytes;
    all.append(row);
  }
  return all;
}

std::string repr(const Session& self) {
  if (self.is_closed()) return "librt.Session(closed)";
  const DeviceInfo device = rt::Session::borrow(self.handle()).device();
  std::string text = "librt.Session(" + device.backend;
  for (const TensorSpec& spec : self.inputs()) text += ", " + spec.name + " " + text_of(spec);
  text += " ->";
  for (const TensorSpec& spec : self.outputs()) text += " " + spec.name + " " + text_of(spec);
  return text + ")";
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<Session>(self)->operators().ptr());
  return 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {0, nullptr}};

}  // namespace

void bind_session(nb::module_& module) {
  nb::class_<Session> session(module, "Session", nb::type_slots(kSlots),
                              "One entry of a model, prepared for one device.\n\n"
                              "    session = librt.Session('digits.rt', backend='cpu')\n"
                              "    scores = session(image=pixels)['scores']\n\n"
                              "Any number of threads may call it: they take turns. The interpreter's lock is "
                              "released while it runs.");
  session
      .def(
          "__init__", create, nb::arg("model"), nb::arg("options"),
          nb::sig("def __init__(self, model: Model | str | os.PathLike[str] | bytes, *, entry: str | None = "
                  "None, share_states_with: Session | None = None, " RT_PYTHON_SESSION_OPTIONS ") -> None"),
          "Opens a device and prepares an entry of the model.\n\n"
          "backend: 'cpu', 'vulkan', 'cuda', 'reference' (slow, exact), or 'auto', the fastest by "
          "prediction.\n"
          "device: index, part of its name, or UUID. entry: None is 'infer', or the model's only one.\n"
          "precision: of matmuls and convolutions: 'fp32', 'tf32', 'fp16', 'bf16'; None: as in the file.\n"
          "threads: of the CPU; 0: as many as allowed. strict: nodes that the device does not support are "
          "an\n"
          "error. profile: time every node. deterministic: the same results from run to run. tuning: time\n"
          "kernels when a plan is built, for tuning_ms. memory_limit, plan_cache_bytes: in bytes.\n"
          "loop_limit: iterations of all loops of a run. time_limit: seconds of a run. prefer: what 'auto'\n"
          "minimizes: 'latency', 'throughput', 'energy'. no_replay: a GPU's work is launched anew in each\n"
          "run. custom_operators: functions for operators of the application, by 'DOMAIN:OPERATOR': called "
          "with\n"
          "a librt.Tensor (None: left out) for each input and the node's attributes as keywords, it returns\n"
          "an array of the result's type and shape, or a tuple of them. share_states_with: a session of the\n"
          "same model.")
      .def("run", &Session::run, nb::arg("inputs"), nb::kw_only(), nb::arg("on_device") = false,
           nb::sig("def run(self, inputs: collections.abc.Mapping[str, typing.Any], *, on_device: bool = "
                   "False) -> "
                   "dict[str, typing.Any]"),
           "Runs once: from arrays to tensors, both by name.\n\n"
           "An input is anything with the buffer protocol, __dlpack__ or __array_interface__ in the memory "
           "of\n"
           "the CPU, of the declared element type and shape, or a list of numbers. It may have any strides.\n"
           "Dense memory of 64 KiB or more is read in place. A session on CUDA reads arrays with\n"
           "__cuda_array_interface__ (CuPy, Numba, PyTorch) where they are. on_device: the outputs are\n"
           "librt.DeviceTensor, in memory of the session's device.")
      .def("__call__", &Session::call, nb::arg("inputs"), nb::arg("named"),
           nb::sig("def __call__(self, *inputs: typing.Any, **named: typing.Any) -> dict[str, Tensor]"),
           "run() with inputs by position, in the model's order, or by name.")
      .def(
          "cancel", [](const Session& self) { rt_session_cancel(self.handle()); },
          "Stops the run in progress, or the next one, which raises librt.Cancelled. From any thread.")
      .def("_time_runs", &Session::time_runs, nb::arg("inputs"), nb::arg("count"),
           nb::sig("def _time_runs(self, inputs: dict[str, typing.Any], count: int) -> float"),
           "Seconds of so many runs without Python: what python -m librt.bench compares with.")
      .def("close", &Session::close,
           "Frees its memory and its device, after the run in progress. Later runs raise "
           "librt.InvalidArgument;\n"
           "tensors that it returned stay. `with librt.Session(...) as session:` closes it at the end.")
      .def_prop_ro("closed", &Session::is_closed, "Whether close() was called.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> Session"))
      .def(
          "__exit__", [](Session& self, const nb::args&) { self.close(); }, nb::arg("error"),
          nb::sig("def __exit__(self, *error: typing.Any) -> None"))
      .def_prop_ro(
          "inputs", [](const Session& self) { return dict_of(self.inputs()); },
          nb::sig("def inputs(self) -> dict[str, TensorSpec]"), "The declared inputs by name.")
      .def_prop_ro(
          "outputs", [](const Session& self) { return dict_of(self.outputs()); },
          nb::sig("def outputs(self) -> dict[str, TensorSpec]"), "The declared outputs by name.")
      .def_prop_ro(
          "device", [](const Session& self) { return rt::Session::borrow(self.handle()).device(); },
          "What it runs on.")
      .def_prop_ro(
          "device_reason",
          [](Session& self) {
            const Turn turn(*self.turns());
            return rt::Session::borrow(self.handle()).device_reason();
          },
          "Why this device was chosen.")
      .def_prop_ro("plan", plan, "Every node with kernel, device and shapes; '' before the first run.")
      .def_prop_ro(
          "fallback_count",
          [](Session& self) {
            const Turn turn(*self.turns());
            return rt_session_fallback_count(self.handle());
          },
          "Nodes that the device does not support and another one runs.")
      .def_prop_ro("memory", memory, nb::sig("def memory(self) -> dict[str, int]"),
                   "Bytes that it uses now, by purpose, and the number of plans.")
      .def("profile", profile, nb::sig("def profile(self) -> list[dict[str, typing.Any]]"),
           "With the option profile: nodes in order, with the seconds of all runs, and the operations and "
           "bytes\n"
           "of one.")
      .def("__repr__", repr);
  bind_states(session);
}

}  // namespace rt::python
