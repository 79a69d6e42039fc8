// ONNX's TensorProto as an array: the importer's initializers and the .pb files of test data.
//
// Knows: where TensorProto keeps elements of each type. Must not know: graphs, external files.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/common/array.h"

namespace rt_onnx {
class TensorProto;
}

namespace rt::tools {

/// librt's type for an ONNX data type number; nullopt for strings, complex numbers, 8-bit floats, 4-bit
/// integers.
std::optional<ElementType> element_type_of_onnx(int data_type) noexcept;
/// The inverse.
int onnx_type_of(ElementType type) noexcept;
/// "string", "float8e4m3fn", ... for messages about types that librt does not have.
std::string onnx_type_name(int data_type);

/// Type, extents and size of a tensor, with everything checked that can be without its data.
struct TensorOutline {
  ElementType type = ElementType::F32;
  std::vector<int64_t> dims;
  size_t bytes = 0;
};
std::optional<TensorOutline> outline_of(const rt_onnx::TensorProto& proto, std::string& error);

/// Copies the elements out of raw_data or the typed fields into `bytes`, which has the outline's size. An
/// error when the message holds another number of elements. Not for external data.
bool copy_elements(const rt_onnx::TensorProto& proto, ElementType type, std::span<std::byte> bytes,
                   std::string& error);
/// Whether copy_elements would find exactly the elements asked for, so that memory is only taken when it will
/// be used.
bool has_elements(const rt_onnx::TensorProto& proto, const TensorOutline& outline, std::string& error);

/// A serialized TensorProto whose data is inside the message.
std::optional<Array> parse_tensor_proto(std::span<const std::byte> bytes, std::string& error);
/// A serialized TensorProto with raw_data.
std::string format_tensor_proto(const Array& array);

}  // namespace rt::tools
