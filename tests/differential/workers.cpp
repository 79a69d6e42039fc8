#include "tests/differential/workers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

namespace librt::test {

namespace {

/// Handles every jobs-th index from `next` on; writes "> index" before each task and its result line after
/// it.
struct Worker {
  std::FILE* file = nullptr;
  int64_t next = 0;
};

pid_t start(Worker& worker, int64_t end, int jobs, unsigned seconds,
            const std::function<std::string(int64_t)>& work) {
  worker.file = std::tmpfile();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  for (int64_t number = worker.next; number < end; number += jobs) {
    std::fprintf(worker.file, "> %lld\n", static_cast<long long>(number));
    std::fflush(worker.file);
    alarm(seconds);
    std::string line = work(number);
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::fprintf(worker.file, "%s\n", line.c_str());
  }
  std::fflush(worker.file);
  _exit(0);
}

std::string ending(int status) {
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "took too long"
                                       : std::string("ended by ") + strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

std::string read_all(std::FILE* file) {
  std::string all;
  std::rewind(file);
  char buffer[1 << 16];
  for (size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, file)) > 0;) all.append(buffer, size);
  std::fclose(file);
  return all;
}

// Appends the results in the worker's file; returns the index of the task that has none, or -1.
int64_t collect(Worker& worker, std::vector<WorkResult>& results) {
  const std::string all = read_all(worker.file);
  int64_t open = -1;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    if (line.starts_with("> ")) {
      open = std::stoll(line.substr(2));
    } else if (open >= 0) {
      results.push_back({.number = open, .line = line, .crash = ""});
      open = -1;
    }
    at = end + 1;
  }
  return open;
}

}  // namespace

std::vector<WorkResult> run_workers(int64_t first, int64_t count, int jobs, unsigned seconds,
                                    const std::function<std::string(int64_t)>& work) {
  std::vector<WorkResult> results;
  std::map<pid_t, Worker> running;
  const auto launch = [&](int64_t next) {
    if (next >= first + count) return;
    Worker worker{.file = nullptr, .next = next};
    const pid_t child = start(worker, first + count, jobs, seconds, work);
    running[child] = worker;
  };
  for (int job = 0; job < jobs; ++job) launch(first + job);
  while (!running.empty()) {
    int status = 0;
    const pid_t child = wait(&status);
    const auto entry = running.find(child);
    if (entry == running.end()) continue;
    Worker worker = entry->second;
    running.erase(entry);
    const int64_t open = collect(worker, results);
    if (open < 0) continue;
    results.push_back({.number = open, .line = "", .crash = ending(status)});
    launch(open + jobs);
  }
  std::sort(results.begin(), results.end(),
            [](const WorkResult& a, const WorkResult& b) { return a.number < b.number; });
  return results;
}

}  // namespace librt::test
