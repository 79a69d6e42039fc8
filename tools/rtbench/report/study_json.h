// A study as JSON, and back.
//
// Knows: schema/study.schema.json. Must not know: files, measuring.
//
// Numbers that are not finite are null in JSON and NaN when read. Bytes of names that are no UTF-8 become
// U+FFFD. A reader accepts its own version of the schema only, and no unknown fields.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// The version of the schema: grows with every change of a field.
inline constexpr int kStudySchemaVersion = 1;
/// The name of the schema's file, which every document has in "schema".
inline constexpr const char* kStudySchema = "study.schema.json";

/// indent: spaces for each level; negative: one line.
std::string study_json(const Study& study, int indent = 1);

/// Code::InvalidArgument says where the text is no study: "/series/2/points/0/batch: expected ..., found
/// ...". Indices of what is read are within their lists.
Result<Study> parse_study(std::string_view text);

}  // namespace librt::bench
