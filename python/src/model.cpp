#include "python/src/model.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/errors.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

std::shared_ptr<rt_model> adopt(rt_model* model) {
  return {model, rt_model_free};
}

Model load_file(const std::string& path, bool copy, bool skip_checksums) {
  rt_model_options options = RT_MODEL_OPTIONS_INIT;
  options.copy = copy;
  options.skip_checksums = skip_checksums;
  rt_model* model = nullptr;
  rt_status* status = nullptr;
  {
    const nb::gil_scoped_release released;
    status = rt_model_load_with(path.c_str(), &options, &model);
  }
  check(status);
  return {adopt(model), path, nb::none(), nb::none()};
}

Model load_bytes(const nb::bytes& bytes, bool skip_checksums) {
  rt_model_options options = RT_MODEL_OPTIONS_INIT;
  options.copy = 1;  // Python's bytes are not aligned
  options.skip_checksums = skip_checksums;
  rt_model* model = nullptr;
  rt_status* status = nullptr;
  {
    const nb::gil_scoped_release released;
    status = rt_model_load_from_memory_with(bytes.data(), bytes.size(), &options, &model);
  }
  check(status);
  return {adopt(model), {}, bytes, nb::none()};
}

Model load(nb::handle source, bool copy, bool skip_checksums) {
  if (nb::isinstance<nb::bytes>(source)) return load_bytes(nb::borrow<nb::bytes>(source), skip_checksums);
  if (PyObject_CheckBuffer(source.ptr()) != 0) {  // bytearray, memoryview, mmap
    const nb::object bytes = nb::steal(PyBytes_FromObject(source.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    return load_bytes(nb::borrow<nb::bytes>(bytes), skip_checksums);
  }
  const nb::object path = nb::steal(PyOS_FSPath(source.ptr()));
  if (!path.is_valid()) throw nb::python_error();
  const nb::object encoded = nb::module_::import_("os").attr("fsencode")(path);
  const auto bytes = nb::borrow<nb::bytes>(encoded);
  const std::string name(static_cast<const char*>(bytes.data()), bytes.size());
  if (name.find('\0') != name.npos) throw nb::value_error("the path holds a null byte");
  return load_file(name, copy, skip_checksums);
}

std::vector<TensorSpec> specs(const Model& model, const std::optional<std::string>& entry,
                              size_t (*count)(const rt_model*, const char*),
                              rt_status* (*get)(const rt_model*, const char*, size_t, rt_tensor_spec*)) {
  const char* name = entry ? entry->c_str() : nullptr;
  std::vector<TensorSpec> all;
  for (size_t i = 0; i < count(model.handle.get(), name); ++i) {
    rt_tensor_spec c = RT_TENSOR_SPEC_INIT;
    check(get(model.handle.get(), name, i, &c));
    all.push_back(TensorSpec::from(c));
  }
  return all;
}

std::vector<std::string> entries(const Model& model) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rt_model_entry_count(model.handle.get()); ++i)
    names.emplace_back(rt_model_entry_name(model.handle.get(), i));
  return names;
}

/// Of the entry, which must exist: the C API says 0 for another.
void check_entry(const Model& model, const std::optional<std::string>& entry) {
  if (!entry) return;
  std::string names;
  for (const std::string& name : entries(model)) {
    if (name == *entry) return;
    names += (names.empty() ? "" : ", ") + name;
  }
  fail(Code::NotFound, "no entry '" + *entry + "'; the model has " + names);
}

nb::dict states(const Model& model) {
  nb::dict all;
  for (size_t i = 0; i < rt_model_state_count(model.handle.get()); ++i) {
    rt_tensor_spec c = RT_TENSOR_SPEC_INIT;
    check(rt_model_state(model.handle.get(), i, &c, nullptr));
    all[c.name] = nb::cast(TensorSpec::from(c));
  }
  return all;
}

nb::dict state_kinds(const Model& model) {
  static constexpr const char* kNames[] = {"parameter", "statistic", "optimizer", "counter"};
  nb::dict all;
  for (size_t i = 0; i < rt_model_state_count(model.handle.get()); ++i) {
    rt_tensor_spec c = RT_TENSOR_SPEC_INIT;
    rt_state_kind kind = RT_PARAMETER;
    check(rt_model_state(model.handle.get(), i, &c, &kind));
    all[c.name] = kNames[kind];
  }
  return all;
}

nb::dict metadata(const Model& model) {
  nb::dict all;
  for (size_t i = 0; i < rt_model_metadata_count(model.handle.get()); ++i) {
    const char* key = rt_model_metadata_key(model.handle.get(), i);
    all[key] = rt_model_metadata_value(model.handle.get(), key);
  }
  return all;
}

nb::tuple shape_of(const TensorSpec& spec) {
  nb::list shape;
  for (const Dim& dim : spec.dims) {
    if (dim.extent >= 0)
      shape.append(dim.extent);
    else if (!dim.symbol.empty())
      shape.append(dim.symbol);
    else
      shape.append(nb::none());
  }
  return nb::tuple(shape);
}

void save(const Model& model, nb::handle path) {
  const nb::object fspath = nb::steal(PyOS_FSPath(path.ptr()));
  if (!fspath.is_valid()) throw nb::python_error();
  const nb::object helper = nb::module_::import_("librt._files").attr("save");
  helper(fspath, model.bytes.is_none() ? nb::object(nb::str(model.path.c_str())) : model.bytes);
}

