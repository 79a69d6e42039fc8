// Writes every operator case as an ONNX file, reads it back, and compares the reference values of both
// graphs.
//
//   onnx_export [--filter REGEX] [--refused FILE] [--write FOLDER] [--verbose]
//
// refused: operators (or single cases) that have no ONNX form, each with a word for the reason; one that is
// written nevertheless fails. write: FOLDER/CASE gets model.onnx, input_I.pb and output_I.pb, for other
// runtimes (peer.py).
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "runtime/core/element.h"
#include "tests/cases/case.h"
#include "tests/support/case_model.h"
#include "tools/data/array.h"
#include "tools/onnx/export/model.h"
#include "tools/onnx/import.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::test {
namespace {

using Values = std::vector<std::optional<ops::HostTensor>>;
using Tensors = std::vector<ops::HostTensor>;

struct Options {
  std::string filter = "", refused, write;
  bool verbose = false;
};

/// The inputs of the case's graph.
Tensors inputs_of(const CaseModel& made, const Values& values) {
  Tensors inputs;
  for (const size_t i : made.inputs)
    inputs.push_back(i == SIZE_MAX ? ops::HostTensor({.dtype = DType::F32, .shape = {1}}) : *values[i]);
  return inputs;
}

Result<Tensors> evaluate(const ModelGraph& model, const Tensors& inputs) {
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  return ops::evaluate_graph(*model.entry("infer"), views);
}

/// Of 16-bit floats a fused node is several in ONNX, whose results are rounded one by one: half a step of
/// the largest of them for each.
double rounding_between(const ops::HostTensor& expected) {
  const DType type = expected.info.dtype;
  if (type != DType::BF16 && type != DType::F16) return 0;
  double largest = 1;
  for (int64_t i = 0; i < expected.info.elements(); ++i)
    if (const double x = std::fabs(load_element(expected.bytes.data(), type, i)); std::isfinite(x))
      largest = std::max(largest, x);
  return largest * (type == DType::BF16 ? 0x1p-8 : 0x1p-11);
}

std::string difference(const ops::HostTensor& found, const ops::HostTensor& expected,
                       const ops::Tolerance& tolerance) {
  if (!(found.info == expected.info)) return text("is ", found.info, ", expected ", expected.info);
  const double rounding = rounding_between(expected);
  for (int64_t i = 0; i < expected.info.elements(); ++i) {
    const double a = load_element(found.bytes.data(), found.info.dtype, i);
    const double b = load_element(expected.bytes.data(), expected.info.dtype, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double most = is_float(found.info.dtype)
                            ? rounding + tolerance.absolute + tolerance.relative * std::fabs(b)
                            : tolerance.absolute;
    if (!(std::fabs(a - b) <= most)) return text("element ", i, " is ", a, ", expected ", b);
  }
  return {};
}

bool write_tensor(const std::string& path, const ops::HostTensor& tensor) {
  const auto dims = tensor.info.shape.dims();
  const tools::Array array{
      .name = "", .type = tensor.info.dtype, .dims = {dims.begin(), dims.end()}, .bytes = tensor.bytes};
  std::ofstream file(path, std::ios::binary);
  file << tools::format_tensor_proto(array);
  return file.good();
}

bool write_case(const std::string& folder, const std::string& onnx, const Tensors& inputs,
                const Tensors& outputs, const ops::Tolerance& tolerance) {
  std::filesystem::create_directories(folder);
  std::ofstream file(folder + "/model.onnx", std::ios::binary);
  file << onnx;
  bool good = file.good();
  for (size_t i = 0; i < inputs.size(); ++i)
    good = write_tensor(text(folder, "/input_", i, ".pb"), inputs[i]) && good;
  for (size_t i = 0; i < outputs.size(); ++i)
    good = write_tensor(text(folder, "/output_", i, ".pb"), outputs[i]) && good;
  std::ofstream within(folder + "/tolerance");
  within << tolerance.relative << ' ' << tolerance.absolute << '\n';
  return good && within.good();
}

struct Outcome {
  std::string refusal;  ///< not written, for this reason
  std::string failure;
};

Outcome failed(std::string why) {
  return {.refusal = {}, .failure = std::move(why)};
}

Outcome check(const Case& c, const Options& options, bool symbolic) {
  const Values values = case_values(c);
  auto made = case_model(c, values, symbolic);
  if (!made.ok()) return symbolic ? Outcome{} : failed(made.status().message());
  onnx::WrittenModel written;
  const auto onnx = onnx::onnx_bytes(made->model, written);
  if (!onnx.ok()) return {.refusal = onnx.status().message(), .failure = {}};
  onnx::ImportReport report;
  auto back = onnx::import_onnx_bytes(std::as_bytes(std::span(*onnx)), {}, report);
  if (!back.ok()) return failed("import: " + back.status().message());
  if (const Status status = compiler::expand_composites(back->entries[0].graph, {}); !status.ok())
    return failed("import: " + status.message());
  const Tensors inputs = inputs_of(*made, values);
  const auto expected = evaluate(made->model, inputs), found = evaluate(*back, inputs);
  if (!expected.ok()) return failed("reference: " + expected.status().message());
  if (!found.ok()) return failed("after import: " + found.status().message());
  const ops::Page* page = ops::page_of(c.op.type);
  const ops::Tolerance tolerance = c.tolerance.value_or(ops::compiler_page_of(c.op.type)->tolerance);
  for (size_t i = 0; i < expected->size(); ++i) {
    if (page->impure && (*found)[i].info == (*expected)[i].info) continue;  // random numbers
    if (const std::string problem = difference((*found)[i], (*expected)[i], tolerance); !problem.empty())
      return failed(text("output ", i, " ", problem));
  }
  if (!options.write.empty() && !symbolic && !page->impure &&
      !write_case(text(options.write, "/", c.name), *onnx, inputs, *expected, tolerance))
    return failed("cannot write to " + options.write);
  return {};
}

/// Names of operators and cases, each with a reason.
std::map<std::string, std::string> read_refused(const std::string& path) {
  std::map<std::string, std::string> refused;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t space = line.find(' ');
    if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
    refused[line.substr(0, space)] = line.substr(space + 1);
  }
  return refused;
}

int run(const Options& options) {
  const std::regex filter(options.filter);
  std::map<std::string, std::string> refused = read_refused(options.refused);
  std::map<std::string, bool> used;
  size_t equal = 0, refusals = 0, failures = 0;
  for (const Case& c : all_cases()) {
    if (!std::regex_search(c.name, filter)) continue;
    const std::string op(name_of(c.op.type));
    const std::string key = refused.contains(c.name) ? c.name : op;
    Outcome outcome = check(c, options, false);
    const bool is_refused = !outcome.refusal.empty();
    if (is_refused) used[key] = true;
    if (is_refused && !refused.contains(key)) outcome.failure = "is not on the list: " + outcome.refusal;
    if (!is_refused && refused.contains(c.name)) outcome.failure = "is on the list, and was written";
    if (!is_refused && outcome.failure.empty()) outcome.failure = check(c, options, true).failure;
    ++(!outcome.failure.empty() ? failures : is_refused ? refusals : equal);
    if (!outcome.failure.empty())
      std::printf("FAILED %s (%s): %s\n", c.name.c_str(), op.c_str(), outcome.failure.c_str());
    if (options.verbose && is_refused)
      std::printf("refused %s: %s\n", c.name.c_str(), outcome.refusal.c_str());
  }
  if (options.filter.empty())
    for (const auto& [name, reason] : refused)
      if (!used.contains(name)) {
        std::printf("FAILED %s is on the list, but none of its cases is refused\n", name.c_str());
        ++failures;
      }
  std::printf("%zu cases are equal after ONNX, %zu are refused with a reason, %zu failed\n", equal, refusals,
              failures);
  return failures == 0 && equal > 0 ? 0 : 1;
}

}  // namespace
}  // namespace librt::test

int main(int argc, char** argv) {
  librt::test::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--verbose") {
      options.verbose = true;
      continue;
    }
    std::string* value = argument == "--filter"    ? &options.filter
                         : argument == "--refused" ? &options.refused
                         : argument == "--write"   ? &options.write
                                                   : nullptr;
    if (value == nullptr || i + 1 == argc) {
      std::fprintf(stderr, "onnx_export: unexpected argument %s\n", argv[i]);
      return 2;
    }
    *value = argv[++i];
  }
  return librt::test::run(options);
}
