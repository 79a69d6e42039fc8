#include "tools/rtbench/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/rtbench/devices.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

// Names in files, and of files, may be invalid UTF-8, which JSON requires.
std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// "cpu", or "cpu in bf16".
std::string device_of(const Measurement& m) {
  return m.precision.empty() ? m.backend : m.backend + " in " + m.precision;
}

std::string error_text(const Measurement& m) {
  if (m.error_to_reference < 0) return "-";
  return format("%.1e", m.error_to_reference);
}

}  // namespace

std::string table(const std::vector<Measurement>& measurements) {
  std::vector<std::vector<std::string>> rows = {{"model", "backend", "precision", "batch", "median ms", "p90",
                                                 "p99", "samples/s", "GFLOP/s", "% peak", "load ms",
                                                 "first run ms", "file", "memory", "resident", "error"}};
  std::string failures;
  for (const Measurement& m : measurements) {
    if (!m.error.empty()) {
      failures +=
          format("%s on %s, batch %ld: ", m.model.c_str(), device_of(m).c_str(), static_cast<long>(m.batch)) +
          m.error + "\n";
      continue;
    }
    rows.push_back(
        {m.model, m.backend, m.precision.empty() ? "original" : m.precision, std::to_string(m.batch),
         format("%.3f", m.median_ms), format("%.3f", m.p90_ms), format("%.3f", m.p99_ms),
         format("%.1f", m.samples_per_second), m.gflops > 0 ? format("%.1f", m.gflops) : "-",
         m.percent_of_peak > 0 ? format("%.0f", m.percent_of_peak) : "-", format("%.1f", m.load_ms),
         format("%.1f", m.first_run_ms), bytes_text(m.file_bytes), bytes_text(m.memory_bytes),
         m.resident_bytes > 0 ? bytes_text(m.resident_bytes) : "-", error_text(m)});
  }
  std::string out = rows.size() > 1 ? columns(rows, 3) : std::string();
  if (rows.size() > 1 && measurements.front().in_flight > 1)
    out += "two runs in flight: times are from the end of one run to the end of the next\n";
  for (const Measurement& m : measurements)
    if (m.target_steps)
      out += format("%s on %s, batch %ld: %s %.3f s\n", m.model.c_str(), device_of(m).c_str(),
                    static_cast<long>(m.batch),
                    *m.target_steps > 0
                        ? format("the target loss was reached after %d steps,", *m.target_steps).c_str()
                        : "the target loss was not reached within",
                    m.target_seconds);
  for (const Measurement& m : measurements)
    if (!m.only_stored.empty() && m.error.empty())
      out += format("%s on %s, batch %ld: storage type only, computed in other types: ", m.model.c_str(),
                    device_of(m).c_str(), static_cast<long>(m.batch)) +
             m.only_stored + "\n";
  for (const Measurement& m : measurements)
    if (m.fallbacks > 0 && m.error.empty())
      out += format("%s on %s, batch %ld: %zu nodes ran on the cpu instead (rtrun --plan shows them)\n",
                    m.model.c_str(), device_of(m).c_str(), static_cast<long>(m.batch), m.fallbacks);
  return out + failures;
}

