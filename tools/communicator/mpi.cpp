// Collectives over MPI. One thread makes all MPI calls, so that operations progress while the program
// computes, and so that no MPI call can make the program wait for ever: its own thread starts operations and
// waits for them, for a limited time.
//
// A wait fails at once for a rank on the same machine whose process has ended, after a time for one that no
// longer answers (heartbeat.h), and after a longer one for one that answers but is not as far.
#include <mpi.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/communicator/heartbeat.h"
#include "tools/communicator/mpi_module.h"

namespace {

// Values of rt_dtype.
constexpr int32_t kF32 = 0, kF64 = 3;

/// Seconds that the thread may take to end.
constexpr double kToStop = 5;

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

std::string seconds_text(double seconds) {
  return std::to_string(std::lround(seconds)) + " seconds";
}

struct Operation {
  void* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  bool gather = false;
  uint64_t number = 0;  ///< from 1, the same on all ranks
  double begun = 0;     ///< when, in running time
  bool done = false;
  MPI_Request request = MPI_REQUEST_NULL;
};
using OperationPtr = std::unique_ptr<Operation>;

class Ranks {
 public:
  explicit Ranks(const rt_mpi_limits& limits) : limits_(limits) {}
  /// These return null, or an error message.
  const char* open();
  const char* close();
  void abandon();
  const rt_communicator& table() const { return table_; }

  const char* begin(void* data, size_t count, MPI_Datatype type, bool gather);
  const char* wait(void* data);
  const char* check();

 private:
  struct Neighbour {
    int rank = 0;
    int watch = -1;  ///< a file descriptor that becomes readable when the process ends
  };
  void serve();
  void join();
  void carry_operations();
  void leave();
  bool receive_fresh(std::vector<Operation*>& running);
  const char* start(Operation& operation) const;
  const char* advance(std::vector<Operation*>& running);
  void beat(bool leaving);
  bool has_failed();

  void watch_neighbours();
  const char* find_ended_neighbour();
  const char* find_late_rank();
  std::string name_of(int rank) const;
  const char* fail(std::string problem);
  const char* fail(const char* what, int code);

  const rt_mpi_limits limits_;
  rt_communicator table_{};
  std::vector<Home> homes_;
  std::vector<Neighbour> neighbours_;
  std::mutex mutex_;
  std::condition_variable begun_, done_;
  std::vector<OperationPtr> operations_;  ///< started and not waited for
  std::vector<Operation*> fresh_;         ///< not yet started by the thread
  uint64_t begun_count_ = 0;
  RunningTime time_;
  std::vector<uint64_t> begun_by_;  ///< by rank, as last heard
  bool joined_ = false;
  bool closing_ = false;
  bool ended_ = false;  ///< the thread makes no more MPI calls
  std::atomic<bool> is_waited_for_ = false;
  std::string problem_;  ///< the first one
  Heartbeat heartbeat_;  ///< of the thread
  int asked_ = 0;        ///< polls since something happened, of the thread
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
  const std::lock_guard lock(mutex_);
  return fail(std::string(what) + ": MPI says: " + text);
}

bool Ranks::has_failed() {
  const std::lock_guard lock(mutex_);
  return !problem_.empty();
}

std::string Ranks::name_of(int rank) const {
  const Home& home = homes_[static_cast<size_t>(rank)];
  return "rank " + std::to_string(rank) + " (process " + std::to_string(home.process) + " on " + home.host +
         ")";
}

// --- The program's thread

const char* Ranks::open() {
  thread_ = std::thread([this] { serve(); });
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> limit(limits_.answer_seconds);
  if (!done_.wait_for(lock, limit, [&] { return joined_ || !problem_.empty(); }))
    fail("the ranks have not all joined within " + seconds_text(limits_.answer_seconds) +
         ": a process of them does not run, or their machines do not reach each other (--rank-timeout)");
  return problem_.empty() ? nullptr : problem_.c_str();
}

const char* Ranks::begin(void* data, size_t count, MPI_Datatype type, bool gather) {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) return problem_.c_str();
  if (count > INT_MAX)
    return fail("an operation on " + std::to_string(count) + " elements: MPI takes at most 2^31 - 1");
  operations_.push_back(std::make_unique<Operation>());
  *operations_.back() = {.data = data,
                         .count = static_cast<int>(count),
                         .type = type,
                         .gather = gather,
                         .number = ++begun_count_,
                         .begun = time_.seconds()};
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
  const auto is_over = [&] { return operations_[at]->done || !problem_.empty(); };
  is_waited_for_ = true;
  while (!is_over())
    if (!done_.wait_for(lock, kLook, is_over) && find_ended_neighbour() == nullptr) find_late_rank();
  is_waited_for_ = false;
  if (!operations_[at]->done) return problem_.c_str();
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(at));
  return nullptr;
}

