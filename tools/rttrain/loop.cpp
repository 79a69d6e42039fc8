#include "tools/rttrain/loop.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "tools/data/array.h"

namespace rt::train {

volatile std::sig_atomic_t g_stop = 0;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The position of a run: together with the states, all that is needed to resume it bit for bit.
struct Position {
  uint64_t epoch = 0;  ///< epochs finished
  uint64_t batch = 0;  ///< batches done of the epoch in progress
  uint64_t step = 0;   ///< steps since the beginning
  double loss_sum = 0;
  uint64_t seen = 0;     ///< samples of the epoch in progress that loss_sum covers
  uint64_t waiting = 0;  ///< epochs since the best one
  double best = std::numeric_limits<double>::quiet_NaN();
};

// Exact: hexadecimal for floating point.
std::string text_of(uint64_t value) {
  return std::to_string(value);
}
std::string text_of(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

bool parse(const std::string& text, uint64_t& value) {
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size();
}
bool parse(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

// The members of Position with their names in a checkpoint.
template <class Visit>
void for_each_field(Position& position, Visit visit) {
  visit("rttrain.epoch", position.epoch);
  visit("rttrain.batch", position.batch);
  visit("rttrain.step", position.step);
  visit("rttrain.loss_sum", position.loss_sum);
  visit("rttrain.seen", position.seen);
  visit("rttrain.waiting", position.waiting);
  visit("rttrain.best", position.best);
}

class Loop {
 public:
  Loop(rt::Trainer& trainer, Budget& budget, const Samples& training, const Samples* validation, RunLog& log,
       const Ranks& ranks, const LoopOptions& options)
      : trainer_(trainer),
        budget_(budget),
        training_(training),
        validation_(validation),
        log_(log),
        ranks_(ranks),
        options_(options),
        batches_(Loader::batches(training.source.size(), options.batch, options.drop_last)) {}

  rt::Result<Outcome> run() {
    if (batches_ == 0)
      return bad_data("the batch size " + std::to_string(options_.batch) +
                      " exceeds the number of samples, " + std::to_string(training_.source.size()));
    if (rt::Status status = check_parts(); !status) return status;
    if (rt::Status status = check_folders(); !status) return status;
    if (options_.resume)
      if (rt::Status status = load(); !status) return status;
    if (rt::Status status = separate_random_numbers(); !status) return status;
    if (options_.micro_batch > 0)
      if (rt::Status status = open_accumulation(); !status) return status;
    if (options_.micro_batch == 0)
      if (rt::Status status = prepare_whole_batches(); !status) return status;
    if (validation_ != nullptr) {
      auto session = budget_.open("infer");
      if (!session) return session.status();
      infer_.emplace(std::move(*session));
      if (rt::Status status = prepare("infer", *infer_, std::max<size_t>(part_of(validation_batch()), 1));
          !status)
        return status;
    }
    if (budget_.is_set() && ranks_.is_first())
      std::fprintf(stderr, "rttrain: takes %s\n", budget_.text().c_str());
    const uint64_t first = position_.epoch * batches_ + position_.batch;
    loader_.emplace(training_.source, training_.transform,
                    LoaderOptions{.batch = options_.batch,
                                  .seed = options_.seed,
                                  .shuffle = options_.shuffle,
                                  .drop_last = options_.drop_last,
                                  .workers = options_.workers,
                                  .prefetch = options_.prefetch,
                                  .first = first,
                                  .end = std::max(first, total_steps()),
                                  .rank = ranks_.rank(),
                                  .ranks = ranks_.count()});
    under_way_ = steps_under_way();
    while (!done() && !stopping())
      if (rt::Status status = epoch(); !status) return status;
    const Outcome outcome = reached_ ? Outcome::Reached : done() ? Outcome::Finished : Outcome::Stopped;
    if (!options_.checkpoint.empty() && unsaved_)
      if (rt::Status status = save(options_.checkpoint); !status) return status;
    if (outcome == Outcome::Stopped && ranks_.is_first())
      std::fprintf(
          stderr, "rttrain: stopped after step %lu; %s\n", static_cast<unsigned long>(position_.step),
          options_.checkpoint.empty() ? "nothing saved (no --checkpoint)" : "continue with --resume");
    return outcome;
  }

 private:
  uint64_t total_steps() const {
    const uint64_t all = options_.epochs * batches_;
    return options_.steps > 0 ? std::min(options_.steps, all) : all;
  }
  bool out_of_steps(uint64_t step) const { return options_.steps > 0 && step >= options_.steps; }
  bool out_of_steps() const { return out_of_steps(position_.step); }
  bool out_of_patience() const { return options_.patience > 0 && position_.waiting >= options_.patience; }
  bool done() const {
    return position_.epoch >= options_.epochs || reached_ || out_of_patience() || out_of_steps();
  }

  // A signal reaches ranks at different times, so they agree in finish_step().
  bool stopping() const { return ranks_.count() > 1 ? agreed_to_stop_ : g_stop != 0; }

  // Every rank needs samples in every step.
  rt::Status check_parts() const {
    const size_t rest = options_.drop_last ? 0 : training_.source.size() % options_.batch;
    const size_t least = rest > 0 ? rest : options_.batch;
    if (least >= ranks_.count()) return {};
    return bad_data("a batch of " + std::to_string(least) + " samples cannot be cut into parts for " +
                    std::to_string(ranks_.count()) + " ranks; use another --batch" +
                    (rest > 0 ? ", or --drop-last" : ""));
  }

  // The random counter is a state that starts equal on all ranks; the offset keeps their streams apart.
  rt::Status separate_random_numbers() {
    constexpr const char* kCounter = "random.counter";
    if (ranks_.is_first()) return {};
    auto counter = trainer_.session().read_state(kCounter);
    if (!counter) return counter.status().code() == rt::Code::NotFound ? rt::Status() : counter.status();
    counter->values<int64_t>()[0] += static_cast<int64_t>(ranks_.rank()) << 40;
    return trainer_.session().write_state(kCounter, *counter);
  }

  rt::Status epoch() {
    const Clock::time_point start = Clock::now();
    const double waited_before = loader_->waited();
    const uint64_t seen_before = position_.seen;
    start_interval();
    while (may_begin() || begun_count_ > 0) {
      if (may_begin()) {
        if (rt::Status status = begin_step(); !status) return status;
        if (may_begin()) continue;
      }
      if (rt::Status status = finish_step(); !status) return status;
      if (options_.progress) show_progress(start, position_.seen - seen_before);
      if (options_.checkpoint_every > 0 && position_.step % options_.checkpoint_every == 0)
        if (rt::Status status = save(options_.checkpoint); !status) return status;
    }
    if (options_.progress) std::fprintf(stderr, "\r\033[K");
    const bool whole = position_.batch >= batches_;
    if (!whole && !out_of_steps()) return {};  // stopped by a signal
    const double seconds = seconds_since(start);
    EpochRecord record{
        .epoch = position_.epoch + 1,
        .step = position_.step,
        .loss = position_.loss_sum / static_cast<double>(std::max<uint64_t>(position_.seen, 1)),
        .samples_per_second = static_cast<double>(position_.seen - seen_before) / seconds,
        .seconds = seconds,
        .data_wait_seconds = loader_->waited() - waited_before,
        .validation = {}};
    if (validation_ != nullptr) {
      if (rt::Status status = validate(record.validation); !status) return status;
      if (stopping()) return {};  // the epoch ends, with its validation, when the run is resumed
    }
    if (rt::Status status = report(record); !status) return status;
    if (!whole) return {};
    ++position_.epoch;
    position_.batch = 0;
    position_.seen = 0;
    position_.loss_sum = 0;
    unsaved_ = true;
    if (rt::Status status = judge(record); !status) return status;
    return options_.checkpoint.empty() ? rt::Status() : save(options_.checkpoint);
  }

  rt::Status submit(const std::vector<rt::Tensor>& tensors, double rate) {
    const std::vector<Column>& columns = training_.source.columns();
    for (size_t c = 0; c < columns.size(); ++c)
      if (rt::Status status = trainer_.session().set_input(columns[c].input, tensors[c]); !status)
        return status;
    if (rt::Status status = trainer_.set_learning_rate(static_cast<float>(rate)); !status) return status;
    return trainer_.submit();
  }

  // Splits the batch into micro-batches: their gradients are accumulated for one step.
  rt::Result<float> train_in_parts(const std::vector<rt::Tensor>& tensors, size_t samples, double rate) {
    const std::vector<Column>& columns = training_.source.columns();
    const size_t parts = samples / options_.micro_batch;
    float sum = 0;
    const auto add_loss = [&]() -> rt::Status {
      if (rt::Status status = accumulate_->wait(); !status) return status;
      const auto loss = accumulate_->output("loss");
      if (loss) sum += loss->values<float>()[0];
      return loss.status();
    };
    for (size_t part = 0; part < parts; ++part) {
      for (size_t c = 0; c < columns.size(); ++c) {
        std::vector<int64_t> dims(tensors[c].dims().begin(), tensors[c].dims().end());
        dims[0] = static_cast<int64_t>(options_.micro_batch);
        const size_t bytes = tensors[c].bytes() / parts;
        // const_cast is safe: set_input() only copies from it.
        auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(tensors[c].data())) + part * bytes;
        const rt::Tensor piece = rt::Tensor::borrow(tensors[c].dtype(), dims, data);
        if (rt::Status status = accumulate_->set_input(columns[c].input, piece); !status) return status;
      }
      if (rt::Status status = accumulate_->submit(); !status) return status;
      if (part + 1 < under_way_) continue;
      if (rt::Status status = add_loss(); !status) return status;
    }
    for (size_t part = 1; part < std::min(parts + 1, under_way_); ++part)
      if (rt::Status status = add_loss(); !status) return status;
    const rt::Tensor learning_rate = rt::Tensor::of<float>({}, std::vector<float>{static_cast<float>(rate)});
    if (rt::Status status = update_->set_input("learning_rate", learning_rate); !status) return status;
    if (rt::Status status = update_->run(); !status) return status;
    return sum / static_cast<float>(parts);
  }

  // With a budget validation uses no larger batches than training does.
  size_t validation_batch() const {
    return budget_.is_set() && options_.micro_batch > 0 ? options_.micro_batch : options_.batch;
  }

  // The size of this rank's part of `samples`.
  size_t part_of(size_t samples) const {
    return Ranks::first_of(ranks_.rank() + 1, ranks_.count(), samples) -
           Ranks::first_of(ranks_.rank(), ranks_.count(), samples);
  }

  rt::Status prepare(const char* entry, rt::Session& session, size_t samples) {
    return budget_.prepare(entry, session, training_.source.columns(), samples);
  }

  // The last, smaller batch has its own plan.
  rt::Status prepare_whole_batches() {
    const size_t rest = options_.drop_last ? 0 : training_.source.size() % options_.batch;
    if (rest > 0)
      if (rt::Status status = prepare("train_step", trainer_.session(), part_of(rest)); !status)
        return status;
    return prepare("train_step", trainer_.session(), part_of(options_.batch));
  }

  // Micro-batches of unequal sizes would weight their samples unequally.
  rt::Status open_accumulation() {
    const size_t rest = options_.drop_last ? 0 : training_.source.size() % options_.batch;
    const size_t together = options_.micro_batch * ranks_.count();
    if (options_.batch % together != 0 || rest % together != 0)
      return bad_data(
          "--micro-batch " + std::to_string(options_.micro_batch) +
          (ranks_.count() > 1 ? " times " + std::to_string(ranks_.count()) + " ranks" : "") +
          ": expected a divisor of --batch " + std::to_string(options_.batch) +
          (rest > 0 ? " and of the last batch, " + std::to_string(rest) + " samples (or --drop-last)" : ""));
    for (auto [entry, session] : {std::pair("accumulate", &accumulate_), std::pair("update", &update_)}) {
      auto opened = budget_.open(entry);
      if (opened.status().code() == rt::Code::OutOfMemory) return opened.status();
      if (!opened)
        return bad_data("--micro-batch needs a model compiled with rtconvert --train --accumulate: " +
                        opened.status().message());
      session->emplace(std::move(*opened));
      if (rt::Status status = prepare(entry, **session, options_.micro_batch); !status) return status;
    }
    return {};
  }

  // A step that was started and not finished.
  struct Begun {
    double rate = 0;
    size_t samples = 0;     ///< over all ranks
    double stop_votes = 0;  ///< number of ranks that received a signal
    std::optional<float> loss;
  };

  // On an asynchronous device the next batch is transferred during compute: a step, or a micro-batch, is
  // started before the previous one has finished. Not with a budget, which does not count the additional
  // memory; nor with collectives in host memory, which run within the steps.
  size_t steps_under_way() const {
    const bool ranks_meet_on_device = ranks_.count() == 1 || !trainer_.session().collectives().first.empty();
    const bool ahead = trainer_.session().device().asynchronous && ranks_meet_on_device;
    return ahead && !budget_.is_set() ? 2 : 1;
  }

  // A checkpoint holds the step after which it was requested, so no later step may have started.
  bool may_begin() const {
    const uint64_t batch = position_.batch + begun_count_, step = position_.step + begun_count_;
    const bool saves_first =
        begun_count_ > 0 && options_.checkpoint_every > 0 && step % options_.checkpoint_every == 0;
    return begun_count_ < (accumulate_ ? 1 : under_way_) && batch < batches_ && !out_of_steps(step) &&
           !stopping() && !saves_first;
  }

  rt::Status begin_step() {
    const auto batch = loader_->next();
    if (!batch) return batch.status();
    const uint64_t number = position_.step + begun_count_;
    Begun& step = begun_[number % begun_.size()];
    step = {.rate = options_.schedule.learning_rate(static_cast<double>(options_.learning_rate), number),
            .samples = (*batch)->all,
            .stop_votes = g_stop != 0 ? 1.0 : 0.0,
            .loss = {}};
    if (rt::Status status = ranks_.begin_sum({&step.stop_votes, 1}); !status) return status;
    ++begun_count_;
    if (!accumulate_) return submit((*batch)->tensors, step.rate);
    const auto loss = train_in_parts((*batch)->tensors, (*batch)->samples, step.rate);
    if (!loss) return loss.status();
    step.loss = *loss;
    return {};
  }

  rt::Status finish_step() {
    Begun& step = begun_[position_.step % begun_.size()];
    const auto loss = step.loss ? rt::Result<float>(*step.loss) : trainer_.wait();
    if (!loss) return loss.status();
    if (rt::Status status = ranks_.finish_sum({&step.stop_votes, 1}); !status) return status;
    agreed_to_stop_ = agreed_to_stop_ || step.stop_votes > 0;
    --begun_count_;
    ++position_.batch;
    ++position_.step;
    unsaved_ = true;
    rate_ = step.rate;
    if (!std::isfinite(*loss) && !options_.allow_nonfinite)
      return bad_data("the loss of step " + std::to_string(position_.step) + " is " + std::to_string(*loss) +
                      ", expected a finite number; lower --lr, or go on with --allow-nonfinite" +
                      what_is_saved());
    position_.loss_sum += static_cast<double>(*loss) * static_cast<double>(step.samples);
    position_.seen += step.samples;
    interval_.loss += static_cast<double>(*loss);
    interval_.samples += step.samples;
    ++interval_.steps;
    return log_step();
  }

  // --- logging

  struct Interval {
    Clock::time_point start;
    double waited = 0, loss = 0;
    uint64_t samples = 0, steps = 0;
  };

  void start_interval() { interval_ = {.start = Clock::now(), .waited = loader_->waited()}; }

  rt::Status log_step() {
    if (!log_.active() || position_.step % options_.log_every != 0) return {};
    const rt::Status status = log_.write(StepRecord{
        .step = position_.step,
        .epoch = position_.epoch + 1,
        .loss = interval_.loss / static_cast<double>(interval_.steps),
        .learning_rate = rate_,
        .samples_per_second = static_cast<double>(interval_.samples) / seconds_since(interval_.start),
        .data_wait_seconds = loader_->waited() - interval_.waited});
    start_interval();
    return status;
  }

  void show_progress(Clock::time_point start, uint64_t seen) {
    const double elapsed = seconds_since(start);
    if (elapsed - last_shown_ < 0.2 && last_shown_ <= elapsed) return;
    last_shown_ = elapsed;
    const uint64_t left = total_steps() - std::min(total_steps(), position_.step);
    const double rate = static_cast<double>(seen) / elapsed;
    std::fprintf(
        stderr,
        "\r\033[Kepoch %lu/%lu  %3.0f %%  loss %.4f  lr %.3g  %.0f samples/s  %.0f s left  waited %.1f s for "
        "data",
        static_cast<unsigned long>(position_.epoch + 1), static_cast<unsigned long>(options_.epochs),
        100 * static_cast<double>(position_.batch) / static_cast<double>(batches_),
        position_.loss_sum / static_cast<double>(position_.seen), rate_, rate,
        static_cast<double>(left * options_.batch) / rate, loader_->waited());
  }

  rt::Status report(const EpochRecord& record) {
    if (!ranks_.is_first()) return {};
    if (options_.json) {
      std::printf("%s\n", json_of(record).c_str());
    } else {
      std::printf("epoch %lu/%lu  loss %.6f", static_cast<unsigned long>(record.epoch),
                  static_cast<unsigned long>(options_.epochs), record.loss);
      if (!record.validation.empty()) std::printf("  validation");
      for (const Measured& measured : record.validation)
        std::printf(" %s %.6f", measured.name.c_str(), measured.value);
      std::printf("  %.0f samples/s, waited %.1f s for data\n", record.samples_per_second,
                  record.data_wait_seconds);
    }
    std::fflush(stdout);
    return log_.write(record);
  }

  // --- validation

  rt::Status validate(std::vector<Measured>& results) {
    Metrics metrics(options_.scoring);
    const uint64_t count = Loader::batches(validation_->source.size(), validation_batch(), false);
    Loader loader(validation_->source, validation_->transform,
                  {.batch = validation_batch(),
                   .seed = 0,
                   .shuffle = false,
                   .workers = options_.workers,
                   .prefetch = options_.prefetch,
                   .end = count,
                   .rank = ranks_.rank(),
                   .ranks = ranks_.count()});
    for (uint64_t i = 0; i < count && !(g_stop && ranks_.count() == 1); ++i) {
      const auto batch = loader.next();
      if (!batch) return batch.status();
      if ((*batch)->samples == 0) continue;
      if (rt::Status status = measure(**batch, metrics); !status) return status;
    }
    if (rt::Status status = metrics.add_ranks(ranks_); !status) return status;
    results = metrics.results();
    return {};
  }

  // Elements of a sample's output after its class axis.
  size_t inner_extent(std::span<const int64_t> dims) const {
    size_t inner = 1;
    for (size_t axis = dims.size(); axis-- > options_.scoring.class_axis_of(dims.size()) + 1;)
      inner *= static_cast<size_t>(dims[axis]);
    return inner;
  }

  // The tensor of a batch for an input of the training step.
  const rt::Tensor* find(const Batch& batch, std::string_view input) const {
    const std::vector<Column>& columns = validation_->source.columns();
    for (size_t c = 0; c < columns.size(); ++c)
      if (columns[c].input == input) return &batch.tensors[c];
    return nullptr;
  }

  // Scores [steps, samples, classes] against the sequences of a batch.
  rt::Status measure_sequences(const Batch& batch, const rt::Tensor& output, Metrics& metrics) const {
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

  rt::Status measure(const Batch& batch, Metrics& metrics) {
    const std::vector<Column>& columns = validation_->source.columns();
    const std::vector<rt::TensorSpec> inputs = infer_->inputs();
    const rt::Tensor* expected = nullptr;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].is_label)
        expected = &batch.tensors[c];
      else if (std::none_of(inputs.begin(), inputs.end(),
                            [&](const rt::TensorSpec& input) { return input.name == columns[c].input; }))
        continue;  // used by the loss only
      else if (rt::Status status = infer_->set_input(columns[c].input, batch.tensors[c]); !status)
        return status;
    }
    if (rt::Status status = infer_->run(); !status) return status;
    const auto output = infer_->output(0);
    if (!output) return output.status();
    if (options_.scoring.blank) return measure_sequences(batch, *output, metrics);
    const auto values = output->values<float>();
    const auto count = expected == nullptr ? 0 : static_cast<size_t>(expected->elements());
    const bool classes = expected != nullptr && expected->dtype() == rt::DType::I64;
    if (output->dtype() != rt::DType::F32 || count == 0 ||
        (classes ? values.size() % count != 0 : values.size() != count))
      return {rt::Code::Unsupported, "validation: cannot compare the first output, " +
                                         std::string(rt::name_of(output->dtype())) + " with " +
                                         std::to_string(values.size()) + " elements, with " +
                                         std::to_string(count) + " labels; leave out --validate"};
    if (classes)
      metrics.add(values, expected->values<int64_t>(), inner_extent(output->dims()));
    else
      metrics.add(values, expected->values<float>());
    return {};
  }

