#include "tools/convert/calibration_data.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "runtime/core/element.h"
#include "tools/data/compare.h"
#include "tools/data/file.h"
#include "tools/data/idx.h"
#include "tools/data/npz.h"
#include "tools/onnx/array_file.h"

namespace librt::convert {

using tools::Array;

void CalibrationData::add(CalibrationBatch batch) {
  batch.runs_to = runs() + batch.runs;
  batches.push_back(std::move(batch));
}

size_t CalibrationData::rows() const {
  size_t rows = 0;
  for (const CalibrationBatch& batch : batches) rows += batch.runs * batch.rows;
  return rows;
}

size_t CalibrationData::rows_of(size_t i) const {
  return place_of(i).first->rows;
}

std::vector<Array> CalibrationData::run(size_t i) const {
  const auto [batch, run] = place_of(i);
  std::vector<Array> arrays;
  for (size_t k = 0; k < batch->inputs.size(); ++k) {
    const Array& all = batch->inputs[k];
    const size_t step = batch->steps[k];
    if (step == 0) {
      arrays.push_back(all);
      continue;
    }
    Array& part =
        arrays.emplace_back(Array{.name = all.name, .type = all.type, .dims = all.dims, .bytes = {}});
    part.dims[0] = static_cast<int64_t>(step);
    const size_t bytes = all.bytes.size() / static_cast<size_t>(all.dims[0]) * step;
    const auto first = all.bytes.begin() + static_cast<ptrdiff_t>(run * bytes);
    part.bytes.assign(first, first + static_cast<ptrdiff_t>(bytes));
  }
  return arrays;
}

std::pair<const CalibrationBatch*, size_t> CalibrationData::place_of(size_t i) const {
  const auto batch =
      std::upper_bound(batches.begin(), batches.end(), i,
                       [](size_t run, const CalibrationBatch& each) { return run < each.runs_to; });
  return {&*batch, i - (batch->runs_to - batch->runs)};
}

namespace {

namespace fs = std::filesystem;

/// The files of a folder with one of these extensions, in the order of their names.
std::vector<fs::path> files_of(const std::string& folder, std::initializer_list<const char*> extensions) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (std::find(extensions.begin(), extensions.end(), entry.path().extension().string()) !=
        extensions.end())
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// For each input its array.
Result<std::vector<Array>> arrays_of(const Graph& graph, std::vector<Array> arrays,
                                     const std::string& source) {
  std::vector<Array> found;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph[id];
    auto array =
        std::find_if(arrays.begin(), arrays.end(), [&](const Array& a) { return a.name == value.name; });
    if (array == arrays.end() && arrays.size() == 1 && graph.inputs.size() == 1) array = arrays.begin();
    if (array == arrays.end())
      return invalid_argument(source, ": expected an array for each input, found none named '", value.name,
                              "'");
    if (static_cast<int>(array->dims.size()) != value.rank())
      return invalid_argument(source, ": array '", array->name, "': expected rank ", value.rank(),
                              ", that of input '", value.name, "', found ", array->dims.size());
    if (array->type != value.dtype)
      return invalid_argument(source, ": array '", array->name, "': expected ", name_of(value.dtype),
                              ", found ", name_of(array->type));
    found.push_back(std::move(*array));
  }
  return found;
}

/// Whether extents from the axis `first` on are the input's, as far as it fixes them.
Status check_extents(const Array& array, const Value& value, int first, const std::string& source) {
  for (int axis = first; axis < value.rank(); ++axis) {
    const Dim& dim = value.dims[static_cast<size_t>(axis)];
    const int64_t extent = array.dims[static_cast<size_t>(axis)];
    if (dim.is_known() && dim.extent != extent)
      return invalid_argument(source, ": array '", array.name, "': expected extent ", dim.extent, " on axis ",
                              axis, ", found ", extent);
  }
  return {};
}

/// The extent of the batch: that of the first open axis 0, or of the first axis 0 at all.
size_t batch_of(const Graph& graph, const std::vector<Array>& inputs) {
  const Array* batched = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dims.empty()) continue;
    if (!graph[graph.inputs[i]].dims[0].is_known()) return static_cast<size_t>(inputs[i].dims[0]);
    if (batched == nullptr) batched = &inputs[i];
  }
  return batched == nullptr ? 1 : static_cast<size_t>(batched->dims[0]);
}

