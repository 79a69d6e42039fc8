// The functions of rt/compiler.h over conversions.
//
// Knows: how options and results look in C. Contains no logic of its own, and no exception leaves it. The
// functions of rt.h that it calls are librt.so's.
#include "rt/compiler.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "runtime/api/structs.h"
#include "runtime/core/exception.h"
#include "runtime/core/float_environment.h"
#include "runtime/session/memory/memory.h"
#include "tools/convert/conversion.h"
#include "tools/convert/trim.h"
#include "tools/weights/adapter.h"

struct rt_compilation {
  librt::convert::Conversion made;
  librt::AlignedBytes bytes;
  size_t size = 0;
};

namespace {

using librt::Code;
using librt::invalid_argument;
using librt::Result;
using librt::Status;
using librt::convert::Options;
using librt::convert::Setting;
using librt::tools::Array;

rt_status* to_c(const Status& status) noexcept {
  return status.ok() ? nullptr
                     : rt_status_create(static_cast<rt_code>(status.code()), status.message().c_str());
}

template <class Function>
rt_status* guarded(Function function) noexcept {
  [[maybe_unused]] const librt::DefaultFloatEnvironment floats;
  Status status;
  try {
    status = function();
  } catch (...) {
    status = librt::caught_exception("librt_compiler");
  }
  return to_c(status);
}

/// The application's callback. Once it has stopped the compilation, that stays stopped.
class Listener final : public librt::compiler::Progress {
 public:
  explicit Listener(const rt_compiler_options& options)
      : call_(options.progress), user_(options.progress_user) {}

  Status at(const char* stage, size_t done, size_t total) override {
    stopped_ = stopped_ || (call_ != nullptr && call_(user_, stage, done, total) != 0);
    return stopped_ ? Status(Code::Cancelled, "the progress callback has stopped the compilation") : Status();
  }