std::string profile_table(const Measurement& measurement, size_t most) {
  std::vector<OpTime> ops = measurement.ops;
  std::sort(ops.begin(), ops.end(),
            [](const OpTime& a, const OpTime& b) { return a.milliseconds > b.milliseconds; });
  double total = 0;
  std::map<std::string, std::pair<double, int>> by_op;
  for (const OpTime& op : ops) {
    total += op.milliseconds;
    by_op[op.op].first += op.milliseconds;
    ++by_op[op.op].second;
  }
  std::vector<std::vector<std::string>> rows = {
      {"node", "op", "kernel", "device", "ms", "%", "GFLOP/s", "GB/s"}};
  auto share = [total](double ms) { return format("%.1f", total > 0 ? 100 * ms / total : 0); };
  for (size_t i = 0; i < std::min(most, ops.size()); ++i) {
    const OpTime& op = ops[i];
    const double seconds = op.milliseconds * 1e-3;
    rows.push_back({op.name, op.op, op.kernel, op.device, format("%.4f", op.milliseconds),
                    share(op.milliseconds),
                    op.flops > 0 && seconds > 0 ? format("%.1f", op.flops / seconds * 1e-9) : "-",
                    op.bytes > 0 && seconds > 0 ? format("%.1f", op.bytes / seconds * 1e-9) : "-"});
  }
  std::string out =
      format("%s on %s, batch %ld: %.3f ms in %zu nodes\n", measurement.model.c_str(),
             device_of(measurement).c_str(), static_cast<long>(measurement.batch), total, ops.size()) +
      columns(rows, 4);
  std::vector<std::pair<std::string, std::pair<double, int>>> totals(by_op.begin(), by_op.end());
  std::sort(totals.begin(), totals.end(),
            [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::vector<std::vector<std::string>> summary = {{"op", "nodes", "ms", "%"}};
  for (const auto& [op, sum] : totals)
    summary.push_back({op, std::to_string(sum.second), format("%.4f", sum.first), share(sum.first)});
  return out + "\n" + columns(summary, 1);
}

namespace {

/// Lower precisions that do not pay off: slower than f32 of the same model on the same device and batch.
std::string slower_precisions(const std::vector<Measurement>& measurements) {
  const auto is_f32 = [](const Measurement& m) { return m.precision.empty() || m.precision == "fp32"; };
  std::string out;
  for (const Measurement& m : measurements) {
    if (!m.error.empty() || is_f32(m)) continue;
    for (const Measurement& real : measurements) {
      if (!real.error.empty() || !is_f32(real) || real.model != m.model || real.backend != m.backend ||
          real.device != m.device || real.batch != m.batch || real.mode != m.mode)
        continue;
      if (m.median_ms > real.median_ms)
        out += format("%s: %s is slower than fp32 on %s at batch %ld (%.2f times the time).\n",
                      m.model.c_str(), m.precision.c_str(), m.backend.c_str(), static_cast<long>(m.batch),
                      m.median_ms / real.median_ms);
      break;
    }
  }
  return out;
}

}  // namespace

std::string advice(const std::vector<Measurement>& measurements) {
  std::vector<std::string> models;
  for (const Measurement& m : measurements)
    if (m.error.empty() && std::find(models.begin(), models.end(), m.model) == models.end())
      models.push_back(m.model);
  std::string out;
  for (const std::string& model : models) {
    std::map<int64_t, std::vector<const Measurement*>> by_batch;
    for (const Measurement& m : measurements)
      if (m.error.empty() && m.model == model) by_batch[m.batch].push_back(&m);
    struct Range {
      std::string backend;
      int64_t first, last;
      double lead;  ///< over the second best, at the last batch
    };
    std::vector<Range> ranges;
    size_t most = 0;
    for (auto& [batch, all] : by_batch) {
      std::sort(all.begin(), all.end(), [](const Measurement* a, const Measurement* b) {
        return a->samples_per_second > b->samples_per_second;
      });
      most = std::max(most, all.size());
      const double lead = all.size() > 1 ? all[0]->samples_per_second / all[1]->samples_per_second : 1;
      if (!ranges.empty() && ranges.back().backend == device_of(*all[0])) {
        ranges.back().last = batch;
        ranges.back().lead = lead;
      } else {
        ranges.push_back({device_of(*all[0]), batch, batch, lead});
      }
    }
    out += model + ": ";
    if (most < 2) {
      out += "only " + ranges[0].backend + " was measured, so there is nothing to choose.\n";
      continue;
    }
    if (ranges.size() == 1) {
      out +=
          format("use %s at every batch size measured; it is %.1f times as fast as the next at batch %ld.\n",
                 ranges[0].backend.c_str(), ranges[0].lead, static_cast<long>(ranges[0].last));
      continue;
    }
    for (size_t i = 0; i < ranges.size(); ++i)
      out += i == 0 ? format("use %s up to batch %ld", ranges[i].backend.c_str(),
                             static_cast<long>(ranges[i].last))
                    : format(", %s from batch %ld (%.1fx)", ranges[i].backend.c_str(),
                             static_cast<long>(ranges[i].first), ranges[i].lead);
    out += ".\n";
  }
  return out + slower_precisions(measurements);
}

namespace {

nlohmann::ordered_json json_of(const MachineLoad& load) {
  nlohmann::ordered_json json = {{"seconds", load.seconds}};
  const auto add = [&json](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  add("other_cpus", load.other_cpus);
  add("steal", load.steal);
  add("pressure", load.pressure);
  add("quota_throttled", load.quota_throttled);
  add("heat_throttled", load.heat_throttled);
  return json;
}

}  // namespace

std::string to_json(const std::vector<Measurement>& measurements, const std::string& sentence,
                    const Machine& machine) {
  nlohmann::ordered_json all;
  all["machine"] = {{"warnings", machine.warnings},
                    {"description", machine_text(machine.facts)},
                    {"before", json_of(machine.before)},
                    {"during", json_of(machine.during)},
                    {"versions", nlohmann::ordered_json::object()}};
  for (const auto& [name, version] : machine.versions) all["machine"]["versions"][name] = version;
  all["measurements"] = nlohmann::ordered_json::array();
  for (const Measurement& m : measurements) {
    nlohmann::ordered_json row = {
        {"model", m.model},         {"mode", m.mode == Mode::Train ? "train" : "infer"},
        {"backend", m.backend},     {"device", m.device},
        {"precision", m.precision}, {"batch", m.batch}};
    if (!m.error.empty()) {
      row["failure"] = m.error;
    } else {
      row.update({{"runs", m.runs},
                  {"median_ms", m.median_ms},
                  {"p90_ms", m.p90_ms},
                  {"p99_ms", m.p99_ms},
                  {"least_ms", m.least_ms},
                  {"in_flight", m.in_flight},
                  {"samples_per_second", m.samples_per_second},
                  {"gflops", m.gflops},
                  {"percent_of_peak", m.percent_of_peak},
                  {"load_ms", m.load_ms},
                  {"first_run_ms", m.first_run_ms},
                  {"file_bytes", m.file_bytes},
                  {"memory_bytes", m.memory_bytes},
                  {"resident_bytes", m.resident_bytes},
                  {"fallbacks", m.fallbacks}});
      if (!m.only_stored.empty()) row["only_stored"] = m.only_stored;
      if (m.error_to_reference >= 0) {
        row["relative_error"] = m.error_to_reference;
        row["compared_with"] = m.compared_with;
      }
      if (m.target_steps) {
        row["target_steps"] = *m.target_steps;
        row["target_seconds"] = m.target_seconds;
      }
      for (const OpTime& op : m.ops)
        row["ops"].push_back({{"name", op.name},
                              {"op", op.op},
                              {"kernel", op.kernel},
                              {"device", op.device},
                              {"ms", op.milliseconds},
                              {"flops", op.flops},
                              {"bytes", op.bytes}});
    }
    all["measurements"].push_back(std::move(row));
  }
  all["advice"] = sentence;
  return json_text(all, 2);
}

std::string chrome_trace(const std::vector<Measurement>& measurements) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "rtbench"}}}});
  int thread = 0;
  for (const Measurement& m : measurements) {
    if (m.ops.empty()) continue;
    ++thread;
    events.push_back(
        {{"name", "thread_name"},
         {"ph", "M"},
         {"pid", 1},
         {"tid", thread},
         {"args", {{"name", m.model + " " + device_of(m) + " batch " + std::to_string(m.batch)}}}});
    double at = 0;
    for (const OpTime& op : m.ops) {
      const double microseconds = op.milliseconds * 1e3;
      events.push_back({{"name", op.name},
                        {"cat", op.op},
                        {"ph", "X"},
                        {"pid", 1},
                        {"tid", thread},
                        {"ts", at},
                        {"dur", microseconds},
                        {"args", {{"kernel", op.kernel}, {"flops", op.flops}, {"bytes", op.bytes}}}});
      at += microseconds;
    }
  }
  return json_text({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}, -1);
}

