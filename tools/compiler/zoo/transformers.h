// Text networks of the zoo.
#pragma once

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// BERT-base encoder: token ids [batch, sequence] -> hidden states [batch, sequence, 768].
Result<ModelGraph> build_bert_base();
/// One of its layers alone: hidden states in and out.
Result<ModelGraph> build_bert_layer();
/// GPT-2 small: token ids [batch, sequence] -> logits [batch, sequence, 50257].
Result<ModelGraph> build_gpt2_small();
/// A small one over bytes, for training: 4 layers, width 128, at most 256 positions; logits [batch, sequence,
/// 256].
Result<ModelGraph> build_char_transformer();
/// Convolutions over bytes [batch, sequence] -> logits [batch, 2].
Result<ModelGraph> build_text_classifier();

}  // namespace librt::compiler
