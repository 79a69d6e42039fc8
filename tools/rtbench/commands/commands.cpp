#include "tools/rtbench/commands/commands.h"

#include <array>
#include <string_view>

namespace librt::bench {
namespace {

struct Command {
  std::string_view name, summary;
  int (*run)(int argc, char** argv);
};

constexpr std::array kCommands = {
    Command{"study", "every device, precision and batch size of a model, and a verdict", study_command},
    Command{"compare", "two studies: what became faster or slower, with certainty", compare_command},
    Command{"history", "the stored studies", history_command},
    Command{"view", "a trace as a table by node", view_command},
};

}  // namespace

int run_command(int argc, char** argv) {
  if (argc > 1)
    for (const Command& command : kCommands)
      if (command.name == argv[1]) return command.run(argc - 1, argv + 1);
  return measure_command(argc, argv);
}

std::string commands_text() {
  std::string text;
  for (const Command& command : kCommands)
    text += "  rtbench " + std::string(command.name) + " ...  " + std::string(command.summary) + "\n";
  return text;
}

}  // namespace librt::bench
