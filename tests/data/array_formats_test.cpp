// .npy, .npz and IDX files that are damaged, or promise more than they hold.
#include <zlib.h>

#include "tests/data/scratch.h"
#include "tools/data/idx.h"
#include "tools/data/npy.h"
#include "tools/data/npz.h"

namespace librt::tools {
namespace {

std::string npy(std::string header, std::string_view data = "") {
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return file + header + std::string(data);
}
std::string npy_of(const std::string& descr, const std::string& shape, std::string_view data = "",
                   const std::string& order = "False") {
  return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", data);
}
std::string npy_error(const std::string& file) {
  std::string error;
  return parse_npy(bytes_of(file), error) ? "" : error;
}

TEST(Npy, TypesThatAreNone) {
  EXPECT_TRUE(contains(npy_error(npy_of("'>'", "(1,)", "a")), "npy type '>' is big endian"));
  EXPECT_TRUE(contains(npy_error(npy_of("'>f4'", "(1,)", "abcd")), "'>f4' is big endian"));
  EXPECT_EQ(npy_error(npy_of("'>u1'", "(1,)", "a")), "");
  for (const char* descr : {"''", "'", "'<'", "'<f'", "'<f44'", "\"", "[('a', '<f4')]", "'\x1b[2J'"})
    EXPECT_NE(npy_error(npy_of(descr, "(1,)", "abcd")), "") << descr;
  EXPECT_FALSE(contains(npy_error(npy_of("'\x1b[2J'", "(1,)", "abcd")), "\x1b"));
}

TEST(Npy, ShapesThatAreNone) {
  for (const char* shape :
       {"(", "(1", "(-1,)", "(a,)", "(9999999999999999999,)", "(4611686018427387904,4)", "1", ""})
    EXPECT_NE(npy_error(npy_of("'<f4'", shape, "abcd")), "") << shape;
  std::string axes;
  for (int i = 0; i < 65; ++i) axes += "1,";
  EXPECT_NE(npy_error(npy_of("'|u1'", "(" + axes + ")", "a")), "");
  EXPECT_EQ(npy_error(npy_of("'|u1'", "()", "a")), "");
  EXPECT_EQ(npy_error(npy_of("'<f4'", "(0, 1048576, 4)")), "");
  EXPECT_TRUE(contains(npy_error(npy_of("'<f4'", "(1000000, 1000000)")),
                       "asks for 4000000000000 bytes, the file has 0"));
  EXPECT_NE(npy_error(npy_of("'<f4'", "(1,)", "abcd", "Perhaps")), "");
  EXPECT_NE(npy_error(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), "");
  EXPECT_NE(npy_error(std::string("\x93NUMPY\x01\x00", 8)), "");
}

TEST(Npy, BoolsAndOrders) {
  std::string error;
  const auto bools = parse_npy(bytes_of(npy_of("'|b1'", "(3,)", std::string_view("\0\x02\xff", 3))), error);
  ASSERT_TRUE(bools) << error;
  EXPECT_EQ(bools->bytes, bytes_of(std::string_view("\0\x01\x01", 3)));
  const auto columns = parse_npy(bytes_of(npy_of("'|u1'", "(2, 3)", "adbecf", "True")), error);
  ASSERT_TRUE(columns) << error;
  EXPECT_EQ(columns->bytes, bytes_of("abcdef"));
}

using Npz = Scratch;

Array letters(size_t count) {
  return {.name = "x",
          .type = DType::U8,
          .dims = {static_cast<int64_t>(count)},
          .bytes = Bytes(count, std::byte{'a'})};
}

TEST_F(Npz, TwoArraysOfOneName) {
  EXPECT_FALSE(write_npz(path("a.npz"), {letters(5), letters(6)}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Npz, SeveralArrays) {
  Array other = letters(3 << 20);
  other.name = "y";
  ASSERT_TRUE(write_npz(path("a.npz"), {letters(5), other}).ok());
  const auto arrays = read_npz(path("a.npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.status().message();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[1].bytes, other.bytes);
  const auto limited = read_npz(path("a.npz"), 1 << 20);
  EXPECT_EQ(limited.status().code(), Code::OutOfMemory);
  EXPECT_TRUE(contains(limited.status().message(), "what the arrays hold takes 3.0 MiB"))
      << limited.status().message();
  EXPECT_EQ(write_npz("/dev/full", {letters(5)}).code(), Code::Device);
}

// The sizes of an entry are in two places; the directory at the end counts.
TEST_F(Npz, SizesThatCannotBe) {
  ASSERT_TRUE(write_npz(path("a.npz"), {letters(5)}).ok());
  Bytes file = *read_file(path("a.npz"));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const size_t entry = text.find("PK\x01\x02");
  ASSERT_NE(entry, text.npos);
  for (size_t i = 0; i < 4; ++i) file[entry + 24 + i] = i == 3 ? std::byte{0x7f} : std::byte{0xff};
  ASSERT_TRUE(write_file(path("b.npz"), file).ok());
  const auto wrong = read_npz(path("b.npz"));
  EXPECT_EQ(wrong.status().code(), Code::Io);
  EXPECT_TRUE(contains(wrong.status().message(), "cannot hold 2147483647")) << wrong.status().message();
  for (size_t size = 0; size < text.size(); size += 7) {
    ASSERT_TRUE(write_file(path("c.npz"), std::span(file).first(size)).ok());
    EXPECT_FALSE(read_npz(path("c.npz")).ok()) << size;
  }
}

using Idx = Scratch;

std::string idx(std::initializer_list<uint32_t> extents, std::string_view data = "", char type = 8) {
  std::string file{0, 0, type, static_cast<char>(extents.size())};
  for (const uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift);
  return file + std::string(data);
}

TEST_F(Idx, ExtentsOfZero) {
  for (const auto& file : {idx({1, 0, 28}), idx({0}), idx({2, 28, 0})}) {
    const auto array = read_idx(write("a", file));
    EXPECT_EQ(array.status().code(), Code::Io);
    EXPECT_TRUE(contains(array.status().message(), "expected extents above 0, found 0 on axis"))
        << array.status().message();
  }
}

TEST_F(Idx, ExtentsThatPromiseTooMuch) {
  const auto missing = read_idx(write("a", idx({100, 1000}, "abc")));
  EXPECT_TRUE(contains(missing.status().message(), "expected 100000 bytes of data, found 3"))
      << missing.status().message();
  EXPECT_EQ(read_idx(write("b", idx({0xffffffff, 1 << 27}, "abc"))).status().code(), Code::OutOfMemory);
  EXPECT_EQ(read_idx(write("c", idx({0xffffffff, 0xffffffff, 0xffffffff}, "abc"))).status().code(), Code::Io);
  EXPECT_EQ(read_idx("/dev/zero").status().code(), Code::Io);
  EXPECT_FALSE(is_idx_file("/dev/zero"));
  EXPECT_FALSE(is_idx_file(folder_.string()));
}

TEST_F(Idx, CompressedZeros) {
  const std::string head = idx({64, 1 << 20});
  gzFile file = gzopen(path("a.gz").c_str(), "wb9");
  gzwrite(file, head.data(), static_cast<unsigned>(head.size()));
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 64; ++i) gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  EXPECT_EQ(read_idx(path("a.gz"), 1 << 20).status().code(), Code::OutOfMemory);
  const auto array = read_idx(path("a.gz"));
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->bytes.size(), size_t{64} << 20);
}

}  // namespace
}  // namespace librt::tools
