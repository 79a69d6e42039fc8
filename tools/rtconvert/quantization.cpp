#include "tools/rtconvert/quantization.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "runtime/core/element.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/quantize/calibrate.h"
#include "tools/compiler/quantize/quantize_aware.h"
#include "tools/compiler/quantize/quantize_weights.h"
#include "tools/compiler/writer.h"
#include "tools/data/array.h"
#include "tools/data/compare.h"
#include "tools/data/idx.h"
#include "tools/data/npz.h"
#include "tools/onnx/array_file.h"
#include "tools/rtconvert/run_session.h"

namespace librt::convert {
namespace {

using compiler::Observed;
using compiler::QuantizationChoice;
using compiler::Range;
using tools::Array;

constexpr size_t kBins = 2048;

bool matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// --- data

/// Calibration rows: for each input of the model an array whose first axis counts them.
struct Data {
  std::vector<Array> inputs;  ///< in the model's order
  size_t rows = 0;
  std::vector<int64_t> batch;  ///< rows of each input per run
  size_t step = 1;             ///< rows of one run

  /// Run i's inputs.
  std::vector<Array> run(size_t i) const {
    std::vector<Array> arrays;
    for (const Array& all : inputs) {
      Array part{.name = all.name, .type = all.type, .dims = all.dims, .bytes = {}};
      part.dims[0] = static_cast<int64_t>(step);
      const size_t row = all.bytes.size() / rows;
      const auto first = all.bytes.begin() + static_cast<ptrdiff_t>(i * step * row);
      part.bytes.assign(first, first + static_cast<ptrdiff_t>(step * row));
      arrays.push_back(std::move(part));
    }
    return arrays;
  }
  size_t runs() const { return rows / step; }
};

Result<std::vector<Array>> read_arrays(const std::string& path, const std::string& option) {
  std::string error;
  std::vector<Array> arrays;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".npy" && extension != ".pb") continue;
      auto array = tools::read_array(entry.path().string(), error);
      if (!array) return Status(Code::Io, error);
      array->name = entry.path().stem().string();
      arrays.push_back(std::move(*array));
    }
  } else {
    auto read = tools::read_npz(path, error);
    if (!read) return Status(Code::Io, error);
    arrays = std::move(*read);
  }
  if (arrays.empty()) return invalid_argument(option, " ", path, ": no arrays (.npz, or a folder of .npy)");
  return arrays;
}

/// source: origin of the arrays, for messages.
Result<Data> data_of(const Graph& graph, const std::vector<Array>& arrays, const std::string& source) {
  Data data;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph[id];
    auto found =
        std::find_if(arrays.begin(), arrays.end(), [&](const Array& a) { return a.name == value.name; });
    if (found == arrays.end() && arrays.size() == 1 && graph.inputs.size() == 1) found = arrays.begin();
    if (found == arrays.end())
      return invalid_argument(source, ": expected an array for each input, found none named '", value.name,
                              "'");
    if (value.rank() == 0 || static_cast<int>(found->dims.size()) != value.rank() || found->dims[0] < 1)
      return invalid_argument(source, ": array '", found->name, "': expected rows of input '", value.name,
                              "', rank ", value.rank(), ", found rank ", found->dims.size());
    for (int axis = 1; axis < value.rank(); ++axis) {
      const Dim& dim = value.dims[static_cast<size_t>(axis)];
      if (dim.is_known() && dim.extent != found->dims[static_cast<size_t>(axis)])
        return invalid_argument(source, ": array '", found->name, "': expected extent ", dim.extent,
                                " on axis ", axis, ", found ", found->dims[static_cast<size_t>(axis)]);
    }
    if (found->type != value.dtype)
      return invalid_argument(source, ": array '", found->name, "': expected ", name_of(value.dtype),
                              ", found ", name_of(found->type));
    const auto rows = static_cast<size_t>(found->dims[0]);
    if (!data.inputs.empty() && rows != data.rows)
      return invalid_argument(source, ": expected ", data.rows, " rows of '", value.name, "', found ", rows);
    data.rows = rows;
    if (value.dims[0].is_known()) data.step = static_cast<size_t>(value.dims[0].extent);
    data.inputs.push_back(*found);
  }
  if (data.step == 0 || data.rows < data.step)
    return invalid_argument(source, ": expected at least ", data.step, " rows, found ", data.rows);
  return data;
}

