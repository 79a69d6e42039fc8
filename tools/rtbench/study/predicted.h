// Described devices in a study, beside the measured ones.
#pragma once

#include <string>
#include <vector>

#include "tools/rtbench/study/options.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Appends a device and a series for each described device, in fp32 and for the inference, with points at the
/// batches that were measured and up to the knee; their intervals are the ranges of the predictions. They are
/// marked: StudyDevice::predicted, the device's name, and a sentence of the verdict. They have no part in
/// crossovers between measured series. False: `error` says which device or file is wrong, or why the model
/// cannot be predicted; the study is then as it was.
bool add_predictions(Study& study, const std::vector<std::string>& names, const StudyOptions& options,
                     std::string& error);

}  // namespace librt::bench
