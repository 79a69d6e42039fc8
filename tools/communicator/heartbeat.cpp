#include "tools/communicator/heartbeat.h"

#include <algorithm>

double RunningTime::seconds() {
  const auto now = std::chrono::steady_clock::now();
  seconds_ += std::min(std::chrono::duration<double>(now - last_).count(), kLongestPause);
  last_ = now;
  return seconds_;
}

int Heartbeat::open(MPI_Comm all) {
  if (const int code = MPI_Comm_dup(all, &comm_); code != MPI_SUCCESS) return code;
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int ranks = 1;
  MPI_Comm_rank(comm_, &own_);
  MPI_Comm_size(comm_, &ranks);
  peers_.resize(static_cast<size_t>(ranks));
  const double now = time_.seconds();
  for (int rank = 0; rank < ranks; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.heard = now;
    if (rank == own_) continue;
    if (const int code = MPI_Irecv(&peer.received, sizeof(Beat), MPI_BYTE, rank, 0, comm_, &peer.receiving);
        code != MPI_SUCCESS)
      return code;
  }
  return MPI_SUCCESS;
}

int Heartbeat::receive(int rank, Peer& peer) {
  while (!peer.has_left) {
    int done = 0;
    if (const int code = MPI_Test(&peer.receiving, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return code;
    if (done == 0) return MPI_SUCCESS;
    peer.heard = time_.seconds();
    peer.begun = peer.received.begun;
    peer.has_left = peer.received.leaving != 0;
    if (peer.has_left) return MPI_SUCCESS;
    if (const int code = MPI_Irecv(&peer.received, sizeof(Beat), MPI_BYTE, rank, 0, comm_, &peer.receiving);
        code != MPI_SUCCESS)
      return code;
  }
  return MPI_SUCCESS;
}

// At most one message is under way to a rank: to one that is stopped they would pile up.
int Heartbeat::send(int rank, Peer& peer) {
  int done = 0;
  if (const int code = MPI_Test(&peer.sending, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS) return code;
  if (done == 0 || peer.sent.leaving != 0) return MPI_SUCCESS;
  peer.sent = next_beat_;
  return MPI_Isend(&peer.sent, sizeof(Beat), MPI_BYTE, rank, 0, comm_, &peer.sending);
}

int Heartbeat::beat(uint64_t begun, bool leaving) {
  const double now = time_.seconds();
  const bool is_due = now >= next_ || leaving;
  if (is_due) next_ = now + kBetween;
  next_beat_ = {.begun = begun, .leaving = leaving ? 1u : 0u};
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (static_cast<int>(rank) == own_) continue;
    int code = receive(static_cast<int>(rank), peers_[rank]);
    if (code == MPI_SUCCESS && is_due) code = send(static_cast<int>(rank), peers_[rank]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

double Heartbeat::silence_of(int rank) {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  return rank == own_ || peer.has_left ? 0 : time_.seconds() - peer.heard;
}

bool Heartbeat::have_all_left() const {
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    const bool has_sent = peer.sent.leaving != 0 && peer.sending == MPI_REQUEST_NULL;
    if (static_cast<int>(rank) != own_ && !(peer.has_left && has_sent)) return false;
  }
  return true;
}

int Heartbeat::close() {
  return MPI_Comm_free(&comm_);
}
