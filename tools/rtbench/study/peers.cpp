#include "tools/rtbench/study/peers.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tools/cli/find_program.h"
#include "tools/cli/onnx_model.h"
#include "tools/cli/process.h"
#include "tools/data/file.h"
#include "tools/rtbench/peer/peer.h"
#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using namespace words;  // NOLINT: functions that make text

constexpr double kForPeers = 1.0 / 3;

/// Without its report; whether it succeeded.
bool run_quietly(const std::vector<std::string>& arguments) {
  const tools::Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  pid_t child = 0;
  return tools::start_process(child, arguments, {.output = nowhere.number()}) == 0 &&
         tools::wait_for_process(child, 1) == 0;
}

/// The path of the model as ONNX; empty: `why` has the reason.
std::string onnx_path(const std::string& source, std::string& why) {
  if (tools::is_onnx_file(source)) return source;
  if (!source.starts_with("zoo:")) {
    why = "peers read ONNX files; give the model as MODEL.onnx";
    return {};
  }
  // Until the end of the program: peers may read the model when the batch changes.
  static const tools::TemporaryFolder folder("rtbench-model");
  const std::string rtconvert = tools::find_program("rtconvert");
  std::string path = folder.path() + "/" + source.substr(4) + ".onnx";
  if (!folder.path().empty() && !rtconvert.empty() &&
      (std::filesystem::exists(path) || run_quietly({rtconvert, source, "-o", path})))
    return path;
  why = "rtconvert, which writes " + source + " as ONNX for peers, is missing or fails";
  return {};
}

std::vector<std::string> names_of(const std::vector<rt::TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const rt::TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

std::optional<rt::DeviceInfo> cpu_device() {
  const auto devices = rt::Devices::list();
  if (devices)
    for (const rt::DeviceInfo& device : devices->devices)
      if (device.backend == "cpu") return device;
  return std::nullopt;
}

void leave_out(Study& study, const std::string& engine, const std::string& why) {
  study.omissions.push_back({"peer " + engine, why});
  std::fprintf(stderr, "rtbench study: --peer %s: %s\n", engine.c_str(), why.c_str());
}

void add_peer(const std::shared_ptr<Peer>& peer, const PeerOptions& peer_options, const rt::DeviceInfo& cpu,
              Study& study, StudySetup& setup) {
  StudyDevice device{.id = peer_options.engine, .backend = "cpu"};
  device.index = cpu.index;
  device.name = cpu.name;
  device.type = "CPU";
  device.program = peer_options.engine + " " + peer->version();
  device.memory_bytes = cpu.memory_bytes;
  device.threads = peer_options.threads;
  Lane lane;
  lane.series = study.series.size();
  lane.device = cpu;
  lane.peer = peer;
  study.series.push_back({.device = study.devices.size(), .precision = "fp32", .mode = Mode::Infer});
  study.devices.push_back(std::move(device));
  // Beside those of fp32, with which its rounds take turns.
  const auto at = std::find_if(setup.lanes.begin(), setup.lanes.end(), [&](const Lane& other) {
    return study.series[other.series].precision != "fp32";
  });
  setup.lanes.insert(at, std::move(lane));
}

// All of them load at once, as nothing is measured meanwhile: importing a framework takes seconds.
void load_peers(const std::vector<std::string>& engines, PeerOptions peer_options, const rt::DeviceInfo& cpu,
                const Budget& budget, Study& study, StudySetup& setup, StopRequest& stop) {
  std::vector<Result<std::shared_ptr<Peer>>> peers;
  for (const std::string& engine : engines) {
    peer_options.engine = engine;
    peers.push_back(Peer::begin(peer_options));
  }
  const auto is_late = [&budget] {
    return budget.limited() && budget.spent() > kForPeers * budget.limit().value_or(0);
  };
  for (size_t i = 0; i < engines.size(); ++i) {
    const Status status = peers[i].ok() ? (*peers[i])->loaded([&] { return stop.requested() || is_late(); })
                                        : peers[i].status();
    peer_options.engine = engines[i];
    if (status.ok()) {
      add_peer(*peers[i], peer_options, cpu, study, setup);
      continue;
    }
    const bool late = status.code() == Code::Cancelled && !stop.requested();
    leave_out(study, engines[i],
              late ? "loading the peers takes more than a third of the budget" : status.message());
  }
}

}  // namespace

