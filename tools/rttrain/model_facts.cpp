#include "tools/rttrain/model_facts.h"

#include <algorithm>
#include <charconv>

#include "tools/rttrain/source.h"

namespace rt::train {
namespace {

rt::Result<std::optional<int64_t>> number_of(const rt::Model& model, const char* key) {
  const auto text = model.metadata(key);
  if (!text) return std::optional<int64_t>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    return bad_data(std::string("the model's metadata ") + key + ": expected a whole number, found '" +
                    *text + "'");
  return std::optional(number);
}

}  // namespace

std::vector<rt::TensorSpec> data_inputs(const rt::Model& model) {
  std::vector<rt::TensorSpec> inputs = model.inputs("train_step");
  std::erase_if(inputs, [](const rt::TensorSpec& input) { return input.name == "learning_rate"; });
  return inputs;
}

rt::Status read_scoring(const rt::Model& model, Scoring& scoring) {
  scoring.probabilities = model.metadata("train.output") == "probabilities";
  scoring.binary = model.metadata("train.loss") == "bce_with_logits";
  const auto class_axis = number_of(model, "train.class_axis");
  if (!class_axis) return class_axis.status();
  scoring.class_axis = class_axis->value_or(scoring.class_axis);
  const auto ignored = number_of(model, "train.ignore_index");
  if (!ignored) return ignored.status();
  scoring.ignored = *ignored;
  if (model.metadata("train.loss") != "ctc") return {};
  const auto blank = number_of(model, "train.blank");
  if (!blank) return blank.status();
  if (*blank) scoring.blank = static_cast<size_t>(**blank);
  return {};
}

int64_t class_count(const rt::Model& model, const std::vector<rt::TensorSpec>& inputs,
                    const Scoring& scoring) {
  const auto outputs = model.outputs("infer");
  const bool classes =
      std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.name == "labels"; });
  if (!classes || outputs.empty() || outputs[0].dims.empty()) return 0;
  const size_t axis = scoring.class_axis_of(outputs[0].dims.size());
  return axis < outputs[0].dims.size() ? std::max<int64_t>(outputs[0].dims[axis].extent, 0) : 0;
}

rt::Result<int64_t> shards_of(const rt::Model& model, const std::string& name, size_t ranks) {
  const auto parts = number_of(model, "train.ranks");
  if (!parts) return parts.status();
  const auto count = static_cast<int64_t>(ranks);
  if (count > 1 && !*parts)
    return bad_data(name + ": " + std::to_string(count) +
                    " ranks need a model compiled with rtconvert --train --data-parallel");
  const int64_t shards = parts->value_or(0);
  if (shards > 0 && shards != count)
    return bad_data(name + " was compiled with --shard-optimizer " + std::to_string(shards) + ", here " +
                    (count == 1 ? "is 1 rank" : "are " + std::to_string(count) + " ranks") +
                    "; use mpirun -n " + std::to_string(shards));
  return shards;
}

std::string order_problem(const rt::Model& model, size_t micro_batch) {
  const std::string how = "rtconvert --train --data-parallel --accumulate";
  const auto states = model.metadata("train.batch_states");
  if (!states || !model.metadata("train.ranks"))
    return "the gradients of single micro-batches are needed; compile the model with " + how +
           ", and give --micro-batch";
  if (micro_batch == 0)
    return "without --micro-batch the sizes of the ranks' parts, and so the order of sums, follow from the "
           "number "
           "of ranks; give --micro-batch";
  if (!states->empty())
    return "running values and random numbers follow from one batch to the next, and each rank has batches "
           "of "
           "its own: " +
           *states;
  return {};
}

std::optional<float> default_learning_rate(const std::string& optimizer) {
  static constexpr std::pair<std::string_view, float> kRates[] = {
      {"sgd", 1e-2f},     {"adam", 1e-3f},    {"adamw", 1e-3f}, {"rmsprop", 1e-3f},
      {"adagrad", 1e-2f}, {"adadelta", 1.0f}, {"lamb", 1e-3f},  {"lion", 1e-4f}};
  for (const auto& [name, rate] : kRates)
    if (name == optimizer) return rate;
  return std::nullopt;
}

}  // namespace rt::train
