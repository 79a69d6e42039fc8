#include "tools/convert/training_options.h"

#include <algorithm>
#include <map>

#include "tools/cli/command_line.h"
#include "tools/data/number.h"

namespace librt::convert {

namespace {

using compiler::Loss;
using compiler::Optimizer;

template <class Kind>
using Names = std::vector<std::pair<std::string, Kind>>;

const Names<Loss> kLosses = {{"cross_entropy", Loss::CrossEntropy},
                             {"nll", Loss::NegativeLogLikelihood},
                             {"bce_with_logits", Loss::BinaryCrossEntropy},
                             {"mse", Loss::MeanSquaredError},
                             {"l1", Loss::MeanAbsoluteError},
                             {"huber", Loss::Huber},
                             {"kl_divergence", Loss::KlDivergence},
                             {"ctc", Loss::Ctc}};
const Names<Optimizer> kOptimizers = {{"sgd", Optimizer::Sgd},         {"adam", Optimizer::Adam},
                                      {"adamw", Optimizer::AdamW},     {"rmsprop", Optimizer::RmsProp},
                                      {"adagrad", Optimizer::Adagrad}, {"adadelta", Optimizer::Adadelta},
                                      {"lamb", Optimizer::Lamb},       {"lion", Optimizer::Lion}};

template <class Kind>
std::vector<std::string> names_of(const Names<Kind>& list) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : list) names.push_back(name);
  return names;
}

template <class Kind>
Kind kind_of(const Names<Kind>& list, const std::string& wanted) {
  for (const auto& [name, kind] : list)
    if (name == wanted) return kind;
  return list[0].second;  // the App has checked the name
}

bool read_number(std::string_view text, float& number) {
  const auto read = tools::number_from<float>(text);
  if (read) number = *read;
  return read.has_value();
}

/// PATTERN:lr=0.1,weight_decay=0
compiler::ParameterGroup parse_group(const std::string& text) {
  const auto wrong = [&] {
    return tools::ArgumentError("--group", "expected PATTERN:lr=FACTOR,weight_decay=NUMBER, found " + text);
  };
  const size_t colon = text.rfind(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == text.size()) throw wrong();
  compiler::ParameterGroup group{.pattern = text.substr(0, colon)};
  std::string_view rest = std::string_view(text).substr(colon + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const size_t equals = part.find('=');
    float number = 0;
    if (equals == part.npos || !read_number(part.substr(equals + 1), number) || number < 0) throw wrong();
    if (part.substr(0, equals) == "lr")
      group.learning_rate_scale = number;
    else if (part.substr(0, equals) == "weight_decay")
      group.weight_decay = number;
    else
      throw wrong();
  }
  return group;
}

}  // namespace

struct TrainingArguments::Raw {
  /// An option and the losses or optimizers that read it; empty: all.
  struct Declared {
    tools::Option* option;
    std::string_view selector;  ///< "--loss", "--optimizer"
    std::vector<std::string> readers;
  };

  std::string loss = "cross_entropy", optimizer = "sgd", loss_scale, state_type = "f32";
  int64_t loss_scale_interval = 2000;
  std::vector<std::string> groups;
  std::optional<int64_t> ignore_index;
  compiler::TrainOptions options;
  std::vector<Declared> declared;

  tools::Option* add(tools::Option* option, std::string_view selector = {},
                     std::vector<std::string> readers = {}) {
    option->group("Training");
    declared.push_back({option, selector, std::move(readers)});
    return option;
  }
  void declare_losses(tools::CommandLine& app);
  void declare_optimizers(tools::CommandLine& app);
  void declare_gradients(tools::CommandLine& app);
  void declare_ranks(tools::CommandLine& app);
  void check_readers(bool train) const;
  void read_loss_scale(compiler::GradientOptions& gradients) const;
};

TrainingArguments::TrainingArguments() : raw_(std::make_unique<Raw>()) {}
TrainingArguments::~TrainingArguments() = default;
const std::string& TrainingArguments::loss() const {
  return raw_->loss;
}
const std::string& TrainingArguments::optimizer() const {
  return raw_->optimizer;
}