const char* Ranks::check() {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty() || find_ended_neighbour() != nullptr) return problem_.c_str();
  return find_late_rank();
}

void Ranks::abandon() {
  std::unique_lock lock(mutex_);
  fail("the training has failed");
  begun_.notify_one();
  done_.wait_for(lock, std::chrono::duration<double>(kToStop), [&] { return ended_; });
}

const char* Ranks::close() {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    begun_.notify_one();
    // A silent rank is found before that, unless it is MPI that waits for it.
    const std::chrono::duration<double> limit(limits_.answer_seconds + kToStop);
    if (!done_.wait_for(lock, limit, [&] { return ended_; }))
      fail("the training is complete, but its ranks do not end within " +
           seconds_text(limits_.answer_seconds));
    if (!problem_.empty()) return problem_.c_str();
  }
  thread_.join();
  for (const Neighbour& neighbour : neighbours_) ::close(neighbour.watch);
  return nullptr;
}

// --- Who is missing

void Ranks::watch_neighbours() {
  const Home& own = homes_[static_cast<size_t>(table_.rank)];
  for (int rank = 0; rank < table_.ranks; ++rank) {
    const Home& home = homes_[static_cast<size_t>(rank)];
    if (rank == table_.rank || home.processes != own.processes || std::strcmp(home.host, own.host) != 0)
      continue;
    const int watch = static_cast<int>(syscall(SYS_pidfd_open, home.process, 0));
    if (watch >= 0) neighbours_.push_back({rank, watch});
  }
}

const char* Ranks::find_ended_neighbour() {
  for (const Neighbour& neighbour : neighbours_) {
    pollfd state{neighbour.watch, POLLIN, 0};
    if (poll(&state, 1, 0) > 0)
      return fail(name_of(neighbour.rank) + " has ended; the others cannot go on without it");
  }
  return nullptr;
}

// An operation ends soon after all ranks have begun it: how long it takes is how late the last one is.
const char* Ranks::find_late_rank() {
  const double now = time_.seconds();
  const auto overdue = std::find_if(operations_.begin(), operations_.end(), [&](const OperationPtr& each) {
    return !each->done && limits_.wait_seconds > 0 && now - each->begun > limits_.wait_seconds;
  });
  if (overdue == operations_.end()) return nullptr;
  std::string late;
  for (int rank = 0; rank < table_.ranks; ++rank)
    if (rank != table_.rank && begun_by_[static_cast<size_t>(rank)] < (*overdue)->number)
      late += (late.empty() ? "" : ", ") + name_of(rank);
  return fail(
      "the others have waited " + seconds_text(limits_.wait_seconds) + " for " +
      (late.empty() ? "the end of an operation that all have begun" : late + ", which still answers") +
      "; --rank-wait sets another limit");
}

// --- The thread

const char* Ranks::start(Operation& operation) const {
  const int code = operation.gather
                       ? MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, operation.data, operation.count,
                                        operation.type, MPI_COMM_WORLD, &operation.request)
                       : MPI_Iallreduce(MPI_IN_PLACE, operation.data, operation.count, operation.type,
                                        MPI_SUM, MPI_COMM_WORLD, &operation.request);
  return code == MPI_SUCCESS ? nullptr : "starting an operation with the other ranks failed";
}

