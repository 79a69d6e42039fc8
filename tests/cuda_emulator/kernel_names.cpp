#include "cuda_emulator/kernel_names.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

namespace cuda_emulator {
namespace {

template <class T>
T read(const std::string& file, size_t offset) {
  T value{};
  if (offset <= file.size() && file.size() - offset >= sizeof value)
    std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// "void a::(anonymous namespace)::f<float, 4>(float*)": "f".
std::string plain_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  std::string name = text != nullptr ? text.get() : mangled;
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous))
    name.erase(at, anonymous.size());
  name.resize(std::min(name.find_first_of("<(."), name.size()));
  return name.substr(name.find_last_of(": ") + 1);
}

/// Names of this library's functions by their offset from its start. Kernels have internal linkage: the
/// dynamic linker knows none of them.
std::map<uintptr_t, std::string> read_names(const Dl_info& library) {
  std::ifstream stream(library.dli_fname, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(stream)), {});
  std::map<uintptr_t, std::string> names;
  const auto header = read<Elf64_Ehdr>(file, 0);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto table = read<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto strings = read<Elf64_Shdr>(file, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(file, table.sh_offset + at);
      const size_t name = strings.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && name < file.size())
        names.emplace(symbol.st_value, file.c_str() + name);
    }
  }
  return names;
}

}  // namespace

std::string kernel_name(const void* kernel) {
  Dl_info library{};
  if (dladdr(kernel, &library) == 0) return "unknown";
  static const std::map<uintptr_t, std::string> names = read_names(library);
  const auto found =
      names.find(reinterpret_cast<uintptr_t>(kernel) - reinterpret_cast<uintptr_t>(library.dli_fbase));
  return found != names.end() ? plain_name(found->second.c_str()) : "unknown";
}

}  // namespace cuda_emulator
