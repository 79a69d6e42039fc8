// Transformer networks of the zoo.
#pragma once

#include "runtime/graph/graph.h"

namespace rt::compiler {

/// BERT-base encoder: token ids [batch, sequence] -> hidden states [batch, sequence, 768].
Result<ModelGraph> build_bert_base();
/// One of its layers alone: hidden states in and out.
Result<ModelGraph> build_bert_layer();
/// GPT-2 small: token ids [batch, sequence] -> logits [batch, sequence, 50257].
Result<ModelGraph> build_gpt2_small();

}  // namespace rt::compiler
