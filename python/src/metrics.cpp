// The metrics of rttrain's validation, for librt.Trainer.evaluate().
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <span>
#include <vector>

#include "python/src/errors.h"
#include "python/src/session.h"
#include "tools/rttrain/metrics.h"
#include "tools/rttrain/model_facts.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

using rt::train::Metrics;
using rt::train::Scoring;

std::string shape_text(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t extent : dims) text += (text.empty() ? "[" : ",") + std::to_string(extent);
  return text.empty() ? "[]" : text + "]";
}

/// Elements of a sample's output after its class axis.
size_t inner_extent(const Scoring& scoring, const rt_tensor& output) {
  const auto rank = static_cast<size_t>(output.rank);
  size_t inner = 1;
  for (size_t axis = rank; axis-- > scoring.class_axis_of(rank) + 1;)
    inner *= static_cast<size_t>(output.dims[axis]);
  return inner;
}

class Measure {
 public:
  Measure(bool probabilities, bool binary, int64_t class_axis, std::optional<int64_t> ignored)
      : scoring_{.probabilities = probabilities,
                 .binary = binary,
                 .ignored = ignored,
                 .class_axis = class_axis},
        metrics_(scoring_) {}

  /// The first output of infer, and the labels (i64) or targets (f32) of the same batch.
  void add(nb::handle output_array, nb::handle expected_array, bool class_labels) {
    Borrowed output, expected;
    output.take(output_array, "output", RT_F32);
    expected.take(expected_array, class_labels ? "labels" : "target", class_labels ? RT_I64 : RT_F32);
    const rt_tensor &values = output.tensor(), &wanted = expected.tensor();
    const size_t count = values.bytes / rt_dtype_size(values.dtype);
    const size_t labels = wanted.bytes / rt_dtype_size(wanted.dtype);
    const auto rank = static_cast<size_t>(values.rank);
    std::vector<int64_t> dims(values.dims, values.dims + rank);
    if (const size_t axis = scoring_.class_axis_of(rank); class_labels && axis < rank)
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    const std::span<const int64_t> found(wanted.dims, static_cast<size_t>(wanted.rank));
    if (values.dtype != RT_F32 || wanted.dtype != (class_labels ? RT_I64 : RT_F32) || labels == 0 ||
        !std::ranges::equal(found, dims))
      fail(Code::Unsupported, std::string("evaluate: cannot compare the output, ") +
                                  rt_dtype_name(values.dtype) + shape_text({values.dims, rank}) + ", with " +
                                  rt_dtype_name(wanted.dtype) + shape_text(found));
    const std::span<const float> scores(static_cast<const float*>(values.data), count);
    if (class_labels)
      metrics_.add(scores, std::span(static_cast<const int64_t*>(wanted.data), labels),
                   inner_extent(scoring_, values));
    else
      metrics_.add(scores, std::span(static_cast<const float*>(wanted.data), labels));
  }

  nb::dict results() const {
    nb::dict all;
    for (const rt::train::Measured& measured : metrics_.results())
      all[measured.name.c_str()] = measured.value;
    return all;
  }

 private:
  Scoring scoring_;
  Metrics metrics_;
};

}  // namespace

void bind_metrics(nb::module_& module) {
  nb::class_<Measure>(module, "Metrics", "Metrics of outputs, batch by batch, as rttrain computes them.")
      .def(nb::init<bool, bool, int64_t, std::optional<int64_t>>(), nb::arg("probabilities"),
           nb::arg("binary"), nb::arg("class_axis"), nb::arg("ignored"))
      .def("add", &Measure::add, nb::arg("output"), nb::arg("expected"), nb::arg("class_labels"),
           "Scores and labels (i64) of a batch, or values and targets (f32) of equal shapes.")
      .def("results", &Measure::results, nb::sig("def results(self) -> dict[str, float]"),
           "The metrics over all batches.");
  module.def("default_learning_rate", rt::train::default_learning_rate, nb::arg("optimizer"),
             "The learning rate that rttrain takes for an optimizer; None if it is unknown.");
  module.def("larger_is_better", rt::train::larger_is_better, nb::arg("metric"),
             "False for losses, errors and perplexity.");
}

}  // namespace rt::python
