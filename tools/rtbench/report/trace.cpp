#include "tools/rtbench/report/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

using nlohmann::json;

/// One span of a thread.
struct Event {
  std::string name, category, kernel;
  double begin = 0, end = 0;
  double flops = 0, bytes = 0;
  double inside = 0;  ///< time of the events directly inside of it
};

/// Threads are named by numbers or by texts.
std::string id_of(const json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end()) return "0";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string text_of(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_of(const json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end()) return std::nullopt;
  // Some writers quote times, to keep their digits.
  if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
  }
  if (!found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Event event_of(const json& json_event, double begin, double end) {
  Event event{.name = text_of(json_event, "name"),
              .category = text_of(json_event, "cat"),
              .begin = begin,
              .end = end};
  if (const auto args = json_event.find("args"); args != json_event.end() && args->is_object()) {
    event.kernel = text_of(*args, "kernel");
    event.flops = number_of(*args, "flops").value_or(0);
    event.bytes = number_of(*args, "bytes").value_or(0);
  }
  return event;
}

class Reader {
 public:
  Status add(const json& event, size_t index) {
    const auto refuse = [&](const std::string& problem) {
      return Status::make(Code::InvalidArgument, "event ", index, ": ", problem);
    };
    if (!event.is_object()) return refuse(std::string("expected an object, found ") + event.type_name());
    const std::string phase = text_of(event, "ph");
    if (phase.size() != 1) return refuse("expected a phase of one letter in \"ph\"");
    if (phase == "M") {
      add_name(event);
      return {};
    }
    if (phase != "X" && phase != "B" && phase != "E") {
      ++trace_.left_out;
      return {};
    }
    const auto begin = number_of(event, "ts");
    if (!begin) return refuse("expected a time in microseconds in \"ts\"");
    Thread& thread = threads_[thread_of(event)];
    if (phase == "X") {
      const auto duration = number_of(event, "dur");
      if (!duration || *duration < 0) return refuse("expected microseconds of at least 0 in \"dur\"");
      thread.events.push_back(event_of(event, *begin, *begin + *duration));
    } else if (phase == "B") {
      thread.open.push_back(event_of(event, *begin, *begin));
    } else if (thread.open.empty() || thread.open.back().begin > *begin) {
      ++trace_.incomplete;
    } else {
      thread.open.back().end = *begin;
      thread.events.push_back(std::move(thread.open.back()));
      thread.open.pop_back();
    }
    return {};
  }

  Trace finish() {
    for (Thread& thread : threads_) {
      trace_.incomplete += thread.open.size();
      if (!thread.events.empty()) trace_.threads.push_back(summary(thread));
    }
    return std::move(trace_);
  }

 private:
  struct Thread {
    std::string process, thread;
    std::vector<Event> events, open;
  };

  size_t thread_of(const json& event) {
    const auto key = std::pair(id_of(event, "pid"), id_of(event, "tid"));
    const auto [found, is_new] = index_.try_emplace(key, threads_.size());
    if (is_new) threads_.push_back({.process = key.first, .thread = key.second});
    return found->second;
  }

  void add_name(const json& event) {
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object()) return;
    const std::string kind = text_of(event, "name"), name = text_of(*args, "name");
    if (kind == "process_name") process_names_[id_of(event, "pid")] = name;
    if (kind == "thread_name") thread_names_[{id_of(event, "pid"), id_of(event, "tid")}] = name;
  }

  TraceThread summary(Thread& thread) {
    // Outer events before inner ones.
    std::stable_sort(thread.events.begin(), thread.events.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
    });
    std::vector<Event*> around;
    double last = thread.events.front().begin;
    for (Event& event : thread.events) {
      last = std::max(last, event.end);
      while (!around.empty() && around.back()->end <= event.begin) around.pop_back();
      if (!around.empty()) around.back()->inside += std::min(event.end, around.back()->end) - event.begin;
      around.push_back(&event);
    }
    TraceThread result{.span_us = last - thread.events.front().begin};
    std::map<std::tuple<std::string, std::string, std::string>, TraceRow> rows;
    for (const Event& event : thread.events) {
      const double total = event.end - event.begin, self = std::max(total - event.inside, 0.0);
      TraceRow& row = rows[{event.name, event.category, event.kernel}];
      row.least_us = row.calls == 0 ? total : std::min(row.least_us, total);
      row.most_us = std::max(row.most_us, total);
      ++row.calls;
      row.total_us += total;
      row.self_us += self;
      row.flops += event.flops;
      row.bytes += event.bytes;
      result.self_us += self;
    }
    for (auto& [key, row] : rows) {
      std::tie(row.name, row.category, row.kernel) = key;
      result.rows.push_back(std::move(row));
    }
    std::stable_sort(result.rows.begin(), result.rows.end(),
                     [](const TraceRow& a, const TraceRow& b) { return a.self_us > b.self_us; });
    const auto process = process_names_.find(thread.process);
    const auto name = thread_names_.find({thread.process, thread.thread});
    result.process = process != process_names_.end() ? process->second : "process " + thread.process;
    result.name = name != thread_names_.end() ? name->second : "thread " + thread.thread;
    return result;
  }

  Trace trace_;
  std::vector<Thread> threads_;
  std::map<std::pair<std::string, std::string>, size_t> index_;
  std::map<std::string, std::string> process_names_;
  std::map<std::pair<std::string, std::string>, std::string> thread_names_;
};

