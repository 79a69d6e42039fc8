#include "runtime/graph/attributes.h"

#include <cstddef>

#include "runtime/core/dtype.h"
#include "runtime/core/text.h"

namespace librt {
namespace {

template <class T>
constexpr FieldType type_of() {
  if constexpr (std::is_same_v<T, bool>) return FieldType::Bool;
  if constexpr (std::is_same_v<T, int64_t>) return FieldType::I64;
  if constexpr (std::is_same_v<T, float>) return FieldType::F32;
  if constexpr (std::is_same_v<T, double>) return FieldType::F64;
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) return FieldType::I64List;
  if constexpr (std::is_same_v<T, std::vector<float>>) return FieldType::F32List;
  if constexpr (std::is_same_v<T, std::string>) return FieldType::Text;
  if constexpr (std::is_same_v<T, std::unique_ptr<op::EpilogueAttributes>>) return FieldType::Epilogue;
  if constexpr (std::is_same_v<T, std::vector<op::RecurrentActivation>>) return FieldType::ActivationList;
  if constexpr (sizeof(T) == 1) return FieldType::U8;
}

namespace owner {
using enum op::Op;
constexpr OpKind Epilogue = kEpilogueFields;
}  // namespace owner

#define RT_FIELD(Table, field)
#define RT_ENUM_FIELD(Table, field, Enum)
#define RT_ENUM(Enum) Enum,
enum class Enumeration : uint8_t {
  None,
#include "schema/op_fields.inc"
};
#undef RT_ENUM
#define RT_ENUM(Enum) {op::EnumNames##Enum, static_cast<size_t>(op::Enum::MAX) + 1},
constexpr struct {
  const char* const* (*names)();
  size_t count;
} kEnumerations[] = {
    {nullptr, 0},
#include "schema/op_fields.inc"
};
#undef RT_ENUM
#undef RT_ENUM_FIELD
#undef RT_FIELD

#define RT_ENUM(Enum)
#define RT_ENUM_FIELD(Table, field, Enum)                        \
  {#field, offsetof(op::Table##Attributes, field), owner::Table, \
   type_of<decltype(op::Table##Attributes::field)>(), static_cast<uint8_t>(Enumeration::Enum)},
#define RT_FIELD(Table, field)                                   \
  {#field, offsetof(op::Table##Attributes, field), owner::Table, \
   type_of<decltype(op::Table##Attributes::field)>(), 0},
constexpr AttributeField kFields[] = {
#include "schema/op_fields.inc"
};
#undef RT_FIELD
#undef RT_ENUM_FIELD
#undef RT_ENUM

void append_number(std::string& out, const AttributeField& field, uint8_t number) {
  if (const auto names = field.enum_names(); number < names.size())
    append(out, names[number]);
  else if ((field.name == std::string_view("to") || field.name == std::string_view("dtype")) &&
           valid(DType{number}))
    append(out, name_of(DType{number}));
  else
    append(out, number);
}

template <class T>
void append_list(std::string& out, const AttributeField& field, const std::vector<T>& list) {
  if (list.empty()) return;
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    if constexpr (sizeof(T) == 1)
      append_number(out, field, static_cast<uint8_t>(list[i]));
    else
      append(out, list[i]);
  }
  out += ']';
}

void append_fields(std::string& out, OpKind owner, const void* attributes, const void* defaults);

template <class T>
void append_scalar(std::string& out, const AttributeField& field, const void* x, const void* defaults) {
  if (field.of<T>(x) == field.of<T>(defaults)) return;
  if constexpr (std::is_same_v<T, uint8_t>)
    append_number(out, field, field.of<T>(x));
  else
    append(out, field.of<T>(x));
}

/// Appends nothing for the default.
void append_value(std::string& out, const AttributeField& field, const void* x, const void* defaults) {
  switch (field.type) {
    case FieldType::Bool: return append_scalar<bool>(out, field, x, defaults);
    case FieldType::U8: return append_scalar<uint8_t>(out, field, x, defaults);
    case FieldType::I64: return append_scalar<int64_t>(out, field, x, defaults);
    case FieldType::F32: return append_scalar<float>(out, field, x, defaults);
    case FieldType::F64: return append_scalar<double>(out, field, x, defaults);
    case FieldType::I64List: return append_list(out, field, field.of<std::vector<int64_t>>(x));
    case FieldType::F32List: return append_list(out, field, field.of<std::vector<float>>(x));
    case FieldType::ActivationList:
      return append_list(out, field, field.of<std::vector<op::RecurrentActivation>>(x));
    case FieldType::Text:
      if (const std::string& words = field.of<std::string>(x); !words.empty()) append(out, "'", words, "'");
      return;
    case FieldType::Epilogue:
      if (const auto& epilogue = field.of<std::unique_ptr<op::EpilogueAttributes>>(x)) {
        const op::EpilogueAttributes none;
        append_fields(out, kEpilogueFields, epilogue.get(), &none);
      }
  }
}

void append_fields(std::string& out, OpKind owner, const void* attributes, const void* defaults) {
  out += '{';
  bool first = true;
  for (const AttributeField& field : fields_of(owner)) {
    std::string value;
    append_value(value, field, attributes, defaults);
    if (value.empty()) continue;
    append(out, first ? "" : ", ", field.name, "=", value);
    first = false;
  }
  out += '}';
}

/// Calls visit.operator()<T>() with the field's type.
template <class Visit>
void with_type(FieldType type, Visit&& visit) {
  switch (type) {
    case FieldType::Bool: return visit.template operator()<bool>();
    case FieldType::U8: return visit.template operator()<uint8_t>();
    case FieldType::I64: return visit.template operator()<int64_t>();
    case FieldType::F32: return visit.template operator()<float>();
    case FieldType::F64: return visit.template operator()<double>();
    case FieldType::I64List: return visit.template operator()<std::vector<int64_t>>();
    case FieldType::F32List: return visit.template operator()<std::vector<float>>();
    case FieldType::ActivationList: return visit.template operator()<std::vector<op::RecurrentActivation>>();
    case FieldType::Text: return visit.template operator()<std::string>();
    case FieldType::Epilogue: return visit.template operator()<std::unique_ptr<op::EpilogueAttributes>>();
  }
}

void copy_field(const AttributeField& field, const void* from, void* to) {
  with_type(field.type, [&]<class T>() {
    if constexpr (std::is_copy_constructible_v<T>)
      field.of<T>(to) = T(field.of<T>(from));  // moved: less code than assigning a list in place
    else if (const T& epilogue = field.of<T>(from))
      field.of<T>(to) = std::make_unique<op::EpilogueAttributes>(*epilogue);
  });
}

}  // namespace

std::span<const char* const> AttributeField::enum_names() const noexcept {
  const auto& known = kEnumerations[enumeration];
  if (known.count == 0) return {};
  return {known.names(), known.count};
}

std::span<const AttributeField> fields_of(OpKind owner) noexcept {
  const AttributeField* first = std::begin(kFields);
  while (first != std::end(kFields) && first->owner != owner) ++first;
  const AttributeField* last = first;
  while (last != std::end(kFields) && last->owner == owner) ++last;
  return {first, last};
}

OpAttributes default_attributes(OpKind kind) {
#define RT_OP(Name) sizeof(op::Name##Attributes),
  static constexpr uint8_t kSizes[] = {
      0,  // NONE
#include "schema/op_list.inc"
  };
#undef RT_OP
  OpAttributes attributes;
  if (kind == OpKind::NONE || static_cast<size_t>(kind) >= std::size(kSizes)) return attributes;
  attributes.value = ::operator new(kSizes[static_cast<size_t>(kind)]);
  attributes.type = kind;
  switch (kind) {  // nothing where the operator has no attributes
#define RT_OP(Name)                                \
  case OpKind::Name:                               \
    new (attributes.value) op::Name##Attributes(); \
    break;
#include "schema/op_list.inc"
#undef RT_OP
    default: break;
  }
  return attributes;
}

std::string attributes_text(const OpAttributes& op) {
  if (op.value == nullptr) return "";
  const OpAttributes defaults = default_attributes(op.type);
  std::string out;
  append_fields(out, op.type, op.value, defaults.value);
  return out == "{}" ? "" : out;
}

}  // namespace librt

// Declared in schema/ops_attributes.h.
namespace rt::op {

OpUnion::OpUnion(const OpUnion& other) : OpUnion(librt::default_attributes(other.type)) {
  if (value == nullptr) return;  // NONE
  for (const librt::AttributeField& field : librt::fields_of(type))
    librt::copy_field(field, other.value, value);
}

/// The structs have no members but their fields.
void OpUnion::Reset() {
  if (value != nullptr)
    for (const librt::AttributeField& field : librt::fields_of(type))
      librt::with_type(field.type, [&]<class T>() { std::destroy_at(&field.of<T>(value)); });
  ::operator delete(value);
  value = nullptr;
  type = Op::NONE;
}

}  // namespace rt::op