Result<Data> read_data(const Graph& graph, const std::string& path, const std::string& option) {
  RT_ASSIGN(const std::vector<Array> arrays, read_arrays(path, option));
  return data_of(graph, arrays, text(option, " ", path));
}

// --- runs

/// Calls f(run, i, output) for each output i of each run of the graph as entry `infer`.
template <class F>
Status for_each_output(const ModelGraph& model, Graph graph, const Data& data, size_t runs, const F& f) {
  ModelGraph copy;
  copy.states = model.states;
  copy.entries.push_back({.name = "infer", .graph = std::move(graph)});
  RT_TRY(compiler::optimize(copy, {.disabled = {"precision"}}, nullptr));
  RT_ASSIGN(const std::vector<std::byte> bytes, compiler::serialize_model(copy));
  std::string error;
  const auto runner = Runner::open(bytes, "cpu", false, error);
  if (runner == nullptr) return Status(Code::Device, "--calibrate: " + error);
  for (size_t run = 0; run < runs; ++run) {
    if (!runner->run(data.run(run), error)) return Status(Code::Device, "--calibrate: " + error);
    for (size_t i = 0; i < runner->output_count(); ++i) {
      const auto output = runner->output(i, error);
      if (!output) return Status(Code::Device, "--calibrate: " + error);
      RT_TRY(f(run, i, *output));
    }
  }
  return {};
}

std::span<const float> floats(const Runner::Output& output) {
  return {reinterpret_cast<const float*>(output.bytes.data()), output.bytes.size() / sizeof(float)};
}

// --- ranges

struct Histogram {
  Range range;
  std::vector<double> counts = std::vector<double>(kBins, 0);

  float width() const { return (range.high - range.low) / static_cast<float>(kBins); }
  void add(std::span<const float> values) {
    const float scale = width() > 0 ? 1 / width() : 0;
    for (const float value : values) {
      const auto bin = static_cast<int64_t>((value - range.low) * scale);
      ++counts[static_cast<size_t>(std::clamp<int64_t>(bin, 0, kBins - 1))];
    }
  }
  float edge(size_t bin) const { return range.low + static_cast<float>(bin) * width(); }
};

/// The range of all but a fraction of the values: half is cut on each side, or all of it on one side where
/// the other is bounded by 0.
Range percentile_range(const Histogram& histogram, double percentile) {
  double total = 0, seen = 0;
  for (const double count : histogram.counts) total += count;
  const bool positive = histogram.range.low >= 0, negative = histogram.range.high <= 0;
  const double share = total * (1 - percentile / 100) / (positive || negative ? 1 : 2);
  size_t first = 0, last = kBins;
  for (; !positive && first + 1 < last; ++first)
    if ((seen += histogram.counts[first]) > share) break;
  seen = 0;
  for (; !negative && last > first + 1; --last)
    if ((seen += histogram.counts[last - 1]) > share) break;
  return {histogram.edge(first), histogram.edge(last)};
}

/// KL divergence between a distribution over `bins` bins and the same quantized to 128 steps.
double divergence(std::span<const double> counts, size_t bins, double beyond) {
  constexpr size_t kSteps = 128;
  std::vector<double> p(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(bins)), q(bins, 0);
  p.back() += beyond;
  for (size_t step = 0; step < kSteps; ++step) {
    const size_t first = step * bins / kSteps, last = (step + 1) * bins / kSteps;
    double sum = 0, filled = 0;
    for (size_t i = first; i < last; ++i) {
      sum += counts[i];
      filled += counts[i] > 0 ? 1 : 0;
    }
    for (size_t i = first; i < last && filled > 0; ++i)
      if (counts[i] > 0) q[i] = sum / filled;
  }
  double p_sum = 0, q_sum = 0, result = 0;
  for (size_t i = 0; i < bins; ++i) {
    p_sum += p[i];
    q_sum += q[i];
  }
  for (size_t i = 0; i < bins; ++i)
    if (p[i] > 0)
      result += p[i] / p_sum * std::log(p[i] / p_sum / std::max(q[i] / std::max(q_sum, 1e-300), 1e-12));
  return result;
}

