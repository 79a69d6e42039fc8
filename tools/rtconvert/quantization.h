// --precision int8: quantizes a model with ranges observed in sessions on calibration data.
//
// Knows: calibration data, how ranges are chosen, accuracy. Must not know: which nodes of a graph are
// quantized and how (tools/compiler/quantize/calibrate.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/data/array.h"
#include "tools/rtconvert/options.h"

namespace librt::convert {

struct QuantizationReport {
  /// A matmul or convolution: the signal-to-noise ratio of its result when only this node is quantized.
  struct Line {
    std::string name, op;
    double decibels = 0;
    bool kept = false;  ///< stays in f32
  };
  std::vector<Line> lines;  ///< worst first
  size_t matmuls = 0;       ///< matmuls and convolutions computed in integers, or with integer weights
  size_t tables = 0;        ///< embeddings with quantized rows
  size_t rows = 0;          ///< of calibration data
  size_t equalized = 0;     ///< pairs of convolutions
  bool trained = false;     ///< with ranges from quantization-aware training
  /// Top-1 accuracies; negative without labels.
  double accuracy_f32 = -1, accuracy_int8 = -1;
  /// The largest difference of an output from f32, relative to its largest magnitude; negative if not
  /// measured.
  double output_error = -1;

  std::string table() const;
  std::string summary() const;
};

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
Status quantize_model(ModelGraph& model, const Options& options, std::vector<tools::Array> rows,
                      QuantizationReport& report);

}  // namespace librt::convert
