// Collectives over MPI. After setup one thread makes all MPI calls, so that operations progress while the
// program computes; the program's thread starts operations and waits for them.
//
// Ranks on the same machine are monitored through their processes: a wait for a rank that has ended fails at
// once instead of after a timeout.
#include <mpi.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/communicator/mpi_module.h"

namespace {

// Values of rt_dtype.
constexpr int32_t kF32 = 0, kF64 = 3;

/// Where a rank runs.
struct Home {
  char host[256] = {};
  uint64_t processes = 0;  ///< identifies the PID namespace (containers have their own)
  int32_t process = 0;
};

Home own_home() {
  Home home;
  gethostname(home.host, sizeof home.host - 1);
  struct stat names {};
  if (stat("/proc/self/ns/pid", &names) == 0) home.processes = names.st_ino;
  home.process = static_cast<int32_t>(getpid());
  return home;
}

struct Operation {
  void* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  bool gather = false;
  bool done = false;
  MPI_Request request = MPI_REQUEST_NULL;
};
using OperationPtr = std::unique_ptr<Operation>;

class Ranks {
 public:
  /// Null, or an error message.
  const char* open();
  void close();
  void abandon();
  const rt_communicator& table() const { return table_; }

  const char* begin(void* data, size_t count, MPI_Datatype type, bool gather);
  const char* wait(void* data);
  const char* check();

 private:
  struct Neighbour {
    int rank = 0;
    int process = 0;
    int watch = -1;  ///< a file descriptor that becomes readable when the process ends
  };
  void watch_neighbours();
  void serve();
  const char* start(Operation& operation) const;
  const char* find_ended_neighbour();
  const char* fail(std::string problem);
  const char* fail(const char* what, int code);

  rt_communicator table_{};
  std::vector<Neighbour> neighbours_;
  std::mutex mutex_;
  std::condition_variable begun_, done_;
  std::vector<OperationPtr> operations_;  ///< started and not waited for
  std::vector<Operation*> fresh_;         ///< not yet started by the thread
  bool closing_ = false;
  bool ended_ = false;  ///< the thread has exited after a problem
  std::atomic<bool> is_waited_for_ = false;
  std::string problem_;  ///< the first one
  std::thread thread_;
};

const char* Ranks::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
  return problem_.c_str();
}

const char* Ranks::fail(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(std::string(what) + ": MPI says: " + text);
}

const char* Ranks::open() {
  // With more ranks than cores Open MPI yields on every poll, which waits for a time slice of every other
  // program; the pauses of the thread are better.
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
  int given = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given); code != MPI_SUCCESS)
    return fail("joining the ranks", code);
  if (given < MPI_THREAD_SERIALIZED) return fail("this MPI library cannot be called from another thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  table_ = {.struct_size = sizeof table_,
            .user = this,
            .rank = rank,
            .ranks = ranks,
            .all_reduce = [](void* self, void* data, size_t count, int32_t dtype) -> const char* {
              auto& all = *static_cast<Ranks*>(self);
              if (dtype != kF32 && dtype != kF64) return "all_reduce: expected f32 or f64";
              return all.begin(data, count, dtype == kF32 ? MPI_FLOAT : MPI_DOUBLE, false);
            },
            .all_gather = [](void* self, void* data, size_t bytes) -> const char* {
              return static_cast<Ranks*>(self)->begin(data, bytes, MPI_BYTE, true);
            },
            .wait = [](void* self, void* data) { return static_cast<Ranks*>(self)->wait(data); },
            .check = [](void* self) { return static_cast<Ranks*>(self)->check(); }};
  watch_neighbours();
  thread_ = std::thread([this] { serve(); });
  return nullptr;
}

void Ranks::watch_neighbours() {
  const Home own = own_home();
  std::vector<Home> homes(static_cast<size_t>(table_.ranks));
  if (MPI_Allgather(&own, sizeof own, MPI_BYTE, homes.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD) !=
      MPI_SUCCESS)
    return;
  for (int rank = 0; rank < table_.ranks; ++rank) {
    const Home& home = homes[static_cast<size_t>(rank)];
    if (rank == table_.rank || home.processes != own.processes || std::strcmp(home.host, own.host) != 0)
      continue;
    const int watch = static_cast<int>(syscall(SYS_pidfd_open, home.process, 0));
    if (watch >= 0) neighbours_.push_back({rank, home.process, watch});
  }
}

