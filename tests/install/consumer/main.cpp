// What a user writes first: prints the version, lists the devices, and says why a model cannot be loaded.
#include <rt/rt.hpp>

#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--version") {
    std::cout << rt::version() << '\n';
    return 0;
  }
  const auto devices = rt::Devices::list();
  if (!devices) {
    std::cerr << devices.status().message() << '\n';
    return 1;
  }
  for (const auto& device : devices->devices) std::cout << device.backend << ": " << device.name << '\n';
  const auto model = rt::Model::load("missing.rt");
  std::cout << rt::version() << ", " << model.status().message() << '\n';
  return model.ok() || devices->devices.empty();
}