std::string devices_table(const rt::Devices& devices) {
  std::vector<std::vector<std::string>> rows = {
      {"backend", "index", "type", "name", "driver", "memory", "threads"}};
  for (const rt::DeviceInfo& device : devices.devices)
    rows.push_back({device.backend, std::to_string(device.index), type_text(device.type), device.name,
                    device.driver, device.memory_bytes > 0 ? bytes_text(device.memory_bytes) : "-",
                    device.threads > 0 ? std::to_string(device.threads) : "-"});
  std::string out = columns(rows, 5);
  for (const rt::DeviceInfo& device : devices.devices)
    if (!device.features.empty())
      out += device.backend + ":" + std::to_string(device.index) + " can " + device.features + "\n";
  for (const auto& backend : devices.backends)
    if (!backend.reason.empty()) out += backend.name + ": " + backend.reason + "\n";
  return out;
}

std::string devices_json(const rt::Devices& devices) {
  nlohmann::ordered_json all = {{"devices", nlohmann::ordered_json::array()},
                                {"backends", nlohmann::ordered_json::array()}};
  for (const rt::DeviceInfo& device : devices.devices)
    all["devices"].push_back({{"backend", device.backend},
                              {"index", device.index},
                              {"type", type_text(device.type)},
                              {"name", device.name},
                              {"uuid", device.uuid},
                              {"driver", device.driver},
                              {"features", device.features},
                              {"memory_bytes", device.memory_bytes},
                              {"threads", device.threads}});
  for (const auto& backend : devices.backends)
    all["backends"].push_back({{"name", backend.name}, {"reason", backend.reason}});
  return json_text(all, 2);
}

}  // namespace librt::bench
