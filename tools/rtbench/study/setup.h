// The beginning of a study: its devices, models in every precision, and the series to measure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/rtbench/study/lanes.h"

namespace librt::bench {

/// A model in each precision, made when it is first asked for.
class TypedModels {
 public:
  TypedModels(BenchModel model, const MeasureOptions& options)
      : model_(std::move(model)), options_(options) {}
  /// Null: `error` has the reason.
  std::shared_ptr<const BenchModel> in(const std::string& precision, std::string& error);

 private:
  struct Made {
    std::shared_ptr<const BenchModel> model;
    std::string error;
  };
  BenchModel model_;
  const MeasureOptions& options_;
  std::vector<tools::Array> rows_;  ///< for int8's calibration
  std::map<std::string, Made> made_;
};

struct StudySetup {
  std::map<Mode, TypedModels> models;
  std::vector<Lane> lanes;
};

/// Fills the study's model, devices and series; a lane, without its model, for each series that may be
/// measured, those of fp32 first. The other series have their reason.
rt::Result<StudySetup> set_up_study(const StudyOptions& options, Study& study);

/// Outputs of the fp32 model at this batch, what those of all series are compared with: by the reference,
/// where it takes little of the budget; by the first device, where fp32 is not studied. Else the first fp32
/// series has them.
void expect_outputs(LaneContext& context, std::map<Mode, TypedModels>& models, int64_t batch);

/// The device's peak rates, from the cache folder or measured now.
Roof roof_of(const rt::DeviceInfo& device, const MeasureOptions& options);

}  // namespace librt::bench
