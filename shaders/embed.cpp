// Build tool: writes SPIR-V files as C++ arrays with a table, in the order given.
//
//   embed <output.cpp> <list>     each line of the list: <variant> <file.spv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed <output.cpp> <list>\n");
    return 2;
  }
  std::ifstream list(argv[2]);
  std::ofstream out(argv[1]);
  out << "#include \"backends/vulkan/shaders.h\"\n\nnamespace rt::vulkan {\nnamespace {\n\n";
  std::vector<std::string> names;
  uint64_t hash = 1469598103934665603ull;
  for (std::string name, path; list >> name >> path;) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (bytes.empty() || bytes.size() % 4 != 0) {
      std::fprintf(stderr, "embed: %s: expected SPIR-V words, found %zu bytes\n", path.c_str(), bytes.size());
      return 2;
    }
    out << "const uint32_t k_" << name << "[] = {";
    char word[16];
    for (size_t i = 0; i < bytes.size(); i += 4) {
      uint32_t value = 0;
      for (size_t byte = 0; byte < 4; ++byte)
        value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + byte])) << (8 * byte);
      hash = (hash ^ value) * 1099511628211ull;
      std::snprintf(word, sizeof word, "0x%x,", value);
      out << (i % 64 == 0 ? "\n    " : "") << word;
    }
    out << "\n};\n";
    names.push_back(name);
  }
  out << "\nconst ShaderCode kCodes[] = {\n";
  for (const std::string& name : names) out << "    {\"" << name << "\", k_" << name << "},\n";
  out << "};\n\n}  // namespace\n\n"
      << "const ShaderCode& shader_code(Shader shader) noexcept { return "
         "kCodes[static_cast<size_t>(shader)]; }\n"
      << "uint64_t shader_build_hash() noexcept { return " << hash
      << "ull; }\n\n}  // namespace rt::vulkan\n";
  return out.good() ? 0 : 2;
}