  // --- when to stop

  rt::Result<double> value_of(const EpochRecord& record, const std::string& metric) const {
    std::string names;
    for (const Measured& measured : record.validation) {
      if (measured.name == metric) return measured.value;
      names += (names.empty() ? "" : ", ") + measured.name;
    }
    return bad_data("there is no metric '" + metric + "'; this model's are " + names);
  }

  rt::Status judge(const EpochRecord& record) {
    if (options_.target) {
      const auto value = value_of(record, options_.target->metric);
      if (!value) return value.status();
      reached_ = larger_is_better(options_.target->metric) ? *value >= options_.target->value
                                                           : *value <= options_.target->value;
    }
    if (options_.patience == 0 && options_.best.empty()) return {};
    const std::string fallback = record.validation.empty() ? "loss" : record.validation[0].name;
    const std::string& metric = !options_.monitor.empty() ? options_.monitor
                                : options_.target         ? options_.target->metric
                                                          : fallback;
    const auto value = value_of(record, metric);
    if (!value) return value.status();
    const bool better = std::isnan(position_.best) ||
                        (larger_is_better(metric) ? *value > position_.best : *value < position_.best);
    position_.waiting = better ? 0 : position_.waiting + 1;
    if (!better) return {};
    position_.best = *value;
    return options_.best.empty() ? rt::Status() : save(options_.best);
  }

