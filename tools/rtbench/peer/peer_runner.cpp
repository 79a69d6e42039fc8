#include "tools/rtbench/peer/peer_runner.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/data/npz.h"
#include "tools/data/public_status.h"
#include "tools/rtbench/prepare.h"

namespace librt::bench {

using nlohmann::json;

rt::Result<std::unique_ptr<PeerRunner>> PeerRunner::open(Peer& peer, const BenchModel& model,
                                                         const MeasureOptions& options, StopRequest& stop) {
  auto loaded = load(model, options.load);
  if (!loaded) return loaded.status();
  return std::unique_ptr<PeerRunner>(new PeerRunner(peer, model, options, stop, std::move(*loaded)));
}

rt::Status PeerRunner::set_batch(int64_t batch, Outputs* outputs) {
  const auto inputs = make_inputs(model_, loaded_, batch, options_);
  if (!inputs) return inputs.status();
  const auto specs = loaded_.inputs(model_.entry);
  std::vector<tools::Array> arrays;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const rt::Tensor& tensor = (*inputs)[i];
    const auto* bytes = static_cast<const std::byte*>(tensor.data());
    arrays.push_back({.name = specs[i].name,
                      .type = static_cast<DType>(tensor.dtype()),
                      .dims = {tensor.dims().begin(), tensor.dims().end()},
                      .bytes = {bytes, bytes + tensor.bytes()}});
  }
  const std::string path = peer_->folder() + "/inputs.npz";
  if (const Status written = tools::write_npz(path, arrays); !written.ok()) return as_public(written);
  const auto answer =
      peer_->ask({{"do", "batch"}, {"inputs", path}}, limit(), [this] { return stop_->requested(); });
  if (!answer.ok()) return as_public(answer.status());
  first_run_ms_ = answer->value("first_ms", 0.0);
  last_ms_ = answer->value("last_ms", 0.0);
  batch_ = batch;
  runs_done_ += 2;
  return outputs != nullptr ? collect(*outputs) : rt::Status();
}

rt::Status PeerRunner::collect(Outputs& outputs) {
  const std::string path = peer_->folder() + "/outputs.npz";
  const auto answer =
      peer_->ask({{"do", "outputs"}, {"path", path}}, limit(), [this] { return stop_->requested(); });
  if (!answer.ok()) return as_public(answer.status());
  const auto arrays = tools::read_npz(path);
  if (!arrays.ok()) return as_public(arrays.status());
  const std::vector<std::string> names = answer->value("names", std::vector<std::string>());
  const auto specs = loaded_.outputs(model_.entry);
  if (arrays->size() != specs.size())
    return rt::Status(rt::Code::Unsupported, "it has " + std::to_string(arrays->size()) +
                                                 " outputs, and the compiled model " +
                                                 std::to_string(specs.size()));
  outputs.clear();
  for (size_t i = 0; i < specs.size(); ++i) {
    // By name, else in order.
    size_t at = i;
    for (size_t k = 0; k < names.size() && k < arrays->size(); ++k)
      if (names[k] == specs[i].name) at = k;
    const tools::Array& array = (*arrays)[at];
    rt::Tensor tensor(static_cast<rt::DType>(array.type), array.dims);
    std::memcpy(tensor.data(), array.bytes.data(), std::min(array.bytes.size(), tensor.bytes()));
    outputs.push_back(std::move(tensor));
  }
  return {};
}

rt::Status PeerRunner::run(double seconds, size_t least, std::vector<double>& times) {
  const auto answer =
      peer_->ask({{"do", "run"}, {"seconds", seconds}, {"least", least}, {"last_ms", last_ms_}}, limit(),
                 [this] { return stop_->requested(); });
  if (!answer.ok()) return as_public(answer.status());
  const auto measured = answer->value("times_ms", std::vector<double>());
  runs_done_ += measured.size() + (last_ms_ < kShortRunMs ? 2 : 0);
  times.insert(times.end(), measured.begin(), measured.end());
  if (!measured.empty()) last_ms_ = measured.back();
  return {};
}

}  // namespace librt::bench
