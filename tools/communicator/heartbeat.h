// Which ranks answer: every rank sends every other one a short message twice a second.
//
// Knows: MPI's messages between two ranks. Must not know: collectives, what to do about a rank that is
// silent.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <vector>

/// Seconds during which this process ran. While it was stopped itself (Ctrl-Z, a machine that sleeps) it can
/// not have heard the others, and that time does not count.
class RunningTime {
 public:
  /// Since the beginning; call it at least every kLongestPause seconds.
  double seconds();

 private:
  static constexpr double kLongestPause = 1;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
};

/// Used by one thread, which makes all MPI calls. Those that return an int return MPI's error code.
class Heartbeat {
 public:
  static constexpr double kBetween = 0.5;  ///< seconds from message to message

  /// A collective call.
  int open(MPI_Comm all);
  /// Receives what has arrived and sends what is due; call it more often than every kBetween seconds. begun:
  /// operations that this rank has begun. leaving: it begins no more.
  int beat(uint64_t begun, bool leaving);
  /// Seconds since this rank was last heard; 0 for this process and for ranks that have left.
  double silence_of(int rank);
  /// Operations that this rank had begun when it was last heard.
  uint64_t begun_by(int rank) const { return peers_[static_cast<size_t>(rank)].begun; }
  /// All ranks know from each other that they leave: no message is under way.
  bool have_all_left() const;
  /// A collective call, once all have left.
  int close();

 private:
  struct Beat {
    uint64_t begun = 0, leaving = 0;
  };
  struct Peer {
    Beat sent, received;
    MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
    uint64_t begun = 0;
    double heard = 0;       ///< when, in running time
    bool has_left = false;  ///< it sends no more
  };
  int receive(int rank, Peer& peer);
  int send(int rank, Peer& peer);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int own_ = 0;
  std::vector<Peer> peers_;  ///< by rank; that of this process is unused
  RunningTime time_;
  double next_ = 0;  ///< when the next messages are due
  Beat next_beat_;
};
