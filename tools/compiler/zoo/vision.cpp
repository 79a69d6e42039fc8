#include "tools/compiler/zoo/vision.h"

#include "tools/compiler/zoo/layers.h"

namespace librt::compiler {

Result<ModelGraph> build_mlp() {
  Layers net("mlp", 1);
  ValueId x = net.input("input", DType::F32, {"batch", "1000"});
  x = net.relu(net.linear("fc1", x, 512, true, 2));
  x = net.relu(net.linear("fc2", x, 256, true, 2));
  return net.finish({{"logits", net.linear("fc3", x, 2)}});
}

// Of the size that suffices for tables with some tens of columns.
Result<ModelGraph> build_tabular() {
  Layers net("tabular", 11);
  ValueId x = net.input("input", DType::F32, {"batch", "20"});
  x = net.relu(net.linear("fc1", x, 64, true, 2));
  x = net.relu(net.linear("fc2", x, 32, true, 2));
  return net.finish({{"logits", net.linear("fc3", x, 3)}});
}

// LeCun et al. 1998, with ReLU and max pooling as it is trained today.
Result<ModelGraph> build_lenet5() {
  Layers net("lenet5", 2);
  ValueId x = net.input("input", DType::F32, {"batch", "28", "28", "1"});
  x = net.max_pool(net.relu(net.conv("conv1", x, 6, {.kernel = 5, .padding = 2, .bias = true})), 2, 2);
  x = net.max_pool(net.relu(net.conv("conv2", x, 16, {.kernel = 5, .bias = true})), 2, 2);
  x = net.relu(net.linear("fc1", net.flatten(x), 120, true, 2));
  x = net.relu(net.linear("fc2", x, 84, true, 2));
  return net.finish({{"logits", net.linear("fc3", x, 10)}});
}

namespace {

// He et al. 2016: stem 7x7/2, pool, four stages, global average, classifier. For small images the stem is 3x3
// without stride and pool, as the paper has it for CIFAR-10.
class ResNet {
 public:
  ResNet(const char* name, uint64_t seed) : net_(name, seed) {}

  Result<ModelGraph> build(std::initializer_list<int> depths, bool bottleneck) {
    const ValueId x = net_.input("input", DType::F32, {"batch", "224", "224", "3"});
    const ValueId stem =
        net_.relu(conv_norm("conv1", "bn1", x, 64, {.kernel = 7, .stride = 2, .padding = 3}));
    return stages(net_.max_pool(stem, 3, 2, 1), depths, bottleneck, 1000);
  }
  /// size: "28"; channels: "1".
  Result<ModelGraph> build_small(std::initializer_list<int> depths, const char* size, const char* channels) {
    const ValueId x = net_.input("input", DType::F32, {"batch", size, size, channels});
    return stages(net_.relu(conv_norm("conv1", "bn1", x, 64, {.kernel = 3, .padding = 1})), depths, false,
                  10);
  }

 private:
  Result<ModelGraph> stages(ValueId x, std::initializer_list<int> depths, bool bottleneck, int64_t classes) {
    int64_t width = 64;
    int stage = 1;
    for (int depth : depths) {
      for (int block = 0; block < depth; ++block) {
        const std::string name = text("layer", stage, ".", block);
        const int64_t stride = block == 0 && stage > 1 ? 2 : 1;
        x = bottleneck ? bottleneck_block(name, x, width, stride) : basic_block(name, x, width, stride);
      }
      width *= 2;
      ++stage;
    }
    return net_.finish({{"logits", net_.linear("fc", net_.global_average_pool(x), classes)}});
  }

  ValueId conv_norm(const std::string& conv, const std::string& norm, ValueId x, int64_t channels,
                    const ConvOptions& options) {
    return net_.batch_norm(norm, net_.conv(conv, x, channels, options));
  }

  ValueId shortcut(const std::string& name, ValueId x, int64_t channels, int64_t stride) {
    const bool same =
        net_.builder().status().ok() && stride == 1 && net_.builder().value(x).dims.back().extent == channels;
    return same ? x
                : conv_norm(name + ".downsample.0", name + ".downsample.1", x, channels, {.stride = stride});
  }

  ValueId basic_block(const std::string& name, ValueId x, int64_t width, int64_t stride) {
    ValueId y =
        conv_norm(name + ".conv1", name + ".bn1", x, width, {.kernel = 3, .stride = stride, .padding = 1});
    y = conv_norm(name + ".conv2", name + ".bn2", net_.relu(y), width, {.kernel = 3, .padding = 1});
    return net_.relu(net_.builder().add(y, shortcut(name, x, width, stride)));
  }

  ValueId bottleneck_block(const std::string& name, ValueId x, int64_t width, int64_t stride) {
    ValueId y = net_.relu(conv_norm(name + ".conv1", name + ".bn1", x, width, {}));
    y = conv_norm(name + ".conv2", name + ".bn2", y, width, {.kernel = 3, .stride = stride, .padding = 1});
    y = conv_norm(name + ".conv3", name + ".bn3", net_.relu(y), 4 * width, {});
    return net_.relu(net_.builder().add(y, shortcut(name, x, 4 * width, stride)));
  }

  Layers net_;
};

}  // namespace

Result<ModelGraph> build_resnet18() {
  return ResNet("resnet18", 3).build({2, 2, 2, 2}, false);
}
Result<ModelGraph> build_resnet50() {
  return ResNet("resnet50", 4).build({3, 4, 6, 3}, true);
}

Result<ModelGraph> build_resnet18_mnist() {
  return ResNet("resnet18_mnist", 11).build_small({2, 2, 2, 2}, "28", "1");
}
Result<ModelGraph> build_resnet18_cifar() {
  return ResNet("resnet18_cifar", 12).build_small({2, 2, 2, 2}, "32", "3");
}

// Sandler et al. 2018, table 2: expansion, channels, repeats, stride.
Result<ModelGraph> build_mobilenet_v2() {
  struct Stage {
    int64_t expansion, channels;
    int repeats;
    int64_t stride;
  };
  static constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Layers net("mobilenet_v2", 5);
  auto conv_norm = [&](const std::string& name, ValueId x, int64_t channels, const ConvOptions& options) {
    return net.batch_norm(name + ".1", net.conv(name + ".0", x, channels, options));
  };
  ValueId x = net.input("input", DType::F32, {"batch", "224", "224", "3"});
  x = net.relu6(conv_norm("features.0", x, 32, {.kernel = 3, .stride = 2, .padding = 1}));
  int64_t in_channels = 32;
  int index = 1;
  for (const Stage& stage : kStages)
    for (int repeat = 0; repeat < stage.repeats; ++repeat, ++index) {
      const std::string name = text("features.", index);
      const int64_t stride = repeat == 0 ? stage.stride : 1;
      const int64_t hidden = in_channels * stage.expansion;
      ValueId y = x;
      if (stage.expansion != 1) y = net.relu6(conv_norm(name + ".expand", y, hidden, {}));
      y = net.relu6(conv_norm(name + ".depthwise", y, hidden,
                              {.kernel = 3, .stride = stride, .padding = 1, .groups = hidden}));
      y = conv_norm(name + ".project", y, stage.channels, {});
      x = stride == 1 && in_channels == stage.channels ? net.builder().add(x, y) : y;
      in_channels = stage.channels;
    }
  x = net.relu6(conv_norm(text("features.", index), x, 1280, {}));
  return net.finish({{"logits", net.linear("classifier", net.global_average_pool(x), 1000)}});
}

}  // namespace librt::compiler
