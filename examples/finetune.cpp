// Trains, saves a checkpoint, and continues it in a new session: the losses must go on as without the break.
//
//   rtconvert zoo:mlp -o mlp.rt --train --loss cross_entropy --optimizer adam
//   finetune mlp.rt mlp.ckpt [BACKEND]
//
// The entry train_step of this model has the inputs "input" f32 [batch,...], "labels" i64 [batch] and
// "learning_rate", and the outputs "loss" and "logits". Exit code 1 if a loss after the break differs.
#include <rt/rt.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int64_t kBatch = 32;
constexpr unsigned kSteps = 20, kAfter = 5;

int fail(const rt::Status& status) {
  std::fprintf(stderr, "finetune: %s\n", status.message().c_str());
  return 2;
}

/// Trains on a batch that depends on the step only: noise around -0.2 is class 0, around 0.2 class 1.
rt::Result<float> step(rt::Trainer& trainer, const rt::TensorSpec& spec, unsigned number) {
  std::vector<int64_t> dims{kBatch};
  for (size_t i = 1; i < spec.dims.size(); ++i) dims.push_back(std::max<int64_t>(spec.dims[i].extent, 1));
  rt::Tensor input(rt::DType::F32, dims);
  rt::Tensor labels(rt::DType::I64, {kBatch});
  std::mt19937 random(number);
  std::normal_distribution<float> noise(0, 1);
  const std::span<float> values = input.values<float>();
  const size_t features = values.size() / kBatch;
  for (size_t i = 0; i < kBatch; ++i) {
    labels.values<int64_t>()[i] = random() % 2;
    const float mean = labels.values<int64_t>()[i] == 1 ? 0.2f : -0.2f;
    for (float& value : values.subspan(i * features, features)) value = noise(random) + mean;
  }
  if (auto status = trainer.session().set_input("input", input); !status) return status;
  if (auto status = trainer.session().set_input("labels", labels); !status) return status;
  return trainer.step();
}

rt::Result<rt::Trainer> open(const rt::Model& model, const rt::SessionOptions& options) {
  auto trainer = rt::Trainer::create(model, options);
  if (trainer)
    if (auto status = trainer->set_learning_rate(0.0005f); !status) return status;
  return trainer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return fail({rt::Code::InvalidArgument, "MODEL.rt CHECKPOINT [BACKEND]"});
  const auto model = rt::Model::load(argv[1]);
  if (!model) return fail(model.status());
  const std::vector<rt::TensorSpec> inputs = model->inputs("train_step");
  if (inputs.empty()) return fail({rt::Code::NotFound, "no entry train_step; see rtconvert --train"});

  const rt::SessionOptions options{.backend = argc > 3 ? argv[3] : "auto", .deterministic = true};
  std::vector<float> losses;
  auto first = open(*model, options);
  if (!first) return fail(first.status());
  for (unsigned i = 0; i < kSteps + kAfter; ++i) {
    if (i == kSteps)
      if (auto saved = first->session().save_checkpoint(argv[2], {{"step", std::to_string(i)}}); !saved)
        return fail(saved);
    const auto loss = step(*first, inputs[0], i);
    if (!loss) return fail(loss.status());
    losses.push_back(*loss);
  }

  // A new session starts with the model's initial states; the checkpoint replaces weights and Adam's moments.
  auto second = open(*model, options);
  if (!second) return fail(second.status());
  if (auto status = second->session().load_checkpoint(argv[2]); !status) return fail(status);
  bool same = second->session().checkpoint_value("step") == std::to_string(kSteps);
  std::printf("step %2u: loss %.6f\n", 0U, static_cast<double>(losses[0]));
  for (unsigned i = kSteps; i < kSteps + kAfter; ++i) {
    const auto loss = step(*second, inputs[0], i);
    if (!loss) return fail(loss.status());
    std::printf("step %2u: loss %.6f, resumed %.6f\n", i, static_cast<double>(losses[i]),
                static_cast<double>(*loss));
    same = same && *loss == losses[i] && *loss < losses[0];
  }
  std::printf("%s\n", same ? "the resumed losses are the same" : "the resumed losses differ");
  return same ? 0 : 1;
}
