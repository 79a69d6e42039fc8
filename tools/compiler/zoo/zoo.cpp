#include "tools/compiler/zoo/zoo.h"

#include "tools/compiler/zoo/transformers.h"
#include "tools/compiler/zoo/vision.h"

namespace librt::compiler {

std::span<const ZooEntry> zoo() {
  static constexpr ZooEntry kEntries[] = {
      {"mlp", "perceptron 1000-512-256-2, 0.6 M parameters", build_mlp},
      {"tabular", "perceptron 20-64-32-3 for tables, 3.5 thousand parameters", build_tabular},
      {"lenet5", "LeNet-5 on 28x28x1, 62 thousand parameters", build_lenet5},
      {"resnet18", "ResNet-18 on 224x224x3, 11.7 M parameters", build_resnet18},
      {"resnet50", "ResNet-50 on 224x224x3, 25.6 M parameters", build_resnet50},
      {"mobilenet_v2", "MobileNetV2 on 224x224x3, 3.5 M parameters", build_mobilenet_v2},
      {"bert_base", "BERT-base encoder, 109 M parameters", build_bert_base},
      {"bert_layer", "one BERT-base encoder layer, 7.1 M parameters", build_bert_layer},
      {"gpt2_small", "GPT-2 small, 124 M parameters", build_gpt2_small},
      {"resnet18_mnist", "ResNet-18 on 28x28x1, 11.2 M parameters, for training", build_resnet18_mnist},
      {"resnet18_cifar", "ResNet-18 on 32x32x3, 11.2 M parameters, for training", build_resnet18_cifar},
      {"char_transformer", "decoder over bytes, 0.9 M parameters, for training", build_char_transformer},
      {"text_classifier", "convolutions over bytes, two classes, 40 thousand parameters, for training",
       build_text_classifier},
  };
  return kEntries;
}

Result<ModelGraph> build_zoo_model(std::string_view name) {
  std::string names;
  for (const ZooEntry& entry : zoo()) {
    if (name == entry.name) return entry.build();
    append(names, text(names.empty() ? "" : ", ", entry.name));
  }
  return Status::make(Code::NotFound, "zoo: there is no model '", name, "'; there are ", names);
}

}  // namespace librt::compiler
