#include "tools/rttrain/fixed_batch.h"

#include <algorithm>
#include <string>

#include "tools/rttrain/source.h"

namespace rt::train {
namespace {

std::string samples(size_t count) {
  return std::to_string(count) + (count == 1 ? " sample" : " samples");
}

}  // namespace

size_t fixed_batch(const std::vector<rt::TensorSpec>& inputs) {
  if (inputs.empty() || inputs[0].dims.empty()) return 0;
  const int64_t extent = inputs[0].dims[0].extent;
  const bool is_fixed = extent > 0 && std::all_of(inputs.begin(), inputs.end(), [&](const auto& input) {
                          return !input.dims.empty() && input.dims[0].extent == extent;
                        });
  return is_fixed ? static_cast<size_t>(extent) : 0;
}

rt::Status fit_batch(const BatchChoice& choice, LoopOptions& options) {
  if (choice.fixed == 0) return {};
  if (!options.share.is_equal())
    return bad_data("--share: the model takes " + samples(choice.fixed) +
                    " at once, so that the parts of all ranks are equal; leave it out");
  const size_t at_once = choice.fixed * choice.ranks;
  if (!choice.is_given && options.micro_batch == 0) options.batch = at_once;
  if (choice.accumulates && options.micro_batch == 0 && options.batch > at_once)
    options.micro_batch = choice.fixed;
  const bool fits = options.micro_batch > 0
                        ? options.micro_batch == choice.fixed && options.batch % at_once == 0
                        : options.batch == at_once;
  if (fits) return {};
  std::string message = "--batch " + std::to_string(options.batch);
  if (options.micro_batch > 0) message += " --micro-batch " + std::to_string(options.micro_batch);
  message += ": the model takes " + samples(choice.fixed) + " at once, as its inputs fix their first axis; ";
  if (choice.ranks > 1) message += "on " + std::to_string(choice.ranks) + " ranks ";
  message += "--batch " + std::to_string(at_once);
  message += choice.accumulates ? " or a multiple of it fits"
                                : " fits, or larger batches after rtconvert --train --accumulate";
  return bad_data(message + (choice.fixed == 1 ? "; rtconvert --open-batch makes the batch dynamic"
                                               : "; for others export it with a dynamic batch"));
}

rt::Status check_last_batch(const BatchChoice& choice, const LoopOptions& options, size_t training,
                            size_t validation) {
  if (choice.fixed == 0) return {};
  const std::string fixed = ", and the model takes " + samples(choice.fixed) + " at once, no fewer";
  if (const size_t left = training % options.batch; left > 0 && !options.drop_last)
    return bad_data("--data: the last batch of an epoch would have " + samples(left) + fixed +
                    "; --drop-last leaves it out");
  const size_t step = choice.fixed * (options.ordered_sums ? 1 : choice.ranks);
  if (const size_t left = validation % step; left > 0)
    return bad_data("--validate: its last batch would have " + samples(left) + fixed +
                    "; expected a multiple of " + std::to_string(step) + " samples, found " +
                    std::to_string(validation));
  return {};
}

}  // namespace rt::train
