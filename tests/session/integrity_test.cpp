// Damage of a model file is found before a result is. argv: the backend, a compiled model.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "rt/rt.hpp"
#include "runtime/model/format.h"
#include "tests/support/backend_main.h"

namespace librt {
namespace {

namespace fs = std::filesystem;

using test::backend_name;
std::string model_path;

std::vector<std::byte> model_bytes() {
  std::ifstream file(model_path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

/// The first output for fixed inputs, as bytes.
rt::Result<std::vector<std::byte>> outputs(const rt::Result<rt::Model>& model) {
  if (!model) return model.status();
  auto session = rt::Session::create(*model, {.backend = backend_name, .threads = 1, .deterministic = true});
  if (!session) return session.status();
  const auto specs = session->inputs();
  for (size_t i = 0; i < specs.size(); ++i) {
    std::vector<int64_t> dims;
    for (const rt::Dim& dim : specs[i].dims) dims.push_back(dim.extent < 0 ? 1 : dim.extent);
    rt::Tensor tensor(specs[i].dtype, dims);
    auto* values = static_cast<float*>(tensor.data());
    for (size_t k = 0; k < tensor.bytes() / sizeof(float); ++k) values[k] = static_cast<float>(k % 17) / 17;
    if (rt::Status status = session->set_input(i, tensor); !status) return status;
  }
  if (rt::Status status = session->run(); !status) return status;
  const auto output = session->output(0);
  if (!output) return output.status();
  const auto* bytes = static_cast<const std::byte*>(output->data());
  return std::vector<std::byte>(bytes, bytes + output->bytes());
}

TEST(Integrity, EveryFlippedBitOfAWeightIsFound) {
  const std::vector<std::byte> sound = model_bytes();
  const auto expected = outputs(rt::Model::from_memory(sound));
  ASSERT_TRUE(expected) << expected.status().message();
  FileHeader header;
  std::memcpy(&header, sound.data(), sizeof header);
  std::mt19937_64 random(7);
  int found = 0, different = 0;
  for (int flip = 0; flip < 100; ++flip) {
    auto bytes = sound;
    const uint64_t bit = header.data_offset * 8 + random() % ((sound.size() - header.data_offset) * 8);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto got = outputs(rt::Model::from_memory(bytes));
    if (got) {
      EXPECT_EQ(*got, *expected) << "bit " << bit;  // between the segments
    } else {
      ++found;
      EXPECT_EQ(got.status().code(), rt::Code::InvalidModel) << got.status().message();
      EXPECT_NE(got.status().message().find("differs; the file is damaged"), std::string::npos)
          << got.status().message();
    }
    if (flip % 10 != 0) continue;
    const auto unchecked = outputs(rt::Model::from_memory(bytes, {.skip_checksums = true}));
    different += !unchecked || *unchecked != *expected;
  }
  EXPECT_GT(found, 90);
  EXPECT_GT(different, 0);  // or the check could not matter
}

class IntegrityFile : public ::testing::Test {
 protected:
  IntegrityFile() : path_(fs::temp_directory_path() / text("integrity_test_", getpid(), ".rt")) {
    fs::copy_file(model_path, path_, fs::copy_options::overwrite_existing);
  }
  ~IntegrityFile() override { fs::remove(path_); }
  fs::path path_;
};

TEST_F(IntegrityFile, DamageIsNamedWithTheFileAndTheConstant) {
  auto bytes = model_bytes();
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (uint64_t at = header.data_offset; at < bytes.size(); at += 1024) bytes[at] ^= std::byte{4};
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  for (const bool copy : {false, true}) {
    const auto got = outputs(rt::Model::load(path_, {.copy = copy}));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.status().code(), rt::Code::InvalidModel) << got.status().message();
    EXPECT_NE(got.status().message().find("damaged"), std::string::npos) << got.status().message();
  }
  const auto unchecked = rt::Model::load(path_, {.skip_checksums = true});
  EXPECT_TRUE(unchecked) << unchecked.status().message();
}

TEST_F(IntegrityFile, TruncatedWhileMapped) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto own = reinterpret_cast<uintptr_t>(&page) / page * page;
  if (madvise(reinterpret_cast<void*>(own), page, MADV_POPULATE_READ) != 0)
    GTEST_SKIP() << "this kernel cannot tell (before 5.14): " << std::strerror(errno);
  const auto model = rt::Model::load(path_);
  ASSERT_TRUE(model) << model.status().message();
  fs::resize_file(path_, page);
  const auto got = outputs(model);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.status().code(), rt::Code::InvalidModel);
  EXPECT_EQ(got.status().message(), path_.string() + " was truncated after it was opened");
}

TEST_F(IntegrityFile, TruncatedAfterItWasCopied) {
  const auto expected = outputs(rt::Model::load(path_));
  const auto model = rt::Model::load(path_, {.copy = true});
  ASSERT_TRUE(expected && model);
  fs::resize_file(path_, 0);
  const auto got = outputs(model);
  ASSERT_TRUE(got) << got.status().message();
  EXPECT_EQ(*got, *expected);
}

TEST_F(IntegrityFile, LimitsOfTheReader) {
  const auto refused = [&](const rt::ModelOptions& options, const char* words) {
    const auto model = rt::Model::load(path_, options);
    ASSERT_FALSE(model) << words;
    EXPECT_EQ(model.status().code(), rt::Code::InvalidModel);
    EXPECT_NE(model.status().message().find(words), std::string::npos) << model.status().message();
    const auto bytes = model_bytes();
    EXPECT_FALSE(rt::Model::from_memory(bytes, options)) << words;
  };
  refused({.max_nodes = 2}, "more than the limit of 2 nodes");
  refused({.max_values = 3}, "more than the limit of 3 values");
  refused({.max_graph_bytes = 100}, "the limit of 100 B");
  refused({.max_data_bytes = 1000}, "needs more than the limit of 1000 B");
  const auto model =
      rt::Model::load(path_, {.max_nodes = 100, .max_values = 1000, .max_data_bytes = 1 << 20});
  EXPECT_TRUE(model) << model.status().message();
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv, [&](librt::Device&) { librt::model_path = argv[2]; });
}
