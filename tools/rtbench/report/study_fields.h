// The fields of a study by name, for whatever reads, writes or checks them: the one list of the names in the
// JSON of a study, schema/study.schema.json.
//
// Knows: every member of the structs in study/study.h. Must not know: JSON.
//
// visit_fields(visitor, object) calls visitor(name, member) for each member; object may be const. When a
// struct gets a member, tests/rtbench/study_json_test.cpp no longer compiles: add it here, there and in the
// schema.
#pragma once

#include <concepts>
#include <iterator>
#include <type_traits>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

template <class Visitor, Is<Interval> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("low", o.low);
  visit("high", o.high);
}

template <class Visitor, Is<Timing> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("median_ms", o.median_ms);
  visit("interval_ms", o.interval);
  visit("p90_ms", o.p90_ms);
  visit("p99_ms", o.p99_ms);
  visit("least_ms", o.least_ms);
  visit("runs", o.runs);
  visit("rounds", o.rounds);
  visit("outliers", o.outliers);
  visit("precise", o.precise);
  visit("imprecise", o.imprecise);
}

template <class Visitor, Is<Energy> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("joules_per_sample", o.joules_per_sample);
  visit("watts", o.watts);
  visit("source", o.source);
  visit("reason", o.reason);
}

template <class Visitor, Is<Cost> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("per_million_samples", o.per_million_samples);
  visit("per_epoch", o.per_epoch);
  visit("reason", o.reason);
}

template <class Visitor, Is<Roof> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("measured", o.measured);
  visit("flops_per_second", o.flops_per_second);
  visit("bytes_per_second", o.bytes_per_second);
  visit("launch_seconds", o.launch_seconds);
}

template <class Visitor, Is<StudyDevice> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("id", o.id);
  visit("backend", o.backend);
  visit("index", o.index);
  visit("name", o.name);
  visit("type", o.type);
  visit("driver", o.driver);
  visit("program", o.program);
  visit("predicted", o.predicted);
  visit("memory_bytes", o.memory_bytes);
  visit("threads", o.threads);
  visit("roof", o.roof);
  visit("idle_watts", o.idle_watts);
  visit("price_per_hour", o.price_per_hour);
}

template <class Visitor, Is<NodeTime> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("name", o.name);
  visit("op", o.op);
  visit("kernel", o.kernel);
  visit("device", o.device);
  visit("milliseconds", o.milliseconds);
  visit("flops", o.flops);
  visit("bytes", o.bytes);
  visit("roof_share", o.roof_share);
  visit("bound", o.bound);
  visit("live_bytes", o.live_bytes);
  visit("scratch_bytes", o.scratch_bytes);
}

template <class Visitor, Is<MemoryUse> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("weights", o.weights);
  visit("packed", o.packed);
  visit("states", o.states);
  visit("arena", o.arena);
  visit("unshared", o.unshared);
}

template <class Visitor, Is<Profile> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("batch", o.batch);
  visit("total_ms", o.total_ms);
  visit("kernels_ms", o.kernels_ms);
  visit("transfers_ms", o.transfers_ms);
  visit("launches_ms", o.launches_ms);
  visit("waiting_ms", o.waiting_ms);
  visit("overhead", o.overhead);
  visit("memory_bytes", o.memory);
  visit("nodes", o.nodes);
}

template <class Visitor, Is<Point> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("batch", o.batch);
  visit("timing", o.timing);
  visit("samples_per_second", o.samples_per_second);
  visit("samples_interval", o.samples_interval);
  visit("load_ms", o.load_ms);
  visit("first_run_ms", o.first_run_ms);
  visit("memory_bytes", o.memory_bytes);
  visit("resident_bytes", o.resident_bytes);
  visit("fallbacks", o.fallbacks);
  visit("flops", o.flops);
  visit("bytes", o.bytes);
  visit("roof_share", o.roof_share);
  visit("energy", o.energy);
  visit("cost", o.cost);
  visit("error", o.error);
}

template <class Visitor, Is<Knee> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("batch", o.batch);
  visit("samples_per_second", o.samples_per_second);
  visit("reached", o.reached);
  visit("why", o.why);
}

template <class Visitor, Is<Difference> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("relative", o.relative);
  visit("compared_with", o.compared_with);
  visit("allowed", o.allowed);
}

template <class Visitor, Is<Series> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("device", o.device);
  visit("precision", o.precision);
  visit("mode", o.mode);
  visit("points", o.points);
  visit("difference", o.difference);
  visit("only_stored", o.only_stored);
  visit("knee", o.knee);
  visit("profiles", o.profiles);
  visit("not_measured", o.not_measured);
  visit("cut_short", o.cut_short);
}

template <class Visitor, Is<PointRef> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("series", o.series);
  visit("point", o.point);
}

