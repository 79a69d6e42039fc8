// rtrun: runs a model on files and checks it against expected outputs.
//
// Knows: the steps of a run. librt is used through its public headers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tools/cli/cache_folder.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/onnx_model.h"
#include "tools/cli/program.h"
#include "tools/cli/terminal.h"
#include "tools/data/public_status.h"
#include "tools/rtrun/inspect.h"
#include "tools/rtrun/interruptible.h"
#include "tools/rtrun/options.h"
#include "tools/rtrun/results.h"
#include "tools/weights/adapter.h"

namespace rt::run {
namespace {

using Clock = std::chrono::steady_clock;
using librt::tools::Array;
using librt::tools::report_failure;

rt::Tensor tensor_of(const Array& array) {
  return rt::Tensor::borrow(static_cast<rt::DType>(array.type), array.dims,
                            const_cast<std::byte*>(array.bytes.data()));
}

Array array_of(const rt::Tensor& tensor, const std::string& name) {
  Array array;
  array.name = name;
  array.type = static_cast<librt::DType>(tensor.dtype());
  array.dims.assign(tensor.dims().begin(), tensor.dims().end());
  array.bytes.resize(tensor.bytes());
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), tensor.data(), array.bytes.size());
  return array;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

rt::Status repeat_runs(rt::Session& session, int count, Times& times) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    if (rt::Status status = session.run(); !status) return status;
    seconds.push_back(seconds_since(start));
  }
  if (seconds.empty()) return {};
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  times.median = seconds[static_cast<size_t>(count / 2)];
  return {};
}

/// The whole plan if it is asked for, else what it says of the cache folder; an exit code.
int print_plan(rt::Session& session, bool whole) {
  const auto plan = session.plan_text();
  if (!plan) return librt::tools::report_failure("rtrun", plan.status());
  if (whole)
    std::fputs(librt::tools::printable(*plan, librt::tools::Lines::Several).c_str(), stderr);
  else
    librt::tools::report_unused("rtrun", *plan);
  return librt::tools::kFine;
}

/// With the weights of --checkpoint or --adapter.
rt::Result<rt::Session> create_session(const rt::Model& model, const Options& options) {
  auto session = rt::Session::create(model, options.session);
  if (!session) return session;
  if (!options.checkpoint.empty())
    if (rt::Status status = session->load_checkpoint(options.checkpoint); !status) return status;
  if (!options.adapter.empty())
    if (rt::Status status = as_public(librt::tools::load_adapter(session->handle(), options.adapter));
        !status)
      return status;
  return session;
}

rt::Status set_inputs(rt::Session& session, const InputOptions& options) {
  const auto inputs = gather_inputs(session.inputs(), options);
  if (!inputs) return inputs.status();
  for (size_t i = 0; i < inputs->size(); ++i)
    if (rt::Status status = session.set_input(i, tensor_of((*inputs)[i])); !status) return status;
  return {};
}

rt::Result<std::vector<Array>> outputs_of(rt::Session& session) {
  std::vector<Array> outputs;
  const std::vector<rt::TensorSpec> specs = session.outputs();
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto output = session.output(i);
    if (!output) return output.status();
    outputs.push_back(array_of(*output, specs[i].name));
  }
  return outputs;
}

int run(const rt::Model& model, const Options& options, Times times) {
  Clock::time_point start = Clock::now();
  auto session = create_session(model, options);
  if (!session) return report_failure("rtrun", session.status());
  times.session = seconds_since(start);
  if (options.generate.count > 0) {
    const int code = generate(model, *session, options.generate);
    return code == librt::tools::kFine ? print_plan(*session, options.plan) : code;
  }
  if (rt::Status status = set_inputs(*session, options.inputs); !status)
    return report_failure("rtrun", status);
  auto expected = read_expected(options, session->outputs());
  if (!expected) return report_failure("rtrun", expected.status());
  start = Clock::now();
  if (rt::Status status = interruptible(*session, [&] { return session->run(); }); !status)
    return report_failure("rtrun", status);
  times.first_run = seconds_since(start);
  if (const int code = print_plan(*session, options.plan); code != librt::tools::kFine) return code;
  auto outputs = outputs_of(*session);
  if (!outputs) return report_failure("rtrun", outputs.status());
  if (rt::Status status = save_outputs(options, *outputs); !status) return report_failure("rtrun", status);
  // The outputs are those of the first run: further ones may change states.
  const auto repeat = [&] { return repeat_runs(*session, options.repeat, times); };
  if (rt::Status status = interruptible(*session, repeat); !status) return report_failure("rtrun", status);
  auto names = read_names(options, *outputs);
  if (!names) return report_failure("rtrun", names.status());
  return show(*session, options,
              {.outputs = std::move(*outputs),
               .expected = std::move(*expected),
               .label_names = std::move(*names),
               .times = times});
}

int command_line(int argc, char** argv) {
  Options options;
  if (const auto code = parse_options(argc, argv, options)) return *code;
  const librt::tools::CompiledPath compiled = librt::tools::compiled_path("rtrun", options.model);
  if (compiled.failed != librt::tools::kFine) return compiled.failed;
  const Clock::time_point start = Clock::now();
  const auto model = rt::Model::load(compiled.path, options.load);
  if (!model) return report_failure("rtrun", model.status());
  if (!options.inspect) return run(*model, options, {.load = seconds_since(start)});
  inspect(*model, compiled.path, options.json);
  return librt::tools::kFine;
}

}  // namespace
}  // namespace rt::run

int main(int argc, char** argv) {
  return librt::tools::run_program("rtrun", argc, argv, rt::run::command_line);
}