/// The mean squared error, in bins, of magnitudes that are clipped at `bins` and rounded to 255 steps below.
double squared_error(std::span<const double> counts, size_t bins) {
  const double step = static_cast<double>(bins) / 255;
  double total = 0, clipped = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const double beyond = static_cast<double>(i) + 0.5 - static_cast<double>(bins);
    if (i >= bins) clipped += counts[i] * beyond * beyond;
  }
  return step * step / 12 + clipped / std::max(total, 1.0);
}

/// The clipping bound on magnitudes with the least KL divergence at 128 steps, after TensorRT's calibration
/// (Migacz 2017), among the bounds that lose at most 6 dB against no clipping. Without that limit, values on
/// a few spikes, such as an empty background, give a small bound with a low divergence but a large
/// error.
Range entropy_range(const Histogram& histogram) {
  const float largest = std::max(-histogram.range.low, histogram.range.high);
  if (largest <= 0) return histogram.range;
  std::vector<double> magnitudes(kBins, 0);
  for (size_t i = 0; i < kBins; ++i) {
    const float middle = std::abs(histogram.edge(i) + histogram.width() / 2);
    const auto bin = static_cast<size_t>(middle / largest * static_cast<float>(kBins));
    magnitudes[std::min(bin, kBins - 1)] += histogram.counts[i];
  }
  magnitudes[0] = 0;  // exact zeros have no rounding error
  const double most = 4 * squared_error(magnitudes, kBins);
  double beyond = 0, best = std::numeric_limits<double>::infinity();
  size_t best_bins = kBins;
  for (size_t bins = kBins; bins >= 128; --bins) {
    if (squared_error(magnitudes, bins) > most) break;
    const double value = divergence(magnitudes, bins, beyond);
    if (value < best) {
      best = value;
      best_bins = bins;
    }
    beyond += magnitudes[bins - 1];
  }
  const float bound = largest * static_cast<float>(best_bins) / static_cast<float>(kBins);
  return {std::max(histogram.range.low, -bound), std::min(histogram.range.high, bound)};
}

/// The graph with these tensors as its outputs, under unique names.
Graph with_outputs(const Graph& graph, std::span<const ValueId> values) {
  Graph copy = graph;
  for (size_t i = 0; i < values.size(); ++i)
    if (copy[values[i]].role != Role::Input) copy[values[i]].name = text("observed ", i);
  copy.outputs.assign(values.begin(), values.end());
  return copy;
}

class Observer {
 public:
  Observer(const ModelGraph& model, const Graph& graph, const Data& data, const Options& options)
      : model_(model), graph_(graph), data_(data), options_(options) {}

  Status run(const QuantizationChoice& choice) {
    std::vector<ValueId> values = choice.values;
    for (const NodeId id : choice.matmuls) values.push_back(graph_.nodes[id].inputs[0]);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::erase_if(values, [&](ValueId value) { return observed.contains(value); });
    if (values.empty()) return {};
    RT_TRY(first_look(values));
    if (options_.calibration == "minmax") return {};
    return second_look(values);
  }

  std::map<ValueId, Observed> observed;

 private:
  Status first_look(const std::vector<ValueId>& values) {
    std::vector<double> count(values.size(), 0);
    const auto look = [&](size_t, size_t i, const Runner::Output& output) -> Status {
      Observed& seen = observed[values[i]];
      const auto channels = output.dims.empty() ? size_t{1} : static_cast<size_t>(output.dims.back());
      seen.mean.resize(channels, 0);
      const std::span<const float> numbers = floats(output);
      for (size_t k = 0; k < numbers.size(); ++k) {
        if (!std::isfinite(numbers[k]))
          return invalid_argument("--calibrate: '", graph_[values[i]].name,
                                  "' has a value that is not finite");
        seen.range.low = std::min(seen.range.low, numbers[k]);
        seen.range.high = std::max(seen.range.high, numbers[k]);
        seen.mean[k % channels] += static_cast<double>(numbers[k]);
      }
      count[i] += static_cast<double>(numbers.size() / std::max<size_t>(channels, 1));
      return {};
    };
    RT_TRY(for_each_output(model_, with_outputs(graph_, values), data_, data_.runs(), look));
    for (size_t i = 0; i < values.size(); ++i)
      for (double& mean : observed[values[i]].mean) mean /= std::max(count[i], 1.0);
    return {};
  }

