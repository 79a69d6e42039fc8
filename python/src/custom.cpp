#include "python/src/custom.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "python/src/arrays.h"
#include "python/src/errors.h"
#include "python/src/tensor.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

thread_local PyObject* g_raised = nullptr;  // owned; a nb::object would be destroyed without the lock

rt_tensor tensor_of(const rt_custom_tensor& c) {
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = c.dtype;
  tensor.rank = c.rank;
  std::copy_n(c.dims, static_cast<size_t>(c.rank), tensor.dims);
  tensor.data = c.data;
  tensor.bytes = bytes_of(tensor);
  return tensor;
}

nb::tuple operands_of(const rt_custom_call& call) {
  nb::list operands;
  for (size_t i = 0; i < call.input_count; ++i)
    operands.append(call.inputs[i].rank < 0 ? nb::none() : nb::cast(Tensor::copy(tensor_of(call.inputs[i]))));
  return nb::tuple(operands);
}

/// A value by its name; a tuple where there are several, or none.
nb::dict attributes_of(const rt_custom_call& call) {
  nb::dict all;
  for (size_t i = 0; i < call.attribute_count; ++i) {
    const rt_custom_attribute& attribute = call.attributes[i];
    if (attribute.kind == RT_CUSTOM_TEXT) {
      all[attribute.name] = nb::steal(
          PyUnicode_DecodeUTF8(attribute.text, static_cast<Py_ssize_t>(attribute.count), "replace"));
      continue;
    }
    nb::list values;
    for (size_t k = 0; k < attribute.count; ++k)
      if (attribute.kind == RT_CUSTOM_INTS)
        values.append(attribute.ints[k]);
      else
        values.append(static_cast<double>(attribute.floats[k]));
    all[attribute.name] = attribute.count == 1 ? nb::object(values[0]) : nb::object(nb::tuple(values));
  }
  return all;
}

/// Copies what the function returned for result i.
void give(const rt_custom_call& call, size_t i, nb::handle value) {
  if (call.outputs[i].data == nullptr) return;  // not used, or without elements
  const rt_tensor wanted = tensor_of(call.outputs[i]);
  const std::string name = "result " + std::to_string(i);
  Borrowed source;
  source.take(value, name.c_str(), wanted.dtype);
  const rt_tensor& found = source.tensor();
  const auto text = [](const rt_tensor& t) {
    std::string all = std::string(rt_dtype_name(t.dtype)) + "[";
    for (int32_t axis = 0; axis < t.rank; ++axis) all += (axis > 0 ? "," : "") + std::to_string(t.dims[axis]);
    return all + "]";
  };
  if (found.dtype != wanted.dtype || found.rank != wanted.rank ||
      !std::equal(found.dims, found.dims + found.rank, wanted.dims))
    throw nb::value_error((name + ": expected " + text(wanted) + ", found " + text(found)).c_str());
  if (wanted.bytes > 0) std::memcpy(wanted.data, found.data, wanted.bytes);
}

void run(const rt_custom_call& call, const nb::object& function) {
  const nb::object result = function(*operands_of(call), **attributes_of(call));
  const bool several = nb::isinstance<nb::tuple>(result);
  const size_t count = several ? nb::len(result) : 1;
  if (count != call.output_count)
    throw nb::value_error(("expected " + std::to_string(call.output_count) +
                           (call.output_count == 1 ? " result" : " results in a tuple") + ", found " +
                           std::to_string(count))
                              .c_str());
  for (size_t i = 0; i < count; ++i) give(call, i, several ? nb::object(result[i]) : result);
}

/// The exception that is being handled, as an object.
nb::object current_exception() {
  try {
    throw;
  } catch (nb::python_error& error) {
    return nb::borrow(error.value());
  } catch (const Failure& failure) {
    return error_of(failure);
  } catch (const nb::builtin_exception& error) {
    const bool is_type = error.type() == nb::exception_type::type_error;
    return nb::borrow(is_type ? PyExc_TypeError : PyExc_ValueError)(error.what());
  } catch (const std::exception& error) {
    return nb::borrow(PyExc_RuntimeError)(error.what());
  }
}

Status call_function(const nb::object& function, const CustomCall& call) {
  const nb::gil_scoped_acquire locked;
  try {
    run(call.handle(), function);
    return {};
  } catch (...) {
    const nb::object raised = current_exception();
    const std::string type = nb::cast<std::string>(raised.type().attr("__name__"));
    const nb::object text = nb::steal(PyObject_Str(raised.ptr()));
    PyErr_Clear();  // of a __str__ that raises
    nb::object before = take_raised();
    g_raised = raised.inc_ref().ptr();
    return Status(Code::InvalidArgument,
                  type + (text.is_valid() ? ": " + std::string(nb::str(text).c_str()) : std::string()));
  }
}

int traverse_operators(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<CustomOperators>(self)->traverse(visit, arg) : 0;
}
int clear_operators(PyObject* self) {
  nb::inst_ptr<CustomOperators>(self)->clear();
  return 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_operators)},
                        {Py_tp_clear, reinterpret_cast<void*>(clear_operators)},
                        {0, nullptr}};

}  // namespace

CustomOperators::CustomOperators(nb::handle functions) {
  if (!PyDict_Check(functions.ptr()))
    throw nb::type_error("custom_operators: expected a dict of functions by 'DOMAIN:OPERATOR'");
  for (auto [key, value] : nb::borrow<nb::dict>(functions)) {
    const auto label = nb::isinstance<nb::str>(key) ? nb::cast<std::string>(key) : std::string();
    const size_t colon = label.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == label.size())
      throw nb::value_error(("custom_operators: expected names 'DOMAIN:OPERATOR', found " +
                             nb::cast<std::string>(nb::repr(key)))
                                .c_str());
    if (PyCallable_Check(value.ptr()) == 0)
      throw nb::type_error(("custom_operators: expected a function for '" + label + "', found " +
                            nb::cast<std::string>(nb::repr(value)))
                               .c_str());
    const Function& function = functions_.emplace_back(Function{label, nb::borrow(value)});
    operators_.emplace_back(
        label.substr(0, colon), label.substr(colon + 1),
        [&function](const CustomCall& call) { return call_function(function.call, call); });
  }
}

nb::object CustomOperators::of(const nb::kwargs& keywords) {
  if (!keywords.contains("custom_operators")) return nb::none();
  const nb::object functions = keywords["custom_operators"];
  return functions.is_none() ? nb::none()
                             : nb::cast(new CustomOperators(functions), nb::rv_policy::take_ownership);
}

std::vector<rt_custom_operator> CustomOperators::handles(nb::handle operators) {
  std::vector<rt_custom_operator> all;
  if (operators.is_none()) return all;
  for (const CustomOperator& each : nb::cast<const CustomOperators&>(operators).operators_)
    all.push_back(each.handle());
  return all;
}

int CustomOperators::traverse(visitproc visit, void* arg) const {
  for (const Function& function : functions_) Py_VISIT(function.call.ptr());
  return 0;
}

void CustomOperators::clear() {
  for (Function& function : functions_) function.call = nb::none();
}

void bind_custom_operators(nb::module_& module) {
  nb::class_<CustomOperators>(module, "CustomOperators", nb::type_slots(kSlots),
                              "Functions of the application as kernels of sessions.");
}

nb::object take_raised() noexcept {
  return nb::steal(std::exchange(g_raised, nullptr));
}

}  // namespace rt::python
