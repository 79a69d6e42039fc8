#include "runtime/session/device/rank_handshake.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "runtime/include/rt/communicator.h"

namespace librt {
namespace {

struct RankHandshake {
  std::array<char, 64> backend{};
  std::array<char, 192> machine{};
};

}  // namespace

bool has_other_ranks(const rt_communicator* communicator) noexcept {
  return communicator != nullptr && communicator->ranks > 1;
}

Status rank_handshake(const std::string& backend, DeviceOptions& options) {
  const rt_communicator& ranks = *options.communicator;
  const auto own = static_cast<size_t>(ranks.rank);
  std::vector<RankHandshake> all(static_cast<size_t>(ranks.ranks));
  backend.copy(all[own].backend.data(), all[own].backend.size() - 1);
  gethostname(all[own].machine.data(), all[own].machine.size() - 1);
  const RankHandshake self = all[own];
  const char* problem = ranks.all_gather(ranks.user, all.data(), sizeof(RankHandshake));
  if (problem == nullptr) problem = ranks.wait(ranks.user, all.data());
  if (problem != nullptr) return Status(Code::Device, problem);
  options.local_rank = 0;
  options.same_backend = true;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (rank < own && all[rank].machine == self.machine) ++options.local_rank;
    if (all[rank].backend != self.backend) options.same_backend = false;
  }
  return {};
}

}  // namespace librt
