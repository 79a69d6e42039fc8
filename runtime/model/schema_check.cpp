#include "runtime/model/schema_check.h"

#include <algorithm>

namespace librt {
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::Table;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;

size_t alignment_of(const TypeCode& code, const TypeTable& type) {
  switch (static_cast<ElementaryType>(code.base_type)) {
    case flatbuffers::ET_CHAR:
    case flatbuffers::ET_UCHAR:
    case flatbuffers::ET_BOOL:
    case flatbuffers::ET_UTYPE: return 1;
    case flatbuffers::ET_SHORT:
    case flatbuffers::ET_USHORT: return 2;
    case flatbuffers::ET_LONG:
    case flatbuffers::ET_ULONG:
    case flatbuffers::ET_DOUBLE: return 8;
    case flatbuffers::ET_SEQUENCE: {
      const TypeTable& inner = *type.type_refs[code.sequence_ref]();
      if (inner.st != flatbuffers::ST_STRUCT) return 4;  // tables are referenced through 32-bit offsets
      size_t largest = 1;
      for (size_t i = 0; i < inner.num_elems; ++i)
        largest = std::max(largest, alignment_of(inner.type_codes[i], inner));
      return largest;
    }
    default: return 4;
  }
}

/// A field of a small unsigned type with an enumeration of consecutive values.
bool known_enum_value(const Table& table, flatbuffers::voffset_t slot, const TypeTable& values) {
  const auto number = table.GetField<uint8_t>(slot, 0);
  return values.values != nullptr || number < values.num_elems;
}

}  // namespace

Status check_table(const void* data, const TypeTable& type) {
  const Table& table = *static_cast<const Table*>(data);
  const uint8_t* vtable = table.GetVTable();
  const size_t vtable_bytes = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  if (vtable_bytes < 4) return invalid_model("a FlatBuffers table without a header");
  const size_t slots = (vtable_bytes - 4) / 2;
  const auto slot_of = [](size_t field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); };
  for (size_t field = type.num_elems; field < slots; ++field)
    if (table.GetOptionalFieldOffset(slot_of(field)) != 0)
      return invalid_model("field ", field, " is not known to this build; a newer version wrote the file");
  for (size_t field = 0; field < std::min(slots, type.num_elems); ++field) {
    const flatbuffers::voffset_t slot = slot_of(field);
    if (table.GetOptionalFieldOffset(slot) == 0) continue;
    const TypeCode& code = type.type_codes[field];
    if (code.is_repeating != 0) {
      const auto* vector = table.GetPointer<const flatbuffers::Vector<uint8_t>*>(slot);
      if (vector->size() != 0 && reinterpret_cast<uintptr_t>(vector->Data()) % alignment_of(code, type) != 0)
        return invalid_model(type.names[field], ": misaligned");
    } else if (code.sequence_ref >= 0) {
      const TypeTable& inner = *type.type_refs[code.sequence_ref]();
      if (inner.st == flatbuffers::ST_ENUM && code.base_type == flatbuffers::ET_UCHAR &&
          !known_enum_value(table, slot, inner))
        return invalid_model(type.names[field], ": value ",
                             static_cast<int>(table.GetField<uint8_t>(slot, 0)),
                             " is not known to this build");
    }
  }
  return {};
}

}  // namespace librt
