#include "tools/rtbench/experiments/study_table.h"

#include "tools/rtbench/experiments/rounds.h"
#include "tools/rtbench/study/engine.h"
#include "tools/rtbench/study/lanes.h"

namespace librt::bench {

std::optional<Study> study_of(Workplace& workplace, const std::string& model,
                              const std::vector<std::string>& precisions, const std::vector<Mode>& modes,
                              int64_t largest_batch) {
  StudyOptions options;
  options.model = model;
  options.backends.clear();
  for (const WorkDevice& device : workplace.devices()) options.backends.push_back(device.id);
  options.precisions = precisions;
  options.modes = modes;
  options.measure = workplace.measure_options();
  options.budget_seconds = std::max(0.1, workplace.budget().left());
  options.largest_batch = largest_batch;
  options.check = false;  // it is speed that is asked for here
  auto study = run_study(options, workplace.stop());
  if (!study) {
    workplace.omit(model, study.status().message());
    return std::nullopt;
  }
  for (const Omission& omission : study->omissions) workplace.result().omissions.push_back(omission);
  workplace.result().out_of_time |= study->out_of_time;
  return std::move(*study);
}

Table points_of(const Study& study) {
  Table table{"",
              {{"device", ""},
               {"precision", ""},
               {"mode", ""},
               {"batch", ""},
               {"run", "ms"},
               {"samples/s", "1/s"},
               {"memory", "bytes"},
               {"used", "%"}},
              {}};
  for (const Series& series : study.series)
    for (const Point& point : series.points) {
      if (!point.error.empty()) continue;
      table.rows.push_back({Cell::of(study.devices[series.device].id), Cell::of(series.precision),
                            Cell::of(series.mode == Mode::Train ? "train" : "infer"),
                            Cell::of(static_cast<double>(point.batch)), time_cell(point.timing),
                            rate_cell(point.timing, static_cast<double>(point.batch)),
                            Cell::of(static_cast<double>(point.memory_bytes)),
                            Cell::maybe(point.roof_share, 100)});
    }
  return table;
}

}  // namespace librt::bench