  // --- checkpoints

  std::vector<std::pair<std::string, std::string>> must_be_equal() const {
    return {{"rttrain.batch_size", std::to_string(options_.batch)},
            {"rttrain.seed", std::to_string(options_.seed)},
            {"rttrain.samples", std::to_string(training_.source.size())},
            {"rttrain.order", std::string(options_.shuffle ? "shuffled" : "file") +
                                  (options_.drop_last ? ", last batch dropped" : "")},
            {"rttrain.data", options_.data_text}};
  }

  // With sharding the other ranks store their states in separate files with the step in their names. The
  // first rank's file, written after all of them, determines which ones are valid; those of the previous
  // checkpoint are removed afterwards.
  std::string file_beside(const std::string& path) const {
    return path + ".step" + std::to_string(position_.step) + ".rank" + std::to_string(ranks_.rank());
  }

  std::string what_is_saved() const {
    if (options_.checkpoint.empty()) return "; nothing is saved (no --checkpoint)";
    return saved_step_ ? "; " + options_.checkpoint + " holds step " + std::to_string(*saved_step_)
                       : "; no checkpoint was written yet";
  }

  // A finite loss does not imply finite states: the gradient, or the update, may overflow.
  rt::Status check_states() {
    for (const std::string& name : options_.float_states) {
      const auto state = trainer_.session().read_state(name);
      if (!state) return state.status();
      const auto place = librt::tools::first_nonfinite(static_cast<librt::DType>(state->dtype()),
                                                       state->data(), static_cast<size_t>(state->elements()));
      if (!place) continue;
      return bad_data("step " + std::to_string(position_.step) + " left a value that is not finite in '" +
                      name + "', element " + std::to_string(*place) +
                      ", which is not saved; lower --lr, or go on with --allow-nonfinite" + what_is_saved());
    }
    return {};
  }

