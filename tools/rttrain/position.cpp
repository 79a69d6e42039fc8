#include "tools/rttrain/position.h"

#include <cstdio>
#include <cstdlib>

#include "tools/data/number.h"

namespace rt::train {
namespace {

// Exact: hexadecimal for floating point.
std::string exact_text(uint64_t value) {
  return std::to_string(value);
}
std::string exact_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

bool parse_exact(const std::string& text, uint64_t& value) {
  const auto number = librt::tools::number_from<uint64_t>(text);
  if (number) value = *number;
  return number.has_value();
}
bool parse_exact(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

// The members of a Position with their names in a checkpoint.
template <class P, class Visit>
void for_each_field(P& position, Visit visit) {
  visit("rttrain.epoch", position.epoch);
  visit("rttrain.batch", position.batch);
  visit("rttrain.step", position.step);
  visit("rttrain.loss_sum", position.loss_sum);
  visit("rttrain.seen", position.seen);
  visit("rttrain.waiting", position.waiting);
  visit("rttrain.best", position.best);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> pairs_of(const Position& position) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for_each_field(position,
                 [&](const char* key, const auto& value) { pairs.emplace_back(key, exact_text(value)); });
  return pairs;
}

bool read_position(const rt::Session& session, Position& position, std::string& key) {
  key.clear();
  for_each_field(position, [&](const char* name, auto& value) {
    const auto text = session.checkpoint_value(name);
    if (key.empty() && (!text || !parse_exact(*text, value))) key = name;
  });
  return key.empty();
}

std::string impossible_in(const Position& position, uint64_t batches, size_t batch_size, uint64_t most) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  if (position.batch > batches || position.epoch > most / batches)
    return "is at batch " + number(position.batch) + " of epoch " + number(position.epoch) +
           ", but the data has " + number(batches) + " batches in each epoch";
  const uint64_t reached = position.epoch * batches + position.batch;
  if (position.step != reached)
    return "is at step " + number(position.step) + ", but " + number(position.epoch) + " epochs and " +
           number(position.batch) + " batches are " + number(reached) + " steps";
  if (position.seen > position.batch * batch_size)
    return "has seen " + number(position.seen) + " samples in " + number(position.batch) + " batches of " +
           number(batch_size);
  if (position.waiting > position.epoch)
    return "waits for a better epoch since " + number(position.waiting) + " epochs, but is in epoch " +
           number(position.epoch);
  return {};
}

}  // namespace rt::train
