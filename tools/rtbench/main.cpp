// rtbench: measures models on the devices of this machine, and says which to use.
//
// Knows: the names of the commands. Each is a file of commands/.
#include "tools/cli/program.h"
#include "tools/rtbench/commands/commands.h"

int main(int argc, char** argv) {
  return librt::tools::run_program("rtbench", argc, argv, librt::bench::run_command);
}