  rt::Status save(const std::string& path) {
    if (!options_.allow_nonfinite && (options_.sharded || ranks_.is_first()))
      if (rt::Status status = check_states(); !status) return status;
    if (!options_.sharded) return ranks_.is_first() ? save_states(path, path) : rt::Status();
    const std::string part = file_beside(path);
    if (!ranks_.is_first())
      if (rt::Status status = save_states(path, part); !status) return status;
    if (rt::Status status = ranks_.meet(); !status) return status;
    if (ranks_.is_first())
      if (rt::Status status = save_states(path, path); !status) return status;
    if (rt::Status status = ranks_.meet(); !status) return status;
    std::string& before = parts_[path];
    if (!ranks_.is_first() && !before.empty() && before != part) std::remove(before.c_str());
    before = part;
    return {};
  }

  // path: the checkpoint that `file` is, or is a part of.
  rt::Status save_states(const std::string& path, const std::string& file) {
    auto pairs = must_be_equal();
    for_each_field(position_, [&](const char* key, auto& value) { pairs.emplace_back(key, text_of(value)); });
    pairs.insert(pairs.end(), options_.notes.begin(), options_.notes.end());
    rt::Status status = trainer_.session().save_checkpoint(file, pairs);
    if (status && &path == &options_.checkpoint) {
      unsaved_ = false;
      saved_step_ = position_.step;
    }
    // check_folders() has verified that the path is writable: a failure now is a disk error.
    return status.code() == rt::Code::Io ? rt::Status(rt::Code::Device, status.message()) : status;
  }

