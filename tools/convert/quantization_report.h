// What rtconvert and rtbench report about a quantization.
//
// Knows: the numbers and how they are printed. Must not know: how they are measured.
#pragma once

#include <string>
#include <vector>

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
  /// Tensors that hold infinities on the calibration data, as where a Pad fills with them. Their readers stay
  /// in f32.
  std::vector<std::string> infinite;
  /// Tensors that held nothing but zeros in a quantization-aware training. Their readers stay in f32.
  std::vector<std::string> zeros;
  bool trained = false;  ///< with ranges from quantization-aware training
  /// Top-1 accuracies; negative without labels.
  double accuracy_f32 = -1, accuracy_int8 = -1;
  /// The largest difference of an output from f32, relative to its largest magnitude; negative if not
  /// measured.
  double output_error = -1;

  std::string table() const;
  std::string summary() const;
};

}  // namespace librt::convert
