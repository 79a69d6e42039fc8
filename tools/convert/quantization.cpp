#include "tools/convert/quantization.h"

#include <algorithm>

#include "tools/compiler/name_pattern.h"
#include "tools/compiler/passes/conv_transpose.h"
#include "tools/compiler/quantize/calibrate.h"
#include "tools/compiler/quantize/quantize_aware.h"
#include "tools/compiler/quantize/quantize_weights.h"
#include "tools/convert/calibration_data.h"
#include "tools/convert/calibration_run.h"
#include "tools/convert/quantization_error.h"

namespace librt::convert {
namespace {

using compiler::QuantizationChoice;
using tools::Array;

/// The rows of --calibrate, or of the application.
Result<CalibrationData> rows_of(const Graph& infer, const Options& options) {
  const auto read = [&]() -> Result<CalibrationData> {
    if (!options.calibrate.empty()) return read_calibration_data(infer, options.calibrate, "--calibrate");
    return calibration_data(
        infer, [&](size_t batch) { return options.read_rows(infer, batch); }, "calibration");
  };
  auto data = read();
  if (data.ok()) data->progress = options.progress;
  return data;
}

/// What choose() chooses, observed: again without the tensors that hold infinities, which stay in f32.
template <class Choose>
Result<QuantizationChoice> observed_choice(Observer& observer, const Choose& choose) {
  for (;;) {
    QuantizationChoice choice = choose();
    const size_t known = observer.infinite.size();
    RT_TRY(observer.run(choice));
    if (observer.infinite.size() == known) return choice;
  }
}

std::vector<std::string> names_of(const Graph& graph, const std::set<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId value : values) names.push_back(graph[value].name);
  return names;
}

/// Quantization of `infer` with ranges observed on calibration data.
class Calibration {
 public:
  Calibration(ModelGraph& model, const Options& options, const CalibrationData& data,
              QuantizationReport& report)
      : model_(model),
        infer_(*model.entry("infer")),
        options_(options),
        data_(data),
        report_(report),
        observer_(model, real_, data, options.calibration, options.percentile),
        output_error_(model, data),
        compares_(options.quant_report || options.keep_accuracy || options.measures_accuracy()) {}

  Status run() {
    RT_TRY(measure_f32());
    report_.rows = data_.rows();
    RT_TRY(compiler::use_matmuls(infer_, model_.states));
    report_.equalized = compiler::equalize_channels(infer_);
    real_ = infer_;
    if (choose().matmuls.empty())
      return invalid_argument("--precision int8: the model has no Conv or MatMul with constant weights");
    if (compares_) RT_TRY(output_error_.remember(real_));
    RT_ASSIGN(const QuantizationChoice all, choose_observed());
    if (all.matmuls.empty())
      return invalid_argument(
          "--precision int8: every Conv and MatMul reads infinities on the calibration rows");
    if (options_.quant_report || options_.keep_accuracy || options_.json || options_.max_drop >= 0) {
      RT_ASSIGN(report_.lines, measure_nodes(model_, real_, all, observer_.observed, data_));
    }
    RT_TRY(quantize_except(0));
    if (options_.max_drop < 0 && !options_.keep_accuracy) return {};
    return keep_for_accuracy();
  }

 private:
  /// Reads the data that accuracy is measured on, and measures that of the f32 model.
  Status measure_f32() {
    judged_ = data_;
    if (!options_.evaluate.empty()) {
      RT_ASSIGN(judged_, read_calibration_data(infer_, options_.evaluate, "--evaluate"));
    }
    if (options_.labels.empty()) return {};
    RT_ASSIGN(labels_, read_labels(options_.labels, judged_.rows()));
    RT_ASSIGN(report_.accuracy_f32, accuracy_of(model_, infer_, judged_, labels_));
    return {};
  }

  bool is_kept(const std::string& name) const {
    return kept_.contains(name) || compiler::matches_any(options_.keep_fp32, name);
  }
  QuantizationChoice choose() const {
    return compiler::choose_quantized(
        real_, [this](const std::string& name) { return is_kept(name); }, observer_.infinite);
  }
  Result<QuantizationChoice> choose_observed() {
    return observed_choice(observer_, [this] { return choose(); });
  }

  /// Quantizes all but the `worst` nodes of the report, and measures what is asked for.
  Status quantize_except(size_t worst) {
    kept_.clear();
    for (size_t i = 0; i < report_.lines.size(); ++i) {
      report_.lines[i].kept = i < worst;
      if (i < worst) kept_.insert(report_.lines[i].name);
    }
    RT_ASSIGN(const QuantizationChoice choice, choose_observed());
    infer_ = real_;
    compiler::insert_quantization(infer_, choice, observer_.observed);
    report_.matmuls = choice.matmuls.size();
    report_.infinite = names_of(real_, observer_.infinite);
    RT_ASSIGN(report_.tables,
              compiler::quantize_tables(infer_, model_.states,
                                        [this](const std::string& name) { return is_kept(name); }));
    if (compares_) {
      RT_ASSIGN(report_.output_error, output_error_.of(infer_));
    }
    if (labels_.empty()) return {};
    RT_ASSIGN(report_.accuracy_int8, accuracy_of(model_, infer_, judged_, labels_));
    return {};
  }

  bool is_accurate_enough() const {
    if (options_.keep_accuracy && report_.output_error > *options_.keep_accuracy) return false;
    return options_.max_drop < 0 || report_.accuracy_f32 - report_.accuracy_int8 <= options_.max_drop + 1e-12;
  }

