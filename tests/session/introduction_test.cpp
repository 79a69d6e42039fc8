// The information that ranks exchange before they open devices.
#include "runtime/session/device/rank_handshake.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/include/rt/communicator.h"

namespace librt {
namespace {

/// Rank 2 of 4, as seen from inside: the first `alike` ranks send the same data as this one, the others
/// nothing.
struct Others {
  size_t alike = 4;
  const char* problem = nullptr;
  rt_communicator table{.struct_size = sizeof table,
                        .user = this,
                        .rank = 2,
                        .ranks = 4,
                        .all_gather =
                            [](void* self, void* data, size_t bytes) {
                              auto* parts = static_cast<std::byte*>(data);
                              for (size_t rank = 0; rank < static_cast<Others*>(self)->alike; ++rank)
                                if (rank != 2) std::memcpy(parts + rank * bytes, parts + 2 * bytes, bytes);
                              return static_cast<const char*>(nullptr);
                            },
                        .wait = [](void* self, void*) { return static_cast<Others*>(self)->problem; }};
};

TEST(RankHandshake, CountsTheRanksOfAMachineAndComparesBackends) {
  Others others;
  DeviceOptions options{.communicator = &others.table};
  ASSERT_TRUE(rank_handshake("cuda", options).ok());
  EXPECT_EQ(options.local_rank, 2);
  EXPECT_TRUE(options.same_backend);
  others.alike = 1;
  ASSERT_TRUE(rank_handshake("cuda", options).ok());
  EXPECT_EQ(options.local_rank, 1);
  EXPECT_FALSE(options.same_backend);
  others.problem = "rank 3 has ended";
  EXPECT_EQ(rank_handshake("cuda", options).message(), "rank 3 has ended");
}

TEST(RankHandshake, IsForSeveralRanks) {
  rt_communicator alone{.struct_size = sizeof alone, .ranks = 1};
  EXPECT_FALSE(has_other_ranks(nullptr));
  EXPECT_FALSE(has_other_ranks(&alone));
}

}  // namespace
}  // namespace librt
