#include "tools/rttrain/budget.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace rt::train {
namespace {

std::string size_text(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

uint64_t without_states(const rt_memory_stats& memory) {
  return memory.weights + memory.packed + memory.arena + memory.staging;
}

}  // namespace

uint64_t Budget::used() const noexcept {
  uint64_t sum = trainer_.session().memory().states;
  for (const auto& [entry, bytes] : taken_) sum += bytes;
  return sum;
}

rt::Result<rt::Session> Budget::open(const std::string& entry) {
  if (!is_set()) return trainer_.open(entry);
  rt::SessionOptions options = options_;
  options.entry = entry;
  options.share_states_with = &trainer_.session();
  // The memory limit of a session includes the states.
  const uint64_t states = trainer_.session().memory().states, others = used() - states;
  if (others + states >= bytes_)
    return rt::Status(rt::Code::OutOfMemory,
                      "--memory " + size_text(bytes_) + ": nothing is left for " + entry);
  options.memory_limit = bytes_ - others;
  return rt::Session::create(model_, options);
}

rt::Status Budget::prepare(const std::string& entry, rt::Session& session, const std::vector<Column>& columns,
                           size_t samples) {
  if (!is_set()) return {};
  for (const rt::TensorSpec& input : session.inputs()) {
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](const Column& each) { return each.input == input.name; });
    std::vector<int64_t> dims;
    if (column != columns.end()) {
      dims = column->dims;
      dims.insert(dims.begin(), static_cast<int64_t>(samples));
    }
    rt::Tensor zeros(input.dtype, dims);
    std::memset(zeros.data(), 0, zeros.bytes());
    if (rt::Status status = session.set_input(input.name, zeros); !status) return status;
  }
  if (rt::Status status = session.prepare(); !status) return status;
  std::erase_if(taken_, [&](const auto& each) { return each.first == entry; });
  taken_.emplace_back(entry, without_states(session.memory()));
  if (used() <= bytes_) return {};
  return {rt::Code::OutOfMemory,
          "--memory: the training takes " + text() +
              "; compile the model for this budget: rtconvert --train --memory --batch"};
}

std::string Budget::text() const {
  std::string out = std::to_string(used()) + " bytes, " + size_text(used()) + " of " + size_text(bytes_) +
                    ": states " + size_text(trainer_.session().memory().states);
  for (const auto& [entry, bytes] : taken_) out += ", " + entry + " " + size_text(bytes);
  return out;
}

}  // namespace rt::train