  /// Keeps the fewest worst nodes in f32 that suffice for the accuracy: doubling until it does, then
  /// bisection.
  Status keep_for_accuracy() {
    size_t low = 0, high = 0;
    while (!is_accurate_enough() && high < report_.lines.size()) {
      low = high;
      high = std::min(report_.lines.size(), std::max<size_t>(1, 2 * high));
      RT_TRY(quantize_except(high));
    }
    while (high > low + 1) {
      const size_t middle = (low + high) / 2;
      RT_TRY(quantize_except(middle));
      (is_accurate_enough() ? high : low) = middle;
    }
    return high == 0 ? Status() : quantize_except(high);
  }

  ModelGraph& model_;
  Graph& infer_;
  const Options& options_;
  const CalibrationData& data_;
  QuantizationReport& report_;
  Graph real_;              ///< infer in f32, equalized
  CalibrationData judged_;  ///< what accuracy is measured on
  std::vector<int64_t> labels_;
  std::set<std::string> kept_;  ///< nodes that stay in f32 for the accuracy
  Observer observer_;
  OutputError output_error_;
  bool compares_;  ///< whether outputs are compared with f32
};

Status check_patterns(const Graph& graph, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return compiler::is_match(pattern, node.name); }))
      return invalid_argument("--keep-fp32: no node is named like '", pattern,
                              "'; rtconvert --inspect shows the names");
  return {};
}

}  // namespace

Status add_fake_quantization(ModelGraph& model, const Options& options, QuantizationReport& report) {
  if (model.entry("infer") == nullptr) return invalid_argument("train: the model has no entry 'infer'");
  Graph& infer = *model.entry("infer");
  if (compiler::is_quantization_aware(infer))
    return invalid_argument("--quantize-aware: the model has fake quantization already");
  RT_TRY(check_patterns(infer, options.keep_fp32));
  CalibrationData data;
  Observer observer(model, infer, data, options.calibration, options.percentile);
  const auto choose = [&] {
    return compiler::choose_fake_quantized(
        infer, [&](const std::string& name) { return compiler::matches_any(options.keep_fp32, name); },
        observer.infinite);
  };
  QuantizationChoice choice = choose();
  if (choice.matmuls.empty())
    return invalid_argument("--quantize-aware: the model has no Conv or MatMul in f32 with constant weights");
  if (options.calibrates()) {
    RT_ASSIGN(data, rows_of(infer, options));
  }
  if (!data.batches.empty()) {
    RT_ASSIGN(choice, observed_choice(observer, choose));
  }
  report.infinite = names_of(infer, observer.infinite);
  report.matmuls = choice.matmuls.size();
  report.rows = data.rows();
  compiler::insert_fake_quantization(infer, model.states, choice, observer.observed);
  return {};
}

bool is_quantization_aware(const ModelGraph& model) {
  return std::any_of(model.entries.begin(), model.entries.end(),
                     [](const auto& entry) { return compiler::is_quantization_aware(entry.graph); });
}

Result<KeptNames> release_weights(ModelGraph& model, const Options& options) {
  if (options.precision != "int8")
    return invalid_argument("--precision ", options.precision,
                            ": the model was trained for --precision int8");
  if (options.calibrates() || !options.keep_fp32.empty())
    return invalid_argument(
        options.calibrates() ? "--calibrate" : "--keep-fp32",
        " is for the training of this model (--quantize-aware); its ranges and what stays "
        "in fp32 are known");
  KeptNames kept;
  for (ModelGraph::Entry& entry : model.entries) kept.merge(compiler::release_weights(entry.graph));
  return kept;
}

Status quantize_trained(ModelGraph& model, const KeptNames& kept, QuantizationReport& report) {
  report.trained = true;
  for (ModelGraph::Entry& entry : model.entries) {
    RT_ASSIGN(compiler::TrainedQuantization made, compiler::quantize_as_trained(entry.graph, kept));
    report.matmuls = made.matmuls;
    report.zeros = std::move(made.zeros);
  }
  return {};
}

Status quantize_model(ModelGraph& model, const Options& options, QuantizationReport& report) {
  Graph& infer = *model.entry("infer");
  RT_TRY(check_patterns(infer, options.keep_fp32));
  if (options.calibrates()) {
    RT_ASSIGN(const CalibrationData data, rows_of(infer, options));
    return Calibration(model, options, data, report).run();
  }
  const auto keep = [&](const std::string& name) { return compiler::matches_any(options.keep_fp32, name); };
  if (options.precision == "int8") {
    RT_ASSIGN(report.matmuls, compiler::quantize_dynamically(infer, model.states, keep));
  } else {
    const int64_t bits = options.precision == "int4-weights" ? 4 : 8;
    RT_ASSIGN(report.matmuls,
              compiler::quantize_weights(infer, model.states, keep, bits, options.group_size));
  }
  RT_ASSIGN(report.tables, compiler::quantize_tables(infer, model.states, keep));
  if (report.matmuls > 0) return {};
  return invalid_argument("--precision ", options.precision, ": no MatMul with constant weights is eligible",
                          options.precision == "int8"
                              ? "; convolutions need --calibrate"
                              : text(" in groups of ", options.group_size, "; try another --group-size"));
}

Status quantize_model(ModelGraph& model, const Options& options, const std::vector<Array>& rows,
                      QuantizationReport& report) {
  RT_ASSIGN(const CalibrationData data, calibration_data(*model.entry("infer"), rows, "calibration"));
  return Calibration(model, options, data, report).run();
}

}  // namespace librt::convert
