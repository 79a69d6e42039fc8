// Checkpoints: round trip; damage is reported by name; a failed write leaves the old file.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "runtime/model/checkpoint.h"
#include "runtime/model/format.h"
#include "tests/unit/model_support.h"

namespace librt {
namespace {

Checkpoint sample() {
  Checkpoint checkpoint;
  checkpoint.producer = "unit test";
  checkpoint.tensors.push_back({.name = "weight",
                                .info = {DType::F32, {2, 2}},
                                .initial = testing::blob_of_values<float>({1, 2, 3, 4})});
  checkpoint.tensors.push_back({.name = "step",
                                .info = {DType::I32, {}},
                                .kind = StateKind::Counter,
                                .initial = testing::blob_of_values<int32_t>({1234})});
  checkpoint.tensors.push_back({.name = "none", .info = {DType::F32, {0}}});
  checkpoint.metadata = {{"loss", "0.25"}, {"note", ""}};
  checkpoint.opaque = {{"sampler", testing::blob_of_values<uint8_t>({9, 8, 7})}, {"nothing", {}}};
  return checkpoint;
}

std::vector<std::byte> contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

TEST(CheckpointFile, RoundTrip) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("run.rtc");
  const Status written = write_checkpoint(path, sample());
  ASSERT_TRUE(written.ok()) << written.message();
  const auto read = read_checkpoint(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->producer, "unit test");
  ASSERT_NE(read->tensor("weight"), nullptr);
  EXPECT_EQ(read->tensor("weight")->info, (TensorInfo{DType::F32, {2, 2}}));
  EXPECT_EQ(reinterpret_cast<const float*>(read->tensor("weight")->initial.data)[3], 4);
  EXPECT_EQ(read->tensor("step")->kind, StateKind::Counter);
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(read->tensor("step")->initial.data), 1234);
  EXPECT_EQ(read->tensor("none")->initial.size, 0u);
  EXPECT_EQ(*read->text("loss"), "0.25");
  EXPECT_EQ(*read->text("note"), "");
  EXPECT_EQ(read->text("absent"), nullptr);
  ASSERT_NE(read->bytes("sampler"), nullptr);
  EXPECT_EQ(std::to_integer<int>(read->bytes("sampler")->data[2]), 7);
  EXPECT_EQ(read->bytes("nothing")->size, 0u);
  EXPECT_EQ(folder.list(), std::vector<std::string>{"run.rtc"});
}

TEST(CheckpointFile, OverwritesAtomically) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("run.rtc");
  ASSERT_TRUE(write_checkpoint(path, sample()).ok());
  const auto old = read_checkpoint(path);  // memory-mapped: must remain valid when the file is replaced
  ASSERT_TRUE(old.ok());
  Checkpoint next = sample();
  next.tensors[0].initial = testing::blob_of_values<float>({5, 6, 7, 8});
  ASSERT_TRUE(write_checkpoint(path, next).ok());
  EXPECT_EQ(reinterpret_cast<const float*>(old->tensors[0].initial.data)[0], 1);
  EXPECT_EQ(reinterpret_cast<const float*>(read_checkpoint(path)->tensors[0].initial.data)[0], 5);
  next.tensors[0].initial = testing::blob_of_values<float>({5});
  EXPECT_EQ(write_checkpoint(path, next).code(), Code::InvalidArgument);
  next.tensors[0].name = "step";
  EXPECT_EQ(write_checkpoint(path, next).code(), Code::InvalidArgument);
  EXPECT_TRUE(read_checkpoint(path).ok());
  EXPECT_EQ(folder.list(), std::vector<std::string>{"run.rtc"});
}

TEST(CheckpointFile, NeverReplacesAModel) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.rt");
  // As much of a model as its reader would name a damaged model, not another file.
  const std::string model(reinterpret_cast<const char*>(kModelMagic.data()), kModelMagic.size());
  std::ofstream(path, std::ios::binary) << model;
  const Status written = write_checkpoint(path, sample());
  EXPECT_EQ(written.code(), Code::InvalidArgument);
  EXPECT_NE(written.message().find("model.rt: is a model"), std::string::npos) << written.message();
  EXPECT_EQ(contents(path).size(), model.size());
  EXPECT_EQ(folder.list(), std::vector<std::string>{"model.rt"});
  std::ofstream(folder.path("short.rt"), std::ios::binary) << model.substr(0, 4);
  EXPECT_TRUE(write_checkpoint(folder.path("short.rt"), sample()).ok());
}

TEST(CheckpointFile, EveryBitMattersExceptPadding) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_checkpoint(folder.path("run.rtc"), sample()).ok());
  const auto bytes = contents(folder.path("run.rtc"));
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto read = read_checkpoint(testing::blob_of(std::move(damaged)));
    ASSERT_TRUE(!read.ok() || bit / 8 >= header.graph_offset + header.graph_bytes) << "bit " << bit;
    ASSERT_TRUE(read.ok() || read.status().code() == Code::InvalidModel) << "bit " << bit;
  }
  for (size_t bit = 0; bit < (header.graph_offset + header.graph_bytes) * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    testing::reseal(damaged);
    const auto read = read_checkpoint(testing::blob_of(std::move(damaged)));
    ASSERT_TRUE(read.ok() || read.status().code() == Code::InvalidModel) << "bit " << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto part = bytes;
    part.resize(size);
    ASSERT_EQ(read_checkpoint(testing::blob_of(std::move(part))).status().code(), Code::InvalidModel) << size;
  }
}

TEST(CheckpointFile, DamageIsNamed) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_checkpoint(folder.path("run.rtc"), sample()).ok());
  auto bytes = contents(folder.path("run.rtc"));
  bytes.back() ^= std::byte{4};  // the last segment: the sampler's
  const Status status = read_checkpoint(testing::blob_of(bytes)).status();
  EXPECT_NE(status.message().find("opaque 'sampler'"), std::string::npos) << status.message();
  EXPECT_EQ(read_checkpoint(folder.path("absent")).status().code(), Code::NotFound);
}

}  // namespace
}  // namespace librt
