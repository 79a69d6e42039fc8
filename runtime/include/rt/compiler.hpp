/// @file
/// librt_compiler for C++20: compiles ONNX models within a program. Header-only, over compiler.h.
///
///     auto made = rt::Compilation::of_file("resnet50.onnx", {.precision = "bf16"});
///     if (!made.ok()) std::cerr << made.status().message();
///     auto model = made.load();
///     auto session = rt::Session::create(*model);
///
/// Nothing throws except std::bad_alloc, and what a callback throws is not caught: it must not throw.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rt/compiler.h"
#include "rt/rt.hpp"

namespace rt {
inline namespace v0 {

/// Fills a batch of rows of calibration data: a tensor for each input, in the order of the specs, whose first
/// axis counts the rows. Called for batch 0, 1, .. until it returns Rows::None.
enum class Rows : uint8_t {
  None,   ///< there are no more
  Some,   ///< `inputs` has a batch
  Failed  ///< the compilation fails
};
/// See Rows.
using CalibrationCallback =
    std::function<Rows(size_t batch, std::span<const TensorSpec> specs, std::vector<Tensor>& inputs)>;
/// See rt_compiler_progress_callback; false stops the compilation.
using ProgressCallback = std::function<bool(std::string_view stage, uint64_t done, uint64_t total)>;

/// The fields of rt_compiler_options. Empty: the default.
struct CompilerOptions {
  std::string output;                  ///< file to write; empty: the model stays in memory
  std::string precision;               ///< "fp32", "fp16", "bf16", "int8", "int8-weights", "int4-weights"
  bool train = false;                  ///< add the entry "train_step"
  bool check_only = false;             ///< only find out what is unsupported
  std::string loss;                    ///< with train: "cross_entropy", "mse", ...
  std::string optimizer;               ///< with train: "sgd", "adam", ...
  std::vector<std::string> trainable;  ///< shell patterns over names of the weights that are trained
  std::string lora;                    ///< low-rank adapters: "rank=8,alpha=16,targets=*.q"
  /// Every other option of rtconvert by its long name, and its value: {"dim", "batch=8"}, {"label-smoothing",
  /// "0.1"}.
  std::vector<std::pair<std::string, std::string>> settings;
  std::string external_folder;              ///< with the external data of an ONNX model in memory
  std::map<std::string, Tensor> constants;  ///< inputs that become constants
  CalibrationCallback calibration;          ///< data for "int8"
  ProgressCallback progress;                ///< sees, and may stop, the compilation
};

/// A node of the ONNX model that cannot be compiled.
struct UnsupportedNode {
  std::string name;    ///< of the node
  std::string op;      ///< "Conv"
  std::string domain;  ///< "ai.onnx" for the default domain
  int64_t opset = 0;   ///< version of the domain
  std::string dtype;   ///< of the first input, or "-"
  std::string reason;  ///< why
  std::string help;    ///< what would make it work; may be empty
};

/// A compiled model, or the failure, and what is to be said about it.
class Compilation {
 public:
  /// Compiles MODEL.onnx, a compiled MODEL.rt, or "zoo:NAME".
  static Compilation of_file(const std::string& path, const CompilerOptions& options = {}) {
    return Compilation(options, [&](const rt_compiler_options& c, rt_compilation** made) {
      return rt_compile_file(path.c_str(), &c, made);
    });
  }
  /// The same of the bytes of an ONNX or compiled model, which are used during the call only.
  static Compilation of_memory(std::span<const std::byte> bytes, const CompilerOptions& options = {}) {
    return Compilation(options, [&](const rt_compiler_options& c, rt_compilation** made) {
      return rt_compile_memory(bytes.data(), bytes.size(), &c, made);
    });
  }
  /// No compilation: writes what a build of librt needs for these compiled models, see rt_compiler_trim.
  static Compilation trim(const std::vector<std::string>& models, const std::string& path) {
    std::vector<const char*> files;
    for (const std::string& model : models) files.push_back(model.c_str());
    return Compilation({}, [&](const rt_compiler_options&, rt_compilation** made) {
      return rt_compiler_trim(files.data(), files.size(), path.c_str(), made);
    });
  }

  /// Whether the compilation succeeded.
  bool ok() const noexcept { return status_.ok(); }
  /// ok()
  explicit operator bool() const noexcept { return ok(); }
  /// Why it failed.
  const Status& status() const noexcept { return status_; }

  /// The compiled model, aligned to 64 bytes, valid as long as this object; empty if it is in a file, or not
  /// at all.
  std::span<const std::byte> bytes() const noexcept {
    const void* data = nullptr;
    size_t size = 0;
    rt_status* status = rt_compilation_bytes(handle(), &data, &size);
    rt_status_free(status);
    return {static_cast<const std::byte*>(data), size};
  }
  /// Loads these bytes; the model has a copy.
  Result<Model> load() const {
    if (!ok()) return status_;
    const void* data = nullptr;
    size_t size = 0;
    if (Status status = Status::take(rt_compilation_bytes(handle(), &data, &size)); !status) return status;
    return Model::from_memory(bytes(), true);
  }

  /// The report as one JSON object; after a failure {"error", "code", "unsupported"}.
  std::string_view json() const noexcept { return rt_compilation_json(handle()); }
  /// The report as lines; after a failure the table of unsupported nodes.
  std::string_view text() const noexcept { return rt_compilation_text(handle()); }
  /// The optimization passes with nodes and times, as a table.
  std::string_view passes() const noexcept { return rt_compilation_passes(handle()); }
  /// The graphs as text, with the setting "inspect".
  std::string_view graph() const noexcept { return rt_compilation_graph(handle()); }
  /// The numbers of the report.
  rt_compiler_report report() const noexcept {
    rt_compiler_report report = RT_COMPILER_REPORT_INIT;
    rt_status_free(rt_compilation_report(handle(), &report));
    return report;
  }
  /// One sentence each.
  std::vector<std::string> warnings() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < rt_compilation_warning_count(handle()); ++i)
      all.emplace_back(rt_compilation_warning(handle(), i));
    return all;
  }
  /// All nodes that cannot be compiled.
  std::vector<UnsupportedNode> unsupported() const {
    std::vector<UnsupportedNode> all;
    for (size_t i = 0; i < rt_compilation_unsupported_count(handle()); ++i) {
      rt_unsupported_node node = RT_UNSUPPORTED_NODE_INIT;
      if (!Status::take(rt_compilation_unsupported(handle(), i, &node))) break;
      all.push_back({node.name, node.op, node.domain, node.opset, node.dtype, node.reason, node.help});
    }
    return all;
  }
  /// For functions of compiler.h; null if there is nothing to report.
  const rt_compilation* handle() const noexcept { return handle_.get(); }