  Status second_look(const std::vector<ValueId>& values) {
    std::vector<Histogram> histograms(values.size());
    for (size_t i = 0; i < values.size(); ++i) histograms[i].range = observed[values[i]].range;
    RT_TRY(for_each_output(model_, with_outputs(graph_, values), data_, data_.runs(),
                           [&](size_t, size_t i, const Runner::Output& output) -> Status {
                             histograms[i].add(floats(output));
                             return {};
                           }));
    for (size_t i = 0; i < values.size(); ++i)
      observed[values[i]].range = options_.calibration == "entropy"
                                      ? entropy_range(histograms[i])
                                      : percentile_range(histograms[i], options_.percentile);
    return {};
  }

  const ModelGraph& model_;
  const Graph& graph_;
  const Data& data_;
  const Options& options_;
};

// --- errors and accuracy

Status measure_errors(const ModelGraph& model, const Graph& graph, const QuantizationChoice& choice,
                      const std::map<ValueId, Observed>& observed, const Data& data,
                      QuantizationReport& report) {
  std::vector<double> power(choice.matmuls.size(), 0), noise(choice.matmuls.size(), 0);
  std::vector<float> exact;
  RT_TRY(for_each_output(
      model, compiler::error_graph(graph, choice, observed), data, std::min<size_t>(data.runs(), 64),
      [&](size_t, size_t i, const Runner::Output& output) -> Status {
        const std::span<const float> numbers = floats(output);
        if (i % 2 == 0) {
          exact.assign(numbers.begin(), numbers.end());
          return {};
        }
        for (size_t k = 0; k < numbers.size(); ++k) {
          const double difference = static_cast<double>(numbers[k]) - static_cast<double>(exact[k]);
          power[i / 2] += static_cast<double>(exact[k]) * static_cast<double>(exact[k]);
          noise[i / 2] += difference * difference;
        }
        return {};
      }));
  for (size_t i = 0; i < choice.matmuls.size(); ++i) {
    const Node& node = graph.nodes[choice.matmuls[i]];
    const double ratio = noise[i] > 0 ? power[i] / noise[i] : 1e30;
    report.lines.push_back({.name = node.name,
                            .op = std::string(name_of(node.kind())),
                            .decibels = 10 * std::log10(std::max(ratio, 1e-30))});
  }
  std::stable_sort(report.lines.begin(), report.lines.end(),
                   [](const auto& a, const auto& b) { return a.decibels < b.decibels; });
  return {};
}

Array array_of(const Runner::Output& output) {
  return {.name = {},
          .type = output.type,
          .dims = output.dims,
          .bytes = {output.bytes.begin(), output.bytes.end()}};
}

/// Errors of outputs against f32, on the first runs.
class OutputError {
 public:
  OutputError(const ModelGraph& model, const Data& data)
      : model_(model), data_(data), runs_(std::min<size_t>(data.runs(), 64)) {}

  Status remember(const Graph& real) {
    return for_each_output(model_, real, data_, runs_,
                           [&](size_t, size_t, const Runner::Output& output) -> Status {
                             want_.push_back(array_of(output));
                             return {};
                           });
  }
  /// The largest error of an output.
  Result<double> of(const Graph& graph) const {
    std::vector<tools::RelativeError> errors(graph.outputs.size());
    RT_TRY(for_each_output(model_, graph, data_, runs_,
                           [&](size_t run, size_t i, const Runner::Output& output) -> Status {
                             errors[i].add(array_of(output), want_[run * errors.size() + i]);
                             return {};
                           }));
    double largest = 0;
    for (const tools::RelativeError& error : errors) largest = std::max(largest, error.value());
    return largest;
  }

 private:
  const ModelGraph& model_;
  const Data& data_;
  size_t runs_;
  std::vector<Array> want_;  ///< run by run, all outputs
};

