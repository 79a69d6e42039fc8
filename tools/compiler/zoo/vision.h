// Image networks and the multi-layer perceptrons of the zoo. Inputs are channels-last.
#pragma once

#include "runtime/graph/graph.h"

namespace librt::compiler {

Result<ModelGraph> build_mlp();
Result<ModelGraph> build_tabular();
Result<ModelGraph> build_lenet5();
Result<ModelGraph> build_resnet18();
Result<ModelGraph> build_resnet50();
/// ResNet-18 for small grayscale images: a 3x3 stem without stride and pooling, ten classes.
Result<ModelGraph> build_resnet18_mnist();
Result<ModelGraph> build_resnet18_cifar();
Result<ModelGraph> build_mobilenet_v2();

}  // namespace librt::compiler