 private:
  /// What the callbacks of C get as `user`.
  struct Calls {
    const CompilerOptions* options;
    std::vector<Tensor> rows;  ///< of the last batch
  };

  static int call_progress(void* user, const char* stage, uint64_t done, uint64_t total) {
    return static_cast<Calls*>(user)->options->progress(stage, done, total) ? 0 : 1;
  }
  static int call_calibration(void* user, size_t batch, const rt_tensor_spec* const* specs,
                              rt_tensor* const* inputs, size_t count) {
    Calls& calls = *static_cast<Calls*>(user);
    std::vector<TensorSpec> all;
    for (size_t i = 0; i < count; ++i) all.push_back(TensorSpec::from(*specs[i]));
    calls.rows.clear();
    const Rows rows = calls.options->calibration(batch, all, calls.rows);
    if (rows == Rows::None) return 0;
    if (rows == Rows::Failed || calls.rows.size() != count) return -1;
    for (size_t i = 0; i < count; ++i) {  // one by one: the library's struct may end earlier
      const rt_tensor& from = calls.rows[i].handle();
      inputs[i]->dtype = from.dtype;
      inputs[i]->rank = from.rank;
      std::copy(std::begin(from.dims), std::end(from.dims), std::begin(inputs[i]->dims));
      inputs[i]->data = from.data;
      inputs[i]->bytes = from.bytes;
    }
    return 1;
  }

  template <class Compile>
  Compilation(const CompilerOptions& options, const Compile& compile) {
    Calls calls{&options, {}};
    rt_compiler_options c = RT_COMPILER_OPTIONS_INIT;
    c.output = detail::or_null(options.output);
    c.precision = detail::or_null(options.precision);
    c.train = options.train;
    c.check_only = options.check_only;
    c.loss = detail::or_null(options.loss);
    c.optimizer = detail::or_null(options.optimizer);
    c.lora = detail::or_null(options.lora);
    c.external_folder = detail::or_null(options.external_folder);
    std::vector<const char*> trainable, names, values;
    for (const std::string& pattern : options.trainable) trainable.push_back(pattern.c_str());
    c.trainable = trainable.data();
    c.trainable_count = trainable.size();
    for (const auto& [name, value] : options.settings) {
      names.push_back(name.c_str());
      values.push_back(value.c_str());
    }
    c.names = names.data();
    c.values = values.data();
    c.count = names.size();
    std::vector<rt_named_tensor> constants;
    for (const auto& [name, tensor] : options.constants)
      constants.push_back({name.c_str(), &tensor.handle()});
    c.constants = constants.data();
    c.constant_count = constants.size();
    if (options.calibration) c.calibration = call_calibration;
    if (options.progress) c.progress = call_progress;
    c.calibration_user = c.progress_user = &calls;
    rt_compilation* made = nullptr;
    status_ = Status::take(compile(c, &made));
    handle_.reset(made);
  }

  Status status_;
  std::unique_ptr<rt_compilation, detail::Free<rt_compilation, rt_compilation_free>> handle_;
};

/// Session::load_adapter(), also from a file that ends in ".safetensors": see rt_compiler_load_adapter.
inline Status load_adapter(Session& session, const std::string& path) {
  return Status::take(rt_compiler_load_adapter(session.handle(), path.c_str()));
}

}  // namespace v0
}  // namespace rt