  // Fails before hours of training instead of after them.
  rt::Status check_folders() const {
    for (const std::string* path : {&options_.checkpoint, &options_.best}) {
      if (path->empty()) continue;
      std::error_code error;
      const auto folder = std::filesystem::absolute(*path, error).parent_path();
      if (std::filesystem::is_directory(*path, error) || access(folder.c_str(), W_OK | X_OK) != 0)
        return bad_data(*path + ": expected a file in a folder that can be written to");
    }
    return {};
  }

  rt::Status load() {
    if (rt::Status status = load(options_.checkpoint); !status) return status;
    if (options_.sharded && !ranks_.is_first()) {
      const Position position = position_;
      const std::string& part = parts_[options_.checkpoint] = file_beside(options_.checkpoint);
      if (rt::Status status = load(part); !status) return status;
      position_ = position;
    }
    saved_step_ = position_.step;
    if (ranks_.is_first())
      std::fprintf(stderr, "rttrain: continues after step %lu\n", static_cast<unsigned long>(position_.step));
    return {};
  }

  rt::Status load(const std::string& file) {
    rt::Session& session = trainer_.session();
    if (rt::Status status = session.load_checkpoint(file); !status) return status;
    std::string problem;
    for_each_field(position_, [&](const char* key, auto& value) {
      const auto text = session.checkpoint_value(key);
      if (problem.empty() && (!text || !parse(*text, value)))
        problem = std::string("has no ") + key + "; it was not written by rttrain";
    });
    for (const auto& [key, value] : must_be_equal()) {
      const std::string found = session.checkpoint_value(key).value_or("");
      if (problem.empty() && found != value)
        problem = "was written with " + key + " = " + found + ", now it is " + value +
                  "; continue with the same, or the batches would differ";
    }
    return problem.empty() ? rt::Status() : bad_data(file + ": " + problem);
  }

