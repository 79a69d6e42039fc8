// The parts of the HTML report that are mostly words; html_charts.cpp has those that are mostly charts.
#include "tools/rtbench/report/html_sections.h"

#include <algorithm>

#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

std::string started_text(const Study& study) {
  std::string text = study.started;
  std::replace(text.begin(), text.end(), 'T', ' ');
  if (text.ends_with('Z')) text.replace(text.size() - 1, 1, " UTC");
  return text;
}

Html sentences(const Study& study, Mode mode, bool cautions) {
  Html items;
  for (const Sentence& sentence : study.verdict) {
    if (sentence.mode != mode || (sentence.about == Sentence::About::Caution) != cautions) continue;
    if (sentence.too_close)
      items << "<li class=\"close\"><span class=\"badge\">too close to call</span> " << sentence.text
            << "</li>\n";
    else
      items << "<li>" << sentence.text << "</li>\n";
  }
  return items;
}

/// A figure with what it is and who reached it.
void card(Html& out, const std::string& what, const std::string& value, const std::string& who) {
  out << "<div class=\"card\"><div class=\"what\">" << what << "</div><div class=\"value\">" << value
      << "</div><div class=\"who\">" << who << "</div></div>\n";
}

void mode_cards(Html& out, const Study& study, Mode mode) {
  const Series *quickest = nullptr, *widest = nullptr;
  for (const Series& series : study.series) {
    if (series.mode != mode || fastest_point(series) == nullptr || study.devices[series.device].predicted)
      continue;
    if (quickest == nullptr ||
        smallest_point(series)->timing.median_ms < smallest_point(*quickest)->timing.median_ms)
      quickest = &series;
    if (widest == nullptr ||
        fastest_point(series)->samples_per_second > fastest_point(*widest)->samples_per_second)
      widest = &series;
  }
  if (quickest == nullptr) return;
  const std::string what = mode == Mode::Infer ? "inference" : "training step";
  const Point &small = *smallest_point(*quickest), &fast = *fastest_point(*widest);
  card(out, "Shortest " + what + ", batch " + std::to_string(small.batch), time_text(small.timing.median_ms),
       series_label(study, *quickest));
  card(out, "Highest throughput, " + std::string(mode_text(mode)),
       number_text(fast.samples_per_second) + " samples/s",
       series_label(study, *widest) + ", batch " + std::to_string(fast.batch));
  if (widest->knee)
    card(out, widest->knee->reached ? "Its knee" : "Its knee, not reached",
         "batch " + std::to_string(widest->knee->batch), widest->knee->why);
}

/// For a cell of a table; the whole text is among what was not measured.
std::string shortened(const std::string& text) {
  constexpr size_t kMost = 110;
  if (text.size() <= kMost) return text;
  return text.substr(0, text.rfind(' ', kMost)) + " ...";
}

std::string notes_of(const Series& series) {
  std::string notes = series.not_measured.empty() ? "" : "not measured: " + series.not_measured;
  const auto add = [&notes](const std::string& text) { notes += (notes.empty() ? "" : "; ") + text; };
  if (!series.only_stored.empty()) add("only stored: " + shortened(series.only_stored));
  if (!series.cut_short.empty()) add("cut short: " + series.cut_short);
  size_t fallbacks = 0, imprecise = 0;
  for (const Point& point : series.points) {
    fallbacks = std::max(fallbacks, point.fallbacks);
    if (!point.error.empty())
      add("batch " + std::to_string(point.batch) + ": " + point.error);
    else if (!point.timing.precise)
      ++imprecise;
  }
  if (fallbacks > 0) add(std::to_string(fallbacks) + " nodes ran on another device");
  if (imprecise > 0)
    add(std::to_string(imprecise) + " of " + std::to_string(series.points.size()) +
        " intervals are wider than 2 %");
  return notes;
}

}  // namespace

Html header_section(const Study& study) {
  Html out;
  out << "<header>\n<p class=\"program\">rtbench study</p>\n<h1>" << study.model.name
      << "</h1>\n<p class=\"facts\">";
  std::string devices;
  for (const StudyDevice& device : study.devices)
    devices += (devices.empty() ? "" : ", ") + device_label(device) + " (" + device.name + ")";
  out << devices << "<br>" << started_text(study) << ", " << seconds_text(study.seconds);
  if (study.budget_seconds) out << " of a budget of " << seconds_text(*study.budget_seconds);
  out << "</p>\n</header>\n";
  std::vector<std::string> warnings = study.machine.warnings;
  if (study.interrupted)
    warnings.emplace_back("The study was interrupted: it has what was measured until then.");
  if (study.out_of_time) warnings.emplace_back("The budget ended the study early.");
  if (warnings.empty()) return out;
  out << "<aside class=\"warning\" role=\"note\"><h2>Read with care</h2><ul>\n";
  for (const std::string& warning : warnings) out << "<li>" << warning << "</li>\n";
  out << "</ul></aside>\n";
  return out;
}