template <class Visitor, Is<Crossover> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("below", o.below);
  visit("above", o.above);
  visit("kind", o.kind);
  visit("last_below", o.last_below);
  visit("first_above", o.first_above);
  visit("estimate", o.estimate);
  visit("least_margin", o.least_margin);
  visit("resolved", o.resolved);
}

template <class Visitor, Is<LoadCrossover> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("below", o.below);
  visit("above", o.above);
  visit("samples_per_second", o.samples_per_second);
}

template <class Visitor, Is<TimeToTarget> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("device", o.device);
  visit("precision", o.precision);
  visit("metric", o.metric);
  visit("wanted", o.wanted);
  visit("reached", o.reached);
  visit("best", o.best);
  visit("seconds", o.seconds);
  visit("waiting_seconds", o.waiting_seconds);
  visit("samples_per_second", o.samples_per_second);
  visit("epochs", o.epochs);
  visit("steps", o.steps);
  visit("seed", o.seed);
  visit("energy", o.energy);
  visit("cost", o.cost);
  visit("total_joules", o.total_joules);
  visit("total_cost", o.total_cost);
  visit("reason", o.reason);
}

template <class Visitor, Is<Sentence> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("about", o.about);
  visit("mode", o.mode);
  visit("too_close", o.too_close);
  visit("text", o.text);
}

template <class Visitor, Is<Omission> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("what", o.what);
  visit("why", o.why);
}

template <class Visitor, Is<StudiedModel> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("name", o.name);
  visit("source", o.source);
  visit("hash", o.hash);
  visit("file_bytes", o.file_bytes);
  visit("batch_symbol", o.batch_symbol);
  visit("inputs", o.inputs);
  visit("outputs", o.outputs);
}

template <class Visitor, Is<MachineFacts> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("cpu", o.cpu);
  visit("kernel", o.kernel);
  visit("system", o.system);
  visit("virtual_machine", o.virtual_machine);
  visit("online_cpus", o.online_cpus);
  visit("allowed_cpus", o.allowed_cpus);
  visit("quota_cpus", o.quota_cpus);
  visit("smt", o.smt);
  visit("governor", o.governor);
  visit("frequency_mhz", o.frequency_mhz);
  visit("highest_mhz", o.highest_mhz);
  visit("boost", o.boost);
  visit("memory_bytes", o.memory_bytes);
}

template <class Visitor, Is<MachineLoad> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("seconds", o.seconds);
  visit("other_cpus", o.other_cpus);
  visit("steal", o.steal);
  visit("pressure", o.pressure);
  visit("quota_throttled", o.quota_throttled);
  visit("heat_throttled", o.heat_throttled);
  visit("frequency_mhz", o.frequency_mhz);
}

template <class Visitor, Is<Machine> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("facts", o.facts);
  visit("before", o.before);
  visit("during", o.during);
  visit("versions", o.versions);
  visit("warnings", o.warnings);
}

template <class Visitor, Is<Study> T>
void visit_fields(Visitor&& visit, T& o) {
  visit("model", o.model);
  visit("arguments", o.arguments);
  visit("started", o.started);
  visit("seconds", o.seconds);
  visit("budget_seconds", o.budget_seconds);
  visit("interrupted", o.interrupted);
  visit("out_of_time", o.out_of_time);
  visit("machine", o.machine);
  visit("energy_reason", o.energy_reason);
  visit("electricity_per_kwh", o.electricity_per_kwh);
  visit("samples_per_epoch", o.samples_per_epoch);
  visit("devices", o.devices);
  visit("series", o.series);
  visit("crossovers", o.crossovers);
  visit("pareto_infer", o.pareto_infer);
  visit("pareto_train", o.pareto_train);
  visit("load_crossovers", o.load_crossovers);
  visit("targets", o.targets);
  visit("verdict", o.verdict);
  visit("omissions", o.omissions);
}

/// The names of an enumeration's values in JSON, in order.
template <class Enum>
inline constexpr const char* const* kEnumNames = nullptr;
inline constexpr const char* kModeNames[] = {"infer", "train"};
template <>
inline constexpr const char* const* kEnumNames<Mode> = kModeNames;
inline constexpr const char* kCrossoverNames[] = {"crosses", "always_faster", "too_close"};
template <>
inline constexpr const char* const* kEnumNames<Crossover::Kind> = kCrossoverNames;
inline constexpr const char* kAboutNames[] = {"latency", "throughput", "batch",  "crossover", "precision",
                                              "energy",  "cost",       "target", "caution"};
template <>
inline constexpr const char* const* kEnumNames<Sentence::About> = kAboutNames;
template <class Enum>
inline constexpr size_t kEnumCount = 0;
template <>
inline constexpr size_t kEnumCount<Mode> = std::size(kModeNames);
template <>
inline constexpr size_t kEnumCount<Crossover::Kind> = std::size(kCrossoverNames);
template <>
inline constexpr size_t kEnumCount<Sentence::About> = std::size(kAboutNames);

}  // namespace librt::bench
