#include "tools/rttrain/validation.h"

#include <algorithm>
#include <span>

namespace rt::train {

Validation::Validation(const Samples& samples, const Ranks& ranks, const LoopOptions& options)
    : source_(samples.source),
      transform_(samples.transform),
      ranks_(ranks),
      parts_(options.ordered_sums ? alone_ : ranks),
      options_(options),
      batch_(options.micro_batch > 0 ? options.micro_batch * parts_.count() : options.batch) {}

rt::Status Validation::open(Budget& budget) {
  auto session = budget.open("infer");
  if (!session) return session.status();
  session_.emplace(std::move(*session));
  for (const size_t samples : {source_.size() % batch_, std::min(batch_, source_.size())})
    if (const size_t part = Shares(parts_.count()).part_of(parts_.rank(), samples); part > 0)
      if (rt::Status status = budget.prepare("infer", *session_, source_.columns(), part); !status)
        return status;
  return {};
}

std::vector<std::string> Validation::names() const {
  const std::vector<Column>& columns = source_.columns();
  const bool classes = std::any_of(columns.begin(), columns.end(), [](const Column& column) {
    return column.is_label && column.dtype == rt::DType::I64;
  });
  return metric_names(options_.scoring, classes, options_.classes);
}

rt::Result<std::vector<Measured>> Validation::run() {
  Metrics metrics(options_.scoring);
  const uint64_t count = Loader::batches(source_.size(), batch_, false);
  Loader loader(source_, transform_,
                {.batch = batch_,
                 .seed = 0,
                 .shuffle = false,
                 .workers = options_.workers,
                 .prefetch = options_.prefetch,
                 .end = count,
                 .rank = parts_.rank(),
                 .shares = Shares(parts_.count())});
  for (uint64_t i = 0; i < count && !(g_stop && ranks_.count() == 1); ++i) {
    const auto batch = loader.next();
    if (!batch) return batch.status();
    if ((*batch)->samples == 0) continue;
    if (rt::Status status = measure(**batch, metrics); !status) return status;
  }
  if (rt::Status status = metrics.add_ranks(parts_); !status) return status;
  return metrics.results();
}

// Elements of a sample's output after its class axis.
size_t Validation::inner_extent(std::span<const int64_t> dims) const {
  size_t inner = 1;
  for (size_t axis = dims.size(); axis-- > options_.scoring.class_axis_of(dims.size()) + 1;)
    inner *= static_cast<size_t>(dims[axis]);
  return inner;
}

// The tensor of a batch for an input of the training step.
const rt::Tensor* Validation::find(const Batch& batch, std::string_view input) const {
  const std::vector<Column>& columns = source_.columns();
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].input == input) return &batch.tensors[c];
  return nullptr;
}

// Scores [steps, samples, classes] against the sequences of a batch.
rt::Status Validation::measure_sequences(const Batch& batch, const rt::Tensor& output,
                                         Metrics& metrics) const {
  const rt::Tensor* labels = find(batch, "labels");
  const rt::Tensor* input_lengths = find(batch, "input_lengths");
  const rt::Tensor* label_lengths = find(batch, "label_lengths");
  const auto dims = output.dims();
  if (labels == nullptr || input_lengths == nullptr || label_lengths == nullptr || dims.size() != 3 ||
      output.dtype() != rt::DType::F32 || dims[1] != labels->dims()[0])
    return {rt::Code::Unsupported,
            "validation: expected scores [steps, samples, classes] in f32 for ctc, found " +
                std::string(rt::name_of(output.dtype())) + " with " + std::to_string(dims.size()) +
                " axes; leave out --validate"};
  const auto samples = static_cast<size_t>(dims[1]), classes = static_cast<size_t>(dims[2]);
  const auto most_labels = static_cast<size_t>(labels->dims()[1]);
  for (size_t i = 0; i < samples; ++i) {
    const int64_t steps = input_lengths->values<int64_t>()[i];
    const int64_t count = label_lengths->values<int64_t>()[i];
    if (steps < 0 || steps > dims[0] || count < 0 || static_cast<size_t>(count) > most_labels)
      return bad_data("validation: a sample of " + std::to_string(steps) + " steps and " +
                      std::to_string(count) + " labels; the output has " + std::to_string(dims[0]) +
                      " steps, the data " + std::to_string(most_labels) + " labels");
    const auto wanted = labels->values<int64_t>().subspan(i * most_labels, static_cast<size_t>(count));
    if (std::any_of(wanted.begin(), wanted.end(),
                    [&](int64_t label) { return label < 0 || label >= dims[2]; }))
      return bad_data("validation: a label outside of the " + std::to_string(classes) + " classes");
    metrics.add(StepScores{.values = output.values<float>().subspan(i * classes),
                           .stride = samples * classes,
                           .steps = static_cast<size_t>(steps),
                           .classes = classes,
                           .blank = *options_.scoring.blank,
                           .probabilities = options_.scoring.probabilities},
                wanted);
  }
  return {};
}

rt::Status Validation::measure(const Batch& batch, Metrics& metrics) {
  const std::vector<Column>& columns = source_.columns();
  const std::vector<rt::TensorSpec> inputs = session_->inputs();
  const rt::Tensor* expected = nullptr;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].is_label)
      expected = &batch.tensors[c];
    else if (std::none_of(inputs.begin(), inputs.end(),
                          [&](const rt::TensorSpec& input) { return input.name == columns[c].input; }))
      continue;  // used by the loss only
    else if (rt::Status status = session_->set_input(columns[c].input, batch.tensors[c]); !status)
      return status;
  }
  if (rt::Status status = session_->run(); !status) return status;
  const auto output = session_->output(0);
  if (!output) return output.status();
  if (options_.scoring.blank) return measure_sequences(batch, *output, metrics);
  const bool classes = expected != nullptr && expected->dtype() == rt::DType::I64;
  const std::span<const int64_t> dims = output->dims();
  const size_t axis = options_.scoring.class_axis_of(dims.size());
  std::vector<int64_t> wanted(dims.begin(), dims.end());
  if (classes && axis < wanted.size()) wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(axis));
  if (expected == nullptr || expected->elements() == 0 || output->dtype() != rt::DType::F32 ||
      !std::ranges::equal(expected->dims(), wanted))
    return {rt::Code::Unsupported,
            "validation: cannot compare the first output, " + std::string(rt::name_of(output->dtype())) +
                librt::tools::shape_text(dims) + ", with " +
                (expected == nullptr ? "no labels" : "labels " + librt::tools::shape_text(expected->dims())) +
                "; leave out --validate"};
  const auto values = output->values<float>();
  if (classes)
    metrics.add(values, expected->values<int64_t>(), inner_extent(output->dims()));
  else
    metrics.add(values, expected->values<float>());
  return {};
}

}  // namespace rt::train
