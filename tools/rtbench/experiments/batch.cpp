// The batch from which a device's throughput no longer grows: the sweep of a study, on LeNet-5.
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/study_table.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/study/lanes.h"

namespace librt::bench {

void run_batch(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  const auto& options = workplace.options();
  result.method = {
      "LeNet-5 on 28x28x1 in memory; the batch is doubled until throughput grows by less than 5 %. \"used\" "
      "is the share of the device's peak rate, measured by a matmul and a copy, that the operations or bytes "
      "of a run reach."};
  const auto study =
      study_of(workplace, "zoo:lenet5",
               options.precisions.empty() ? std::vector<std::string>{"fp32"} : options.precisions,
               options.modes.empty() ? std::vector<Mode>{Mode::Infer, Mode::Train} : options.modes,
               options.largest_batch);
  if (!study) return;
  result.tables.push_back(points_of(*study));
  for (const Series& series : study->series) {
    if (!series.knee) continue;
    const std::string name = name_of(*study, series);
    const Knee& knee = *series.knee;
    result.findings.push_back(
        knee.reached
            ? name + ": batch " + std::to_string(knee.batch) + " is enough, " + knee.why + "."
            : name + ": no such batch was found up to " + std::to_string(knee.batch) + ": " + knee.why + ".");
  }
}

}  // namespace librt::bench
