// The models a benchmark runs: files, or networks of the zoo compiled into files in memory.
//
// Knows: the compiler library (the zoo, precisions, cost of a graph). Must not know: sessions, timing. It
// exists apart because librt's internal headers and its public C++ header are not included together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/array.h"

namespace rt::bench {

enum class Mode : uint8_t { Infer, Train };

struct BenchModel {
  std::string name;  ///< "resnet18", or the file's stem
  std::string path;
  std::shared_ptr<const void> file;  ///< keeps what `path` names, where it was compiled here
  uint64_t file_bytes = 0;
  std::string precision;  ///< that was asked for, one of precisions(); empty: as the model is
  std::string entry;      ///< what a run is: "train_step"; empty: "infer", or the only entry
  /// Integer inputs that index something: how many entries it has.
  std::map<std::string, int64_t> index_bounds;
};

/// "zoo:NAME" or a path of a .rt file. Without a value `error` tells why. To train, a file must hold the
/// entry `train_step`; networks of the zoo get one: cross entropy over the last axis of their output, and
/// Adam.
std::optional<BenchModel> open_model(const std::string& source, Mode mode, std::string& error);

/// A square matrix product [size,size] x [size,size] with a constant factor, and a copy-like y = -x over
/// `elements`: what a device's peak rates are measured with.
std::optional<BenchModel> matmul_model(int64_t size, std::string& error);
std::optional<BenchModel> copy_model(int64_t elements, std::string& error);

/// What --precision takes: "fp32", "fp16", "bf16", "int8", "int8-weights", "int4-weights".
const std::vector<std::string>& precisions();
/// Of integers: written into the model, while a session may be asked for the others.
bool is_quantized(const std::string& precision);

/// The model as rtconvert --precision would write it; fp32 and tf32: as it is, and computed so. int8 is
/// calibrated by `rows`: for each input an array of its name, whose first axis counts rows. What is quantized
/// already stays.
std::optional<BenchModel> in_precision(const BenchModel& model, const std::string& precision,
                                       const std::vector<tools::Array>& rows, std::string& error);

/// Floating point operations of one run with these extents for the symbols; nullopt when shapes do not fit.
std::optional<double> flops_of(const BenchModel& model, const std::map<std::string, int64_t>& extents);

/// "NAME  description" lines.
std::string zoo_text();

}  // namespace rt::bench
