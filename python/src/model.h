// librt.Model and the declarations of its inputs, outputs and states.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "rt/rt.hpp"

namespace rt::python {

/// A loaded model, shared with the sessions made of it.
struct Model {
  std::shared_ptr<rt_model> handle;
  std::string path;         ///< empty: from memory
  nanobind::object bytes;   ///< of a model from memory
  nanobind::object report;  ///< of the conversion that made it; None
};

/// Of a path, of a file's bytes, or the model itself.
Model& model_of(nanobind::handle value, nanobind::object& keep);

/// "f32[batch,784]"
std::string text_of(const TensorSpec& spec);
nanobind::dict dict_of(const std::vector<TensorSpec>& specs);

void bind_model(nanobind::module_& module);
void bind_devices(nanobind::module_& module);

}  // namespace rt::python
