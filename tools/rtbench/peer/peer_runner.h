// Another engine as a runner of a study: the same inputs, the same way of timing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/peer/peer.h"
#include "tools/rtbench/study/runner.h"

namespace librt::bench {

class PeerRunner final : public Runner {
 public:
  /// The peer must outlive this. model: makes the inputs, in fp32.
  static rt::Result<std::unique_ptr<PeerRunner>> open(Peer& peer, const BenchModel& model,
                                                      const MeasureOptions& options, StopRequest& stop);

  rt::Status set_batch(int64_t batch, Outputs* outputs) override;
  rt::Status run(double seconds, size_t least, std::vector<double>& times) override;

 private:
  PeerRunner(Peer& peer, BenchModel model, MeasureOptions options, StopRequest& stop, rt::Model loaded)
      : peer_(&peer),
        model_(std::move(model)),
        options_(std::move(options)),
        stop_(&stop),
        loaded_(std::move(loaded)) {}
  rt::Status collect(Outputs& outputs);
  double limit() const { return static_cast<double>(options_.time_limit_ms) * 1e-3; }

  Peer* peer_;
  BenchModel model_;
  MeasureOptions options_;
  StopRequest* stop_;
  rt::Model loaded_;
};

}  // namespace librt::bench
