// The installed cuBLASLt and NCCL, and the errors for invalid libraries of these names. Needs no device:
// argv[1] is a folder with libraries of those names that lack functions.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/nccl_library.h"

namespace librt::cuda {
namespace {

std::string wrong_folder;

TEST(CublasLt, IsFoundOrSaysWhereItLooks) {
  unsetenv("RT_CUDA_LIBRARY_PATH");
  const auto version = CublasLt::installed_version();
  if (version.ok()) {
    EXPECT_GE(std::stoi(*version), 12) << *version;
  } else {
    for (const char* word : {"libcublasLt.so.", "was not found", "RT_CUDA_LIBRARY_PATH"})
      EXPECT_NE(version.status().message().find(word), std::string::npos) << version.status().message();
  }
}

/// The folders of RT_CUDA_LIBRARY_PATH are searched first; missing folders are ignored.
TEST(CublasLt, IsRefusedWithoutItsFunctions) {
  setenv("RT_CUDA_LIBRARY_PATH", ("/nowhere:" + wrong_folder).c_str(), 1);
  const auto version = CublasLt::installed_version();
  unsetenv("RT_CUDA_LIBRARY_PATH");
  ASSERT_FALSE(version.ok()) << *version;
  EXPECT_NE(version.status().message().find("has no function cublasLt"), std::string::npos)
      << version.status().message();
}

TEST(Nccl, IsFoundOrSaysWhereItLooks) {
  const auto library = nccl::load();
  if (library.ok()) {
    EXPECT_GE(library->version, nccl::kOldestVersion);
    EXPECT_EQ(library->version_text().substr(0, 2), "2.");
  } else {
    for (const char* word : {"libnccl.so.2", "was not found", "RT_CUDA_LIBRARY_PATH"})
      EXPECT_NE(library.status().message().find(word), std::string::npos) << library.status().message();
  }
}

TEST(Nccl, IsRefusedWhenItIsTooOld) {
  setenv("RT_CUDA_LIBRARY_PATH", wrong_folder.c_str(), 1);
  const auto library = nccl::load();
  unsetenv("RT_CUDA_LIBRARY_PATH");
  ASSERT_FALSE(library.ok()) << library->version_text();
  EXPECT_EQ(library.status().message(), "NCCL 2.10.3 was found, 2.14 or newer is needed");
}

}  // namespace
}  // namespace librt::cuda

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  librt::cuda::wrong_folder = argc > 1 ? argv[1] : ".";
  return RUN_ALL_TESTS();
}