void TrainingArguments::Raw::declare_losses(tools::CommandLine& app) {
  compiler::LossOptions& l = options.loss;
  add(app.add_option("--loss", loss,
                     "cross_entropy, nll (labels), bce_with_logits, mse, l1, huber, kl_divergence (target), "
                     "ctc (labels, input_lengths, label_lengths)"))
      ->check(tools::one_of(names_of(kLosses)))
      ->capture_default_str();
  add(app.add_option("--class-axis", l.class_axis, "Axis of the classes; negative counts from the end"),
      "--loss", {"cross_entropy", "nll", "kl_divergence"})
      ->capture_default_str();
  add(app.add_option("--label-smoothing", l.label_smoothing, "Probability spread evenly over all classes"),
      "--loss", {"cross_entropy"})
      ->check(tools::between(0.0, 0.999999));
  add(app.add_option("--ignore-index", ignore_index, "Label to ignore in the loss"), "--loss",
      {"cross_entropy", "nll"});
  add(app.add_option("--class-weights", l.class_weights, "W,W,..: one for each class"), "--loss",
      {"cross_entropy", "nll"})
      ->delimiter(',')
      ->check(tools::non_negative());
  add(app.add_option("--pos-weight", l.positive_weights, "W or W,W,..: factor of positive elements"),
      "--loss", {"bce_with_logits"})
      ->delimiter(',')
      ->check(tools::positive());
  add(app.add_option("--huber-delta", l.huber_delta,
                     "Error at which the loss turns from quadratic to linear"),
      "--loss", {"huber"})
      ->check(tools::positive())
      ->capture_default_str();
  add(app.add_option("--temperature", l.temperature, "Divides the logits of both models"), "--loss",
      {"kl_divergence"})
      ->check(tools::positive())
      ->capture_default_str();
  add(app.add_option("--blank", l.blank, "Index of the blank class"), "--loss", {"ctc"})
      ->check(tools::non_negative())
      ->capture_default_str();
}

void TrainingArguments::Raw::declare_optimizers(tools::CommandLine& app) {
  compiler::OptimizerOptions& o = options.optimizer.optimizer;
  constexpr std::string_view which = "--optimizer";
  const tools::Check rate = tools::between(0.0, 0.9999999);
  add(app.add_option("--optimizer", optimizer, "sgd, adam, adamw, rmsprop, adagrad, adadelta, lamb or lion"))
      ->check(tools::one_of(names_of(kOptimizers)))
      ->capture_default_str();
  add(app.add_option("--momentum", o.momentum, "sgd (0.9), rmsprop (0)"), which, {"sgd", "rmsprop"})
      ->check(rate);
  add(app.add_option("--dampening", o.dampening, "Dampening of the gradient in the momentum"), which, {"sgd"})
      ->check(tools::between(0.0, 1.0));
  add(app.add_flag("--nesterov", o.nesterov, "Nesterov's momentum"), which, {"sgd"});
  add(app.add_option("--beta1", o.beta1, "Decay rate of the first moment (0.9)"), which,
      {"adam", "adamw", "lamb", "lion"})
      ->check(rate);
  add(app.add_option("--beta2", o.beta2, "Decay rate of the second moment (0.999, lion 0.99)"), which,
      {"adam", "adamw", "lamb", "lion"})
      ->check(rate);
  add(app.add_option("--epsilon", o.epsilon, "1e-8, adagrad 1e-10, adadelta and lamb 1e-6"), which,
      {"adam", "adamw", "rmsprop", "adagrad", "adadelta", "lamb"})
      ->check(tools::non_negative());
  add(app.add_option("--decay-rate", o.decay_rate,
                     "Decay rate of the mean of squared gradients: rmsprop 0.99, adadelta 0.9"),
      which, {"rmsprop", "adadelta"})
      ->check(rate);
  add(app.add_flag("--centered", o.centered, "Divide by the standard deviation"), which, {"rmsprop"});
  add(app.add_flag("--amsgrad", o.amsgrad, "Divide by the largest second moment so far"), which,
      {"adam", "adamw"});
  add(app.add_option("--lr-decay", o.learning_rate_decay, "lr / (1 + (step - 1) decay)"), which, {"adagrad"})
      ->check(tools::non_negative());
  add(app.add_option("--initial-accumulator", o.initial_accumulator,
                     "Initial value of the sum of squared gradients"),
      which, {"adagrad"})
      ->check(tools::non_negative());
  add(app.add_option("--weight-decay", o.weight_decay, "Weight decay; decoupled with adamw, lamb, lion"))
      ->check(tools::non_negative())
      ->capture_default_str();
  add(app.add_option(
          "--optimizer-state", state_type,
          "How moments are kept between steps: f32, bf16, or u8 (8 bits, with a scale for each 256)"))
      ->check(tools::one_of({"f32", "bf16", "u8"}))
      ->capture_default_str();
  add(app.add_option("--group", groups,
                     "PATTERN:lr=FACTOR,weight_decay=NUMBER: other values for the weights matching a shell "
                     "pattern; the first match applies"))
      ->take_all();
}

