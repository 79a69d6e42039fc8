// The models of a benchmark: files, or zoo networks compiled into in-memory files.
//
// Knows: the compiler library (the zoo, precisions, cost of a graph). Must not know: sessions, timing. It is
// separate because librt's internal headers and its public C++ header are not included together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/data/array.h"
#include "tools/rtbench/mode.h"

namespace librt::bench {

struct BenchModel {
  std::string name;  ///< "resnet18", or the file's stem
  std::string path;
  std::shared_ptr<const void> file;  ///< keeps the in-memory file at `path` open, if it was compiled here
  uint64_t file_bytes = 0;
  std::string precision;  ///< requested, one of precisions(); empty: the model's own
  std::string entry;      ///< the entry to run: "train_step"; empty: "infer", or the only entry
  /// For integer inputs used as indices: the extent of the axis that they index.
  std::map<std::string, int64_t> index_bounds;
};

/// "zoo:NAME" or the path of a .rt file. nullopt: `error` has the reason. For training, a file must have the
/// entry `train_step`; zoo networks get one, with cross entropy over the last axis of their output, and Adam.
std::optional<BenchModel> open_model(const std::string& source, Mode mode, std::string& error);

/// Models that measure a device's peak rates: a square matmul [size,size] x [size,size] with a constant
/// operand, and a copy-like y = -x over `elements`.
std::optional<BenchModel> matmul_model(int64_t size, std::string& error);
/// The same with both operands as inputs, x and y: both are transferred.
std::optional<BenchModel> two_input_matmul_model(int64_t size, std::string& error);
std::optional<BenchModel> copy_model(int64_t elements, std::string& error);

/// Values of --precision: "fp32", "fp16", "bf16", "int8", "int8-weights", "int4-weights".
const std::vector<std::string>& precisions();
/// Integer precisions: these are written into the model, the others may be requested of a session.
bool is_quantized(const std::string& precision);

/// The model as rtconvert --precision would write it; fp32 and tf32: unchanged, computed in that precision.
/// int8 is calibrated on `rows`: one array per input, by name, whose first axis counts rows. Already
/// quantized parts stay.
std::optional<BenchModel> in_precision(const BenchModel& model, const std::string& precision,
                                       const std::vector<tools::Array>& rows, std::string& error);

/// What one run takes by the operators' definitions: floating point operations, and bytes of all operands and
/// results. nullopt when shapes do not fit.
struct Work {
  double flops = 0, bytes = 0;
};
std::optional<Work> work_of(const BenchModel& model, const std::map<std::string, int64_t>& extents);

/// Stores a compiled model in an in-memory file and points `model` at it, so that it is mapped and takes
/// memory like any file.
librt::Status store(BenchModel& model, std::span<const std::byte> bytes);

/// "NAME  description" lines.
std::string zoo_text();

}  // namespace librt::bench