Html verdict_section(const Study& study) {
  Html out;
  out << "<section id=\"verdict\">\n<h2>Verdict</h2>\n";
  const std::vector<Mode> modes = modes_of(study);
  for (const Mode mode : modes) {
    const Html items = sentences(study, mode, false), cautions = sentences(study, mode, true);
    if (modes.size() > 1 && !(items.empty() && cautions.empty()))
      out << (mode == Mode::Infer ? Html() << "<h3>Inference</h3>\n" : Html() << "<h3>Training</h3>\n");
    if (!items.empty()) out << "<ul class=\"verdict\">\n" << items << "</ul>\n";
    if (!cautions.empty()) out << "<ul class=\"caution\">\n" << cautions << "</ul>\n";
    Html cards;
    mode_cards(cards, study, mode);
    if (!cards.empty()) out << "<div class=\"cards\">\n" << cards << "</div>\n";
  }
  if (study.verdict.empty()) out << "<p>Nothing was measured, so nothing can be said.</p>\n";
  out << "</section>\n";
  return out;
}

Html overview_section(const Study& study) {
  if (study.series.empty()) return {};
  std::vector<std::vector<HtmlCell>> rows;
  for (const Series& series : study.series) {
    const Point *small = smallest_point(series), *fast = fastest_point(series);
    std::vector<HtmlCell> row = {
        {device_label(study.devices[series.device])}, {series.precision}, {mode_text(series.mode)}};
    if (small == nullptr) {
      for (int i = 0; i < 6; ++i) row.push_back({"-"});
    } else {
      row.push_back({time_text(small->timing.median_ms), small->timing.median_ms});
      row.push_back({number_text(fast->samples_per_second), fast->samples_per_second});
      row.push_back({std::to_string(fast->batch), static_cast<double>(fast->batch)});
      row.push_back(series.knee ? HtmlCell{std::to_string(series.knee->batch) +
                                               (series.knee->reached ? "" : " or more"),
                                           static_cast<double>(series.knee->batch)}
                                : HtmlCell{"-"});
      row.push_back(series.difference
                        ? HtmlCell{format("%.1e", series.difference->relative), series.difference->relative}
                        : HtmlCell{"-"});
      row.push_back({bytes_text(fast->memory_bytes), static_cast<double>(fast->memory_bytes)});
    }
    row.push_back({notes_of(series)});
    rows.push_back(std::move(row));
  }
  Html out;
  out << "<section id=\"overview\">\n<h2>At a glance</h2>\n"
      << html_table({"device", "precision", "mode", "shortest time", "samples/s", "at batch", "knee", "error",
                     "memory", "notes"},
                    rows)
      << "<p class=\"hint\">Shortest time: one run at the smallest batch. Error: largest difference from "
         "fp32 "
         "relative to the largest output. A click on a head sorts.</p>\n</section>\n";
  return out;
}

Html omissions_section(const Study& study) {
  if (study.omissions.empty()) return {};
  Html out;
  out << "<section id=\"omissions\">\n<h2>Not measured</h2>\n<ul>\n";
  for (const Omission& omission : study.omissions)
    out << "<li>" << omission.what << ": " << omission.why << "</li>\n";
  out << "</ul>\n</section>\n";
  return out;
}

Html machine_section(const Study& study) {
  Html out;
  out << "<section id=\"machine\">\n<h2>Machine and method</h2>\n<dl>\n";
  for (const auto& [name, text] : machine_facts_text(study))
    out << "<dt>" << name << "</dt><dd>" << text << "</dd>\n";
  for (const StudyDevice& device : study.devices) {
    out << "<dt>" << device_label(device) << "</dt><dd>" << device.name << ", " << device.type;
    if (!device.driver.empty()) out << ", " << device.driver;
    if (device.threads > 0) out << ", " << std::to_string(device.threads) << " threads";
    if (device.memory_bytes > 0) out << ", " << bytes_text(device.memory_bytes);
    out << "</dd>\n";
  }
  out << "<dt>Model</dt><dd>" << study.model.source << ", " << bytes_text(study.model.file_bytes)
      << ", hash <code class=\"hash\">" << study.model.hash << "</code><br>";
  for (const std::string& input : study.model.inputs) out << "input " << input << "<br>";
  for (const std::string& output : study.model.outputs) out << "output " << output << "<br>";
  out << "</dd>\n<dt>Command</dt><dd><code>rtbench";
  for (const std::string& argument : study.arguments) out << " " << argument;
  out << "</code></dd>\n</dl>\n";
  for (const std::string& paragraph : method_text(study)) out << "<p>" << paragraph << "</p>\n";
  out << "</section>\n";
  return out;
}

}  // namespace librt::bench