/// One run on these arrays.
Result<CalibrationBatch> single_run(const Graph& graph, std::vector<Array> arrays,
                                    const std::string& source) {
  CalibrationBatch batch;
  RT_ASSIGN(batch.inputs, arrays_of(graph, std::move(arrays), source));
  for (size_t i = 0; i < batch.inputs.size(); ++i)
    RT_TRY(check_extents(batch.inputs[i], graph[graph.inputs[i]], 0, source));
  batch.steps.resize(batch.inputs.size(), 0);
  batch.rows = batch_of(graph, batch.inputs);
  return batch;
}

/// The rows that a run takes of an array; 0: all of it is for every run.
Result<size_t> step_of(const Array& array, const Value& value, const std::string& source) {
  RT_TRY(check_extents(array, value, 1, source));
  if (value.rank() == 0) return size_t{0};
  const bool is_fixed = value.dims[0].is_known();
  const auto step = static_cast<size_t>(is_fixed ? value.dims[0].extent : 1);
  const auto rows = static_cast<size_t>(array.dims[0]);
  if (is_fixed && rows == step) return size_t{0};
  if (rows == 0)
    return invalid_argument(source, ": array '", array.name, "': expected rows of input '", value.name,
                            "', found none");
  if (step == 0 || rows < step)
    return invalid_argument(source, ": array '", array.name, "': expected at least ", step,
                            " rows of input '", value.name, "', found ", rows);
  return step;
}

Result<std::vector<Array>> read_arrays(const std::string& path, const std::string& option) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return tools::read_npz(path);
  std::vector<Array> arrays;
  for (const fs::path& file : files_of(path, {".npy", ".pb"})) {
    RT_ASSIGN(Array array, tools::read_array(file.string()));
    array.name = file.stem().string();
    arrays.push_back(std::move(array));
  }
  if (arrays.empty())
    return invalid_argument(option, " ", path,
                            ": no arrays (.npz, a folder of .npy, or a folder with an .npz for each run)");
  return arrays;
}

/// Whether there are rows for a run, and with `exactly` none are left over.
bool has_runs(const Graph& graph, const std::vector<Array>& inputs, bool exactly) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    if (value.rank() == 0 || !value.dims[0].is_known() || value.dims[0].extent == 0) continue;
    const int64_t rows = inputs[i].dims[0], step = value.dims[0].extent;
    if (exactly ? rows % step != 0 : rows < step) return false;
  }
  return true;
}

/// Adds the rows of a batch to those of the ones before.
Status append(std::vector<Array>& rows, const std::vector<Array>& batch) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dims.empty()) continue;  // a scalar: the same for all
    if (!std::equal(rows[i].dims.begin() + 1, rows[i].dims.end(), batch[i].dims.begin() + 1))
      return invalid_argument("'", rows[i].name,
                              "': expected rows as in the batch before, found another shape");
    rows[i].dims[0] += batch[i].dims[0];
    rows[i].bytes.insert(rows[i].bytes.end(), batch[i].bytes.begin(), batch[i].bytes.end());
  }
  return {};
}

Result<CalibrationBatch> divided(const Graph& graph, std::vector<Array> inputs, const std::string& source) {
  CalibrationBatch batch;
  const Array* first = nullptr;  // that is not for every run
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    RT_ASSIGN(const size_t step, step_of(inputs[i], value, source));
    batch.steps.push_back(step);
    if (step == 0) continue;
    const size_t runs = static_cast<size_t>(inputs[i].dims[0]) / step;
    if (first == nullptr) {
      first = &inputs[i];
      batch.runs = runs;
      batch.rows = step;
    }
    if (runs != batch.runs)
      return invalid_argument(source, ": expected ", batch.runs * step, " rows of '", value.name, "', for ",
                              batch.runs, " runs as '", first->name, "' has, found ", inputs[i].dims[0]);
  }
  if (first == nullptr) batch.rows = batch_of(graph, inputs);
  batch.inputs = std::move(inputs);
  return batch;
}

}  // namespace

