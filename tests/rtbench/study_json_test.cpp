// Studies as JSON: nothing is lost, nothing is forgotten, and what is no study is refused with a place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/rtbench/example_study.h"
#include "tools/rtbench/report/study_fields.h"
#include "tools/rtbench/report/study_json.h"

namespace librt::bench {
namespace {

using nlohmann::ordered_json;

struct Counter {
  size_t& count;
  template <class T>
  void operator()(const char*, const T&) {
    ++count;
  }
};

template <class T>
size_t fields_of(const T& object) {
  size_t count = 0;
  visit_fields(Counter{count}, object);
  return count;
}

// A struct with a new member makes its line here fail to compile: add the member to study_fields.h and to the
// schema, then here.
TEST(StudyFields, HaveEveryMember){{const auto& [a, b] = Interval{};
EXPECT_EQ(fields_of(Interval{}), 2u) << a << b;
}  // namespace
#define EXPECT_MEMBERS(Struct, count, ...)               \
  {                                                      \
    const Struct object{};                               \
    [[maybe_unused]] const auto& [__VA_ARGS__] = object; \
    EXPECT_EQ(fields_of(object), size_t{count});         \
  }
EXPECT_MEMBERS(Timing, 10, a, b, c, d, e, f, g, h, i, j)
EXPECT_MEMBERS(Energy, 4, a, b, c, d)
EXPECT_MEMBERS(Cost, 3, a, b, c)
EXPECT_MEMBERS(Roof, 4, a, b, c, d)
EXPECT_MEMBERS(StudyDevice, 13, a, b, c, d, e, f, g, h, i, j, k, l, m)
EXPECT_MEMBERS(NodeTime, 11, a, b, c, d, e, f, g, h, i, j, k)
EXPECT_MEMBERS(MemoryUse, 5, a, b, c, d, e)
EXPECT_MEMBERS(Profile, 9, a, b, c, d, e, f, g, h, i)
EXPECT_MEMBERS(Point, 15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
EXPECT_MEMBERS(Knee, 4, a, b, c, d)
EXPECT_MEMBERS(Difference, 3, a, b, c)
EXPECT_MEMBERS(Series, 10, a, b, c, d, e, f, g, h, i, j)
EXPECT_MEMBERS(PointRef, 2, a, b)
EXPECT_MEMBERS(Crossover, 8, a, b, c, d, e, f, g, h)
EXPECT_MEMBERS(LoadCrossover, 3, a, b, c)
EXPECT_MEMBERS(TimeToTarget, 17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
EXPECT_MEMBERS(Sentence, 4, a, b, c, d)
EXPECT_MEMBERS(Omission, 2, a, b)
EXPECT_MEMBERS(StudiedModel, 7, a, b, c, d, e, f, g)
EXPECT_MEMBERS(MachineFacts, 13, a, b, c, d, e, f, g, h, i, j, k, l, m)
EXPECT_MEMBERS(MachineLoad, 7, a, b, c, d, e, f, g)
EXPECT_MEMBERS(Machine, 5, a, b, c, d, e)
EXPECT_MEMBERS(Study, 20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
#undef EXPECT_MEMBERS
}  // namespace librt::bench

TEST(StudyJson, ReadsWhatItWrites) {
  const std::string text = study_json(example_study());
  const auto study = parse_study(text);
  ASSERT_TRUE(study.ok()) << study.status().message();
  EXPECT_EQ(study_json(*study), text);
  EXPECT_EQ(study->series.size(), example_study().series.size());
  EXPECT_EQ(study->series[3].points.back().error, "there is no memory for 512 MiB");
  EXPECT_EQ(study->series[6].mode, Mode::Train);
  EXPECT_EQ(study->crossovers[1].kind, Crossover::Kind::AlwaysFaster);
  EXPECT_FALSE(study->devices[1].idle_watts.has_value());
}

TEST(StudyJson, AnEmptyStudyIsOne) {
  const auto study = parse_study(study_json(Study{}));
  ASSERT_TRUE(study.ok()) << study.status().message();
  EXPECT_TRUE(study->series.empty());
}

TEST(StudyJson, NumbersThatAreNotFiniteAndNamesThatAreNoText) {
  Study study = example_study("caf\xe9 </script>");
  study.series[1].difference->relative = INFINITY;
  const auto read = parse_study(study_json(study));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(std::isnan(read->series[1].difference->relative));
  EXPECT_EQ(read->model.name, "caf\xef\xbf\xbd </script>");
}

/// Calls visit(path) for each value in the document, and those that it is in.
void for_each_field(const ordered_json& document,
                    const std::function<void(const ordered_json::json_pointer&)>& visit) {
  const ordered_json flat = document.flatten();
  for (const auto& [path, value] : flat.items()) {
    (void)value;
    for (ordered_json::json_pointer at(path); !at.empty(); at.pop_back()) visit(at);
  }
}

TEST(StudyJson, EveryFieldIsNeededAndChecked) {
  Study study = example_study();
  for (Series& series : study.series) {  // two of each are enough
    series.points.resize(std::min<size_t>(series.points.size(), 2));
    series.profiles.resize(std::min<size_t>(series.profiles.size(), 1));
    for (Profile& profile : series.profiles) profile.nodes.resize(2);
  }
  study.pareto_infer = study.pareto_train = {{0, 0}, {1, 1}};
  const auto document = ordered_json::parse(study_json(study, -1));
  std::set<std::string> seen;
  for_each_field(document, [&](const ordered_json::json_pointer& at) {
    if (document[at.parent_pointer()].is_array()) return;
    std::string key;
    for (const char c : at.to_string()) key += c >= '2' && c <= '9' ? '1' : c;
    if (!seen.insert(key).second) return;
    ordered_json missing = document;
    missing[at.parent_pointer()].erase(at.back());
    EXPECT_FALSE(parse_study(missing.dump()).ok()) << "without " << at.to_string();
    ordered_json wrong = document;
    wrong[at] = ordered_json{{"unexpected", 1}};
    const auto refused = parse_study(wrong.dump());
    ASSERT_FALSE(refused.ok()) << "an object in place of " << at.to_string();
    EXPECT_EQ(refused.status().code(), Code::InvalidArgument);
  });
  EXPECT_GT(seen.size(), 150u);
}

TEST(StudyJson, RefusesWithAPlace) {
  const auto message = [](const std::function<void(ordered_json&)>& change) {
    auto document = ordered_json::parse(study_json(example_study(), -1));
    change(document);
    const auto read = parse_study(document.dump());
    return read.ok() ? std::string("it was read") : read.status().message();
  };
  EXPECT_EQ(message([](ordered_json& d) { d["series"][2]["points"][0]["timing"]["median_ms"] = "12"; }),
            "/series/2/points/0/timing/median_ms: expected a number, found \"12\"");
  EXPECT_EQ(message([](ordered_json& d) { d["series"][1]["mode"] = "both"; }),
            "/series/1/mode: expected one of infer, train, found \"both\"");
  EXPECT_EQ(message([](ordered_json& d) { d["series"][0]["device"] = 2; }),
            "/series/0/device: expected an index into the 2 devices, found 2");
  EXPECT_EQ(message([](ordered_json& d) { d["pareto_infer"][1]["point"] = 99; }),
            "/pareto_infer/1/point: expected an index into the 7 points, found 99");
  EXPECT_EQ(message([](ordered_json& d) { d["series"][0]["device"] = -1; }),
            "/series/0/device: expected an integer of at least 0, found -1");
  EXPECT_EQ(message([](ordered_json& d) { d["devices"][0]["threads"] = 5000000000; }),
            "/devices/0/threads: expected an integer, found 5000000000");
  EXPECT_EQ(message([](ordered_json& d) { d["model"]["colour"] = 1; }),
            "/model: unknown field \"colour\"; version 1 of the schema has none");
  EXPECT_EQ(message([](ordered_json& d) { d["schema_version"] = 2; }),
            "/schema_version: expected 1, which this rtbench reads and writes, found 2");
  EXPECT_NE(message([](ordered_json& d) { d.erase("schema"); }).find("expected the result of a study"),
            std::string::npos);
  EXPECT_NE(parse_study("{\"schema\": ").status().message().find("reading ended at byte"), std::string::npos);
  EXPECT_FALSE(parse_study("").ok());
  EXPECT_FALSE(parse_study("[]").ok());
  EXPECT_FALSE(parse_study(std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace librt::bench
