// Runs a model in a session, once or on many inputs. A separate file, because librt's public and internal
// headers define the same names.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::convert {

/// Outputs of one run of a .rt file given as bytes, inputs in the model's order; nullopt: `error` has a
/// message. strict: no node may fall back to another backend.
std::optional<std::vector<tools::Array>> run_session(std::span<const std::byte> file,
                                                     const std::string& backend, bool strict,
                                                     std::span<const tools::Array> inputs,
                                                     std::string& error);

/// A session for several runs.
class Runner {
 public:
  /// Null: `error` has a message.
  static std::unique_ptr<Runner> open(std::span<const std::byte> file, const std::string& backend,
                                      bool strict, std::string& error);
  virtual ~Runner() = default;
  virtual bool run(std::span<const tools::Array> inputs, std::string& error) = 0;
  virtual size_t output_count() const = 0;
  /// Of the last run; valid until the next.
  struct Output {
    DType type;
    std::vector<int64_t> dims;
    std::span<const std::byte> bytes;
  };
  virtual std::optional<Output> output(size_t i, std::string& error) = 0;
};

}  // namespace librt::convert
