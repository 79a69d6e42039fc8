// A graph as a model of the public API.
#pragma once

#include <gtest/gtest.h>

#include "rt/rt.hpp"
#include "tools/compiler/writer.h"

namespace librt::test {

/// Written as a file in memory, and loaded again.
inline rt::Model loaded_model(const ModelGraph& graph) {
  const auto bytes = compiler::serialize_model(graph);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  auto loaded = rt::Model::from_memory(std::as_bytes(std::span(*bytes)));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return std::move(*loaded);
}

}  // namespace librt::test
