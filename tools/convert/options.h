// The options of a conversion: rtconvert's command line, and the settings of rt/compiler.h, which have the
// same names.
//
// Knows: options and their help. Must not know: how anything is done.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/compiler/progress.h"
#include "tools/compiler/train/lora.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/data/array.h"

namespace librt::convert {

/// Where a model comes from.
enum class Source : uint8_t { Onnx, Compiled, Zoo };

/// Batch 0, 1, .. of calibration data: an array for each input of a graph, by name; none when there are no
/// more.
using ReadRows = std::function<Result<std::vector<tools::Array>>(const Graph& graph, size_t batch)>;

struct Options {
  std::string input;   ///< MODEL.onnx, MODEL.rt or zoo:NAME
  std::string output;  ///< MODEL.rt or MODEL.onnx; empty: no file is written
  // Only of the library, which gets in memory what the command line has in files.
  std::span<const std::byte> bytes;  ///< of an ONNX or compiled model, instead of `input`
  bool in_memory = false;            ///< without `output`: the compiled model is wanted in memory
  std::string external_folder;       ///< with the external data of `bytes`; empty: none is read
  std::map<std::string, tools::Array> constant_arrays;  ///< as `constants`
  ReadRows read_rows;                                   ///< instead of `calibrate`
  compiler::Progress* progress = nullptr;

  std::map<std::string, int64_t> dims;
  bool open_batch = false;                       ///< a batch of 1 becomes a dynamic batch
  std::map<std::string, std::string> constants;  ///< input -> values as text, or a .npy, .npz or .pb file
  std::vector<std::string> custom_domains;       ///< of operators that the application computes
  std::map<std::string, std::string> custom_outputs;  ///< DOMAIN:OPERATOR -> signature
  std::vector<std::string> disabled_passes;
  std::string precision = "fp32";       ///< fp16, bf16; int8; int8-weights, int4-weights
  std::vector<std::string> keep_fp32;   ///< shell patterns over names of nodes
  std::optional<double> keep_accuracy;  ///< largest error of the outputs
  std::string accuracy = "auto";        ///< when the accuracy cost is measured: auto, always, never

  bool inspect = false;
  std::vector<std::string> trim;  ///< compiled models: `output` becomes a list of what they need
  bool list_ops = false;
  bool list_passes = false;
  bool json = false;
  bool verbose = false;

  bool verify = false;
  std::map<std::string, std::string> verify_inputs;  ///< name -> .npy or .pb
  std::string verify_backend;                        ///< also a session on this backend; empty: none
  bool train = false;
  compiler::TrainOptions training;
  std::string loss, optimizer;  ///< by name
  int64_t cache_length = 0;     ///< 0: past keys and values stay inputs of the model
  std::vector<std::pair<std::string, std::string>> cache_pairs;
  uint64_t memory = 0;  ///< bytes that training may take; 0: no budget
  int64_t batch = 0;    ///< samples of a step, for `memory`
  bool memory_report = false;
  std::string memory_backend = "cpu";  ///< that `memory` and the report are planned for
  std::optional<compiler::LoraOptions> lora;
  std::string checkpoint;     ///< weights to put into the model
  bool use_ema = false;       ///< the averages of the checkpoint instead of its weights
  std::string save_adapter;   ///< the parameters of the checkpoint alone; empty: not written
  std::string merge_adapter;  ///< adapter to add to the weights; empty: none
  std::vector<std::string>
      tie;              ///< shell patterns of weights that stay one where an exporter merged equal ones
  std::string weights;  ///< a safetensors file with weights for the ONNX model; empty: none
  std::string export_safetensors;  ///< the ONNX file's weights, perhaps trained; empty: none
  bool external_data = false;      ///< weights of an ONNX file that is written go into a second one
  std::string export_onnx;         ///< a copy of the ONNX file with trained weights; empty: none

  std::string calibrate;               ///< .npz or folder with rows of the inputs; empty: none
  std::string calibration = "minmax";  ///< minmax, percentile, entropy
  double percentile = 99.99;
  std::string evaluate;  ///< rows to measure the accuracy on; empty: those of `calibrate`
  std::string labels;    ///< integers, one for each of these rows; empty: none
  double max_drop = -1;  ///< of the accuracy, as a fraction; negative: any
  bool quant_report = false;
  int64_t group_size = 32;

  uint64_t seed = 1;
  std::optional<double> rtol, atol;  ///< none: what the precision allows

  Source source() const;
  bool calibrates() const { return !calibrate.empty() || read_rows; }
  bool computes_in_16_bits() const { return precision == "fp16" || precision == "bf16"; }
  bool writes_onnx() const { return output.ends_with(".onnx"); }
  /// The second file of an ONNX file that is written (tools/onnx/model_file.h).
  static std::string data_of(const std::string& onnx) { return onnx.empty() ? onnx : onnx + ".data"; }
  /// Weights alone, in a file other than a compiled model.
  bool writes_weights() const {
    return !export_onnx.empty() || !export_safetensors.empty() || !save_adapter.empty();
  }
  bool quantizes() const { return precision.starts_with("int"); }
  /// Whether to measure the effect of the precision on the outputs.
  bool measures_accuracy() const {
    return precision != "fp32" && accuracy != "never" && !train && cache_length == 0 && !keeps_custom();
  }
  /// Whether the model has operators that only the application computes.
  bool keeps_custom() const { return !custom_domains.empty() || !custom_outputs.empty(); }
  bool keeps_accuracy_of_16_bits() const { return keep_accuracy && computes_in_16_bits(); }
  /// Whether weights will change, so that equal ones must not share an initializer.
  bool changes_weights() const { return train || lora || !merge_adapter.empty(); }
};

/// An option by its long name without dashes, and its value; that of a flag is empty.
struct Setting {
  std::string name, value;
};

/// The options, or the exit code to return (help was requested, or the command line is wrong; either has been
/// printed).
struct Parsed {
  Options options;
  std::vector<Setting> settings;  ///< those that were given, but for the model and --output
  bool leave = false;
  int exit_code = 0;
};
Parsed parse_options(int argc, char** argv);

/// Adds the settings to options that have none yet, and checks all. For those of files `input`, `output` or
/// what stands for them in memory must be set already. Code::InvalidArgument names the wrong setting.
Status apply_settings(std::span<const Setting> settings, Options& options);

}  // namespace librt::convert