bool is_peer(const StudyDevice& device) {
  return !device.predicted && !device.program.empty() && !device.program.starts_with("librt");
}

Study without_peers(const Study& study) {
  Study own = study;
  while (!own.series.empty() && is_peer(own.devices[own.series.back().device])) own.series.pop_back();
  while (!own.devices.empty() && is_peer(own.devices.back())) own.devices.pop_back();
  return own;
}

void add_peers(const StudyOptions& options, const Budget& budget, Study& study, StudySetup& setup,
               StopRequest& stop) {
  if (options.peers.empty()) return;
  std::string why;
  const auto models = setup.models.find(Mode::Infer);
  const auto cpu = cpu_device();
  std::string path, error;
  if (models == setup.models.end())
    why = "peers are measured in inference; add --mode infer or both";
  else if (!cpu)
    why = "there is no cpu device to compare with";
  else
    path = onnx_path(options.model, why);
  std::shared_ptr<const BenchModel> model;
  if (why.empty()) {
    model = models->second.in("fp32", error);
    if (model == nullptr) why = error;
  }
  PeerOptions peer{.model = path, .python = options.peer_python};
  if (why.empty()) {
    const auto loaded = load(*model, options.measure.load);
    if (loaded) {
      peer.inputs = names_of(loaded->inputs(model->entry));
      peer.outputs = names_of(loaded->outputs(model->entry));
      peer.threads = options.measure.threads > 0 ? options.measure.threads : std::max(cpu->threads, 1);
    } else {
      why = loaded.status().message();
    }
  }
  if (why.empty()) return load_peers(options.peers, peer, *cpu, budget, study, setup, stop);
  for (const std::string& engine : options.peers) leave_out(study, engine, why);
}

std::vector<Sentence> sentences_of_peers(const Study& study) {
  std::vector<Sentence> sentences;
  const Series* own = nullptr;
  for (const Series& series : study.series) {
    const StudyDevice& device = study.devices[series.device];
    if (own == nullptr && !is_peer(device) && device.backend == "cpu" && series.precision == "fp32" &&
        series.mode == Mode::Infer && !valid_points(series).empty())
      own = &series;
  }
  if (own == nullptr) return sentences;
  for (const Series& series : study.series) {
    const StudyDevice& device = study.devices[series.device];
    if (!is_peer(device)) continue;
    std::vector<std::pair<const Point*, const Point*>> common;  // the peer's and librt's
    for (const Point* point : valid_points(series))
      if (const Point* other = point_at(*own, point->batch)) common.emplace_back(point, other);
    if (common.empty()) continue;
    std::string text;
    bool too_close = true;
    for (const auto& [peer, ours] : {common.front(), common.back()}) {
      if (!text.empty() && peer == common.front().first) break;  // one batch only
      text += text.empty() ? "At batch " : "; at batch ";
      text += std::to_string(peer->batch) + " ";
      const int order = compare(*ours, *peer);
      too_close &= order == 0;
      const std::string id = study.devices[own->device].id;
      if (order == 0)
        text += id + " and " + device.program + " are too close to call";
      else if (order > 0)
        text += id + " is " +
                times_text(ours->samples_per_second / peer->samples_per_second,
                           ratio(ours->samples_interval, peer->samples_interval)) +
                " as fast as " + device.program;
      else
        text += device.program + " is " +
                times_text(peer->samples_per_second / ours->samples_per_second,
                           ratio(peer->samples_interval, ours->samples_interval)) +
                " as fast as " + id;
    }
    sentences.push_back({.about = Sentence::About::Throughput,
                         .mode = Mode::Infer,
                         .too_close = too_close,
                         .text = text + ", in fp32 on the same CPU."});
  }
  return sentences;
}

}  // namespace librt::bench
