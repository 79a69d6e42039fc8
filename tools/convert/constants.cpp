#include "tools/convert/constants.h"

#include <algorithm>

#include "tools/data/array.h"
#include "tools/data/npz.h"
#include "tools/onnx/array_file.h"

namespace librt::convert {

namespace {

Result<tools::Array> read_tensor(const std::string& name, const std::string& path) {
  if (!path.ends_with(".npz")) return tools::read_array(path);
  RT_ASSIGN(std::vector<tools::Array> arrays, tools::read_npz(path));
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const tools::Array& array) { return array.name == name; });
  if (found != arrays.end()) return std::move(*found);
  if (arrays.size() == 1) return std::move(arrays.front());
  return invalid_argument(path, ": expected one array, or one named '", name, "', found ", arrays.size());
}

Status fill(onnx::ConstantInput& constant, const std::string& name, tools::Array array) {
  if (array.dims.size() > static_cast<size_t>(kMaxRank))
    return invalid_argument("--constant ", name, ": the array has ", array.dims.size(),
                            " dimensions; at most ", kMaxRank, " are supported");
  constant.info = {.dtype = array.type, .shape = Shape(std::span(array.dims))};
  constant.data = Blob::own(std::move(array.bytes));
  return {};
}

}  // namespace

Result<std::map<std::string, onnx::ConstantInput>> read_constants(
    const std::map<std::string, std::string>& given, const std::map<std::string, tools::Array>& arrays) {
  std::map<std::string, onnx::ConstantInput> constants;
  for (const auto& [name, array] : arrays) RT_TRY(fill(constants[name], name, array));
  for (const auto& [name, value] : given) {
    onnx::ConstantInput& constant = constants[name];
    if (!value.ends_with(".npy") && !value.ends_with(".npz") && !value.ends_with(".pb")) {
      constant.numbers = value;
      continue;
    }
    auto read = read_tensor(name, value);
    if (!read.ok()) return std::move(read).status().in(text("--constant ", name));
    RT_TRY(fill(constant, name, std::move(*read)).in(value));
  }
  return constants;
}

}  // namespace librt::convert
