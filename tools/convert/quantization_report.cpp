#include "tools/convert/quantization_report.h"

#include <algorithm>
#include <cstdio>

#include "runtime/core/status.h"

namespace librt::convert {
namespace {

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace

std::string QuantizationReport::table() const {
  std::string out = "signal-to-quantization-noise ratio of each node alone, worst first\n";
  for (const Line& line : lines)
    append(out, text("  ", fixed(line.decibels, 1), " dB  ", line.op, "  ", line.name,
                     line.kept ? "  (stays in f32)" : "", "\n"));
  return out;
}

std::string QuantizationReport::summary() const {
  const auto kept = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.kept; });
  std::string out = text("quantized   ", matmuls, " MatMul/Conv nodes");
  if (tables > 0) append(out, text(" and ", tables, tables == 1 ? " embedding table" : " embedding tables"));
  if (rows > 0) append(out, text(" on ", rows, " rows"));
  if (trained) append(out, " with the ranges of training");
  if (kept > 0) append(out, text(", ", kept, " stay in f32"));
  const auto in_f32 = [&out](const std::vector<std::string>& tensors, const char* what) {
    if (tensors.empty()) return;
    const bool several = tensors.size() > 1;
    append(out, text(", the readers of ", tensors.size(), several ? " tensors" : " tensor", what,
                     " stay in f32 ('", tensors[0], several ? "', ..)" : "')"));
  };
  in_f32(infinite, " with infinities");
  in_f32(zeros, ", always zero in the training,");
  if (equalized > 0) append(out, text(", ", equalized, " pairs of convolutions equalized"));
  if (accuracy_f32 >= 0)
    append(out, text("; accuracy ", fixed(100 * accuracy_f32, 2), " % in f32, ",
                     fixed(100 * accuracy_int8, 2), " % in int8"));
  if (output_error >= 0) append(out, text("; error of the outputs ", fixed(output_error, 4)));
  return out;
}

}  // namespace librt::convert