void Ranks::join() {
  // With more ranks than cores Open MPI yields on every poll, which waits for a time slice of every other
  // program; the pauses of the thread are better.
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
  int given = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given); code != MPI_SUCCESS) {
    fail("joining the ranks", code);
    return;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Home own = own_home();
  homes_.resize(static_cast<size_t>(ranks));
  int code = MPI_Allgather(&own, sizeof own, MPI_BYTE, homes_.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  if (code == MPI_SUCCESS) code = heartbeat_.open(MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) {
    fail("joining the ranks", code);
    return;
  }
  const std::lock_guard lock(mutex_);
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
  begun_by_.resize(static_cast<size_t>(ranks));
  watch_neighbours();
  joined_ = true;
  done_.notify_all();
}

void Ranks::serve() {
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: keeps the pauses short
  join();
  if (!has_failed()) carry_operations();
  if (!has_failed()) leave();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  done_.notify_all();
}

/// Moves new operations to `running` and starts them; waits for one for a while if there is none. False at
/// the end.
bool Ranks::receive_fresh(std::vector<Operation*>& running) {
  constexpr std::chrono::duration<double> kIdle(Heartbeat::kBetween / 2);
  std::vector<Operation*> started;
  {
    std::unique_lock lock(mutex_);
    if (running.empty())
      begun_.wait_for(lock, kIdle, [&] { return !fresh_.empty() || closing_ || !problem_.empty(); });
    if (!problem_.empty() || (closing_ && fresh_.empty() && running.empty())) return false;
    started.swap(fresh_);
  }
  for (Operation* operation : started) {
    if (const char* problem = start(*operation)) {
      const std::lock_guard lock(mutex_);
      fail(problem);
      return false;
    }
    running.push_back(operation);
    asked_ = 0;
  }
  return true;
}

const char* Ranks::advance(std::vector<Operation*>& running) {
  for (size_t i = 0; i < running.size();) {
    int done = 0;
    if (MPI_Test(&running[i]->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return "an operation with the other ranks failed; one of them may have ended";
    if (done == 0) {
      ++i;
      continue;
    }
    const std::lock_guard lock(mutex_);
    running[i]->done = true;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    asked_ = 0;
    done_.notify_all();
  }
  return nullptr;
}

void Ranks::beat(bool leaving) {
  uint64_t begun = 0;
  {
    const std::lock_guard lock(mutex_);
    begun = begun_count_;
  }
  if (const int code = heartbeat_.beat(begun, leaving); code != MPI_SUCCESS) {
    fail("a message to another rank", code);
    return;
  }
  std::string silent;
  double longest = 0;
  const std::lock_guard lock(mutex_);
  for (int rank = 0; rank < table_.ranks; ++rank) {
    if (rank == table_.rank) continue;
    begun_by_[static_cast<size_t>(rank)] = heartbeat_.begun_by(rank);
    const double silence = heartbeat_.silence_of(rank);
    longest = std::max(longest, silence);
    // Those that fell silent at the same time are named together.
    if (silence > limits_.answer_seconds - 2 * Heartbeat::kBetween)
      silent += (silent.empty() ? "" : ", ") + name_of(rank);
  }
  if (longest <= limits_.answer_seconds) return;
  fail(silent + " has not answered for " + seconds_text(limits_.answer_seconds) +
       ": it was stopped, or its machine cannot be reached; the others cannot go on without it");
  done_.notify_all();
}

// MPI only progresses while it is called, so this polls: first without pauses, then with pauses, which leave
// the cores to the program and to other ranks.
void Ranks::carry_operations() {
  constexpr int kAtOnce = 50;
  constexpr useconds_t kPause = 20, kLongPause = 100;
  std::vector<Operation*> running;
  RunningTime time;
  double next = 0;
  while (receive_fresh(running)) {
    if (const char* problem = advance(running)) {
      const std::lock_guard lock(mutex_);
      fail(problem);
      return;
    }
    if (const double now = time.seconds(); now >= next) {
      next = now + Heartbeat::kBetween / 2;
      beat(false);
    }
    if (!running.empty() && asked_++ >= kAtOnce) usleep(is_waited_for_ ? kPause : kLongPause);
  }
}

void Ranks::leave() {
  constexpr useconds_t kPause = 1000;
  for (;;) {
    beat(true);
    if (heartbeat_.have_all_left()) break;
    if (check() != nullptr) return;
    usleep(kPause);
  }
  heartbeat_.close();
  MPI_Finalize();
}

Ranks* opened = nullptr;

}  // namespace

const char* rt_mpi_open(const rt_mpi_limits* limits, const rt_communicator** made) {
  if (opened != nullptr) return "the ranks are joined already";
  opened = new Ranks(*limits);
  if (const char* problem = opened->open()) return problem;
  *made = &opened->table();
  return nullptr;
}

void rt_mpi_abandon() {
  opened->abandon();
}

const char* rt_mpi_close() {
  if (const char* problem = opened->close()) return problem;
  delete opened;
  opened = nullptr;
  return nullptr;
}
