// Bytes from a file and to a file: limits, pipes, devices, what a killed writer leaves.
#include "tools/data/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/data/scratch.h"

namespace librt::tools {
namespace {

constexpr uintmax_t kHuge = uintmax_t{100} << 30;

using ReadFile = Scratch;

TEST_F(ReadFile, RegularFilesAndThoseOfTheSystem) {
  const auto bytes = read_file(write("a", "abc"));
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, bytes_of("abc"));
  EXPECT_EQ(read_file(write("empty", ""))->size(), 0u);
  EXPECT_GT(read_file("/proc/self/status")->size(), 100u);  // says that its size is 0
  const auto zero = [](std::span<const std::byte>) { return size_t{0}; };
  EXPECT_EQ(read_file(path("empty"), zero)->size(), 0u);
}

TEST_F(ReadFile, WhatIsNoFile) {
  EXPECT_EQ(read_file(path("absent")).status().code(), Code::NotFound);
  const auto folder = read_file(folder_.string());
  EXPECT_EQ(folder.status().code(), Code::Io);
  EXPECT_TRUE(contains(folder.status().message(), "expected a file, found a folder"))
      << folder.status().message();
  EXPECT_EQ(open_regular("/dev/null").status().code(), Code::Io);
  EXPECT_TRUE(head_of("/dev/zero").empty());
}

TEST_F(ReadFile, LimitsBeforeMemoryIsTaken) {
  const auto huge = read_file(sparse("huge", kHuge));
  EXPECT_EQ(huge.status().code(), Code::OutOfMemory);
  EXPECT_TRUE(contains(huge.status().message(), "the file takes 100.0 GiB, expected at most"))
      << huge.status().message();
  EXPECT_EQ(read_file(write("four", "1234"), 3).status().code(), Code::OutOfMemory);
  EXPECT_TRUE(read_file(path("four"), 4).ok());
  const auto by_head = [](std::span<const std::byte> head) {
    return head[0] == std::byte{'1'} ? size_t{3} : size_t{9};
  };
  EXPECT_EQ(read_file(path("four"), by_head).status().code(), Code::OutOfMemory);
  EXPECT_TRUE(read_file(write("other", "2345"), by_head).ok());
}

TEST_F(ReadFile, DevicesWithoutEnd) {
  const auto zero = read_file("/dev/zero");
  EXPECT_EQ(zero.status().code(), Code::OutOfMemory);
  EXPECT_TRUE(contains(zero.status().message(), "/dev/zero: gives more than 1.0 GiB"))
      << zero.status().message();
  EXPECT_EQ(read_file("/dev/null")->size(), 0u);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Of a stream, no more is in memory than its limit and two pieces of 64 MiB.
TEST_F(ReadFile, AStreamIsInMemoryOnce) {
  constexpr size_t kLimit = size_t{256} << 20, kPiece = size_t{64} << 20;
  const auto child_peak = [&](const std::string& path) {
    const pid_t child = fork();
    if (child == 0) _exit(read_file(path, kLimit).ok() ? 0 : 1);
    int status = 0;
    rusage usage{};
    EXPECT_EQ(wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == (path == "/dev/zero" ? 1 : 0));
    return static_cast<size_t>(usage.ru_maxrss) << 10;
  };
  const size_t before = child_peak("/dev/null");
  EXPECT_LT(child_peak("/dev/zero"), before + kLimit + 2 * kPiece);
  ASSERT_EQ(mkfifo(path("large").c_str(), 0600), 0);
  std::thread writer([this] {
    const int file = open(path("large").c_str(), O_WRONLY);
    const std::string block(size_t{1} << 20, 'x');
    for (int i = 0; i < 250; ++i) EXPECT_EQ(::write(file, block.data(), block.size()), ssize_t{1} << 20);
    close(file);
  });
  EXPECT_LT(child_peak(path("large")), before + kLimit + 2 * kPiece);
  writer.join();
}
#endif

TEST_F(ReadFile, Pipes) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_regular(path("pipe")).status().code(), Code::Io);  // at once
  std::thread writer([this] {
    const int file = open(path("pipe").c_str(), O_WRONLY);
    for (const char* part : {"some", " text"}) (void)!::write(file, part, std::string_view(part).size());
    close(file);
  });
  const auto bytes = read_file(path("pipe"));
  writer.join();
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, bytes_of("some text"));
}

TEST(InQuotes, TextOfFilesInMessages) {
  EXPECT_EQ(in_quotes("a\x1b[2Jb\n"), "'a?[2Jb?'");
  EXPECT_EQ(in_quotes(std::string(1000, 'x')).size(), 65u);
}

using WriteFile = Scratch;

TEST_F(WriteFile, AllOrNothing) {
  ASSERT_TRUE(write_file(path("a"), bytes_of("first")).ok());
  ASSERT_TRUE(write_file(path("a"), bytes_of("second")).ok());
  EXPECT_EQ(*read_file(path("a")), bytes_of("second"));
  const Status full = write_file("/dev/full", bytes_of("text"));
  EXPECT_EQ(full.code(), Code::Device);
  EXPECT_TRUE(contains(full.message(), "No space left on device")) << full.message();
  EXPECT_EQ(write_file(path("absent/a"), {}).code(), Code::Io);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(WriteFile, LeftoversOfKilledWritersAreRemoved) {
  write("a.partial-0", "left");
  write("a.partial-7", "left");
  write("a.partial-x", "of another program");
  // The file of a writer that is alive is locked.
  const int alive = open(write("a.partial-1", "being written").c_str(), O_RDONLY);
  ASSERT_EQ(flock(alive, LOCK_EX), 0);
  ASSERT_TRUE(write_file(path("a"), bytes_of("whole")).ok());
  EXPECT_FALSE(std::filesystem::exists(path("a.partial-0")));
  EXPECT_FALSE(std::filesystem::exists(path("a.partial-7")));
  EXPECT_TRUE(std::filesystem::exists(path("a.partial-1")));
  EXPECT_TRUE(std::filesystem::exists(path("a.partial-x")));
  close(alive);
  // A link is no leftover: what it names stays.
  const std::string kept = write("kept", "kept");
  std::filesystem::create_symlink(kept, path("b.partial-0"));
  ASSERT_TRUE(write_file(path("b"), bytes_of("whole")).ok());
  EXPECT_EQ(*read_file(kept), bytes_of("kept"));
}

}  // namespace
}  // namespace librt::tools
