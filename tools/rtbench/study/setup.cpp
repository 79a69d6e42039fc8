#include "tools/rtbench/study/setup.h"

#include <algorithm>

#include "tools/cli/exit_code.h"
#include "tools/data/digest.h"
#include "tools/rtbench/devices.h"
#include "tools/rtbench/price.h"
#include "tools/rtbench/source.h"
#include "tools/rtbench/tolerance.h"

namespace librt::bench {
namespace {

// What each mode has, beside fp32; the most used first.
std::vector<std::string> precisions_of(Mode mode, const std::vector<rt::DeviceInfo>& devices) {
  std::vector<std::string> all = {"fp32", "fp16", "bf16"};
  const bool cuda = std::any_of(devices.begin(), devices.end(),
                                [](const rt::DeviceInfo& device) { return device.backend == "cuda"; });
  if (cuda) all.push_back("tf32");
  if (mode == Mode::Infer) all.push_back("int8");
  return all;
}

StudyDevice device_of(const rt::DeviceInfo& info) {
  StudyDevice device;
  device.id = info.backend + ":" + std::to_string(info.index);
  device.backend = info.backend;
  device.index = info.index;
  device.name = info.name;
  device.type = type_text(info.type);
  device.driver = info.driver;
  device.program = "librt " + rt::version();
  device.memory_bytes = info.memory_bytes;
  device.threads = info.threads;
  return device;
}

std::string text_of(const rt::TensorSpec& spec) {
  std::string dims;
  for (const rt::Dim& dim : spec.dims) {
    dims += dims.empty() ? "" : ",";
    dims += dim.extent >= 0 ? std::to_string(dim.extent) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return spec.name + " " + std::string(rt::name_of(spec.dtype)) + " [" + dims + "]";
}

rt::Status describe(const BenchModel& model, const StudyOptions& options, Study& study) {
  StudiedModel& described = study.model;
  const auto loaded = load(model, options.measure.load);
  if (!loaded) return loaded.status();
  described.name = model.name;
  described.source = options.model;
  described.file_bytes = model.file_bytes;
  if (const auto digest = tools::digest_of_file(model.path); digest.ok()) described.hash = digest.value();
  int64_t fixed = 1;
  described.batch_symbol = batch_symbol(model, *loaded, fixed);
  for (const rt::TensorSpec& spec : loaded->inputs(model.entry)) described.inputs.push_back(text_of(spec));
  for (const rt::TensorSpec& spec : loaded->outputs(model.entry)) described.outputs.push_back(text_of(spec));
  return {};
}

}  // namespace

Roof roof_of(const rt::DeviceInfo& device, const MeasureOptions& options) {
  const rt_device_profile profile = device_profile(device, options, false);
  return {.measured = profile.measured != 0,
          .flops_per_second = profile.flops_f32,
          .bytes_per_second = profile.memory_bandwidth,
          .launch_seconds = profile.submit_seconds};
}

std::shared_ptr<const BenchModel> TypedModels::in(const std::string& precision, std::string& error) {
  if (const auto found = made_.find(precision); found != made_.end()) {
    error = found->second.error;
    return found->second.model;
  }
  Made& made = made_[precision];
  if (precision == "int8" && rows_.empty()) {
    auto rows = calibration_rows(model_, options_);
    if (!rows) {
      error = made.error = rows.status().message();
      return nullptr;
    }
    rows_ = std::move(*rows);
  }
  if (auto typed = in_precision(model_, precision, rows_, made.error))
    made.model = std::make_shared<const BenchModel>(std::move(*typed));
  error = made.error;
  return made.model;
}

namespace {

// All precisions of all modes, fp32 first.
std::vector<std::string> ordered_precisions(const StudyOptions& options,
                                            const std::vector<rt::DeviceInfo>& devices) {
  std::vector<std::string> order;
  for (const Mode mode : options.modes)
    for (const std::string& precision :
         options.precisions.empty() ? precisions_of(mode, devices) : options.precisions)
      if (std::find(order.begin(), order.end(), precision) == order.end()) order.push_back(precision);
  std::stable_partition(order.begin(), order.end(), [](const std::string& name) { return name == "fp32"; });
  return order;
}

rt::Status read_prices(const StudyOptions& options, Study& study) {
  std::string error;
  if (!options.electricity.empty()) {
    study.electricity_per_kwh = parse_electricity(options.electricity, error);
    if (!study.electricity_per_kwh) return rt::Status(rt::Code::InvalidArgument, error);
  }
  if (options.price.empty()) return {};
  std::vector<std::string> known = options.predicted;
  for (const StudyDevice& device : study.devices) known.push_back(device.id);
  const auto prices = parse_prices(options.price, known, error);
  if (!prices) return rt::Status(rt::Code::InvalidArgument, error);
  for (StudyDevice& device : study.devices) device.price_per_hour = price_of(*prices, device.id);
  return {};
}

// Why a series cannot be measured at all; empty: it may be.
std::string impossible(Mode mode, const std::string& precision, const rt::DeviceInfo& device) {
  if (mode == Mode::Train && is_quantized(precision))
    return "training in " + precision + " does not exist; take fp16 or bf16";
  if (precision == "tf32" && device.backend != "cuda") return "tf32 is a precision of CUDA's tensor cores";
  return {};
}

}  // namespace

rt::Result<StudySetup> set_up_study(const StudyOptions& options, Study& study) {
  const auto devices = rt::Devices::list();
  if (!devices) return devices.status();
  auto chosen = choose_devices(*devices, options.backends);
  if (!chosen) return chosen.status();
  if (chosen->empty())
    return rt::Status(rt::Code::Device,
                      "no device to study; `rtbench --devices` lists what there is and what is missing");
  StudySetup setup;
  for (const Mode mode : options.modes) {
    int code = tools::kFine;
    auto model = open_source(options.model, mode, code);
    if (!model) return rt::Status(code == tools::kBadMachine ? rt::Code::Device : rt::Code::InvalidModel, "");
    if (rt::Status status = check_dims({*model}, options.measure); !status) return status;
    if (setup.models.empty())
      if (rt::Status status = describe(*model, options, study); !status) return status;
    setup.models.emplace(mode, TypedModels(std::move(*model), options.measure));
  }
  for (const rt::DeviceInfo& info : *chosen) study.devices.push_back(device_of(info));
  if (rt::Status status = read_prices(options, study); !status) return status;
  for (const std::string& precision : ordered_precisions(options, *chosen))
    for (const Mode mode : options.modes) {
      if (mode == Mode::Train && is_quantized(precision) && options.precisions.empty()) continue;
      for (size_t i = 0; i < chosen->size(); ++i) {
        Series series{.device = i, .precision = precision, .mode = mode};
        series.not_measured = impossible(mode, precision, (*chosen)[i]);
        if (series.not_measured.empty()) {
          Lane& lane = setup.lanes.emplace_back();
          lane.series = study.series.size();
          lane.device = (*chosen)[i];
        }
        study.series.push_back(std::move(series));
      }
    }
  return setup;
}

void expect_outputs(LaneContext& context, std::map<Mode, TypedModels>& models, int64_t batch) {
  if (!context.options.check) return;
  auto extents = context.options.measure.dims;
  if (!context.study.model.batch_symbol.empty()) extents[context.study.model.batch_symbol] = batch;
  const auto& asked = context.options.precisions;
  const bool has_fp32 = asked.empty() || std::find(asked.begin(), asked.end(), "fp32") != asked.end();
  for (auto& [mode, typed] : models) {
    std::string error;
    const auto model = typed.in("fp32", error);
    if (model == nullptr || context.stop.requested()) continue;
    const auto work = work_of(*model, extents);
    // Plain loops do about 10^8 operations per second, and may take a twentieth of the budget.
    const double affordable = std::min(kReferenceFlops, 5e6 * context.budget.limit().value_or(1e9));
    std::string source;
    if (work && work->flops <= affordable)
      source = "reference";
    else if (!has_fp32 && !context.study.devices.empty())
      source = context.study.devices[0].backend;
    if (source.empty()) continue;
    context.progress.step("expected outputs, by " + source);
    if (auto outputs = outputs_of(*model, source, batch, context.options.measure))
      context.expected[mode] = {std::move(*outputs), source};
  }
}

}  // namespace librt::bench