 private:
  rt_compiler_progress_callback call_;
  void* user_;
  bool stopped_ = false;
};

/// Checks a tensor of the application, and copies its elements into the array of its name.
Status set_elements(const rt_tensor& given, Array& array) {
  const std::string& name = array.name;
  rt_tensor tensor;
  RT_TRY(librt::api::take_in(&given, tensor, "rt_tensor").in("'", name, "'"));
  if (tensor.memory != nullptr)
    return invalid_argument("'", name, "': expected data in host memory, found memory of a device");
  auto info = librt::api::info_of(tensor);
  if (!info.ok()) return std::move(info).status().in("'", name, "'");
  const size_t bytes = info->bytes();
  if (tensor.bytes < bytes || (bytes > 0 && tensor.data == nullptr))
    return invalid_argument("'", name, "': expected ", bytes, " bytes of data, found ",
                            tensor.data == nullptr ? 0 : tensor.bytes);
  const std::span<const int64_t> dims = info->shape.dims();
  array.type = info->dtype;
  array.dims.assign(dims.begin(), dims.end());
  const auto* data = static_cast<const std::byte*>(tensor.data);
  if (bytes > 0) array.bytes.assign(data, data + bytes);
  return {};
}

Result<std::vector<Array>> read_rows(const rt_compiler_options& options, Listener& listener,
                                     const librt::Graph& graph, size_t batch) {
  RT_TRY(librt::compiler::report_progress(&listener, "calibrate", batch, 0));
  std::vector<rt_tensor_spec> specs;
  std::vector<const rt_tensor_spec*> pointers;
  for (const librt::ValueId id : graph.inputs) specs.push_back(librt::api::spec_of(graph, graph[id]));
  for (const rt_tensor_spec& spec : specs) pointers.push_back(&spec);
  std::vector<rt_tensor> inputs(specs.size(), rt_tensor RT_TENSOR_INIT);
  std::vector<rt_tensor*> tensors;
  for (rt_tensor& input : inputs) tensors.push_back(&input);
  const int answer =
      options.calibration(options.calibration_user, batch, pointers.data(), tensors.data(), tensors.size());
  if (answer == 0) return std::vector<Array>();
  if (answer != 1)
    return invalid_argument("calibration: the callback returned ", answer, " for batch ", batch);
  std::vector<Array> arrays(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    arrays[i].name = graph[graph.inputs[i]].name;
    RT_TRY(set_elements(inputs[i], arrays[i]).in("calibration, batch ", batch));
  }
  return arrays;
}

Result<std::vector<Setting>> settings_of(const rt_compiler_options& c) {
  std::vector<Setting> settings;
  const auto add = [&](const char* name, const char* value) {
    if (value != nullptr) settings.push_back({name, value});
  };
  add("precision", c.precision);
  add("train", c.train != 0 ? "" : nullptr);
  add("loss", c.loss);
  add("optimizer", c.optimizer);
  add("lora", c.lora);
  if (c.trainable_count > 0 && c.trainable == nullptr)
    return invalid_argument("rt_compiler_options: trainable_count is ", c.trainable_count,
                            ", trainable is null");
  for (size_t i = 0; i < c.trainable_count; ++i) add("trainable", c.trainable[i]);
  const size_t fields = settings.size();
  if (c.count > 0 && (c.names == nullptr || c.values == nullptr))
    return invalid_argument("rt_compiler_options: count is ", c.count, ", names or values is null");
  for (size_t i = 0; i < c.count; ++i) {
    if (c.names[i] == nullptr) return invalid_argument("rt_compiler_options: name ", i, " is null");
    Setting setting{c.names[i], c.values[i] != nullptr ? c.values[i] : ""};
    std::replace(setting.name.begin(), setting.name.end(), '_', '-');
    for (size_t k = 0; k < fields; ++k)
      if (settings[k].name == setting.name && setting.name != "trainable")
        return invalid_argument("rt_compiler_options: '", setting.name, "' is given as a field and by name");
    settings.push_back(std::move(setting));
  }
  return settings;
}

/// The options of a conversion whose source is in `options` already.
Status read_options(const rt_compiler_options& c, Listener& listener, Options& options) {
  if (c.output != nullptr) options.output = c.output;
  options.in_memory = options.output.empty();
  if (c.external_folder != nullptr) options.external_folder = c.external_folder;
  if (c.constant_count > 0 && c.constants == nullptr)
    return invalid_argument("rt_compiler_options: constant_count is ", c.constant_count,
                            ", constants is null");
  for (size_t i = 0; i < c.constant_count; ++i) {
    const rt_named_tensor& given = c.constants[i];
    if (given.name == nullptr || given.tensor == nullptr)
      return invalid_argument("rt_compiler_options: constant ", i, ": the name or the tensor is null");
    Array& array = options.constant_arrays[given.name];
    if (!array.name.empty())
      return invalid_argument("rt_compiler_options: constant '", given.name, "' is given twice");
    array.name = given.name;
    RT_TRY(set_elements(*given.tensor, array).in("rt_compiler_options: constants"));
  }
  if (c.calibration != nullptr)
    options.read_rows = [c, &listener](const librt::Graph& graph, size_t batch) {
      return read_rows(c, listener, graph, batch);
    };
  options.progress = &listener;
  RT_ASSIGN(const std::vector<Setting> settings, settings_of(c));
  return librt::convert::apply_settings(settings, options);
}

Status compile(Options& options, const rt_compiler_options* given, rt_compilation** out) {
  if (out == nullptr) return invalid_argument("rt_compile: the pointer to the result is null");
  *out = nullptr;
  rt_compiler_options c;
  RT_TRY(librt::api::take_in(given, c, "rt_compiler_options"));
  Listener listener(c);
  RT_TRY(read_options(c, listener, options));
  auto compilation = std::make_unique<rt_compilation>();
  auto& made = compilation->made;
  made = librt::convert::run_conversion(options, c.check_only != 0);
  compilation->size = made.bytes.size();
  if (compilation->size > 0) {
    RT_TRY(compilation->bytes.reserve(compilation->size));
    std::memcpy(compilation->bytes.data(), made.bytes.data(), compilation->size);
    made.bytes = {};
  }
  Status status = made.status;
  *out = compilation.release();
  return status;
}

const char* text_of(const rt_compilation* compilation, std::string librt::convert::Conversion::*text) {
  return compilation != nullptr ? (compilation->made.*text).c_str() : "";
}

/// A list that is made once; null where there is no memory for it.
const char* list_of(std::string& text, std::string (*make)()) noexcept {
  static std::mutex mutex;
  try {
    const std::lock_guard lock(mutex);
    if (text.empty()) text = make();
    return text.c_str();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

extern "C" {

rt_status* rt_compile_file(const char* path, const rt_compiler_options* options,
                           rt_compilation** compilation) {
  return guarded([&]() -> Status {
    if (path == nullptr || *path == 0) return invalid_argument("rt_compile_file: the path is null or empty");
    Options read;
    read.input = path;
    return compile(read, options, compilation);
  });
}

rt_status* rt_compile_memory(const void* data, size_t bytes, const rt_compiler_options* options,
                             rt_compilation** compilation) {
  return guarded([&]() -> Status {
    if (data == nullptr || bytes == 0) return invalid_argument("rt_compile_memory: there are no bytes");
    Options read;
    read.bytes = {static_cast<const std::byte*>(data), bytes};
    return compile(read, options, compilation);
  });
}

void rt_compilation_free(rt_compilation* compilation) {
  delete compilation;
}

rt_status* rt_compilation_bytes(const rt_compilation* compilation, const void** data, size_t* bytes) {
  return guarded([&]() -> Status {
    if (compilation == nullptr || data == nullptr || bytes == nullptr)
      return invalid_argument("rt_compilation_bytes: a pointer is null");
    if (compilation->size == 0)
      return Status(Code::NotFound,
                    "the compilation has no model in memory: it failed, wrote a file, or was only a check");
    *data = compilation->bytes.data();
    *bytes = compilation->size;
    return {};
  });
}

rt_status* rt_compilation_load(const rt_compilation* compilation, rt_model** model) {
  const void* data = nullptr;
  size_t bytes = 0;
  if (rt_status* status = rt_compilation_bytes(compilation, &data, &bytes)) return status;
  return rt_model_load_from_memory(data, bytes, 1, model);
}

const char* rt_compilation_json(const rt_compilation* compilation) {
  return text_of(compilation, &librt::convert::Conversion::json);
}
const char* rt_compilation_text(const rt_compilation* compilation) {
  return text_of(compilation, &librt::convert::Conversion::text);
}
const char* rt_compilation_passes(const rt_compilation* compilation) {
  return text_of(compilation, &librt::convert::Conversion::passes);
}
const char* rt_compilation_graph(const rt_compilation* compilation) {
  return text_of(compilation, &librt::convert::Conversion::graph);
}
size_t rt_compilation_warning_count(const rt_compilation* compilation) {
  return compilation != nullptr ? compilation->made.warnings.size() : 0;
}
const char* rt_compilation_warning(const rt_compilation* compilation, size_t index) {
  return index < rt_compilation_warning_count(compilation) ? compilation->made.warnings[index].c_str()
                                                           : nullptr;
}

size_t rt_compilation_unsupported_count(const rt_compilation* compilation) {
  return compilation != nullptr ? compilation->made.import.unsupported.size() : 0;
}
rt_status* rt_compilation_unsupported(const rt_compilation* compilation, size_t index,
                                      rt_unsupported_node* node) {
  return guarded([&]() -> Status {
    const size_t count = rt_compilation_unsupported_count(compilation);
    if (index >= count) return invalid_argument("unsupported node ", index, ": the compilation has ", count);
    const librt::onnx::UnsupportedNode& from = compilation->made.import.unsupported[index];
    rt_unsupported_node to = RT_UNSUPPORTED_NODE_INIT;
    to.name = from.name.c_str();
    to.op = from.op.c_str();
    to.domain = from.domain.c_str();
    to.opset = from.opset;
    to.dtype = from.dtype.c_str();
    to.reason = from.reason.c_str();
    to.help = from.help.c_str();
    return librt::api::hand_out(to, node, "rt_unsupported_node");
  });
}

rt_status* rt_compilation_report(const rt_compilation* compilation, rt_compiler_report* report) {
  return guarded([&]() -> Status {
    if (compilation == nullptr) return invalid_argument("rt_compilation_report: the compilation is null");
    const librt::convert::Summary& summary = compilation->made.summary;
    rt_compiler_report to = RT_COMPILER_REPORT_INIT;
    to.onnx_nodes = compilation->made.import.onnx_nodes;
    to.nodes_before = summary.nodes_before;
    to.nodes_after = summary.after.nodes;
    to.parameters = summary.after.parameters;
    to.parameter_bytes = summary.after.parameter_bytes;
    to.flops = summary.after.flops;
    to.working_bytes = summary.peak.ok() ? summary.peak.value() : 0;
    to.file_bytes = summary.file_bytes;
    to.trained_weights = summary.training.trained.size();
    to.trained_elements = static_cast<uint64_t>(summary.training.trained_elements);
    to.adapted_weights = summary.adapters.adapted.size();
    to.quantized_nodes = summary.quantization.matmuls;
    to.output_error = summary.cost.error;
    to.compared = summary.verified.size();
    for (const auto& line : summary.verified) to.different += line.equal ? 0 : 1;
    return librt::api::hand_out(to, report, "rt_compiler_report");
  });
}

rt_status* rt_compiler_load_adapter(rt_session* session, const char* path) {
  return guarded([&]() -> Status {
    if (session == nullptr || path == nullptr)
      return invalid_argument("rt_compiler_load_adapter: a pointer is null");
    return librt::tools::load_adapter(session, path);
  });
}

rt_status* rt_compiler_trim(const char* const* models, size_t count, const char* path,
                            rt_compilation** report) {
  return guarded([&]() -> Status {
    if (path == nullptr || report == nullptr || (models == nullptr && count > 0))
      return invalid_argument("rt_compiler_trim: a pointer is null");
    *report = nullptr;
    std::vector<std::string> files;
    for (size_t i = 0; i < count; ++i) {
      if (models[i] == nullptr) return invalid_argument("rt_compiler_trim: model ", i, " is null");
      files.emplace_back(models[i]);
    }
    auto compilation = std::make_unique<rt_compilation>();
    RT_TRY(librt::convert::write_trim(files, path, compilation->made));
    *report = compilation.release();
    return {};
  });
}

const char* rt_compiler_operators(void) {
  static std::string text;
  return list_of(text, librt::convert::operators_json);
}
const char* rt_compiler_passes(void) {
  static std::string text;
  return list_of(text, librt::convert::passes_json);
}

}  // extern "C"
