// --precision int8: quantizes a model with what sessions on data show of it.
//
// Knows: calibration data, how ranges are chosen, accuracy. Must not know: what of a graph is quantized and
// how (tools/compiler/calibrate.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/common/array.h"
#include "tools/rtconvert/options.h"

namespace rt::convert {

struct QuantizationReport {
  /// A product: how much stronger its result is than the error that quantizing this node alone adds.
  struct Line {
    std::string name, op;
    double decibels = 0;
    bool kept = false;  ///< stays in f32
  };
  std::vector<Line> lines;  ///< worst first
  size_t products = 0;      ///< that are computed in integers, or have integer weights
  size_t tables = 0;        ///< embeddings whose rows are codes
  size_t rows = 0;          ///< of calibration data
  size_t equalized = 0;     ///< pairs of convolutions
  bool trained = false;     ///< with ranges of training
  /// Shares of rows whose label has the largest score; negative without labels.
  double accuracy_f32 = -1, accuracy_int8 = -1;
  /// The largest difference of an output from f32, relative to its largest magnitude; negative if not
  /// measured.
  double output_error = -1;

  std::string table() const;
  std::string summary() const;
};

/// Puts fake quantization into a model that is not optimized and shall be trained; with --calibrate, its
/// ranges begin with what is seen of data.
Status add_fake_quantization(ModelGraph& model, const Options& options, QuantizationReport& report);

bool is_quantization_aware(const ModelGraph& model);

/// Names of products that stay in f32.
using KeptNames = std::set<std::string>;
/// Prepares trained weights of a model with fake quantization, before it is optimized. An error where the
/// options ask for something else than this training.
Result<KeptNames> release_weights(ModelGraph& model, const Options& options);

/// Makes what these weights were trained for of an optimized model (without residuals in epilogues):
/// QuantizeLinear and DequantizeLinear with the ranges of training. kept: of release_weights().
Status quantize_trained(ModelGraph& model, const KeptNames& kept, QuantizationReport& report);

/// Rewrites the entry `infer` of an optimized model in f32 (without residuals in epilogues) with
/// QuantizeLinear and DequantizeLinear. The pipeline makes integer arithmetic of it.
Status quantize_model(ModelGraph& model, const Options& options, QuantizationReport& report);
/// The same by rows in memory instead of those of options.calibrate: for each input an array of its name.
Status quantize_model(ModelGraph& model, const Options& options, std::vector<tools::Array> rows,
                      QuantizationReport& report);

}  // namespace rt::convert