std::string rate(double amount, double microseconds) {
  return amount > 0 && microseconds > 0 ? format("%.1f", amount / microseconds * 1e-3) : "-";
}

std::string thread_table(const TraceThread& thread, size_t most) {
  const auto share = [&thread](double us) {
    return format("%.1f", thread.self_us > 0 ? 100 * us / thread.self_us : 0);
  };
  uint64_t calls = 0;
  for (const TraceRow& row : thread.rows) calls += row.calls;
  std::string out =
      printable(thread.process) + ", " + printable(thread.name) +
      format(": %zu nodes, %llu events, ", thread.rows.size(), static_cast<unsigned long long>(calls)) +
      time_text(thread.self_us * 1e-3) + " within " + time_text(thread.span_us * 1e-3) + "\n";
  std::vector<std::vector<std::string>> rows = {{"node", "op", "kernel", "calls", "self ms", "%", "total ms",
                                                 "least ms", "most ms", "GFLOP/s", "GB/s"}};
  const size_t shown = most == 0 ? thread.rows.size() : std::min(most, thread.rows.size());
  double rest = 0;
  for (size_t i = 0; i < thread.rows.size(); ++i) {
    const TraceRow& row = thread.rows[i];
    if (i >= shown) {
      rest += row.self_us;
      continue;
    }
    rows.push_back({printable(row.name), row.category.empty() ? "-" : printable(row.category),
                    row.kernel.empty() ? "-" : printable(row.kernel), std::to_string(row.calls),
                    format("%.4f", row.self_us * 1e-3), share(row.self_us),
                    format("%.4f", row.total_us * 1e-3), format("%.4f", row.least_us * 1e-3),
                    format("%.4f", row.most_us * 1e-3), rate(row.flops, row.self_us),
                    rate(row.bytes, row.self_us)});
  }
  out += columns(rows, 3);
  if (shown < thread.rows.size())
    out += format("and %zu more: %.4f ms, %s %% (--top 0 shows all)\n", thread.rows.size() - shown,
                  rest * 1e-3, share(rest).c_str());
  std::map<std::string, std::pair<double, uint64_t>> by_category;
  for (const TraceRow& row : thread.rows) {
    auto& [time, count] = by_category[row.category];
    time += row.self_us;
    count += row.calls;
  }
  if (by_category.size() < 2) return out;
  std::vector<std::pair<std::string, std::pair<double, uint64_t>>> totals(by_category.begin(),
                                                                          by_category.end());
  std::stable_sort(totals.begin(), totals.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::vector<std::vector<std::string>> summary = {{"op", "calls", "self ms", "%"}};
  for (const auto& [category, sum] : totals)
    summary.push_back({category.empty() ? "-" : printable(category), std::to_string(sum.second),
                       format("%.4f", sum.first * 1e-3), share(sum.first)});
  return out + "\n" + columns(summary, 1);
}

}  // namespace

Result<Trace> read_trace(std::string_view text) {
  const auto refuse = [](const std::string& problem) { return Status::make(Code::InvalidArgument, problem); };
  json document;
  try {
    document = json::parse(text);
  } catch (const json::parse_error& error) {
    return refuse("expected a Chrome trace in JSON; reading ended at byte " + std::to_string(error.byte));
  } catch (const json::out_of_range&) {
    return refuse("expected a Chrome trace in JSON; it has a number that is too large");
  }
  const json* events = &document;
  if (document.is_object()) {
    const auto found = document.find("traceEvents");
    if (found == document.end()) return refuse("expected a Chrome trace, found JSON without \"traceEvents\"");
    events = &*found;
  }
  if (!events->is_array())
    return refuse(std::string("expected an array of trace events, found ") + events->type_name());
  Reader reader;
  size_t index = 0;
  for (const json& event : *events) RT_TRY(reader.add(event, index++));
  return reader.finish();
}

std::string trace_table(const Trace& trace, size_t most) {
  std::string out;
  for (const TraceThread& thread : trace.threads)
    out += (out.empty() ? "" : "\n") + thread_table(thread, most);
  if (trace.threads.empty()) out += "the trace has no spans\n";
  if (trace.left_out > 0)
    out += format("\n%llu events that are no spans (counters, flows, instants) are left out\n",
                  static_cast<unsigned long long>(trace.left_out));
  if (trace.incomplete > 0)
    out += format("\n%llu begins or ends have no counterpart and are left out\n",
                  static_cast<unsigned long long>(trace.incomplete));
  return out;
}

}  // namespace librt::bench