  rt::Trainer& trainer_;
  Budget& budget_;
  const Samples& training_;
  const Samples* validation_;
  RunLog& log_;
  const Ranks& ranks_;
  const LoopOptions& options_;
  const uint64_t batches_;
  std::optional<rt::Session> infer_, accumulate_, update_;
  std::optional<Loader> loader_;
  Position position_;
  Interval interval_;
  std::map<std::string, std::string> parts_;  ///< by checkpoint: this rank's separate file
  bool reached_ = false;
  bool agreed_to_stop_ = false;
  bool unsaved_ = false;
  std::optional<uint64_t> saved_step_;  ///< the step in the checkpoint
  double rate_ = 0;                     ///< of the last step
  size_t under_way_ = 1;
  std::array<Begun, 2> begun_;  ///< step n is at n % 2
  size_t begun_count_ = 0;
  double last_shown_ = 0;
};

}  // namespace

rt::Result<Outcome> run_training(rt::Trainer& trainer, Budget& budget, const Samples& training,
                                 const Samples* validation, RunLog& log, const Ranks& ranks,
                                 const LoopOptions& options) {
  Loop loop(trainer, budget, training, validation, log, ranks, options);
  rt::Result<Outcome> outcome = loop.run();
  if (!outcome) ranks.abandon();
  return outcome;
}

}  // namespace rt::train
