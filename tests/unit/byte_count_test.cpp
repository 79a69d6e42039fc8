// Counts of bytes and elements at the border of what a machine's addresses reach.
#include "runtime/core/byte_count.h"

#include <gtest/gtest.h>

#include "runtime/core/shape.h"
#include "runtime/core/tensor_view.h"

namespace librt {
namespace {

constexpr bool kNarrow = sizeof(size_t) == 4;

TEST(ByteCount, IsRefusedWhereAddressesEnd) {
  EXPECT_TRUE(check_addressable(0).ok());
  EXPECT_TRUE(check_addressable(kMostAddressable).ok());
  for (const uint64_t bytes :
       {kMostAddressable + 1, uint64_t{1} << 32, (uint64_t{1} << 32) + 16, uint64_t{1} << 40}) {
    const Status status = check_addressable(bytes);
    if (!kNarrow) {
      EXPECT_TRUE(status.ok()) << bytes;
      continue;
    }
    EXPECT_EQ(status.code(), Code::OutOfMemory) << bytes;
    EXPECT_NE(
        status.message().find(std::to_string(bytes) + " bytes), this machine addresses at most 2.0 GiB"),
        std::string::npos)
        << status.message();
  }
}

TEST(ByteCount, SizesOfContainersDoNotWrap) {
  EXPECT_EQ(container_size(0), 0u);
  EXPECT_EQ(container_size(uint64_t{0xfffffffe}), size_t{0xfffffffe});
  // A vector of one element fewer than a wrapped size would be made.
  const size_t size = container_size((uint64_t{1} << 32) + 1);
  EXPECT_EQ(size, kNarrow ? SIZE_MAX : static_cast<size_t>((uint64_t{1} << 32) + 1));
}

TEST(ByteCount, EveryTensorIsAddressable) {
  EXPECT_TRUE(Shape({kMostTensorElements}).checked_elements().has_value());
  EXPECT_FALSE(Shape({kMostTensorElements + 1}).checked_elements().has_value());
  EXPECT_FALSE(Shape({0, kMostTensorElements + 1}).checked_elements().has_value())
      << "extents beside an empty axis";
  EXPECT_FALSE(Shape({kMostTensorElements, 2}).checked_elements().has_value());
  const TensorInfo largest{DType::F64, {kMostTensorElements}};
  EXPECT_EQ(largest.bytes() / 8, static_cast<uint64_t>(kMostTensorElements)) << "the bytes do not wrap";
}

}  // namespace
}  // namespace librt
