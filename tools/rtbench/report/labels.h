// How the parts of a study are named and its numbers written, the same in every form of a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// "cpu:0", "onnxruntime 1.16.3 on cpu:0", "vulkan:1 (predicted)".
std::string device_label(const StudyDevice& device);
/// "cpu:0 fp32".
std::string series_label(const Study& study, const Series& series);
std::string series_label(const Study& study, size_t index);
/// "crosses at batch 5 (4 to 8)".
std::string crossover_text(const Study& study, const Crossover& crossover);
/// "4.56 ms, 4.50 to 4.61".
std::string interval_text(double value, const Interval& interval, const char* unit);
/// "2 min 31 s".
std::string seconds_text(double seconds);
/// A number, or "-" if there is none.
std::string optional_text(const std::optional<double>& value);
/// "38.1 %"; "-" if it is not finite.
std::string percent_text(double share);

/// The modes that the study has series of, in the order of Mode.
std::vector<Mode> modes_of(const Study& study);
/// The point with the most samples per second, or the one at batch 1 (or the smallest batch); null if nothing
/// was measured.
const Point* fastest_point(const Series& series);
const Point* smallest_point(const Series& series);
/// Name and value pairs: the machine's state, in words.
std::vector<std::pair<std::string, std::string>> machine_facts_text(const Study& study);
/// How the figures came about, in paragraphs.
std::vector<std::string> method_text(const Study& study);

}  // namespace librt::bench