std::string repr(const Model& model) {
  std::string text = "librt.Model(";
  for (const std::string& entry : entries(model)) {
    text += (text.ends_with("(") ? "" : "; ") + entry + ":";
    for (const TensorSpec& spec : specs(model, entry, rt_model_input_count, rt_model_input))
      text += " " + spec.name + " " + text_of(spec);
    text += " ->";
    for (const TensorSpec& spec : specs(model, entry, rt_model_output_count, rt_model_output))
      text += " " + spec.name + " " + text_of(spec);
  }
  return text + ")";
}

}  // namespace

std::string text_of(const TensorSpec& spec) {
  std::string text = std::string(name_of(spec.dtype)) + "[";
  for (const Dim& dim : spec.dims) {
    if (!text.ends_with("[")) text += ",";
    text += dim.extent >= 0 ? std::to_string(dim.extent) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return text + "]";
}

nb::dict dict_of(const std::vector<TensorSpec>& specs) {
  nb::dict all;
  for (const TensorSpec& spec : specs) all[spec.name.c_str()] = nb::cast(spec);
  return all;
}

Model& model_of(nb::handle value, nb::object& keep) {
  keep = nb::isinstance<Model>(value) ? nb::borrow(value) : nb::cast(load(value, false, false));
  return nb::cast<Model&>(keep);
}

void bind_model(nb::module_& module) {
  nb::class_<TensorSpec>(module, "TensorSpec", "The declaration of an input, output or state.")
      .def_prop_ro(
          "name", [](const TensorSpec& self) { return self.name; }, "Name in the model.")
      .def_prop_ro(
          "dtype", [](const TensorSpec& self) { return std::string(name_of(self.dtype)); },
          "Element type: 'f32', 'i64', 'bool'.")
      .def_prop_ro("shape", shape_of, nb::sig("def shape(self) -> tuple[int | str | None, ...]"),
                   "One entry for each axis: an extent, the symbol of a dynamic dimension ('batch'; equal\n"
                   "symbols have equal extents), or None for one without a name.")
      .def("__repr__", [](const TensorSpec& self) {
        return "librt.TensorSpec(" + self.name + ": " + text_of(self) + ")";
      });

  nb::class_<Model>(module, "Model", "A compiled model: its entries (graphs that run), states and metadata.")
      .def_prop_ro("entries", entries,
                   "Names of what can be run: 'infer', and 'train_step' where it can train.")
      .def(
          "inputs",
          [](const Model& self, const std::optional<std::string>& entry) {
            check_entry(self, entry);
            return dict_of(specs(self, entry, rt_model_input_count, rt_model_input));
          },
          nb::arg("entry") = nb::none(),
          nb::sig("def inputs(self, entry: str | None = None) -> dict[str, TensorSpec]"),
          "The inputs of an entry by name; None: 'infer', or the only one.")
      .def(
          "outputs",
          [](const Model& self, const std::optional<std::string>& entry) {
            check_entry(self, entry);
            return dict_of(specs(self, entry, rt_model_output_count, rt_model_output));
          },
          nb::arg("entry") = nb::none(),
          nb::sig("def outputs(self, entry: str | None = None) -> dict[str, TensorSpec]"),
          "The outputs of an entry by name.")
      .def_prop_ro("states", states, nb::sig("def states(self) -> dict[str, TensorSpec]"),
                   "Tensors that persist across runs: weights that are trained, moments, caches.")
      .def_prop_ro("state_kinds", state_kinds, nb::sig("def state_kinds(self) -> dict[str, str]"),
                   "For each state: 'parameter', 'statistic', 'optimizer' or 'counter'.")
      .def_prop_ro("metadata", metadata, nb::sig("def metadata(self) -> dict[str, str]"),
                   "What the converter has noted.")
      .def_prop_ro(
          "producer", [](const Model& self) { return rt_model_producer(self.handle.get()); },
          "The program that wrote the file, with its version.")
      .def_prop_ro(
          "path",
          [](const Model& self) {
            return self.path.empty() ? std::nullopt : std::optional<std::string>(self.path);
          },
          "The file that it was loaded from; None: from memory.")
      .def_rw("report", &Model::report, nb::arg().none(),
              nb::for_getter(nb::sig("def report(self) -> dict[str, typing.Any] | None")),
              "What librt.convert() did, as data; None for a model that was loaded.")
      .def("save", save, nb::arg("path"), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
           "Writes the .rt file; an older file is replaced once the new one is complete.")
      .def("__repr__", repr);

  module.def(
      "load", load, nb::arg("source"), nb::kw_only(), nb::arg("copy") = false,
      nb::arg("skip_checksums") = false,
      nb::sig("def load(source: str | os.PathLike[str] | bytes | bytearray | memoryview, *, copy: bool = "
              "False, skip_checksums: bool = False) -> Model"),
      "Loads a .rt file, or its bytes, and checks its structure.\n\n"
      "A file is mapped, and must not be truncated while the model is used; copy=True reads it into\n"
      "memory instead. skip_checksums: do not compare the checksums of the weights when they are first\n"
      "used.");
}

}  // namespace rt::python
