// What may lie in the place of a file of the cache folder: each is refused with its reason, and nothing is
// changed or waited for.
#include "runtime/core/cache_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace librt {
namespace {

namespace fs = std::filesystem;

class CacheFileTest : public ::testing::Test {
 protected:
  CacheFileTest() : folder_(fs::temp_directory_path() / text("cache_file_test_", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    other_ = folder_ / "other";
    std::ofstream(other_) << "precious";
    path_ = folder_ / "file";
  }
  ~CacheFileTest() override { fs::remove_all(folder_); }

  std::string precious() const {
    std::ifstream file(other_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// All three ways to open are refused with these words.
  void expect_refused(const std::string& words) const {
    for (const Status& status : {open_cache_file(path_).status(), read_cache_file(path_).status(),
                                 lock_cache_file(path_).status()}) {
      EXPECT_EQ(status.code(), Code::Io) << status.message();
      EXPECT_NE(status.message().find(path_ + ": "), std::string::npos) << status.message();
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    }
    EXPECT_EQ(precious(), "precious");
  }
  /// A new file takes the place of what was refused.
  void expect_replaced() const {
    const Status status = write_cache_file(path_, "new");
    EXPECT_TRUE(status.ok()) << status.message();
    const auto read = read_cache_file(path_);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, "new");
    EXPECT_EQ(precious(), "precious");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
  }

  fs::path folder_, other_;
  std::string path_;
};

TEST_F(CacheFileTest, IsWrittenReplacedAndReadWithItsFolders) {
  path_ = folder_ / "a" / "b" / "file";
  EXPECT_EQ(read_cache_file(path_).status().code(), Code::NotFound);
  ASSERT_TRUE(write_cache_file(path_, "first").ok());
  const std::string large(100'000, 'x');
  ASSERT_TRUE(write_cache_file(path_, large).ok());
  const auto read = read_cache_file(path_);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, large);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CacheFileTest, SymbolicLinkIsNotFollowed) {
  fs::create_symlink(other_, path_);
  expect_refused("found a symbolic link");
  expect_replaced();
}

TEST_F(CacheFileTest, DanglingLinkIsNotFollowed) {
  fs::create_symlink(folder_ / "absent", path_);
  expect_refused("found a symbolic link");
  EXPECT_FALSE(fs::exists(folder_ / "absent"));
}

TEST_F(CacheFileTest, PipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_refused("found a pipe or a device");
  expect_replaced();
}

TEST_F(CacheFileTest, FolderStays) {
  fs::create_directory(path_);
  expect_refused("found a folder");
  EXPECT_EQ(write_cache_file(path_, "new").code(), Code::Io);
  EXPECT_TRUE(fs::is_directory(path_));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(CacheFileTest, FileOfAnotherUserIsNotUsed) {
  std::ofstream(path_) << "foreign";
  if (chown(path_.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  expect_refused("found another user's");
  expect_replaced();
}

TEST_F(CacheFileTest, TextsAreSmall) {
  std::ofstream(path_) << "x";
  fs::resize_file(path_, kLargestCacheText);
  EXPECT_TRUE(lock_cache_file(path_).ok());
  fs::resize_file(path_, kLargestCacheText + 1);
  EXPECT_EQ(lock_cache_file(path_).status().code(), Code::Io);
  EXPECT_EQ(read_cache_file(path_, kLargestCacheText).status().code(), Code::Io);
  EXPECT_TRUE(read_cache_file(path_).ok());
}

TEST_F(CacheFileTest, HugeFileIsNotRead) {
  std::ofstream(path_) << "x";
  fs::resize_file(path_, uintmax_t{1} << 40);
  expect_refused("MiB, found 1.0 TiB");
  EXPECT_TRUE(open_cache_file(path_, UINT64_MAX).ok());
  expect_replaced();
}

TEST_F(CacheFileTest, FileWithAnotherNameIsNotWrittenTo) {
  fs::create_hard_link(other_, path_);
  EXPECT_EQ(lock_cache_file(path_).status().code(), Code::Io);
  expect_replaced();
}

TEST_F(CacheFileTest, LockIsWaitedForWithALimit) {
  using namespace std::chrono_literals;
  auto first = lock_cache_file(path_);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto start = std::chrono::steady_clock::now();
  const Status second = lock_cache_file(path_, 50ms).status();
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
  EXPECT_EQ(second.message(), path_ + ": another process holds its lock for more than 50 ms");
  first = Status(Code::Io, "released");
  EXPECT_TRUE(lock_cache_file(path_, 50ms).ok());
}

TEST_F(CacheFileTest, RelativePathIsRefused) {
  path_ = "cache_file_test_relative/file";
  expect_refused("expected an absolute path");
  EXPECT_EQ(write_cache_file(path_, "new").code(), Code::Io);
  EXPECT_FALSE(fs::exists("cache_file_test_relative"));
}

TEST_F(CacheFileTest, FolderThatCannotBeCreated) {
  path_ = other_ / "below" / "file";
  EXPECT_EQ(write_cache_file(path_, "new").code(), Code::Io);
  EXPECT_EQ(lock_cache_file(path_).status().code(), Code::Io);
  EXPECT_EQ(precious(), "precious");
}

}  // namespace
}  // namespace librt