Result<std::vector<int64_t>> read_labels(const std::string& path, size_t rows) {
  std::string error;
  auto array = tools::is_idx_file(path) ? tools::read_idx(path, error) : tools::read_array(path, error);
  if (!array) return Status(Code::Io, error);
  const DType type = array->type;
  const size_t count = array->bytes.size() / size_of(array->type);
  if (is_float(type) || count < rows)
    return invalid_argument("--labels ", path, ": expected ", rows, " integers, one for each row, found ",
                            tools::describe(*array));
  std::vector<int64_t> labels;
  for (size_t i = 0; i < rows; ++i)
    labels.push_back(load_integer(array->bytes.data(), type, static_cast<int64_t>(i)));
  return labels;
}

Result<double> accuracy_of(const ModelGraph& model, const Graph& graph, const Data& data,
                           const std::vector<int64_t>& labels) {
  size_t right = 0;
  RT_TRY(for_each_output(
      model, graph, data, data.runs(), [&](size_t run, size_t i, const Runner::Output& output) -> Status {
        if (i != 0) return {};
        const auto type = output.type;
        if (!is_float(type) || output.dims.empty())
          return invalid_argument("--labels: expected float scores as the first output, found ",
                                  name_of(type));
        std::vector<double> scores(output.bytes.size() / size_of(type));
        for (size_t k = 0; k < scores.size(); ++k)
          scores[k] = load_element(output.bytes.data(), type, static_cast<int64_t>(k));
        const size_t classes = scores.size() / data.step;
        for (size_t row = 0; row < data.step; ++row) {
          const auto first = scores.begin() + static_cast<ptrdiff_t>(row * classes);
          const auto best = std::max_element(first, first + static_cast<ptrdiff_t>(classes)) - first;
          right += best == labels[run * data.step + row] ? 1 : 0;
        }
        return {};
      }));
  return static_cast<double>(right) / static_cast<double>(data.runs() * data.step);
}

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace

std::string QuantizationReport::table() const {
  std::string out = "signal-to-quantization-noise ratio of each node alone, worst first\n";
  for (const Line& line : lines)
    append(out, text("  ", fixed(line.decibels, 1), " dB  ", line.op, "  ", line.name,
                     line.kept ? "  (stays in f32)" : "", "\n"));
  return out;
}

std::string QuantizationReport::summary() const {
  const auto kept = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.kept; });
  std::string out = text("quantized   ", matmuls, " MatMul/Conv nodes");
  if (tables > 0) append(out, text(" and ", tables, tables == 1 ? " embedding table" : " embedding tables"));
  if (rows > 0) append(out, text(" on ", rows, " rows"));
  if (trained) append(out, " with the ranges of training");
  if (kept > 0) append(out, text(", ", kept, " stay in f32"));
  if (equalized > 0) append(out, text(", ", equalized, " pairs of convolutions equalized"));
  if (accuracy_f32 >= 0)
    append(out, text("; accuracy ", fixed(100 * accuracy_f32, 2), " % in f32, ",
                     fixed(100 * accuracy_int8, 2), " % in int8"));
  if (output_error >= 0) append(out, text("; error of the outputs ", fixed(output_error, 4)));
  return out;
}

