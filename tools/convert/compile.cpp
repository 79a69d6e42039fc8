#include "tools/convert/compile.h"

#include <filesystem>

#include "runtime/model/mapped_file.h"
#include "tools/compiler/writer.h"
#include "tools/convert/open_batch.h"
#include "tools/convert/planned_peak.h"
#include "tools/convert/quantization.h"
#include "tools/onnx/export/model.h"

namespace librt::convert {
namespace {

VerifyOptions measured_inputs(const Options& options) {
  return {.inputs = options.verify_inputs, .backend = {}, .seed = options.seed, .progress = options.progress};
}

// Adds the nodes that --keep-accuracy finds to those that stay in f32; leaves the model optimized in f32.
Status keep_worst(const Options& options, ModelGraph& model, compiler::PipelineOptions& pipeline,
                  DType precision, Summary& summary) {
  const std::vector<std::string> named = std::move(pipeline.keep_fp32);
  pipeline.keep_fp32.clear();
  RT_TRY(compiler::optimize(model, pipeline, nullptr));
  RT_TRY(compiler::report_progress(options.progress, "measure", 0, 0));
  compiler::PipelineOptions half = pipeline;
  half.precision = precision;
  half.keep_fp32 = named;
  RT_ASSIGN(summary.accuracy, keep_accuracy(model, half, *options.keep_accuracy, measured_inputs(options)));
  pipeline.keep_fp32 = named;
  for (size_t i = 0; i < summary.accuracy.kept; ++i)
    pipeline.keep_fp32.push_back(exactly(summary.accuracy.nodes[i].name));
  return {};
}

/// Measures the output error of 16 bits for a model that is not optimized yet.
Status measure_16_bits(const Options& options, ModelGraph model, compiler::PipelineOptions pipeline,
                       DType precision, Summary& summary) {
  compiler::PipelineOptions exact = pipeline;
  exact.keep_fp32.clear();
  RT_TRY(compiler::optimize(model, exact, nullptr));
  pipeline.precision = precision;
  summary.cost = cost_of_16_bits(model, pipeline, measured_inputs(options), options.accuracy == "always");
  return {};
}

/// Checkpoint, adapters.
Status change_weights(const Options& options, ModelGraph& model, Summary& summary) {
  if (!options.checkpoint.empty()) RT_TRY(apply_checkpoint(model, options));
  if (!options.merge_adapter.empty()) {
    RT_ASSIGN(const auto merged, apply_adapter(model, options.merge_adapter));
    summary.merged = merged.size();
  }
  if (options.lora) RT_TRY(compiler::add_adapters(model, *options.lora, &summary.adapters));
  return {};
}

/// A model whose graph says what is quantized, because it is trained so.
struct Awareness {
  bool is_aware = false;
  KeptNames kept;
};

Result<Awareness> prepare_training(const Options& options, ModelGraph& model, Summary& summary) {
  Awareness awareness{.is_aware = options.training.quantize_aware || is_quantization_aware(model),
                      .kept = {}};
  if (options.training.quantize_aware) {
    RT_TRY(add_fake_quantization(model, options, summary.quantization));
  } else if (options.quantizes() && awareness.is_aware) {
    RT_ASSIGN(awareness.kept, release_weights(model, options));
  }
  if (options.train && options.memory == 0) RT_TRY(add_training(model, options, summary.training));
  return awareness;
}

/// exact: what the pipeline did to the model that is quantized.
Status quantize(const Options& options, const Awareness& awareness, ModelGraph& model,
                const compiler::PipelineOptions& pipeline, compiler::PipelineReport& passes,
                Summary& summary) {
  const bool measures = options.measures_accuracy() && !options.calibrates() && !awareness.is_aware;
  const ModelGraph exact = measures ? model : ModelGraph();
  RT_TRY(awareness.is_aware ? quantize_trained(model, awareness.kept, summary.quantization)
                            : quantize_model(model, options, summary.quantization));
  RT_TRY(compiler::optimize(model, pipeline, &passes));
  if (measures)
    summary.cost = cost_of_change(exact, model, measured_inputs(options), options.accuracy == "always");
  else
    summary.cost.error = summary.quantization.output_error;
  return {};
}

/// The passes, and what is measured between them.
Status optimize(const Options& options, const Awareness& awareness, ModelGraph& model, Summary& summary) {
  compiler::PipelineOptions pipeline;
  pipeline.disabled = options.disabled_passes;
  pipeline.progress = options.progress;
  compiler::PipelineReport& passes = summary.passes;
  const DType precision = options.quantizes() ? DType::F32 : *dtype_from_name(options.precision);
  if (options.computes_in_16_bits()) pipeline.keep_fp32 = options.keep_fp32;
  if (options.keep_accuracy && !options.quantizes())
    RT_TRY(keep_worst(options, model, pipeline, precision, summary));
  else if (options.measures_accuracy() && options.computes_in_16_bits())
    RT_TRY(measure_16_bits(options, model, pipeline, precision, summary));
  // The cache is detected in the f32 graph, before the precision pass changes it.
  if (options.cache_length == 0) pipeline.precision = precision;
  // Tensors are observed and quantized without residual additions fused into their epilogues.
  pipeline.residuals = !options.calibrates() && !awareness.is_aware;
  pipeline.widen = options.quantizes();
  if (options.memory > 0) {
    RT_ASSIGN(summary.budget, fit_training(model, options, pipeline, summary.training));
  } else {
    RT_TRY(compiler::optimize(model, pipeline, &passes));
    pipeline.residuals = true;
  }
  if (options.cache_length > 0) {
    pipeline.precision = precision;
    RT_TRY(compiler::add_cache(model, {options.cache_length, options.cache_pairs}, &summary.cache));
    RT_TRY(compiler::optimize(model, pipeline, &passes));
  }
  if (options.quantizes()) RT_TRY(quantize(options, awareness, model, pipeline, passes, summary));
  return {};
}

Status describe(const Options& options, const ModelGraph& model, Summary& summary) {
  const Graph& infer = model.entries[0].graph;
  RT_ASSIGN(summary.after, compiler::report_of(infer, model.states, options.dims));
  summary.precision = compiler::precision_of(infer);
  summary.coverage = coverage_of(infer);
  if (options.train) summary.training_coverage = coverage_of(*model.entry("train_step"));
  summary.peak = planned_peak(infer, model.states, summary.after.extents, "cpu");
  return {};
}

Status verify(const Options& options, const ModelGraph& original, std::span<const std::byte> file,
              Summary& summary) {
  const bool exact = options.precision == "fp32";
  RT_ASSIGN(summary.verified, verify_compiled(original, file,
                                              {.inputs = options.verify_inputs,
                                               .backend = options.verify_backend,
                                               .seed = options.seed,
                                               .rtol = options.rtol.value_or(exact ? 1e-3 : 3e-2),
                                               .atol = options.atol.value_or(exact ? 1e-4 : 3e-2),
                                               .progress = options.progress}));
  return {};
}

/// original: the model before the passes, to verify against.
Status write(const Options& options, const ModelGraph& model, const ModelGraph& original, Summary& summary,
             std::vector<std::byte>& bytes) {
  RT_TRY(compiler::report_progress(options.progress, "write", 0, 0));
  if (options.writes_onnx()) {
    RT_ASSIGN(summary.onnx, onnx::write_onnx(model, options.output, options.external_data));
    std::error_code unknown;
    summary.file_bytes = std::filesystem::file_size(options.output, unknown);
    if (!summary.onnx->weights.empty())
      summary.file_bytes += std::filesystem::file_size(summary.onnx->weights, unknown);
    return {};
  }
  if (options.output.empty()) {
    RT_ASSIGN(bytes, compiler::serialize_model(model));
    summary.file_bytes = bytes.size();
    return options.verify ? verify(options, original, bytes, summary) : Status();
  }
  RT_TRY(compiler::write_model(model, options.output));
  std::error_code ignored;
  summary.file_bytes = std::filesystem::file_size(options.output, ignored);
  if (!options.verify) return {};
  // A model without weights would not keep its file mapped.
  RT_ASSIGN(const Blob file, map_file(options.output));
  return verify(options, original, {file.data, file.size}, summary);
}

}  // namespace

Status compile(const Options& options, ModelGraph& model, Summary& summary, std::vector<std::byte>& bytes) {
  summary.nodes_before = model.entries[0].graph.nodes.size();
  RT_TRY(compiler::write_out_chains(model));
  RT_TRY(change_weights(options, model, summary));
  if (options.open_batch && !options.dims.contains(onnx::kOpenedBatch)) {
    RT_ASSIGN(summary.unchecked_batch, check_open_batch(model, measured_inputs(options)));
  }
  RT_ASSIGN(const Awareness awareness, prepare_training(options, model, summary));
  const ModelGraph original = options.verify ? model : ModelGraph();
  RT_TRY(optimize(options, awareness, model, summary));
  RT_TRY(describe(options, model, summary));
  return write(options, model, original, summary, bytes);
}

}  // namespace librt::convert
