// A model's training entry in a session, for tests that also use the compiler: librt's public and internal
// headers define the same names.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tools/data/array.h"

namespace librt::test {

/// Every failed call leaves a message in error() and makes all later ones fail.
class StepSession {
 public:
  /// From the bytes of a .rt file. Other entries with the same states can be run in addition.
  StepSession(std::span<const std::byte> file, const std::string& backend, const std::string& entry);
  ~StepSession();
  StepSession(const StepSession&) = delete;
  StepSession& operator=(const StepSession&) = delete;

  /// Runs the entry on the named inputs (others keep their values).
  bool run(std::span<const tools::Array> inputs);
  /// The same for another entry of the model.
  bool run_entry(const std::string& entry, std::span<const tools::Array> inputs);
  std::optional<tools::Array> output(const std::string& name);
  /// Output of the last run_entry() of that entry.
  std::optional<tools::Array> output_of(const std::string& entry, const std::string& name);
  bool load_adapter(const std::string& path);
  std::optional<tools::Array> state(const std::string& name);
  const std::string& error() const { return error_; }

 private:
  struct Parts;
  template <class AnySession>
  std::optional<tools::Array> output_from(AnySession& session, const std::string& name);
  std::unique_ptr<Parts> parts_;
  std::string error_;
};

}  // namespace librt::test
