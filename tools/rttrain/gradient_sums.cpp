#include "tools/rttrain/gradient_sums.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace rt::train {

std::vector<std::string> gradient_states(const std::vector<rt::StateSpec>& states) {
  constexpr std::string_view kSuffix = ".gradient";
  std::vector<std::string> names;
  for (const rt::StateSpec& parameter : states)
    if (parameter.kind == RT_PARAMETER)
      for (const rt::StateSpec& state : states)
        if (state.kind == RT_OPTIMIZER && state.name == parameter.name + std::string(kSuffix))
          names.push_back(state.name);
  return names;
}

GradientSums::GradientSums(rt::Session& session, const Ranks& ranks, std::vector<std::string> gradients)
    : session_(session), ranks_(ranks), names_(std::move(gradients)), sums_(names_.size()) {}

rt::Status GradientSums::set_count(size_t count) {
  return session_.write_state("micro_batches", rt::Tensor::of<int32_t>({}, {static_cast<int32_t>(count)}));
}

rt::Status GradientSums::start() {
  return set_count(0);
}

rt::Result<std::vector<float>> GradientSums::of_all_ranks(std::span<const float> own) {
  std::vector<float> all(own.size() * ranks_.count());
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(own.size() * ranks_.rank()));
  if (rt::Status status = ranks_.all_gather(all.data(), own.size_bytes()); !status) return status;
  return all;
}

rt::Status GradientSums::add(float loss) {
  const auto losses = of_all_ranks({&loss, 1});
  if (!losses) return losses.status();
  for (const float each : *losses) loss_ += each;
  for (size_t i = 0; i < names_.size(); ++i) {
    auto gradient = session_.read_state(names_[i]);
    if (!gradient) return gradient.status();
    const auto all = of_all_ranks(gradient->values<float>());
    if (!all) return all.status();
    if (count_ == 0) sums_[i] = rt::Tensor(rt::DType::F32, gradient->dims());
    const std::span<float> sum = sums_[i].values<float>();
    for (size_t at = 0; at < all->size(); at += sum.size())
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += (*all)[at + k];
  }
  count_ += ranks_.count();
  return {};
}

rt::Result<float> GradientSums::finish() {
  for (size_t i = 0; i < names_.size(); ++i)
    if (rt::Status status = session_.write_state(names_[i], sums_[i]); !status) return status;
  if (rt::Status status = set_count(count_); !status) return status;
  return std::exchange(loss_, 0.0f) / static_cast<float>(std::exchange(count_, 0));
}

}  // namespace rt::train
