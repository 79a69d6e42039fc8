// The native part of librt.Trainer: steps, and sessions that share the trained states. The loop is Python.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/errors.h"
#include "python/src/session.h"
#include "tools/data/schedule.h"
#include "tools/rttrain/order.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

using librt::tools::Schedule;

class Steps {
 public:
  Steps(nb::handle source, const nb::kwargs& keywords) {
    nb::object keep;
    const Model& model = model_of(source, keep);
    SessionOptions options = options_of(keywords, "Trainer");
    operators_ = CustomOperators::of(keywords);
    const std::vector<rt_custom_operator> handles = CustomOperators::handles(operators_);
    options.custom_operators = handles;
    const Sharing sharing(keywords);
    rt_session_options c = rt::Session::to_c(options);
    c.share_states_with = sharing.session;
    rt_trainer* trainer = nullptr;
    rt_status* status = nullptr;
    {
      const Turn turn(*sharing.turns);
      const nb::gil_scoped_release released;
      status = rt_trainer_create(model.handle.get(), &c, &trainer);
    }
    check(status);
    trainer_ = {trainer, rt_trainer_free};
    model_ = model.handle;
    turns_ = sharing.turns;
    session_object_ =
        nb::cast(std::make_shared<Session>(rt_trainer_session(trainer), false, turns_, trainer_, operators_));
    session_ = nb::cast<Session*>(session_object_);
    for (size_t i = 0; i < session_->inputs().size(); ++i)
      if (session_->inputs()[i].name == "learning_rate") learning_rate_ = i;
  }

  const nb::object& session() const noexcept { return session_object_; }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(operators_.ptr());
    Py_VISIT(session_object_.ptr());
    return 0;
  }

  double step(nb::handle inputs, double learning_rate) {
    if (!PyDict_Check(inputs.ptr()))
      throw nb::type_error("a step's inputs: expected a dict of arrays by name");
    const Turn turn(*turns_);
    struct Cleanup {
      Session& session;
      ~Cleanup() { session.release_inputs(); }
    } const cleanup{*session_};
    session_->set_inputs(inputs, learning_rate_);
    if (learning_rate_ != SIZE_MAX)
      check(rt_trainer_set_learning_rate(trainer_.get(), static_cast<float>(learning_rate)));
    struct Step {
      rt_trainer* trainer;
      float loss = 0;
    } work{trainer_.get()};
    session_->run_timed(
        [](void* argument) {
          auto& one = *static_cast<Step*>(argument);
          return rt_trainer_step(one.trainer, &one.loss);
        },
        &work);
    ++count_;
    return static_cast<double>(work.loss);
  }

  uint64_t count() const noexcept { return count_; }

  std::shared_ptr<Session> open(const std::string& entry) {
    const Turn turn(*turns_);
    rt_session* handle = nullptr;
    check(rt_trainer_open(trainer_.get(), entry.c_str(), &handle));
    return std::make_shared<Session>(handle, true, turns_, trainer_, operators_);
  }

 private:
  std::shared_ptr<rt_model> model_;
  nb::object operators_;  ///< CustomOperators or None; outlive what calls them
  std::shared_ptr<rt_trainer> trainer_;
  std::shared_ptr<Turns> turns_;
  nb::object session_object_;
  Session* session_ = nullptr;       ///< in session_object_
  size_t learning_rate_ = SIZE_MAX;  ///< index of the input; SIZE_MAX: the model has none
  uint64_t count_ = 0;
};

Schedule parse(const std::string& text, uint64_t steps) {
  std::string error;
  auto schedule = Schedule::parse(text, error);
  if (!schedule) fail(Code::InvalidArgument, error);
  if (std::string problem = schedule->set_length(steps); !problem.empty())
    fail(Code::InvalidArgument, "schedule: " + problem);
  return *schedule;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Steps>(self)->traverse(visit, arg) : 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {0, nullptr}};

}  // namespace

void bind_trainer(nb::module_& module) {
  nb::class_<Steps>(module, "Steps", nb::type_slots(kSlots), "The native part of librt.Trainer.")
      .def(
          "__init__",
          [](Steps* self, nb::handle model, const nb::kwargs& keywords) {
            new (self) Steps(model, keywords);
          },
          nb::arg("model"), nb::arg("options"),
          nb::sig(
              "def __init__(self, model: Model | str | os.PathLike[str] | bytes, *, "
              "entry: str | None = None, share_states_with: Session | None = None, " RT_PYTHON_SESSION_OPTIONS
              ") -> None"))
      .def_prop_ro("session", &Steps::session, "The session on train_step.")
      .def_prop_ro("count", &Steps::count, "Steps taken by this object.")
      .def("step", &Steps::step, nb::arg("inputs"), nb::arg("learning_rate"),
           nb::sig("def step(self, inputs: dict[str, typing.Any], learning_rate: float) -> float"),
           "One step on a batch; returns the loss.")
      .def("open", &Steps::open, nb::arg("entry"),
           "A session on another entry that shares the trained states.");

  nb::class_<Schedule>(module, "Schedule",
                       "A learning rate schedule: from the step to a factor of the base rate.")
      .def(
          "__init__",
          [](Schedule* self, const std::string& text, uint64_t steps) {
            new (self) Schedule(parse(text, steps));
          },
          nb::arg("text"), nb::arg("steps"),
          "text: as `rttrain --schedule` takes it: 'constant', 'step,every=30,gamma=0.1', 'linear', "
          "'cosine',\n"
          "'one_cycle', with 'warmup=100' and others. steps: the length of the training.")
      .def("learning_rate", &Schedule::learning_rate, nb::arg("base"), nb::arg("step"),
           "The rate of step 0, 1, ...")
      .def_prop_ro(
          "text", [](const Schedule& self) { return self.text(); }, "The schedule as a text.");

  module.def(
      "epoch_order",
      [](size_t size, uint64_t seed, uint64_t epoch, bool shuffle) {
        return rt::train::epoch_order(size, seed, epoch, shuffle);
      },
      nb::arg("size"), nb::arg("seed"), nb::arg("epoch"), nb::arg("shuffle") = true,
      "The order in which rttrain takes the samples of an epoch.");
}

}  // namespace rt::python
