// Another engine, such as ONNX Runtime, in a process of its own: a Python script that the build puts into
// rtbench.
//
// Knows: processes, pipes, the script's commands (peer.py). Must not know: sessions, the plan of a study.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/cli/process.h"

namespace librt::bench {

/// Names of --peer.
const std::vector<std::string>& peer_engines();

struct PeerOptions {
  std::string engine;  ///< one of peer_engines()
  std::string model;   ///< path of the ONNX file
  std::vector<std::string> inputs, outputs;
  int threads = 1;
  std::string python = "python3";
};

/// A running engine. Ends with this object. Not for several threads.
class Peer {
 public:
  /// Starts the process, which begins to load the model; several may load at once. Code::NotFound if Python
  /// is not installed.
  static Result<std::shared_ptr<Peer>> begin(const PeerOptions& options);
  /// Waits until the model is loaded, before anything else is asked. Code::NotFound if the engine is not
  /// installed: the message says which part. is_stopped: ends the waiting.
  Status loaded(const std::function<bool()>& is_stopped);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// "1.16.3"; after loaded().
  const std::string& version() const noexcept { return version_; }
  /// A folder for files between the processes, which is deleted with this object.
  const std::string& folder() const noexcept { return folder_.path(); }
  /// Sends a command and waits for the answer. Code::LimitExceeded after `seconds` (0: no limit),
  /// Code::Cancelled when is_stopped() says so: the process is then gone. Errors of the engine are
  /// Code::Unsupported.
  Result<nlohmann::json> ask(const nlohmann::json& request, double seconds,
                             const std::function<bool()>& is_stopped);

 private:
  Peer() = default;
  Status start(const PeerOptions& options);
  Status send(const nlohmann::json& request);
  Result<nlohmann::json> receive(double seconds, const std::function<bool()>& is_stopped);
  Result<std::string> read_line(double seconds, const std::function<bool()>& is_stopped);
  void end();
  /// What the engine printed last.
  std::string last_words() const;

  int process_ = -1;
  int to_ = -1, from_ = -1, errors_ = -1;
  tools::TemporaryFolder folder_{"rtbench-peer"};
  std::string version_, engine_, received_;
};

}  // namespace librt::bench