const char* Ranks::find_ended_neighbour() {
  for (const Neighbour& neighbour : neighbours_) {
    pollfd state{neighbour.watch, POLLIN, 0};
    if (poll(&state, 1, 0) > 0)
      return fail("rank " + std::to_string(neighbour.rank) + " (process " +
                  std::to_string(neighbour.process) + ") has ended; the others cannot go on without it");
  }
  return nullptr;
}

const char* Ranks::begin(void* data, size_t count, MPI_Datatype type, bool gather) {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) return problem_.c_str();
  if (count > INT_MAX)
    return fail("an operation on " + std::to_string(count) + " elements: MPI takes at most 2^31 - 1");
  operations_.push_back(std::make_unique<Operation>());
  *operations_.back() = {.data = data, .count = static_cast<int>(count), .type = type, .gather = gather};
  fresh_.push_back(operations_.back().get());
  begun_.notify_one();
  return nullptr;
}

const char* Ranks::wait(void* data) {
  constexpr std::chrono::milliseconds kLook{100};
  std::unique_lock lock(mutex_);
  // The oldest one: a buffer may be reused for a new operation once it was waited for.
  size_t at = 0;
  while (at < operations_.size() && operations_[at]->data != data) ++at;
  if (at == operations_.size()) return fail("a wait for an operation that was not begun");
  is_waited_for_ = true;
  while (!operations_[at]->done && problem_.empty())
    if (!done_.wait_for(lock, kLook, [&] { return operations_[at]->done || !problem_.empty(); }))
      find_ended_neighbour();
  is_waited_for_ = false;
  if (!operations_[at]->done) return problem_.c_str();
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(at));
  return nullptr;
}

const char* Ranks::check() {
  const std::lock_guard lock(mutex_);
  return problem_.empty() ? find_ended_neighbour() : problem_.c_str();
}

const char* Ranks::start(Operation& operation) const {
  const int code = operation.gather
                       ? MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, operation.data, operation.count,
                                        operation.type, MPI_COMM_WORLD, &operation.request)
                       : MPI_Iallreduce(MPI_IN_PLACE, operation.data, operation.count, operation.type,
                                        MPI_SUM, MPI_COMM_WORLD, &operation.request);
  return code == MPI_SUCCESS ? nullptr : "starting an operation with the other ranks failed";
}

/// The thread. MPI only progresses while it is called, so this polls: first without pauses, then with pauses,
/// which leave the cores to the program and to other ranks.
void Ranks::serve() {
  constexpr int kAtOnce = 50;
  constexpr useconds_t kPause = 20, kLongPause = 100;
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: keeps the pauses short
  std::vector<Operation*> running, started;
  int asked = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (running.empty())
        begun_.wait(lock, [&] { return !fresh_.empty() || closing_ || !problem_.empty(); });
      if (!problem_.empty()) {
        ended_ = true;
        done_.notify_all();
        return;
      }
      if (fresh_.empty() && running.empty()) return;
      started.swap(fresh_);
    }
    const char* problem = nullptr;
    for (Operation* operation : started) {
      if (problem == nullptr) problem = start(*operation);
      running.push_back(operation);
      asked = 0;
    }
    started.clear();
    for (size_t i = 0; i < running.size() && problem == nullptr;) {
      int done = 0;
      if (MPI_Test(&running[i]->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        problem = "an operation with the other ranks failed; one of them may have ended";
      if (done == 0) {
        ++i;
        continue;
      }
      const std::lock_guard lock(mutex_);
      running[i]->done = true;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      asked = 0;
      done_.notify_all();
    }
    if (problem != nullptr) {
      const std::lock_guard lock(mutex_);
      fail(problem);
      continue;
    }
    if (asked++ >= kAtOnce) usleep(is_waited_for_ ? kPause : kLongPause);
  }
}

void Ranks::abandon() {
  std::unique_lock lock(mutex_);
  fail("the training has failed");
  begun_.notify_one();
  done_.wait(lock, [&] { return ended_; });
}

void Ranks::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  begun_.notify_one();
  thread_.join();
  MPI_Finalize();
  for (const Neighbour& neighbour : neighbours_) ::close(neighbour.watch);
}

Ranks* opened = nullptr;

}  // namespace

const char* rt_mpi_open(const rt_communicator** made) {
  if (opened != nullptr) return "the ranks are joined already";
  opened = new Ranks;
  if (const char* problem = opened->open()) return problem;
  *made = &opened->table();
  return nullptr;
}

void rt_mpi_abandon() {
  opened->abandon();
}

void rt_mpi_close() {
  opened->close();
  delete opened;
  opened = nullptr;
}