Result<CalibrationData> calibration_data(const Graph& graph, std::vector<Array> arrays,
                                         const std::string& source) {
  RT_ASSIGN(std::vector<Array> inputs, arrays_of(graph, std::move(arrays), source));
  RT_ASSIGN(CalibrationBatch batch, divided(graph, std::move(inputs), source));
  CalibrationData data;
  data.add(std::move(batch));
  return data;
}

Result<CalibrationData> calibration_data(const Graph& graph,
                                         const std::function<Result<std::vector<Array>>(size_t batch)>& next,
                                         const std::string& source) {
  CalibrationData data;
  const auto add = [&](std::vector<Array> inputs, const std::string& where) -> Status {
    RT_ASSIGN(CalibrationBatch batch, divided(graph, std::move(inputs), where));
    data.add(std::move(batch));
    return {};
  };
  std::vector<Array> rest;
  size_t bytes = 0;
  for (size_t i = 0;; ++i) {
    RT_ASSIGN(std::vector<Array> arrays, next(i));
    if (arrays.empty()) break;
    for (const Array& array : arrays) bytes += array.bytes.size();
    if (bytes > tools::largest_file())
      return tools::too_large(source, "the rows", bytes, tools::largest_file());
    const std::string where = text(source, ", batch ", i);
    RT_ASSIGN(std::vector<Array> inputs, arrays_of(graph, std::move(arrays), where));
    if (!rest.empty()) {
      RT_TRY(append(rest, inputs).in(where));
      inputs = std::exchange(rest, {});
    }
    if (has_runs(graph, inputs, true))
      RT_TRY(add(std::move(inputs), where));
    else
      rest = std::move(inputs);
  }
  if (!rest.empty() && (data.batches.empty() || has_runs(graph, rest, false)))
    RT_TRY(add(std::move(rest), source));
  if (data.batches.empty()) return invalid_argument(source, ": expected rows, found none");
  return data;
}

Result<CalibrationData> read_calibration_data(const Graph& graph, const std::string& path,
                                              const std::string& option) {
  const std::string source = text(option, " ", path);
  std::error_code ignored;
  const std::vector<fs::path> runs =
      fs::is_directory(path, ignored) ? files_of(path, {".npz"}) : std::vector<fs::path>();
  if (runs.empty()) {
    RT_ASSIGN(std::vector<Array> arrays, read_arrays(path, option));
    return calibration_data(graph, std::move(arrays), source);
  }
  if (!files_of(path, {".npy", ".pb"}).empty())
    return invalid_argument(source, ": expected an .npy for each input, or an .npz for each run, found both");
  CalibrationData data;
  for (const fs::path& file : runs) {
    RT_ASSIGN(std::vector<Array> arrays, tools::read_npz(file.string()));
    RT_ASSIGN(CalibrationBatch run, single_run(graph, std::move(arrays), text(option, " ", file.string())));
    data.add(std::move(run));
  }
  return data;
}

Result<std::vector<int64_t>> read_labels(const std::string& path, size_t rows) {
  RT_ASSIGN(const Array array, tools::is_idx_file(path) ? tools::read_idx(path) : tools::read_array(path));
  const DType type = array.type;
  const size_t count = array.bytes.size() / size_of(array.type);
  if (is_float(type) || count < rows)
    return invalid_argument("--labels ", path, ": expected ", rows, " integers, one for each row, found ",
                            tools::describe(array));
  std::vector<int64_t> labels;
  for (size_t i = 0; i < rows; ++i)
    labels.push_back(load_integer(array.bytes.data(), type, static_cast<int64_t>(i)));
  return labels;
}

}  // namespace librt::convert
