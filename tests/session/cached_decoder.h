// A one-layer decoder with its keys and values in states, for the cache tests.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "tools/compiler/builder.h"
#include "tools/compiler/cache/cache.h"
#include "tools/compiler/pipeline.h"

namespace librt::test {

/// x f32[1,1,32] -> y f32[1,1,32], one token per run; 4 query heads share 2 key/value heads of width 8.
inline Result<std::shared_ptr<const ModelGraph>> cached_decoder(int64_t capacity) {
  constexpr int64_t kFeatures = 32;
  auto model = std::make_shared<ModelGraph>();
  model->entries.push_back({"infer", {}});
  Graph& graph = model->entries[0].graph;
  compiler::Builder b(graph);
  const auto heads = [&](ValueId x, int64_t count) {
    std::vector<float> weight(static_cast<size_t>(kFeatures * count * 8));
    for (size_t i = 0; i < weight.size(); ++i)
      weight[i] = std::sin(static_cast<float>(graph.values.size() + 3 * i)) / 4;
    const ValueId w = b.constant({DType::F32, {kFeatures, count * 8}},
                                 Blob::copy_of(weight.data(), weight.size() * sizeof(float)));
    const ValueId matmul = b.emit(op::MatMulAttributes{}, {x, w});
    return b.reshape(matmul, b.ints(std::vector<int64_t>{1, count, 1, 8}));
  };
  const Dim past{.symbol = graph.symbol("past")};
  const std::vector<Dim> dims{{.extent = 1}, {.extent = 2}, past, {.extent = 8}};
  const ValueId x = b.input("x", DType::F32, {{.extent = 1}, {.extent = 1}, {.extent = kFeatures}});
  const ValueId inputs[] = {b.input("past_key", DType::F32, dims), b.input("past_value", DType::F32, dims)};
  op::ConcatAttributes along;
  along.axis = 2;
  const ValueId key = b.emit(along, {inputs[0], heads(x, 2)}),
                value = b.emit(along, {inputs[1], heads(x, 2)});
  const ValueId y = b.emit(op::AttentionAttributes{}, {heads(x, 4), key, value});
  b.output(b.reshape(y, b.ints(std::vector<int64_t>{1, 1, kFeatures})));
  b.output(key);
  b.output(value);
  RT_TRY(Status(b.status()));
  RT_TRY(compiler::optimize(*model, {}, nullptr));
  RT_TRY(compiler::add_cache(*model, {.length = capacity, .pairs = {}}, nullptr));
  RT_TRY(compiler::optimize(*model, {}, nullptr));
  return std::shared_ptr<const ModelGraph>(model);
}

}  // namespace librt::test
