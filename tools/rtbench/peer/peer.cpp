#include "tools/rtbench/peer/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/rtbench/report/page_files.h"

namespace librt::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kMillisecondsBetween = 50;
constexpr size_t kLongestAnswer = size_t{64} << 20;
// Loading a framework takes seconds, converting a large model more.
constexpr double kSecondsToOpen = 300;

Status failed(const std::string& engine, const std::string& what) {
  return Status::make(Code::Device, "--peer ", engine, ": ", what, ": ", std::strerror(errno));
}

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
};

}  // namespace

const std::vector<std::string>& peer_engines() {
  static const std::vector<std::string> kEngines = {"onnxruntime", "openvino", "torch", "ncnn", "mnn"};
  return kEngines;
}

Result<std::shared_ptr<Peer>> Peer::begin(const PeerOptions& options) {
  std::shared_ptr<Peer> peer(new Peer);
  peer->engine_ = options.engine;
  RT_TRY(peer->start(options));
  RT_TRY(peer->send({{"do", "open"}}));
  return peer;
}

Status Peer::loaded(const std::function<bool()>& is_stopped) {
  RT_ASSIGN(const json answer, receive(kSecondsToOpen, is_stopped));
  version_ = answer.value("version", "");
  return {};
}

Status Peer::start(const PeerOptions& options) {
  if (folder_.path().empty()) return failed(engine_, "no folder for its files");
  const std::string config =
      json{{"engine", options.engine},   {"model", std::filesystem::absolute(options.model).string()},
           {"inputs", options.inputs},   {"outputs", options.outputs},
           {"threads", options.threads}, {"folder", folder_.path()}}
          .dump(-1, ' ', false, json::error_handler_t::replace);
  Pipe input, output;
  errors_ = memfd_create("peer", MFD_CLOEXEC);
  if (errors_ < 0 || !input.open() || !output.open()) return failed(engine_, "no pipe");
  // Ctrl-C is for rtbench, which then ends the process itself.
  pid_t child = -1;
  const int started = tools::start_process(child, {options.python, "-c", std::string(peer_script()), config},
                                           {input.read, output.write, errors_}, true);
  if (started != 0)
    return Status::make(Code::NotFound, options.python, ": ", std::strerror(started),
                        "; peers run in Python (--peer-python)");
  process_ = child;
  to_ = std::exchange(input.write, -1);
  from_ = std::exchange(output.read, -1);
  return {};
}

std::string Peer::last_words() const {
  char text[4096];
  const off_t size = lseek(errors_, 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(sizeof text));
  const ssize_t got = size > 0 ? pread(errors_, text, sizeof text, begin) : 0;
  std::string words(text, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  while (words.ends_with('\n')) words.pop_back();
  return words.substr(words.rfind('\n') + 1);
}

void Peer::end() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  to_ = from_ = -1;
  if (process_ <= 0) return;
  kill(-process_, SIGKILL);
  tools::wait_for_process(process_, 0);
  process_ = -1;
}

Peer::~Peer() {
  end();
  if (errors_ >= 0) close(errors_);
}

Result<std::string> Peer::read_line(double seconds, const std::function<bool()>& is_stopped) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    pollfd wanted{.fd = from_, .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, kMillisecondsBetween) <= 0) {
      // Only where there is no answer yet: it may have come while another peer was waited for.
      if (is_stopped && is_stopped()) return Status::make(Code::Cancelled, engine_, ": interrupted");
      if (seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > seconds)
        return Status::make(Code::LimitExceeded, engine_, ": no answer within ", seconds, " s");
      continue;
    }
    char part[65536];
    const ssize_t got = read(from_, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Status::make(Code::Unsupported, engine_, ": its process ended: ", last_words());
    received_.append(part, static_cast<size_t>(got));
    if (received_.size() > kLongestAnswer)
      return Status::make(Code::Unsupported, engine_, ": an answer without an end");
  }
}

Result<json> Peer::ask(const json& request, double seconds, const std::function<bool()>& is_stopped) {
  RT_TRY(send(request));
  return receive(seconds, is_stopped);
}

Status Peer::send(const json& request) {
  if (process_ <= 0) return Status::make(Code::Unsupported, engine_, ": its process has ended");
  const std::string line = request.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  // A process that has ended must not end this one. Commands fit into a pipe.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  const ssize_t written = write(to_, line.data(), line.size());
  sigaction(SIGPIPE, &before, nullptr);
  if (written == static_cast<ssize_t>(line.size())) return {};
  Status ended = Status::make(Code::Unsupported, engine_, ": its process ended: ", last_words());
  end();
  return ended;
}

Result<json> Peer::receive(double seconds, const std::function<bool()>& is_stopped) {
  auto text = read_line(seconds, is_stopped);
  if (!text.ok()) {
    end();
    return std::move(text).status();
  }
  json answer = json::parse(*text, nullptr, false);
  if (!answer.is_object()) {
    end();
    return Status::make(Code::Unsupported, engine_, ": expected an answer in JSON, found ",
                        text->substr(0, 80));
  }
  if (const auto missing = answer.find("missing"); missing != answer.end() && missing->is_string())
    return Status::make(Code::NotFound, missing->get<std::string>());
  if (const auto problem = answer.find("error"); problem != answer.end() && problem->is_string())
    return Status::make(Code::Unsupported, engine_, ": ", problem->get<std::string>());
  return answer;
}

}  // namespace librt::bench
