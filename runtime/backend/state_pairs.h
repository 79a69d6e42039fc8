// The operands that an optimizer step may update in place, for Requirements.
//
// Knows: StepForm, InPlace. Must not know: any step's formula, any device.
#pragma once

#include <array>
#include <span>

#include "runtime/backend/backend.h"
#include "runtime/geometry/step_form.h"

namespace librt {

/// Pairs of a step's states, and of their scales, with their updated values, for Requirements::more_in_place;
/// lives as long as the kernel.
class StatePairs {
 public:
  explicit StatePairs(const StepForm& form) noexcept {
    for (const StepForm::State& state : form.states) {
      if (!state.present) continue;
      pairs_[count_++] = {state.input, state.output};
      if (form.block_size > 0) pairs_[count_++] = {state.scales, state.next_scales};
    }
  }
  std::span<const InPlace> span() const noexcept { return std::span(pairs_).first(count_); }

 private:
  std::array<InPlace, 2 * kMostStepStates> pairs_;
  size_t count_ = 0;
};

}  // namespace librt
