// What an experiment has found, as plain data: tables, sentences, an article's figure beside the measured
// one.
//
// Knows: numbers and words. Must not know: how they are measured, or written (result_text.h,
// result_json.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/machine.h"
#include "tools/rtbench/statistics.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// A cell of a table: a text, a number in the unit of its column, or nothing.
struct Cell {
  std::string text;              ///< of a cell without a number; empty: nothing
  std::optional<double> number;  ///< in the unit of the column
  std::optional<Interval> interval;
  bool estimated = false;  ///< extrapolated from less work than it stands for: it is printed with a "~"

  static Cell of(std::string text) { return {.text = std::move(text), .number = {}, .interval = {}}; }
  static Cell of(double number) { return {.text = {}, .number = number, .interval = {}}; }
  static Cell of(double number, const Interval& interval) {
    return {.text = {}, .number = number, .interval = interval};
  }
  /// `factor` times the value, or nothing.
  static Cell maybe(std::optional<double> value, double factor = 1) {
    return value ? of(*value * factor) : nothing();
  }
  static Cell nothing() { return {.text = {}, .number = {}, .interval = {}}; }
};

struct Column {
  std::string name;  ///< "samples/s", "step", "memory"
  std::string unit;  ///< "1/s", "ms", "bytes", "%"; empty: texts, or a number without a unit
};

struct Table {
  std::string title;
  std::vector<Column> columns;  ///< the first one names the row
  std::vector<std::vector<Cell>> rows;
};

/// An article's figure and what was measured here. They come from different hardware.
struct ArticleComparison {
  std::string what;      ///< "training, CPU against GPU"
  std::string article;   ///< "198.2 s against 14.4 s: 13.8 times"
  std::string measured;  ///< "12.1 s (cpu:0); no GPU here"
};

struct ExperimentDevice {
  std::string id;  ///< "cpu:0"
  std::string name, type, driver;
};

struct ExperimentResult {
  std::string name, summary;
  std::vector<std::string> arguments;  ///< the command line after `rtbench`
  std::string started;                 ///< UTC, "2025-01-31T12:34:56Z"
  double seconds = 0, budget_seconds = 0;
  bool interrupted = false;  ///< by Ctrl-C: what was measured until then is here
  bool out_of_time = false;  ///< less was done than planned: omissions and estimated cells say what
  Machine machine;
  std::vector<ExperimentDevice> devices;
  std::vector<std::string> method;  ///< sentences: what was done, on which data, at which size
  std::vector<Table> tables;
  std::vector<std::string> findings;  ///< sentences: what follows
  std::vector<ArticleComparison> comparisons;
  std::vector<Omission> omissions;
};

/// Whether a table has a row with a number.
bool has_measured(const ExperimentResult& result);

}  // namespace librt::bench
