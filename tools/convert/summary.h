// The report of a conversion, as lines or as JSON.
//
// Knows: the numbers and how they are written. Must not know: how they come about (compile.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/compiler/cache/cache.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/convert/coverage.h"
#include "tools/convert/keep_accuracy.h"
#include "tools/convert/memory_budget.h"
#include "tools/convert/options.h"
#include "tools/convert/quantization_report.h"
#include "tools/convert/training.h"
#include "tools/convert/verify.h"
#include "tools/onnx/export/model.h"
#include "tools/onnx/import.h"

namespace librt::convert {

struct Summary {
  size_t nodes_before = 0;
  compiler::GraphReport after;
  Result<uint64_t> peak = 0;  ///< of a session on the cpu backend
  uintmax_t file_bytes = 0;
  std::optional<onnx::WrittenModel> onnx;  ///< where the output is one
  std::vector<VerifyLine> verified;
  compiler::TrainReport training;
  compiler::LoraReport adapters;
  std::optional<MemoryBudget> budget;
  std::string unchecked_batch;  ///< why --open-batch was not checked; empty: it was, or is not given
  size_t merged = 0;            ///< weights that --merge-adapter changed
  std::vector<Coverage> coverage, training_coverage;
  compiler::CacheReport cache;
  compiler::PrecisionReport precision;
  AccuracyReport accuracy;
  QuantizationReport quantization;
  PrecisionCost cost;
  compiler::PipelineReport passes;
};

using Json = nlohmann::ordered_json;
/// Names in files, and of files, may be invalid UTF-8, which JSON does not allow: replaced.
/// Of the report: where the weights of an ONNX file are that was written.
std::string external_data_line(const std::string& file);
std::string json_text(const Json& json);

/// Lines, each with its end. import: of the ONNX file, empty for other sources.
std::string summary_text(const Options& options, const onnx::ImportReport& import, const Summary& summary);
/// What the import and the measurements warn of.
std::vector<std::string> warnings_of(const Options& options, const onnx::ImportReport& import,
                                     const Summary& summary);
/// The same as one object.
Json summary_json(const Options& options, const onnx::ImportReport& import, const Summary& summary);

}  // namespace librt::convert
