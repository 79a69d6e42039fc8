// ResNet-50 on 224x224x3: how many images a second, and how long an epoch of ImageNet's size would take.
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/study_table.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/study/lanes.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kImageNet = 1281167;  ///< training images of ILSVRC 2012

}  // namespace

void run_resnet50(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  const auto& options = workplace.options();
  result.method = {
      "zoo:resnet50 on random images in memory: no decoding, no loading. Training is a whole step: forward, "
      "backward, Adam. The epoch is 1,281,167 images at the best throughput measured, extrapolated."};
  const auto study = study_of(
      workplace, "zoo:resnet50",
      options.precisions.empty() ? std::vector<std::string>{"fp32", "bf16", "fp16"} : options.precisions,
      options.modes.empty() ? std::vector<Mode>{Mode::Infer, Mode::Train} : options.modes,
      options.largest_batch);
  if (!study) return;
  Table epochs{"An epoch of ImageNet's size, extrapolated",
               {{"device", ""},
                {"precision", ""},
                {"mode", ""},
                {"batch", ""},
                {"images/s", "1/s"},
                {"1,281,167 images", "hours"}},
               {}};
  for (const Series& series : study->series) {
    const Point* best = fastest_point(series);
    if (best == nullptr) continue;
    Cell hours = Cell::of(static_cast<double>(kImageNet) / best->samples_per_second / 3600);
    hours.estimated = true;
    epochs.rows.push_back({Cell::of(study->devices[series.device].id), Cell::of(series.precision),
                           Cell::of(series.mode == Mode::Train ? "train" : "infer"),
                           Cell::of(static_cast<double>(best->batch)),
                           Cell::of(best->samples_per_second, best->samples_interval), hours});
    for (const Series& full : study->series) {
      if (&full == &series || full.device != series.device || full.mode != series.mode ||
          full.precision != "fp32")
        continue;
      const Point* other = fastest_point(full);
      if (other == nullptr) continue;
      const std::string name = name_of(*study, series);
      result.findings.push_back(
          overlap(best->samples_interval, other->samples_interval)
              ? name + " and fp32 are too close to call."
              : name + " does " +
                    words::times_text(best->samples_per_second / other->samples_per_second,
                                      ratio(best->samples_interval, other->samples_interval)) +
                    " the images of fp32 in the same time.");
    }
  }
  result.tables.push_back(points_of(*study));
  result.tables.back().title = "Throughput";
  result.tables.push_back(std::move(epochs));
}

}  // namespace librt::bench
