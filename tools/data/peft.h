// Adapters as Hugging Face's PEFT has them: a file adapter_model.safetensors beside adapter_config.json.
//
// Knows: PEFT's names, layouts and scales, and those of adapters in safetensors files of rtconvert
// (WEIGHT.lora_a, WEIGHT.lora_b, lora.scale; tools/compiler/train/lora.h). Must not know: models.
#pragma once

#include <string>
#include <vector>

#include "tools/data/safetensors.h"

namespace librt::tools {

/// Whether a path has the name that PEFT gives such a file.
bool is_peft_path(const std::string& path);
/// Whether the tensors have PEFT's names.
bool is_peft(const Safetensors& content);

/// The adapter under librt's names, in f32. weights: of the model; a module of the file is that whose weight
/// ends in its name. path: of the file, beside which the configuration is read. What librt does not have
/// (DoRA, embeddings, modules trained whole) is refused, as are modules that the model has not or has twice;
/// all names are in the message.
Result<Safetensors> from_peft(const Safetensors& content, const std::string& path,
                              const std::vector<std::string>& weights);

/// Writes both files; adapter: under librt's names. Weights that are no "MODULE.weight" and parameters other
/// than adapters are refused.
Status write_peft(const std::string& path, const Safetensors& adapter);

}  // namespace librt::tools
