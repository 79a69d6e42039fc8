// cuBLASLt as this machine has it, and what is said about a library that is not what its name says. Needs no
// device: argv[1] is a folder with a library of that name that lacks the functions.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/cublaslt.h"

namespace rt::cuda {
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

/// The folders of RT_CUDA_LIBRARY_PATH come first; ones that are not there do no harm.
TEST(CublasLt, IsRefusedWithoutItsFunctions) {
  setenv("RT_CUDA_LIBRARY_PATH", ("/nowhere:" + wrong_folder).c_str(), 1);
  const auto version = CublasLt::installed_version();
  unsetenv("RT_CUDA_LIBRARY_PATH");
  ASSERT_FALSE(version.ok()) << *version;
  EXPECT_NE(version.status().message().find("has no function cublasLt"), std::string::npos)
      << version.status().message();
}

}  // namespace
}  // namespace rt::cuda

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rt::cuda::wrong_folder = argc > 1 ? argv[1] : ".";
  return RUN_ALL_TESTS();
}
