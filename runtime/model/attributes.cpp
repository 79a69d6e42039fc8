#include "runtime/model/attributes.h"

#include <algorithm>
#include <cstring>

#include "runtime/graph/attributes.h"
#include "schema/ops_generated.h"

namespace librt {
namespace {

using flatbuffers::Table;
using flatbuffers::Vector;
using flatbuffers::Verifier;
using flatbuffers::voffset_t;

voffset_t slot_of(size_t field) {
  return static_cast<voffset_t>(4 + 2 * field);
}

bool verify(Verifier& verifier, const Table* table, OpKind owner);

bool verify_field(Verifier& verifier, const Table& table, FieldType type, voffset_t slot) {
  const auto list = [&]<class T>(T) {
    return table.VerifyOffset(verifier, slot) &&
           verifier.VerifyVector(table.GetPointer<const Vector<T>*>(slot));
  };
  switch (type) {
    case FieldType::Bool:
    case FieldType::U8: return table.VerifyField<uint8_t>(verifier, slot, 1);
    case FieldType::I64:
    case FieldType::F64: return table.VerifyField<int64_t>(verifier, slot, 8);
    case FieldType::F32: return table.VerifyField<float>(verifier, slot, 4);
    case FieldType::I64List: return list(int64_t{});
    case FieldType::F32List: return list(float{});
    case FieldType::ActivationList: return list(uint8_t{});
    case FieldType::Text:
      return table.VerifyOffset(verifier, slot) &&
             verifier.VerifyString(table.GetPointer<const flatbuffers::String*>(slot));
    case FieldType::Epilogue:
      return table.VerifyOffset(verifier, slot) &&
             verify(verifier, table.GetPointer<const Table*>(slot), kEpilogueFields);
  }
  return false;
}

bool verify(Verifier& verifier, const Table* table, OpKind owner) {
  if (table == nullptr) return true;
  if (!table->VerifyTableStart(verifier)) return false;
  const auto fields = fields_of(owner);
  for (size_t i = 0; i < fields.size(); ++i)
    if (!verify_field(verifier, *table, fields[i].type, slot_of(i))) return false;
  return verifier.EndTable();
}

Status read(const Table& table, OpKind owner, void* attributes);

template <class T>
Status read_list(const Table& table, voffset_t slot, std::vector<T>& out) {
  const auto& list = *table.GetPointer<const Vector<T>*>(slot);
  if (list.size() > kMaxAttributeLength)
    return invalid_model(list.size(), " elements, at most ", kMaxAttributeLength);
  if (list.size() != 0 && reinterpret_cast<uintptr_t>(list.Data()) % sizeof(T) != 0)
    return invalid_model("misaligned");
  out.resize(list.size());
  if (list.size() != 0) std::memcpy(out.data(), list.Data(), list.size() * sizeof(T));
  return {};
}

Status check_enum(uint8_t number, const AttributeField& field) {
  if (field.enumeration == 0 || number < field.enum_names().size()) return {};
  return invalid_model("value ", number, " is not known to this build");
}

Status read_field(const Table& table, const AttributeField& field, voffset_t slot, void* x) {
  switch (field.type) {
    case FieldType::Bool: field.of<bool>(x) = table.GetField<uint8_t>(slot, 0) != 0; return {};
    case FieldType::U8:
      field.of<uint8_t>(x) = table.GetField<uint8_t>(slot, 0);
      return check_enum(field.of<uint8_t>(x), field);
    case FieldType::I64: field.of<int64_t>(x) = table.GetField<int64_t>(slot, 0); return {};
    case FieldType::F32: field.of<float>(x) = table.GetField<float>(slot, 0); return {};
    case FieldType::F64: field.of<double>(x) = table.GetField<double>(slot, 0); return {};
    case FieldType::I64List: return read_list(table, slot, field.of<std::vector<int64_t>>(x));
    case FieldType::F32List: return read_list(table, slot, field.of<std::vector<float>>(x));
    case FieldType::ActivationList: {
      auto& list = field.of<std::vector<op::RecurrentActivation>>(x);
      RT_TRY(read_list(table, slot, list));
      for (const op::RecurrentActivation activation : list)
        RT_TRY(check_enum(static_cast<uint8_t>(activation), field));
      return {};
    }
    case FieldType::Text: {
      const auto& words = *table.GetPointer<const flatbuffers::String*>(slot);
      if (words.size() > kMaxAttributeBytes)
        return invalid_model(words.size(), " bytes, at most ", kMaxAttributeBytes);
      field.of<std::string>(x).assign(words.c_str(), words.size());
      return {};
    }
    case FieldType::Epilogue: {
      auto& epilogue = field.of<std::unique_ptr<op::EpilogueAttributes>>(x);
      epilogue = std::make_unique<op::EpilogueAttributes>();
      return read(*table.GetPointer<const Table*>(slot), kEpilogueFields, epilogue.get());
    }
  }
  return {};
}

Status read(const Table& table, OpKind owner, void* attributes) {
  const auto fields = fields_of(owner);
  const size_t vtable_bytes = flatbuffers::ReadScalar<voffset_t>(table.GetVTable());
  if (vtable_bytes < 4) return invalid_model("a FlatBuffers table without a header");
  const size_t slots = (vtable_bytes - 4) / 2;
  for (size_t i = 0; i < slots; ++i) {
    if (table.GetOptionalFieldOffset(slot_of(i)) == 0) continue;
    if (i >= fields.size())
      return invalid_model("field ", i, " is not known to this build; a newer version wrote the file");
    RT_TRY(read_field(table, fields[i], slot_of(i), attributes).in(fields[i].name));
  }
  return {};
}

}  // namespace

Result<OpAttributes> read_attributes(const Table& table, OpKind kind) {
  OpAttributes attributes = default_attributes(kind);
  RT_TRY(read(table, kind, attributes.value));
  return attributes;
}

}  // namespace librt

// Declared in schema/ops_generated.h.
namespace rt::op {

bool VerifyOp(flatbuffers::Verifier& verifier, const void* obj, Op type) {
  return librt::verify(verifier, static_cast<const flatbuffers::Table*>(obj), type);
}

}  // namespace rt::op