void TrainingArguments::Raw::declare_gradients(tools::CommandLine& app) {
  compiler::GradientOptions& g = options.optimizer.gradients;
  add(app.add_option("--clip-value", g.clip_value, "Clip each element of the gradients"))
      ->check(tools::positive());
  add(app.add_option("--clip-norm", g.clip_norm, "Scale the gradients down to this global norm"))
      ->check(tools::positive());
  add(app.add_option(
      "--loss-scale", loss_scale,
      "dynamic (from 65536), or a number: multiplies the loss and divides the gradients; a step whose "
      "gradients are not finite is "
      "skipped; default: dynamic with --precision fp16, else none"));
  add(app.add_option("--loss-scale-interval", loss_scale_interval,
                     "dynamic: doubles after this many finite steps, halves at a skipped one"))
      ->check(tools::positive())
      ->capture_default_str();
  add(app.add_option(
          "--ema", options.optimizer.average_decay,
          "Keep the exponential moving average of the weights with this decay; the entry infer_ema uses it"))
      ->check(tools::between(0.0, 0.9999999));
  add(app.add_flag(
      "--accumulate", options.accumulate,
      "Also add the entries accumulate (gradients of a micro-batch) and update (a step with their mean)"));
  add(app.add_option(
          "--trainable", options.trainable,
          "Shell patterns of weight names, for example 'head.*,norm*'; the other weights are frozen"))
      ->delimiter(',')
      ->take_all();
  add(app.add_option("--frozen", options.frozen,
                     "Shell patterns of weight names that are not trained, for example '*pixel_mean*': ONNX "
                     "does not tell which a framework holds fixed"))
      ->delimiter(',')
      ->take_all();
  add(app.add_option("--batch-norm-momentum", options.batch_norm_momentum,
                     "Weight of the old running values in all layers; default: what the model has for each"))
      ->check(tools::between(0.0, 1.0));
  add(app.add_flag("--batch-norm-unbiased", options.batch_norm_unbiased,
                   "Running variance with n - 1, as in PyTorch; ONNX divides by n"));
  auto* aware = add(app.add_flag("--quantize-aware", options.quantize_aware,
                                 "Train with fake quantization of tensors and weights to 8 bits: rtconvert "
                                 "MODEL.rt --checkpoint FILE --precision int8 then needs no data. Ranges "
                                 "follow the batches, from those of --calibrate if it is given"));
  add(app.add_option("--range-momentum", options.range_momentum,
                     "For --quantize-aware: weight of the old ranges; 1 keeps those of --calibrate"))
      ->check(tools::between(0.0, 1.0))
      ->capture_default_str()
      ->needs(aware);
}

void TrainingArguments::Raw::declare_ranks(tools::CommandLine& app) {
  auto* parallel = add(app.add_flag("--data-parallel", options.data_parallel.enabled,
                                    "For mpirun -n N rttrain: each rank takes a part of every batch, and "
                                    "gradients are all-reduced during the backward pass"));
  add(app.add_option("--bucket-size", options.data_parallel.bucket_bytes,
                     "Size of the gradients in one all-reduce, for example 4MiB"))
      ->check(tools::byte_size())
      ->check(tools::positive())
      ->default_str("2MiB")
      ->needs(parallel);
  add(app.add_option("--shard-optimizer", options.optimizer.shards,
                     "N: each of N ranks keeps a part of the optimizer's state (ZeRO stage 1)"))
      ->check(tools::between(2, 1 << 20))
      ->needs(parallel);
}

void TrainingArguments::declare(tools::CommandLine& app) {
  raw_->declare_losses(app);
  raw_->declare_optimizers(app);
  raw_->declare_gradients(app);
  raw_->declare_ranks(app);
}

void TrainingArguments::Raw::check_readers(bool train) const {
  for (const Declared& each : declared) {
    if (each.option->count() == 0) continue;
    if (!train) throw tools::ArgumentError(each.option->get_name(), "is for --train");
    const std::string& chosen = each.selector == "--loss" ? loss : optimizer;
    if (each.readers.empty() ||
        std::find(each.readers.begin(), each.readers.end(), chosen) != each.readers.end())
      continue;
    std::string readers;
    for (const std::string& reader : each.readers) readers += (readers.empty() ? "" : ", ") + reader;
    throw tools::ArgumentError(each.option->get_name(),
                               "is for " + std::string(each.selector) + " " + readers + ", not " + chosen);
  }
}

void TrainingArguments::Raw::read_loss_scale(compiler::GradientOptions& gradients) const {
  float number = 65536;
  const bool dynamic = loss_scale == "dynamic";
  if (!dynamic && (!read_number(loss_scale, number) || number <= 0))
    throw tools::ArgumentError("--loss-scale", "expected dynamic or a positive number, found " + loss_scale);
  gradients.loss_scale = number;
  gradients.loss_scale_interval = dynamic ? loss_scale_interval : 0;
}

compiler::TrainOptions TrainingArguments::checked(bool train, bool f16) const {
  raw_->check_readers(train);
  compiler::TrainOptions result = raw_->options;
  compiler::OptimizerOptions& optimizer = result.optimizer.optimizer;
  result.loss.loss = kind_of(kLosses, raw_->loss);
  result.loss.ignore_index = raw_->ignore_index;
  optimizer.optimizer = kind_of(kOptimizers, raw_->optimizer);
  optimizer.state_type = *dtype_from_name(raw_->state_type);
  if (optimizer.nesterov && (optimizer.momentum == 0.0f || optimizer.dampening != 0))
    throw tools::ArgumentError("--nesterov", "needs a momentum and no dampening");
  for (const std::string& group : raw_->groups) result.optimizer.groups.push_back(parse_group(group));
  if (train && f16 && raw_->loss_scale.empty()) raw_->loss_scale = "dynamic";
  if (!raw_->loss_scale.empty()) raw_->read_loss_scale(result.optimizer.gradients);
  return result;
}

}  // namespace librt::convert
