#include "tools/weights/adapter.h"

#include <algorithm>
#include <vector>

#include "tools/data/peft.h"
#include "tools/data/safetensors.h"

namespace librt::tools {
namespace {

Status taken(rt_status* status) {
  if (status == nullptr) return {};
  Status same = Status::make(static_cast<Code>(rt_status_code(status)), rt_status_message(status));
  rt_status_free(status);
  return same;
}

/// The declarations of the session's weights; their names live as long as the session.
Result<std::vector<rt_tensor_spec>> weights_of(const rt_session* session) {
  std::vector<rt_tensor_spec> weights;
  for (size_t i = 0; i < rt_session_state_count(session); ++i) {
    rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
    rt_state_kind kind = RT_PARAMETER;
    RT_TRY(taken(rt_session_state_spec(session, i, &spec, &kind)));
    if (kind == RT_PARAMETER || kind == RT_STATISTIC) weights.push_back(spec);
  }
  return weights;
}

std::string info_text(int dtype, std::span<const int64_t> dims) {
  return text(name_of(static_cast<DType>(dtype)), shape_text(dims));
}

/// Why the array is not the value of the state; empty if it is.
std::string mismatch(const rt_tensor_spec& state, const Array* array) {
  const std::span dims(state.dims, static_cast<size_t>(state.rank));
  const std::string expected = info_text(state.dtype, dims);
  if (array == nullptr) return text("expected ", expected, ", the file has none");
  if (static_cast<int>(array->type) == static_cast<int>(state.dtype) && std::ranges::equal(array->dims, dims))
    return {};
  return text("expected ", expected, ", found ", info_text(static_cast<int>(array->type), array->dims));
}

rt_tensor view_of(Array& array) {
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = static_cast<rt_dtype>(array.type);
  tensor.rank = static_cast<int32_t>(array.dims.size());
  std::copy(array.dims.begin(), array.dims.end(), tensor.dims);
  tensor.data = array.bytes.data();
  tensor.bytes = array.bytes.size();
  return tensor;
}

/// All problems of the file, each in a line.
std::string problems_of(const std::vector<rt_tensor_spec>& weights, const std::vector<Array>& arrays) {
  std::string problems;
  for (const rt_tensor_spec& state : weights) {
    const auto found = std::ranges::find(arrays, std::string_view(state.name), &Array::name);
    const std::string problem = mismatch(state, found == arrays.end() ? nullptr : &*found);
    if (!problem.empty()) append(problems, text("\n  '", state.name, "': ", problem));
  }
  for (const Array& array : arrays)
    if (std::ranges::none_of(weights, [&](const rt_tensor_spec& state) { return array.name == state.name; }))
      append(problems, text("\n  '", array.name, "': the model has none"));
  return problems;
}

/// Writes the arrays to the states; what they held comes back where one cannot be written.
Status write_states(rt_session* session, std::vector<Array>& arrays) {
  std::vector<Array> before;
  Status status;
  for (Array& array : arrays) {
    Array old = array;
    rt_tensor held = view_of(old);
    status = taken(rt_session_read_state(session, array.name.c_str(), &held));
    if (!status.ok()) break;
    before.push_back(std::move(old));
    const rt_tensor given = view_of(array);
    status = taken(rt_session_write_state(session, array.name.c_str(), &given));
    if (!status.ok()) break;
  }
  if (status.ok()) return {};
  for (Array& array : before) {
    const rt_tensor held = view_of(array);
    rt_status_free(rt_session_write_state(session, array.name.c_str(), &held));  // the first error counts
  }
  return status;
}

}  // namespace

Status load_adapter(rt_session* session, const std::string& path) {
  if (!is_safetensors(path)) return taken(rt_session_load_adapter(session, path.c_str()));
  RT_ASSIGN(const std::vector<rt_tensor_spec> weights, weights_of(session));
  RT_ASSIGN(Safetensors content, read_safetensors(path));
  if (weights.empty())
    return invalid_argument(path,
                            ": is for a model with parameters, the model has none; compile it with --lora");
  if (is_peft(content)) {
    std::vector<std::string> adapted;  // the weights that A and B are of
    constexpr std::string_view kA = ".lora_a";
    for (const rt_tensor_spec& state : weights)
      if (const std::string name = state.name; name.ends_with(kA))
        adapted.push_back(name.substr(0, name.size() - kA.size()));
    RT_ASSIGN(content, from_peft(content, path, adapted));
  }
  const std::string problems = problems_of(weights, content.arrays);
  if (!problems.empty())
    return invalid_argument(path, ": the adapter belongs to another model", problems,
                            "\n  give one that was trained with this model");
  return write_states(session, content.arrays);
}

}  // namespace librt::tools
