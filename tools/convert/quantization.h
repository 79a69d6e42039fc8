// --precision int8: quantizes a model with ranges observed in sessions on calibration data.
//
// Knows: which nodes stay in f32 for the accuracy that is asked for. Must not know: how data is read
// (calibration_data.h), observed (calibration_run.h) and errors are measured (quantization_error.h), which
// nodes of a graph can be quantized and how (tools/compiler/quantize/calibrate.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/convert/options.h"
#include "tools/convert/quantization_report.h"
#include "tools/data/array.h"

namespace librt::convert {

/// Inserts fake quantization for training into a model that is not optimized yet; with --calibrate, its
/// ranges are initialized from data.
Status add_fake_quantization(ModelGraph& model, const Options& options, QuantizationReport& report);

bool is_quantization_aware(const ModelGraph& model);

/// Names of matmuls and convolutions that stay in f32.
using KeptNames = std::set<std::string>;
/// Prepares the trained weights of a model with fake quantization, before it is optimized. An error where the
/// options contradict this training.
Result<KeptNames> release_weights(ModelGraph& model, const Options& options);

/// Quantizes an optimized model (without residuals in epilogues) as its weights were trained: inserts
/// QuantizeLinear and DequantizeLinear with the ranges of training. kept: from release_weights().
Status quantize_trained(ModelGraph& model, const KeptNames& kept, QuantizationReport& report);

/// Rewrites the entry `infer` of an optimized f32 model (without residuals in epilogues) with QuantizeLinear
/// and DequantizeLinear, which the pipeline turns into integer arithmetic.
Status quantize_model(ModelGraph& model, const Options& options, QuantizationReport& report);
/// The same with rows in memory instead of those of options.calibrate: one array per input, by name.
Status quantize_model(ModelGraph& model, const Options& options, const std::vector<tools::Array>& rows,
                      QuantizationReport& report);

}  // namespace librt::convert
