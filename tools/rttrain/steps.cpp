#include "tools/rttrain/steps.h"

#include <algorithm>

namespace rt::train {

size_t equal_part(size_t samples, size_t most) noexcept {
  size_t part = std::clamp<size_t>(most, 1, std::max<size_t>(samples, 1));
  while (samples % part != 0) --part;
  return part;
}

Steps::Steps(rt::Trainer& trainer, Budget& budget, const Source& source, const Ranks& ranks,
             const LoopOptions& options)
    : trainer_(trainer),
      budget_(budget),
      columns_(source.columns()),
      ranks_(ranks),
      options_(options),
      last_(options.drop_last ? 0 : source.size() % options.batch) {}

rt::Status Steps::open() {
  if (rt::Status status = check_parts(); !status) return status;
  if (rt::Status status = options_.micro_batch > 0 ? open_accumulation() : open_whole(); !status)
    return status;
  // On an asynchronous device the next batch is transferred during compute: a step, or a micro-batch, is
  // started before the previous one has finished. Not with a budget, which does not count the additional
  // memory; nor with collectives in host memory, which run within the steps.
  const bool ranks_meet_on_device = ranks_.count() == 1 || !trainer_.session().collectives().first.empty();
  if (trainer_.session().device().asynchronous && ranks_meet_on_device && !budget_.is_set()) ahead_ = 2;
  most_ = accumulate_ ? 1 : ahead_;
  return {};
}

// Every rank needs samples in every step.
rt::Status Steps::check_parts() const {
  const size_t least = last_ > 0 ? last_ : options_.batch;
  if (least >= ranks_.count()) return {};
  return bad_data("a batch of " + std::to_string(least) + " samples cannot be cut into parts for " +
                  std::to_string(ranks_.count()) + " ranks; use another --batch" +
                  (last_ > 0 ? ", or --drop-last" : ""));
}

// The last, smaller batch has its own plan.
rt::Status Steps::open_whole() {
  for (const size_t samples : {last_, options_.batch})
    if (samples > 0)
      if (rt::Status status =
              budget_.prepare("train_step", trainer_.session(), columns_, ranks_.part_of(samples));
          !status)
        return status;
  return {};
}

// Micro-batches of the last batch may be smaller; all ranks have equally many of equal size.
rt::Status Steps::open_accumulation() {
  const size_t ranks = ranks_.count();
  if (options_.batch % (options_.micro_batch * ranks) != 0)
    return bad_data("--micro-batch " + std::to_string(options_.micro_batch) +
                    (ranks > 1 ? " times " + std::to_string(ranks) + " ranks" : "") +
                    ": expected a divisor of --batch " + std::to_string(options_.batch));
  if (last_ % ranks != 0)
    return bad_data("--micro-batch: the last batch of an epoch, " + std::to_string(last_) +
                    " samples, cannot be cut into equal parts for " + std::to_string(ranks) +
                    " ranks; use another --batch, or --drop-last");
  for (auto [entry, session] : {std::pair("accumulate", &accumulate_), std::pair("update", &update_)}) {
    auto opened = budget_.open(entry);
    if (opened.status().code() == rt::Code::OutOfMemory) return opened.status();
    if (!opened)
      return bad_data("--micro-batch needs a model compiled with rtconvert --train --accumulate: " +
                      opened.status().message());
    session->emplace(std::move(*opened));
    if (last_ > 0)
      if (rt::Status status =
              budget_.prepare(entry, **session, columns_, equal_part(last_ / ranks, options_.micro_batch));
          !status)
        return status;
    if (rt::Status status = budget_.prepare(entry, **session, columns_, options_.micro_batch); !status)
      return status;
  }
  return {};
}

rt::Status Steps::begin(const Batch& batch, double rate) {
  Begun& begun = begun_[(oldest_ + in_flight_) % begun_.size()];
  begun = {.step = {.rate = rate, .samples = batch.all, .stop_votes = g_stop != 0 ? 1.0 : 0.0}, .loss = {}};
  if (rt::Status status = ranks_.begin_sum({&begun.step.stop_votes, 1}); !status) return status;
  ++in_flight_;
  if (!accumulate_) return submit(batch.tensors, rate);
  const auto loss = accumulate(batch.tensors, batch.samples, rate);
  if (!loss) return loss.status();
  begun.loss = *loss;
  return {};
}

rt::Result<Steps::Finished> Steps::finish() {
  Begun& begun = begun_[oldest_ % begun_.size()];
  const auto loss = begun.loss ? rt::Result<float>(*begun.loss) : trainer_.wait();
  if (!loss) return loss.status();
  if (rt::Status status = ranks_.finish_sum({&begun.step.stop_votes, 1}); !status) return status;
  begun.step.loss = static_cast<double>(*loss);
  ++oldest_;
  --in_flight_;
  return begun.step;
}

rt::Status Steps::submit(const std::vector<rt::Tensor>& tensors, double rate) {
  for (size_t c = 0; c < columns_.size(); ++c)
    if (rt::Status status = trainer_.session().set_input(columns_[c].input, tensors[c]); !status)
      return status;
  if (rt::Status status = trainer_.set_learning_rate(static_cast<float>(rate)); !status) return status;
  return trainer_.submit();
}

rt::Status Steps::submit_part(const std::vector<rt::Tensor>& tensors, size_t part, size_t parts,
                              size_t samples) {
  for (size_t c = 0; c < columns_.size(); ++c) {
    std::vector<int64_t> dims(tensors[c].dims().begin(), tensors[c].dims().end());
    dims[0] = static_cast<int64_t>(samples);
    const size_t bytes = tensors[c].bytes() / parts;
    // const_cast is safe: set_input() only copies from it.
    auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(tensors[c].data())) + part * bytes;
    const rt::Tensor piece = rt::Tensor::borrow(tensors[c].dtype(), dims, data);
    if (rt::Status status = accumulate_->set_input(columns_[c].input, piece); !status) return status;
  }
  return accumulate_->submit();
}

rt::Result<float> Steps::accumulate(const std::vector<rt::Tensor>& tensors, size_t samples, double rate) {
  const size_t micro = equal_part(samples, options_.micro_batch), parts = samples / micro;
  float sum = 0;
  const auto add_loss = [&]() -> rt::Status {
    if (rt::Status status = accumulate_->wait(); !status) return status;
    const auto loss = accumulate_->output("loss");
    if (loss) sum += loss->values<float>()[0];
    return loss.status();
  };
  for (size_t part = 0; part < parts; ++part) {
    if (rt::Status status = submit_part(tensors, part, parts, micro); !status) return status;
    if (part + 1 < ahead_) continue;
    if (rt::Status status = add_loss(); !status) return status;
  }
  for (size_t part = 1; part < std::min(parts + 1, ahead_); ++part)
    if (rt::Status status = add_loss(); !status) return status;
  const rt::Tensor learning_rate = rt::Tensor::of<float>({}, std::vector<float>{static_cast<float>(rate)});
  if (rt::Status status = update_->set_input("learning_rate", learning_rate); !status) return status;
  if (rt::Status status = update_->run(); !status) return status;
  return sum / static_cast<float>(parts);
}

}  // namespace rt::train
