// edit_checkpoint MODEL.rt BACKEND CHECKPOINT TARGET KEY=VALUE ...: writes a checkpoint of rttrain again,
// with other texts beside its states. In the file itself its checksum would show the change.
#include <cstdio>
#include <string_view>

#include "rt/rt.hpp"

namespace {

// What rttrain compares or continues with, without "rttrain.".
constexpr const char* kKeys[] = {"epoch",   "batch",      "step", "loss_sum", "seen",  "waiting", "best",
                                 "monitor", "batch_size", "seed", "samples",  "order", "data"};

rt::Status edit(int argc, char** argv) {
  const auto model = rt::Model::load(argv[1]);
  if (!model) return model.status();
  rt::SessionOptions options;
  options.backend = argv[2];
  options.entry = "train_step";
  auto session = rt::Session::create(*model, options);
  if (!session) return session.status();
  if (rt::Status status = session->load_checkpoint(argv[3]); !status) return status;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const char* name : kKeys) {
    const std::string key = std::string("rttrain.") + name;
    std::string value = session->checkpoint_value(key).value_or("");
    for (int i = 5; i < argc; ++i) {
      const std::string_view given = argv[i];
      if (given.starts_with(std::string(name) + "=")) value = given.substr(given.find('=') + 1);
    }
    texts.emplace_back(key, value);
  }
  return session->save_checkpoint(argv[4], texts);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const rt::Status status = edit(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "edit_checkpoint: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