namespace {

Status calibrate(ModelGraph& model, const Options& options, const Data& data, QuantizationReport& report) {
  Graph& infer = *model.entry("infer");
  Data judged = data;
  if (!options.evaluate.empty()) {
    RT_ASSIGN(judged, read_data(infer, options.evaluate, "--evaluate"));
  }
  std::vector<int64_t> labels;
  if (!options.labels.empty()) {
    RT_ASSIGN(labels, read_labels(options.labels, judged.rows));
    RT_ASSIGN(report.accuracy_f32, accuracy_of(model, infer, judged, labels));
  }
  report.rows = data.rows;
  report.equalized = compiler::equalize_channels(infer);
  const Graph real = infer;
  std::set<std::string> kept;
  const auto keep = [&](const std::string& name) {
    return kept.contains(name) || matches(options.keep_fp32, name);
  };
  const QuantizationChoice all = compiler::choose_quantized(real, keep);
  if (all.matmuls.empty())
    return invalid_argument("--precision int8: the model has no Conv or MatMul with constant weights");
  OutputError error(model, data);
  const bool compares = options.quant_report || options.keep_accuracy || options.measures_accuracy();
  if (compares) RT_TRY(error.remember(real));
  Observer observer(model, real, data, options);
  RT_TRY(observer.run(all));
  if (options.quant_report || options.keep_accuracy || options.json || options.max_drop >= 0)
    RT_TRY(measure_errors(model, real, all, observer.observed, data, report));
  const auto quantize = [&](size_t worst) -> Status {
    kept.clear();
    for (size_t i = 0; i < report.lines.size(); ++i) {
      report.lines[i].kept = i < worst;
      if (i < worst) kept.insert(report.lines[i].name);
    }
    const QuantizationChoice choice = compiler::choose_quantized(real, keep);
    RT_TRY(observer.run(choice));
    infer = real;
    compiler::insert_quantization(infer, choice, observer.observed);
    report.matmuls = choice.matmuls.size();
    RT_ASSIGN(report.tables, compiler::quantize_tables(infer, model.states, keep));
    if (compares) {
      RT_ASSIGN(report.output_error, error.of(infer));
    }
    if (labels.empty()) return {};
    RT_ASSIGN(report.accuracy_int8, accuracy_of(model, infer, judged, labels));
    return {};
  };
  RT_TRY(quantize(0));
  if (options.max_drop < 0 && !options.keep_accuracy) return {};
  // The fewest worst nodes to keep in f32 for the accuracy: doubling until it suffices, then bisection.
  const auto enough = [&] {
    if (options.keep_accuracy && report.output_error > *options.keep_accuracy) return false;
    return options.max_drop < 0 || report.accuracy_f32 - report.accuracy_int8 <= options.max_drop + 1e-12;
  };
  size_t low = 0, high = 0;
  while (!enough() && high < report.lines.size()) {
    low = high;
    high = std::min(report.lines.size(), std::max<size_t>(1, 2 * high));
    RT_TRY(quantize(high));
  }
  while (high > low + 1) {
    const size_t middle = (low + high) / 2;
    RT_TRY(quantize(middle));
    (enough() ? high : low) = middle;
  }
  return high == 0 ? Status() : quantize(high);
}

Status check_patterns(const Graph& graph, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return matches({pattern}, node.name); }))
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
  const QuantizationChoice choice = compiler::choose_fake_quantized(
      infer, [&](const std::string& name) { return matches(options.keep_fp32, name); });
  if (choice.matmuls.empty())
    return invalid_argument("--quantize-aware: the model has no Conv or MatMul in f32 with constant weights");
  Data data;
  if (!options.calibrate.empty()) {
    RT_ASSIGN(data, read_data(infer, options.calibrate, "--calibrate"));
  }
  Observer observer(model, infer, data, options);
  if (data.rows > 0) RT_TRY(observer.run(choice));
  report.matmuls = choice.matmuls.size();
  report.rows = data.rows;
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
  if (!options.calibrate.empty() || !options.keep_fp32.empty())
    return invalid_argument(
        options.calibrate.empty() ? "--keep-fp32" : "--calibrate",
        " is for the training of this model (--quantize-aware); its ranges and what stays "
        "in fp32 are known");
  KeptNames kept;
  for (ModelGraph::Entry& entry : model.entries) kept.merge(compiler::release_weights(entry.graph));
  return kept;
}

Status quantize_trained(ModelGraph& model, const KeptNames& kept, QuantizationReport& report) {
  report.trained = true;
  for (ModelGraph::Entry& entry : model.entries) {
    RT_ASSIGN(report.matmuls, compiler::quantize_as_trained(entry.graph, kept));
  }
  return {};
}

Status quantize_model(ModelGraph& model, const Options& options, QuantizationReport& report) {
  Graph& infer = *model.entry("infer");
  RT_TRY(check_patterns(infer, options.keep_fp32));
  if (!options.calibrate.empty()) {
    RT_ASSIGN(const Data data, read_data(infer, options.calibrate, "--calibrate"));
    return calibrate(model, options, data, report);
  }
  const auto keep = [&](const std::string& name) { return matches(options.keep_fp32, name); };
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

Status quantize_model(ModelGraph& model, const Options& options, std::vector<Array> rows,
                      QuantizationReport& report) {
  RT_ASSIGN(const Data data, data_of(*model.entry("infer"), rows, "calibration"));
  return calibrate(model, options, data, report);
}

}  // namespace librt::convert
