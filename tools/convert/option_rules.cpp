#include "tools/convert/option_rules.h"

#include <span>

#include "tools/cli/command_line.h"

namespace librt::convert {
namespace {

/// Where `applies`, `holds` must be true too; else the option is refused with `message`.
struct Rule {
  const char* option;
  bool (*applies)(const Options&);
  bool (*holds)(const Options&);
  const char* message;
};

bool from_rt(const Options& o) {
  return o.source() == Source::Compiled;
}
bool from_onnx(const Options& o) {
  return o.source() == Source::Onnx;
}
bool compiles(const Options& o) {
  return !o.output.empty() || o.inspect || o.verify || o.train || o.lora;
}
bool saves_adapter(const Options& o) {
  return !o.save_adapter.empty();
}
bool exports_onnx(const Options& o) {
  return !o.export_onnx.empty();
}
bool exports_safetensors(const Options& o) {
  return !o.export_safetensors.empty();
}
bool merges_adapter(const Options& o) {
  return !o.merge_adapter.empty();
}
bool has_checkpoint(const Options& o) {
  return !o.checkpoint.empty();
}
bool calibrates(const Options& o) {
  return o.calibrates();
}
bool is_aware(const Options& o) {
  return o.training.quantize_aware;
}
/// int8 with ranges from data.
bool is_calibrated(const Options& o) {
  return calibrates(o) && !is_aware(o);
}
bool has_labels(const Options& o) {
  return !o.labels.empty();
}
bool has_cache(const Options& o) {
  return o.cache_length > 0;
}
bool trains(const Options& o) {
  return o.train;
}
bool infers(const Options& o) {
  return !o.train;
}
bool keeps_custom(const Options& o) {
  return o.keeps_custom();
}
bool always(const Options&) {
  return true;
}

/// Options that write something other than a compiled model.
constexpr Rule kOtherOutputs[] = {
    {"--merge-adapter", merges_adapter, [](const Options& o) { return !from_rt(o) && !has_checkpoint(o); },
     "needs the source of the model (.onnx, zoo:NAME), and no --checkpoint"},
    {"--save-adapter", saves_adapter, [](const Options& o) { return from_rt(o) && has_checkpoint(o); },
     "needs the MODEL.rt that was trained, and --checkpoint"},
    {"--save-adapter", saves_adapter, [](const Options& o) { return !compiles(o) && !exports_onnx(o); },
     "writes the adapter alone; compile in another call"},
    {"--use-ema", [](const Options& o) { return o.use_ema; }, has_checkpoint, "is for --checkpoint"},
    {"--export-onnx", exports_onnx,
     [](const Options& o) { return from_onnx(o) && has_checkpoint(o) != merges_adapter(o); },
     "needs the MODEL.onnx that was trained, and --checkpoint or --merge-adapter"},
    {"--export-onnx", exports_onnx, [](const Options& o) { return !compiles(o); },
     "writes the ONNX file alone; compile in another call"},
    {"--external-data", [](const Options& o) { return o.external_data; },
     [](const Options& o) { return o.writes_onnx() || exports_onnx(o); },
     "is for a MODEL.onnx that is written, by --output or --export-onnx"},
    {"--export-safetensors", exports_safetensors,
     [](const Options& o) { return from_onnx(o) && !(has_checkpoint(o) && merges_adapter(o)); },
     "needs a MODEL.onnx, and with trained weights the --checkpoint or --merge-adapter of a training of it"},
    {"--export-safetensors", exports_safetensors,
     [](const Options& o) { return !compiles(o) && !exports_onnx(o) && !saves_adapter(o); },
     "writes the weights alone; compile in another call"},
    {"--weights", [](const Options& o) { return !o.weights.empty(); },
     [](const Options& o) {
       return from_onnx(o) && o.weights.ends_with(".safetensors") && !exports_onnx(o) &&
              !exports_safetensors(o);
     },
     "takes a FILE.safetensors for a MODEL.onnx that is compiled"},
    {"--output", [](const Options& o) { return o.writes_onnx(); },
     [](const Options& o) { return !o.verify && !o.train && !o.lora; },
     "a MODEL.onnx has the entry for inference: give the trained MODEL.rt with its --checkpoint, and no "
     "--train, --lora or --verify"},
};

constexpr Rule kCompiling[] = {
    {"--output", always,
     [](const Options& o) {
       return !o.output.empty() || o.in_memory || o.inspect || o.verify || o.memory_report;
     },
     "say where to write the model, or use --inspect, --memory-report or --verify"},
    {"--memory-report", [](const Options& o) { return o.memory_report; },
     [](const Options& o) { return !o.writes_onnx(); }, "is of a MODEL.rt"},
    {"--memory-backend", [](const Options& o) { return o.memory_backend != "cpu"; },
     [](const Options& o) { return o.memory > 0 || o.memory_report; }, "needs --memory or --memory-report"},
    {"--input", [](const Options& o) { return !o.verify_inputs.empty(); },
     [](const Options& o) { return o.verify || o.keeps_accuracy_of_16_bits() || o.measures_accuracy(); },
     "is for --verify and for measuring the error of a --precision other than fp32"},
    {"--verify-backend", [](const Options& o) { return !o.verify_backend.empty(); },
     [](const Options& o) { return o.verify; }, "needs --verify"},
    {"--accuracy", [](const Options& o) { return o.accuracy != "auto"; },
     [](const Options& o) { return o.precision != "fp32" && !o.train; },
     "is for a --precision other than fp32, without --train"},
    {"--open-batch", [](const Options& o) { return o.open_batch; }, from_onnx, "is for ONNX models"},
    {"--custom-domain", keeps_custom, from_onnx, "is for ONNX models"},
    {"--custom-domain", keeps_custom,
     [](const Options& o) {
       return !o.verify && !o.keep_accuracy && !calibrates(o) && o.accuracy != "always";
     },
     "keeps operators that only the application computes: nothing can be verified, measured or calibrated"},
    {"--constant", [](const Options& o) { return !o.constants.empty() || !o.constant_arrays.empty(); },
     from_onnx, "is for ONNX models"},
    {"--tie", [](const Options& o) { return !o.tie.empty(); },
     [](const Options& o) { return o.changes_weights() && from_onnx(o); },
     "is for --train, --lora and --export-onnx of ONNX models"},
    {"--lora", [](const Options& o) { return o.lora.has_value(); },
     [](const Options& o) { return !from_rt(o); }, "needs the source of the model (.onnx, zoo:NAME)"},
    {"--lora", [](const Options& o) { return o.lora && o.lora->dropout > 0; }, trains,
     "dropout is for --train"},
    {"--checkpoint", has_checkpoint, [](const Options& o) { return from_rt(o) && !o.train; },
     "needs the MODEL.rt that was trained, and no --train"},
    {"--memory", [](const Options& o) { return o.memory > 0; },
     [](const Options& o) { return o.train && o.batch > 0 && !o.verify; },
     "needs --train and --batch, and no --verify"},
    {"--keep-fp32", [](const Options& o) { return !o.keep_fp32.empty(); },
     [](const Options& o) { return o.precision != "fp32" || is_aware(o); },
     "needs a --precision other than fp32, or --quantize-aware"},
    {"--keep-accuracy", [](const Options& o) { return o.keep_accuracy.has_value(); },
     [](const Options& o) { return o.computes_in_16_bits() || (o.precision == "int8" && calibrates(o)); },
     "needs --precision fp16 or bf16, or --precision int8 with --calibrate"},
    {"--keep-accuracy", [](const Options& o) { return o.keep_accuracy.has_value(); },
     [](const Options& o) { return !o.train && !has_cache(o); },
     "is for inference, without --train and --cache-length"},
    {"--cache", [](const Options& o) { return !o.cache_pairs.empty(); }, has_cache, "needs --cache-length"},
    {"--cache-length", has_cache, infers, "is for inference, not for --train"},
    {"--verify", has_cache, [](const Options& o) { return !o.verify; },
     "the model's inputs change with --cache-length; verify without it"},
};

/// Of quantization and memory budgets, also where nothing is compiled.
constexpr Rule kAlways[] = {
    {"--calibrate", calibrates, [](const Options& o) { return o.precision == "int8" || is_aware(o); },
     "needs --precision int8, or --train --quantize-aware"},
    {"--calibrate", [](const Options& o) { return o.read_rows != nullptr; },
     [](const Options& o) { return o.calibrate.empty(); },
     "the rows are given twice, by a callback and a file"},
    {"--quant-report", [](const Options& o) { return o.quant_report; }, is_calibrated,
     "needs --precision int8 --calibrate"},
    {"--labels", has_labels, is_calibrated, "needs --precision int8 --calibrate"},
    {"--quantize-aware", is_aware, [](const Options& o) { return !o.lora; },
     "trains whole weights, not adapters; leave out --lora"},
    {"--calibration", [](const Options& o) { return o.calibration != "minmax"; }, calibrates,
     "needs --calibrate"},
    {"--group-size", [](const Options& o) { return o.group_size != Options().group_size; },
     [](const Options& o) { return o.precision.ends_with("-weights"); },
     "needs --precision int8-weights or int4-weights"},
    {"--evaluate", [](const Options& o) { return !o.evaluate.empty(); }, has_labels,
     "needs --labels to measure the accuracy"},
    {"--max-drop", [](const Options& o) { return o.max_drop >= 0; }, has_labels,
     "needs --labels to measure the accuracy"},
    {"--precision", [](const Options& o) { return o.quantizes(); }, infers,
     "8- and 4-bit integers are for inference, not for --train"},
    {"--memory", [](const Options& o) { return o.memory > 0; },
     [](const Options& o) { return o.training.optimizer.shards == 0; },
     "plans one process, not the ranks of --shard-optimizer"},
};

void check(std::span<const Rule> rules, const Options& options) {
  for (const Rule& rule : rules)
    if (rule.applies(options) && !rule.holds(options)) throw tools::ArgumentError(rule.option, rule.message);
}

}  // namespace

void check_rules(const Options& options) {
  if (!options.trim.empty()) {
    if (!options.input.empty())
      throw tools::ArgumentError("--trim",
                                 "expected all models after it, found '" + options.input + "' elsewhere");
    if (options.output.empty()) throw tools::ArgumentError("--trim", "needs --output");
  } else if (!options.list_ops && !options.list_passes) {
    if (options.input.empty() && options.bytes.empty())
      throw tools::ArgumentError("model", "name a model to convert or inspect");
    check(kOtherOutputs, options);
    if (!options.writes_weights()) check(kCompiling, options);
  }
  check(kAlways, options);
}

}  // namespace librt::convert
