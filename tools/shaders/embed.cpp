// Build tool: writes SPIR-V files as C++ arrays with a table of them and their interfaces, in the order
// given.
//
//   embed <output.cpp> <list> [CAPABILITY..]
//
// Each line of the list: <variant> <file.spv>, or <variant> - for one that the build leaves out. So are those
// whose SPIR-V has one of the capabilities, which are numbers. They stay in the table, without words.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tools/shaders/interface.h"

namespace {

/// Without what only debuggers read: names, source and lines (SPIR-V specification, section 3.49.2
/// and 3.49.3), an eighth of all words.
std::vector<uint32_t> stripped(const std::vector<uint32_t>& words) {
  constexpr uint32_t kFirst = 2, kLast = 8;  // OpSourceContinued to OpLine
  constexpr uint32_t kNoLine = 317, kModuleProcessed = 330;
  constexpr size_t kHeader = 5;
  std::vector<uint32_t> kept(words.begin(), words.begin() + kHeader);
  for (size_t at = kHeader; at < words.size();) {
    const uint32_t op = words[at] & 0xffff;
    const size_t end = std::min(words.size(), at + std::max<size_t>(words[at] >> 16, 1));
    if ((op < kFirst || op > kLast) && op != kNoLine && op != kModuleProcessed)
      kept.insert(kept.end(), words.begin() + static_cast<std::ptrdiff_t>(at),
                  words.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed <output.cpp> <list> [CAPABILITY..]\n");
    return 2;
  }
  const std::set<std::string> unwanted(argv + 3, argv + argc);
  std::ifstream list(argv[2]);
  std::ofstream out(argv[1]);
  out << "#include \"backends/vulkan/dispatch/shaders.h\"\n\nnamespace librt::vulkan {\nnamespace {\n\n";
  std::string table;
  uint64_t hash = 1469598103934665603ull;
  const auto leave_out = [&](const std::string& name) {
    table += "    {\"" + name + "\", {}, \"\", 0, 0, {}},\n";
  };
  for (std::string name, path; list >> name >> path;) {
    if (path == "-") {
      leave_out(name);
      continue;
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (bytes.empty() || bytes.size() % 4 != 0) {
      std::fprintf(stderr, "embed: %s: expected SPIR-V words, found %zu bytes\n", path.c_str(), bytes.size());
      return 2;
    }
    std::vector<uint32_t> words;
    for (size_t i = 0; i < bytes.size(); i += 4) {
      uint32_t word = 0;
      for (size_t byte = 0; byte < 4; ++byte)
        word |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + byte])) << (8 * byte);
      words.push_back(word);
    }
    std::string error;
    const librt::spirv::Interface interface = librt::spirv::interface_of(words, error);
    if (!error.empty()) {
      std::fprintf(stderr, "embed: %s: %s\n", path.c_str(), error.c_str());
      return 2;
    }
    if (std::ranges::any_of(interface.capabilities,
                            [&](uint32_t number) { return unwanted.contains(std::to_string(number)); })) {
      leave_out(name);
      continue;
    }
    words = stripped(words);
    out << "const uint32_t k_" << name << "[] = {";
    char text[16];
    for (size_t i = 0; i < words.size(); ++i) {
      hash = (hash ^ words[i]) * 1099511628211ull;
      std::snprintf(text, sizeof text, "0x%x,", words[i]);
      out << (i % 16 == 0 ? "\n    " : "") << text;
    }
    out << "\n};\n";
    std::string capabilities = "{}";
    if (!interface.capabilities.empty()) {
      capabilities = "c_" + name;
      out << "const uint32_t " << capabilities << "[] = {";
      for (const uint32_t capability : interface.capabilities) out << capability << ",";
      out << "};\n";
    }
    table += "    {\"" + name + "\", k_" + name + ", \"" + interface.push + "\", " +
             std::to_string(interface.constants) + ", " + std::to_string(interface.bindings) + ", " +
             capabilities + "},\n";
  }
  out << "\nconst ShaderCode kCodes[] = {\n" << table;
  out << "};\n\n}  // namespace\n\n"
      << "const ShaderCode& shader_code(Shader shader) noexcept { return "
         "kCodes[static_cast<size_t>(shader)]; }\n"
      << "uint64_t shader_build_hash() noexcept { return " << hash
      << "ull; }\n\n}  // namespace librt::vulkan\n";
  return out.good() ? 0 : 2;
}
