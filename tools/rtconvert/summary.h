// What rtconvert reports about a conversion, as lines or as JSON.
//
// Knows: the numbers and how they are printed. Must not know: how they come about (compile.h).
#pragma once

#include <optional>
#include <vector>

#include "tools/compiler/cache/cache.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/onnx/import.h"
#include "tools/rtconvert/coverage.h"
#include "tools/rtconvert/keep_accuracy.h"
#include "tools/rtconvert/memory_budget.h"
#include "tools/rtconvert/options.h"
#include "tools/rtconvert/quantization_report.h"
#include "tools/rtconvert/training.h"
#include "tools/rtconvert/verify.h"

namespace librt::convert {

struct Summary {
  size_t nodes_before = 0;
  compiler::GraphReport after;
  Result<uint64_t> peak = 0;  ///< of a session on the cpu backend
  uintmax_t file_bytes = 0;
  std::vector<VerifyLine> verified;
  compiler::TrainReport training;
  compiler::LoraReport adapters;
  std::optional<MemoryBudget> budget;
  size_t merged = 0;  ///< weights that --merge-adapter changed
  std::vector<Coverage> coverage, training_coverage;
  compiler::CacheReport cache;
  compiler::PrecisionReport precision;
  AccuracyReport accuracy;
  QuantizationReport quantization;
  PrecisionCost cost;
};

/// import: of the ONNX file, empty for other sources. Results on stdout, warnings on stderr.
void print_summary(const Options& options, const onnx::ImportReport& import, const Summary& summary);
/// The same as one JSON object on stdout.
void print_summary_json(const Options& options, const onnx::ImportReport& import, const Summary& summary);

}  // namespace librt::convert
