// Adapters of Hugging Face's PEFT: names, layouts, scales, and what is refused.
#include "tools/data/peft.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "runtime/core/text.h"

namespace librt::tools {
namespace {

Array numbers(std::string name, std::vector<int64_t> dims, const std::vector<float>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return {.name = std::move(name),
          .type = DType::F32,
          .dims = std::move(dims),
          .bytes = {bytes.begin(), bytes.end()}};
}

std::vector<float> elements_of(const Safetensors& content, std::string_view name) {
  for (const Array& array : content.arrays) {
    if (array.name != name) continue;
    std::vector<float> elements(array.bytes.size() / sizeof(float));
    std::memcpy(elements.data(), array.bytes.data(), array.bytes.size());
    return elements;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

class Peft : public ::testing::Test {
 protected:
  Peft() : folder_(::testing::TempDir() + "librt_peft") { std::filesystem::create_directories(folder_); }
  ~Peft() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/adapter_model.safetensors"; }
  void configure(std::string_view json) const {
    const auto written = write_file(folder_ + "/adapter_config.json", std::as_bytes(std::span(json)));
    ASSERT_TRUE(written.ok()) << written.message();
  }
  std::string refusal(const Safetensors& content, const std::vector<std::string>& weights) const {
    const auto adapter = from_peft(content, path(), weights);
    return adapter.ok() ? "" : adapter.status().message();
  }

  std::string folder_;
};

const std::vector<std::string> kWeights = {"net.fc.weight", "net.conv.weight", "other.weight"};

TEST_F(Peft, ModulesAreFoundByTheEndOfTheirWeightsNames) {
  configure(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8})");
  Safetensors content;
  content.arrays.push_back(numbers("base_model.model.fc.lora_A.weight", {2, 3}, {1, 2, 3, 4, 5, 6}));
  content.arrays.push_back(numbers("base_model.model.fc.lora_B.weight", {1, 2}, {7, 8}));
  // Convolutions: [O,I,K] becomes [O,K,I].
  content.arrays.push_back(numbers("base_model.model.conv.lora_A.weight", {1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  content.arrays.push_back(numbers("base_model.model.conv.lora_B.weight", {2, 1, 1}, {1, 2}));
  ASSERT_TRUE(is_peft(content));
  const auto adapter = from_peft(content, path(), kWeights);
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ(elements_of(*adapter, "net.fc.weight.lora_a"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(elements_of(*adapter, "net.fc.weight.lora_b"), (std::vector<float>{7, 8}));
  EXPECT_EQ(elements_of(*adapter, "net.conv.weight.lora_a"), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(elements_of(*adapter, "lora.scale"), std::vector<float>{4});
}

TEST_F(Peft, ScalesOfModules) {
  configure(R"({"r": 4, "lora_alpha": 4, "use_rslora": true, "alpha_pattern": {"fc": 6}})");
  Safetensors content;
  for (const char* module : {"fc", "other"}) {
    content.arrays.push_back(numbers(text(module, ".lora_A.weight"), {4, 1}, {1, 1, 1, 1}));
    content.arrays.push_back(numbers(text(module, ".lora_B.weight"), {1, 4}, {1, 1, 1, 1}));
  }
  const auto adapter = from_peft(content, path(), kWeights);
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ(elements_of(*adapter, "net.fc.weight.lora_b"), (std::vector<float>{3, 3, 3, 3}));
  EXPECT_EQ(elements_of(*adapter, "other.weight.lora_b"), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(elements_of(*adapter, "lora.scale"), std::vector<float>{1});
}

TEST_F(Peft, WhatIsWrittenIsReadBack) {
  Safetensors adapter;
  adapter.arrays.push_back(numbers("net.fc.weight.lora_a", {2, 3}, {1, 2, 3, 4, 5, 6}));
  adapter.arrays.push_back(numbers("net.fc.weight.lora_b", {1, 2}, {7, 8}));
  adapter.arrays.push_back(numbers("net.conv.weight.lora_a", {1, 3, 2}, {1, 2, 3, 4, 5, 6}));
  adapter.arrays.push_back(numbers("net.conv.weight.lora_b", {2, 1, 1}, {1, 2}));
  adapter.arrays.push_back(numbers("lora.scale", {}, {0.5f}));
  const Status written = write_peft(path(), adapter);
  ASSERT_TRUE(written.ok()) << written.message();
  const auto content = read_safetensors(path());
  ASSERT_TRUE(content.ok()) << content.status().message();
  EXPECT_EQ(elements_of(*content, "base_model.model.net.conv.lora_A.weight"),
            (std::vector<float>{1, 3, 5, 2, 4, 6}));
  const auto again = from_peft(*content, path(), kWeights);
  ASSERT_TRUE(again.ok()) << again.status().message();
  for (const Array& array : adapter.arrays)
    EXPECT_EQ(elements_of(*again, array.name), elements_of(adapter, array.name)) << array.name;
}

TEST_F(Peft, WhatDoesNotFitIsRefused) {
  Safetensors content;
  content.arrays.push_back(numbers("base_model.model.fc.lora_A.weight", {1, 1}, {1}));
  EXPECT_NE(refusal(content, kWeights).find("adapter_config.json"), std::string::npos)
      << refusal(content, kWeights);
  for (const auto& [config, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[1]", "expected a JSON object"},
           {R"({"peft_type": "IA3", "r": 1, "lora_alpha": 1})", "peft_type \"IA3\"; expected \"LORA\""},
           {R"({"use_dora": true, "r": 1, "lora_alpha": 1})", "librt has no DoRA"},
           {R"({"r": 0, "lora_alpha": 1})", "r: expected a number above 0"},
           {R"({"r": 1})", "lora_alpha: expected a number above 0"},
           {R"({"r": 1, "lora_alpha": 1, "rank_pattern": {"fc": 0}})", "expected numbers above 0"}}) {
    configure(config);
    EXPECT_NE(refusal(content, kWeights).find(words), std::string::npos)
        << config << ": " << refusal(content, kWeights);
  }
  configure(R"({"r": 1, "lora_alpha": 1})");
  EXPECT_NE(refusal(content, {"a.weight"}).find("the model has no such weight"), std::string::npos);
  EXPECT_NE(refusal(content, {"a.fc.weight", "b.fc.weight"})
                .find("several of this name, 'a.fc.weight' and 'b.fc.weight'"),
            std::string::npos);
  content.arrays.push_back(numbers("fc.lora_A.weight", {1, 1}, {1}));
  EXPECT_NE(refusal(content, kWeights).find("the file has two of 'net.fc.weight.lora_a'"), std::string::npos);
  content.arrays.back().name = "base_model.model.fc.lora_magnitude_vector";
  EXPECT_NE(refusal(content, kWeights).find("is no matrix of"), std::string::npos);
  Safetensors whole;
  whole.arrays.push_back(numbers("head.weight", {1}, {1}));
  EXPECT_NE(std::string(write_peft(path(), whole).message()).find("is no adapter, but trained whole"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace librt::tools
