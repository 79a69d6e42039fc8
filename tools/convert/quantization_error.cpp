#include "tools/convert/quantization_error.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/element.h"
#include "tools/data/compare.h"

namespace librt::convert {
namespace {

/// Errors are measured on so many runs.
constexpr size_t kMostRuns = 64;

tools::Array array_of(const Runner::Output& output) {
  return {.name = {},
          .type = output.type,
          .dims = output.dims,
          .bytes = {output.bytes.begin(), output.bytes.end()}};
}

}  // namespace

Result<std::vector<QuantizationReport::Line>> measure_nodes(
    const ModelGraph& model, const Graph& graph, const compiler::QuantizationChoice& choice,
    const std::map<ValueId, compiler::Observed>& observed, const CalibrationData& data) {
  std::vector<double> power(choice.matmuls.size(), 0), noise(choice.matmuls.size(), 0);
  std::vector<float> exact;
  RT_TRY(for_each_output(
      model, compiler::error_graph(graph, choice, observed), data, std::min(data.runs(), kMostRuns),
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
  std::vector<QuantizationReport::Line> lines;
  for (size_t i = 0; i < choice.matmuls.size(); ++i) {
    const Node& node = graph.nodes[choice.matmuls[i]];
    const double ratio = noise[i] > 0 ? power[i] / noise[i] : 1e30;
    lines.push_back({.name = node.name,
                     .op = std::string(name_of(node.kind())),
                     .decibels = 10 * std::log10(std::max(ratio, 1e-30))});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.decibels < b.decibels; });
  return lines;
}

OutputError::OutputError(const ModelGraph& model, const CalibrationData& data)
    : model_(model), data_(data), runs_(std::min(data.runs(), kMostRuns)) {}

Status OutputError::remember(const Graph& real) {
  return for_each_output(model_, real, data_, runs_,
                         [&](size_t, size_t, const Runner::Output& output) -> Status {
                           want_.push_back(array_of(output));
                           return {};
                         });
}

Result<double> OutputError::of(const Graph& graph) const {
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

Result<double> accuracy_of(const ModelGraph& model, const Graph& graph, const CalibrationData& data,
                           const std::vector<int64_t>& labels) {
  size_t right = 0, first_row = 0;
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
        const size_t rows = data.rows_of(run);
        const size_t classes = rows == 0 ? 0 : scores.size() / rows;
        for (size_t row = 0; row < rows; ++row) {
          const auto first = scores.begin() + static_cast<ptrdiff_t>(row * classes);
          const auto best = std::max_element(first, first + static_cast<ptrdiff_t>(classes)) - first;
          right += best == labels[first_row + row] ? 1 : 0;
        }
        first_row += rows;
        return {};
      }));
  return static_cast<double>(right) / static_cast<double>(data.rows());
}

}  // namespace librt::convert
