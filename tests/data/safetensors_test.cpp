// safetensors files: what is written is read again, and files that break the format's rules are errors.
#include "tools/data/safetensors.h"

#include <cstring>

#include "tests/data/scratch.h"

namespace librt::tools {
namespace {

class SafetensorsFile : public Scratch {
 protected:
  static std::string file_of(std::string_view header, std::string_view data = "") {
    const uint64_t size = header.size();
    std::string file(sizeof size, '\0');
    std::memcpy(file.data(), &size, sizeof size);
    return file + std::string(header) + std::string(data);
  }
  std::string error_of(std::string_view header, std::string_view data = "") const {
    const auto content = read_safetensors(write("bad.safetensors", file_of(header, data)));
    return content.ok() ? "" : content.status().message();
  }
  void expect_error(std::string_view header, std::string_view data, std::string_view message) const {
    const std::string error = error_of(header, data);
    EXPECT_TRUE(contains(error, message)) << header << ": '" << error << "'";
  }
};

TEST_F(SafetensorsFile, WhatIsWrittenIsRead) {
  const Array a{.name = "b.bias", .type = DType::BF16, .dims = {2}, .bytes = bytes_of("abcd")};
  const Array b{.name = "a.\"w\"\xc3\xa9", .type = DType::F32, .dims = {1, 2}, .bytes = bytes_of("efghijkl")};
  const Array c{.name = "scale", .type = DType::F64, .dims = {}, .bytes = bytes_of("mnopqrst")};
  const Array d{.name = "none", .type = DType::I64, .dims = {0, 3}, .bytes = {}};
  const std::string file = path("w.safetensors");
  ASSERT_TRUE(write_safetensors(file, {{a, b, c, d}, {{"format", "pt"}}}).ok());
  const auto content = read_safetensors(file);
  ASSERT_TRUE(content.ok()) << content.status().message();
  ASSERT_EQ(content->arrays.size(), 4u);
  for (const Array& found : content->arrays) {
    const Array* written = nullptr;
    for (const Array* each : {&a, &b, &c, &d})
      if (each->name == found.name) written = each;
    ASSERT_NE(written, nullptr) << found.name;
    EXPECT_EQ(found.type, written->type);
    EXPECT_EQ(found.dims, written->dims);
    EXPECT_EQ(found.bytes, written->bytes);
  }
  EXPECT_EQ(content->metadata, (std::vector<std::pair<std::string, std::string>>{{"format", "pt"}}));
  // As the format's own library: aligned data, larger elements first.
  const auto bytes = read_file(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes->data(), sizeof header);
  EXPECT_EQ(header % 8, 0u);
  EXPECT_EQ(content->arrays.back().name, "b.bias");
}

TEST_F(SafetensorsFile, NamesThatCannotBeWritten) {
  const Array one{.name = "x", .type = DType::U8, .dims = {1}, .bytes = bytes_of("a")};
  EXPECT_FALSE(write_safetensors(path("w"), {{one, one}, {}}).ok());
  Array bad = one;
  bad.name = "__metadata__";
  EXPECT_FALSE(write_safetensors(path("w"), {{bad}, {}}).ok());
  bad.name = "\xff";
  EXPECT_TRUE(contains(write_safetensors(path("w"), {{bad}, {}}).message(), "UTF-8"));
  EXPECT_FALSE(std::filesystem::exists(path("w")));
}

TEST_F(SafetensorsFile, HeadersThatAreNone) {
  EXPECT_FALSE(read_safetensors(path("missing")).ok());
  EXPECT_FALSE(read_safetensors(write("short", "1234567")).ok());
  const auto huge = read_safetensors(write("huge", std::string(8, '\xff') + "{}"));
  EXPECT_TRUE(contains(huge.status().message(), "cut short"));
  expect_error("", "", "not a JSON object");
  expect_error("[]", "", "not a JSON object");
  expect_error("{", "", "not a JSON object");
  expect_error("{}", "a", "the tensors have 0 bytes, the file 1");
  expect_error(R"({"x":{"y":{"z":{}}}})", "", "nested too deeply");
  expect_error(R"({"x":)" + std::string(100'000, '[') + "}", "", "nested too deeply");
  expect_error(R"({"__metadata__":{"a":1}})", "", "is not a text");
  expect_error(R"({"__metadata__":[]})", "", "is not an object");
}

TEST_F(SafetensorsFile, TensorsThatAreNone) {
  const auto tensor = [](const char* type, const char* shape, const char* offsets) {
    return std::string(R"({"x":{"dtype":")") + type + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  EXPECT_EQ(error_of(tensor("U8", "[2]", "[0,2]"), "ab"), "");
  expect_error(R"({"x":1})", "", "expected dtype, shape and data_offsets");
  expect_error(R"({"x":{"dtype":"U8","shape":[],"data_offsets":[0,1],"more":1}})", "a", "expected dtype");
  expect_error(tensor("F8_E5M2", "[2]", "[0,2]"), "ab", "no element type");
  expect_error(tensor("U8", "[-2]", "[0,2]"), "ab", "an extent is not a number");
  expect_error(tensor("U8", "[2.0]", "[0,2]"), "ab", "an extent is not a number");
  expect_error(tensor("U8", "[18446744073709551615]", "[0,2]"), "ab", "an extent is not a number");
  expect_error(tensor("F32", "[4611686018427387904,4]", "[0,0]"), "", "too large");
  expect_error(tensor("U8", "2", "[0,2]"), "ab", "shape is not a list");
  expect_error(tensor("U8", "[2]", "[0]"), "ab", "not two numbers");
  expect_error(tensor("U8", "[2]", "[2,0]"), "ab", "expected 2 bytes");
  expect_error(tensor("U8", "[2]", "[0,3]"), "abc", "expected 2 bytes");
  expect_error(tensor("U8", "[2]", "[1,3]"), "abc", "expected to begin at byte 0");
  expect_error(tensor("U8", "[2]", "[0,2]"), "abc", "the tensors have 2 bytes, the file 3");
  expect_error(tensor("U8", "[2]", "[0,2]"), "a", "the tensors have 2 bytes, the file 1");
  const std::string one = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_error(R"({"x":)" + one + R"(,"x":)" + one + "}", "a", "is there twice");
  expect_error(R"({"x":)" + one + R"(,"y":)" + one + "}", "a", "expected to begin at byte 1");
}

TEST_F(SafetensorsFile, LimitsAndBooleans) {
  const std::string file =
      write("b.safetensors", file_of(R"({"x":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                                     std::string_view("\0\x02\xff", 3)));
  EXPECT_EQ(read_safetensors(file, 2).status().code(), Code::OutOfMemory);
  const auto content = read_safetensors(file);
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(content->arrays[0].bytes, bytes_of(std::string_view("\0\x01\x01", 3)));
}

}  // namespace
}  // namespace librt::tools
