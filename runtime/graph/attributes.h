// Reflection over the fields of all attribute structs: reading, checking, copying and printing them takes one
// loop and no code per operator.
//
// Knows: names, types and offsets of fields, generated from schema/ops.fbs. Must not know: what a field
// means; files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/graph/op.h"

namespace librt {

enum class FieldType : uint8_t { Bool, U8, I64, F32, F64, I64List, F32List, ActivationList, Text, Epilogue };

struct AttributeField {
  const char* name;  ///< "strides"
  uint16_t offset;   ///< in the struct
  OpKind owner;      ///< NONE: the epilogue
  FieldType type;
  uint8_t enumeration;  ///< index of the enumeration; 0: not an enumeration

  /// The names of an enumeration's values, which count from 0; empty for other fields.
  std::span<const char* const> enum_names() const noexcept;
  /// The field of a struct of attributes.
  template <class T>
  T& of(void* attributes) const noexcept {
    return *reinterpret_cast<T*>(static_cast<std::byte*>(attributes) + offset);
  }
  template <class T>
  const T& of(const void* attributes) const noexcept {
    return *reinterpret_cast<const T*>(static_cast<const std::byte*>(attributes) + offset);
  }
};

inline constexpr OpKind kEpilogueFields = OpKind::NONE;
/// In the order of the schema, that is of the file's field numbers.
std::span<const AttributeField> fields_of(OpKind owner) noexcept;

/// The operator with every attribute at its default.
OpAttributes default_attributes(OpKind kind);

/// "{strides=[2,2]}", or nothing when all attributes have their defaults.
std::string attributes_text(const OpAttributes& op);

}  // namespace librt
