// The caller's structs: copied by their struct_size, and what librt knows about tensors as such.
//
// Knows: rt.h and the graph. Must not know: handles, sessions. A header alone, because librt_compiler has
// sized structs too, and gets the functions of rt.h from librt.so.
#pragma once

#include <algorithm>
#include <cstring>

#include "rt/rt.h"
#include "runtime/graph/graph.h"

namespace librt::api {

inline Status check_size(size_t size, const char* name) noexcept {
  if (size >= sizeof(size_t) && size <= 4096) return {};
  return invalid_argument(name, ": struct_size is ", size, "; set it to sizeof(", name, ")");
}

inline size_t struct_size(const void* from) noexcept {
  return *static_cast<const size_t*>(from);
}

/// Copies between library and caller structs; the first member, struct_size, is the caller's size.
inline Status copy_out(const void* from, size_t bytes, void* to, const char* name) noexcept {
  if (to == nullptr) return invalid_argument(name, ": the pointer is null");
  const size_t size = struct_size(to);
  RT_TRY(check_size(size, name));
  std::memcpy(static_cast<char*>(to) + sizeof(size_t), static_cast<const char*>(from) + sizeof(size_t),
              std::min(size, bytes) - sizeof(size_t));
  return {};
}

inline Status copy_in(const void* from, void* to, size_t bytes, const char* name) noexcept {
  if (from == nullptr) return {};
  const size_t size = struct_size(from);
  RT_TRY(check_size(size, name));
  std::memcpy(to, from, std::min(size, bytes));
  // A newer caller's fields that this library does not support must not be silently ignored.
  const auto* unknown = static_cast<const char*>(from);
  if (std::any_of(unknown + bytes, unknown + std::max(size, bytes), [](char byte) { return byte != 0; }))
    return unsupported(name, ": a field beyond what this librt (", rt_version(),
                       ") knows is set; update librt");
  return {};
}

/// Copies a filled struct to the caller's, up to the caller's size.
template <class Struct>
Status hand_out(const Struct& from, Struct* to, const char* name) noexcept {
  return copy_out(&from, sizeof from, to, name);
}

/// The caller's struct, with zeros for missing fields. Null: all zeros.
template <class Struct>
Status take_in(const Struct* from, Struct& to, const char* name) noexcept {
  to = Struct{};
  return copy_in(from, &to, sizeof to, name);
}

/// Dims and dtype of a tensor given by the caller, checked.
inline Result<TensorInfo> info_of(const rt_tensor& tensor) {
  if (tensor.dtype < 0 || tensor.dtype >= kDTypeCount)
    return invalid_argument("tensor: ", static_cast<int>(tensor.dtype), " is no dtype");
  if (tensor.rank < 0 || tensor.rank > RT_MAX_RANK)
    return invalid_argument("tensor: expected a rank from 0 to ", RT_MAX_RANK, ", found ", tensor.rank);
  TensorInfo info{.dtype = static_cast<DType>(tensor.dtype), .shape = {}};
  for (int32_t i = 0; i < tensor.rank; ++i) info.shape.push_back(tensor.dims[i]);
  if (!info.shape.checked_elements())
    return invalid_argument("tensor: invalid dims ", info.shape, "; each must be 0 or more" RT_FEW_ELEMENTS);
  return info;
}

/// The strings refer to graph and value.
inline rt_tensor_spec spec_of(const Graph& graph, const Value& value) noexcept {
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  spec.name = value.name.c_str();
  spec.dtype = static_cast<rt_dtype>(value.dtype);
  spec.rank = value.rank();
  for (int i = 0; i < value.rank() && i < RT_MAX_RANK; ++i) {
    const Dim& dim = value.dims[static_cast<size_t>(i)];
    spec.dims[i] = dim.is_known() ? dim.extent : -1;
    if (dim.is_known() || dim.symbol < 0 || static_cast<size_t>(dim.symbol) >= graph.symbols.size()) continue;
    spec.symbols[i] = graph.symbols[static_cast<size_t>(dim.symbol)].name.c_str();
    spec.bounds[i] = graph.symbols[static_cast<size_t>(dim.symbol)].bound;
  }
  return spec;
}

}  // namespace librt::api
