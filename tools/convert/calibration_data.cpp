#include "tools/convert/calibration_data.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/element.h"
#include "tools/data/compare.h"
#include "tools/data/idx.h"
#include "tools/data/npz.h"
#include "tools/onnx/array_file.h"

namespace librt::convert {

using tools::Array;

std::vector<Array> CalibrationData::run(size_t i) const {
  std::vector<Array> arrays;
  for (const Array& all : inputs) {
    Array part{.name = all.name, .type = all.type, .dims = all.dims, .bytes = {}};
    part.dims[0] = static_cast<int64_t>(step);
    const size_t row = all.bytes.size() / rows;
    const auto first = all.bytes.begin() + static_cast<ptrdiff_t>(i * step * row);
    part.bytes.assign(first, first + static_cast<ptrdiff_t>(step * row));
    arrays.push_back(std::move(part));
  }
  return arrays;
}

namespace {

Result<std::vector<Array>> read_arrays(const std::string& path, const std::string& option) {
  std::vector<Array> arrays;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".npy" && extension != ".pb") continue;
      RT_ASSIGN(Array array, tools::read_array(entry.path().string()));
      array.name = entry.path().stem().string();
      arrays.push_back(std::move(array));
    }
  } else {
    RT_ASSIGN(arrays, tools::read_npz(path));
  }
  if (arrays.empty()) return invalid_argument(option, " ", path, ": no arrays (.npz, or a folder of .npy)");
  return arrays;
}

}  // namespace

Result<CalibrationData> calibration_data(const Graph& graph, const std::vector<Array>& arrays,
                                         const std::string& source) {
  CalibrationData data;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph[id];
    auto found =
        std::find_if(arrays.begin(), arrays.end(), [&](const Array& a) { return a.name == value.name; });
    if (found == arrays.end() && arrays.size() == 1 && graph.inputs.size() == 1) found = arrays.begin();
    if (found == arrays.end())
      return invalid_argument(source, ": expected an array for each input, found none named '", value.name,
                              "'");
    if (!found->dims.empty() && found->dims[0] == 0)
      return invalid_argument(source, ": array '", found->name, "': expected rows of input '", value.name,
                              "', found none");
    if (value.rank() == 0 || static_cast<int>(found->dims.size()) != value.rank() || found->dims[0] < 1)
      return invalid_argument(source, ": array '", found->name, "': expected rows of input '", value.name,
                              "', rank ", value.rank(), ", found rank ", found->dims.size());
    for (int axis = 1; axis < value.rank(); ++axis) {
      const Dim& dim = value.dims[static_cast<size_t>(axis)];
      if (dim.is_known() && dim.extent != found->dims[static_cast<size_t>(axis)])
        return invalid_argument(source, ": array '", found->name, "': expected extent ", dim.extent,
                                " on axis ", axis, ", found ", found->dims[static_cast<size_t>(axis)]);
    }
    if (found->type != value.dtype)
      return invalid_argument(source, ": array '", found->name, "': expected ", name_of(value.dtype),
                              ", found ", name_of(found->type));
    const auto rows = static_cast<size_t>(found->dims[0]);
    if (!data.inputs.empty() && rows != data.rows)
      return invalid_argument(source, ": expected ", data.rows, " rows of '", value.name, "', found ", rows);
    data.rows = rows;
    if (value.dims[0].is_known()) data.step = static_cast<size_t>(value.dims[0].extent);
    data.inputs.push_back(*found);
  }
  if (data.step == 0 || data.rows < data.step)
    return invalid_argument(source, ": expected at least ", data.step, " rows, found ", data.rows);
  return data;
}

Result<CalibrationData> read_calibration_data(const Graph& graph, const std::string& path,
                                              const std::string& option) {
  RT_ASSIGN(const std::vector<Array> arrays, read_arrays(path, option));
  return calibration_data(graph, arrays, text(option, " ", path));
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
