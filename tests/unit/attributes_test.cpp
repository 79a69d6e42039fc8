// The list of attribute fields against FlatBuffers' generated code: what one writes is read back, field by
// field.
#include <gtest/gtest.h>

#include "runtime/graph/attributes.h"
#include "runtime/model/attributes.h"
#include "schema/ops_generated.h"

namespace librt {
namespace {

void change(const AttributeField& field, void* x, int seed) {
  switch (field.type) {
    case FieldType::Bool: field.of<bool>(x) = !field.of<bool>(x); break;
    case FieldType::U8: field.of<uint8_t>(x) = field.of<uint8_t>(x) == 0; break;
    case FieldType::I64: field.of<int64_t>(x) = -1000 - seed; break;
    case FieldType::F32: field.of<float>(x) = 0.5f + static_cast<float>(seed); break;
    case FieldType::F64: field.of<double>(x) = 0.25 + seed; break;
    case FieldType::I64List: field.of<std::vector<int64_t>>(x) = {seed, -seed, int64_t{1} << 40}; break;
    case FieldType::F32List: field.of<std::vector<float>>(x) = {static_cast<float>(seed), -2}; break;
    case FieldType::ActivationList:
      field.of<std::vector<op::RecurrentActivation>>(x) = {op::RecurrentActivation::MAX};
      break;
    case FieldType::Text: field.of<std::string>(x) = "words of " + std::to_string(seed); break;
    case FieldType::Epilogue: {
      auto& epilogue = field.of<std::unique_ptr<op::EpilogueAttributes>>(x);
      epilogue = std::make_unique<op::EpilogueAttributes>();
      for (const AttributeField& inner : fields_of(kEpilogueFields)) change(inner, epilogue.get(), seed + 1);
    }
  }
}

Result<OpAttributes> written_and_read(const OpAttributes& op) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<flatbuffers::Table>(op::pack_op(op, builder).o));
  const auto& table = *flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer());
  flatbuffers::Verifier verifier(builder.GetBufferPointer(), builder.GetSize());
  if (!op::VerifyOp(verifier, &table, op.type)) return invalid_model("the structure is damaged");
  return read_attributes(table, op.type);
}

TEST(Attributes, EveryFieldIsWrittenReadAndPrinted) {
  for (int number = 1; number < kOpCount; ++number) {
    const auto kind = static_cast<OpKind>(number);
    OpAttributes op = default_attributes(kind);
    ASSERT_EQ(op.type, kind);
    EXPECT_EQ(attributes_text(op), "") << name_of(kind);
    int seed = 1;
    for (const AttributeField& field : fields_of(kind)) change(field, op.value, seed++);
    const std::string text = attributes_text(op);
    for (const AttributeField& field : fields_of(kind))
      EXPECT_NE(text.find(field.name), std::string::npos) << name_of(kind) << " " << text;
    const auto read = written_and_read(op);
    ASSERT_TRUE(read.ok()) << name_of(kind) << ": " << read.status().message();
    EXPECT_EQ(attributes_text(*read), text) << name_of(kind);
  }
}

TEST(Attributes, EnumValuesOfANewerVersionAreRefused) {
  op::ConvAttributes conv;
  conv.epilogue = std::make_unique<op::EpilogueAttributes>();
  conv.epilogue->activation = static_cast<op::Activation>(200);
  const auto read = written_and_read(make_op(std::move(conv)));
  EXPECT_EQ(read.status().message(), "epilogue: activation: value 200 is not known to this build");
}

TEST(Attributes, LongListsAreRefused) {
  op::TransposeAttributes transpose;
  transpose.permutation.resize(kMaxAttributeLength + 1);
  const auto read = written_and_read(make_op(std::move(transpose)));
  EXPECT_EQ(read.status().message(), "permutation: 257 elements, at most 256");
}

}  // namespace
}  // namespace librt
