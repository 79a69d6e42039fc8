// The command line of training: losses, optimizers, gradient handling.
//
// Knows: options, their help, and for which loss or optimizer each is. Must not know: how anything is done.
#pragma once

#include <memory>
#include <string>

#include "tools/compiler/train/train_entry.h"

namespace librt::tools {
class CommandLine;
}

namespace librt::convert {

/// Declares the options of --train on an App and turns what was read into the compiler's options.
class TrainingArguments {
 public:
  TrainingArguments();
  ~TrainingArguments();
  void declare(tools::CommandLine& app);
  /// After parsing. Throws tools::ArgumentError that names the wrong option and what is expected; without
  /// `train` any option given is an error. f16: the default loss scale is that of f16.
  compiler::TrainOptions checked(bool train, bool f16) const;
  /// The names that were chosen: "cross_entropy", "sgd".
  const std::string& loss() const;
  const std::string& optimizer() const;

 private:
  struct Raw;
  std::unique_ptr<Raw> raw_;
};

}  // namespace librt::convert
