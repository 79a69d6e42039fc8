// ONNX's TensorProto as an array: the importer's initializers and the .pb files of test data.
//
// Knows: the TensorProto field that stores each element type. Must not know: graphs, external files.
//
// Types narrower than librt's are stored in wider ones, with the same values: 2- and 4-bit integers in i8
// or u8, 4- and 8-bit floats in f16.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace rt_onnx {
class TensorProto;
}

namespace librt::tools {

/// librt's type for an ONNX data type number; nullopt for strings, complex numbers, float8e8m0.
std::optional<DType> element_type_of_onnx(int data_type) noexcept;
/// A type that librt stores in a wider one.
struct NarrowType {
  int onnx = 0;
  DType held = DType::I8;
  int bits = 8;
  int mantissa = 0, bias = 0;  ///< of floats
  bool infinity = false,
       fnuz = false;  ///< floats: the largest exponent is infinity or NaN; the only NaN is -0
};
/// Null for every other type.
const NarrowType* narrow_type_of_onnx(int data_type) noexcept;

/// The inverse of element_type_of_onnx, for librt's own types.
int onnx_type_of(DType type) noexcept;
/// "string", "float8e4m3fn", ... for messages about types that librt does not have.
std::string onnx_type_name(int data_type);

/// Type, extents and size of a tensor; everything that can be checked without its data has been.
struct TensorOutline {
  DType type = DType::F32;
  std::vector<int64_t> dims;
  size_t bytes = 0;
  size_t stored_bytes = 0;             ///< in raw_data or in another file
  const NarrowType* narrow = nullptr;  ///< set when the elements are widened while copying
};
std::optional<TensorOutline> outline_of(const rt_onnx::TensorProto& proto, std::string& error);

/// Copies the elements from raw_data or the typed fields into `bytes`, whose size is the outline's. Fails
/// when the message has a different number of elements. Not for external data.
bool copy_elements(const rt_onnx::TensorProto& proto, const TensorOutline& outline,
                   std::span<std::byte> bytes, std::string& error);
/// Widens elements as stored in files (2- and 4-bit integers packed, lowest bits first) to the type that
/// holds them.
void widen_elements(const NarrowType& type, std::span<const std::byte> stored, std::span<std::byte> bytes);
/// Whether copy_elements would find exactly the required elements; called before memory is allocated.
bool has_elements(const rt_onnx::TensorProto& proto, const TensorOutline& outline, std::string& error);

/// Takes the elements out of the message, wherever it stores them.
void clear_elements(rt_onnx::TensorProto& proto);

/// A serialized TensorProto whose data is inside the message.
std::optional<Array> parse_tensor_proto(std::span<const std::byte> bytes, std::string& error);
/// A serialized TensorProto with raw_data.
std::string format_tensor_proto(const Array& array);

}  // namespace librt::tools
