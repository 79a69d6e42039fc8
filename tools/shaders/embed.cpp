// Build tool: writes SPIR-V files as C++ arrays with a table of them and their interfaces, in the order
// given.
//
//   embed <output.cpp> <list> [--xz PROGRAM] [CAPABILITY..]
//
// Each line of the list: <variant> <file.spv>, or <variant> - for one that the build leaves out. So are those
// whose SPIR-V has one of the capabilities, which are numbers. They stay in the table, without words.
//
// --xz: compresses neighbours whose names begin alike, up to the first '_', into one LZMA2 stream by this
// program; variants of one shader differ little.
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

/// Appends an array of numbers, 16 to a line.
template <class T>
void write_array(std::ostream& out, const char* type, const std::string& name, const std::vector<T>& values) {
  out << "const " << type << " " << name << "[] = {";
  char text[16];
  for (size_t i = 0; i < values.size(); ++i) {
    std::snprintf(text, sizeof text, "0x%x,", static_cast<unsigned>(values[i]));
    out << (i % 16 == 0 ? "\n    " : "") << text;
  }
  out << "\n};\n";
}

/// The words as a raw LZMA2 stream, by way of a file; empty where the program fails.
std::vector<unsigned char> compressed(const std::string& xz, const std::string& file,
                                      const std::vector<uint32_t>& words) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
  const std::string command = "'" + xz + "' --format=raw --lzma2=preset=9e --stdout '" + file + "'";
  std::vector<unsigned char> bytes;
  if (std::FILE* pipe = popen(command.c_str(), "r"); pipe != nullptr) {
    unsigned char buffer[4096];
    for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      bytes.insert(bytes.end(), buffer, buffer + n);
    if (pclose(pipe) != 0) bytes.clear();
  }
  std::remove(file.c_str());
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed <output.cpp> <list> [--xz PROGRAM] [CAPABILITY..]\n");
    return 2;
  }
  const bool compresses = argc > 4 && std::string(argv[3]) == "--xz";
  const std::string xz = compresses ? argv[4] : "";
  const std::set<std::string> unwanted(argv + (compresses ? 5 : 3), argv + argc);
  std::ifstream list(argv[2]);
  std::ofstream out(argv[1]);
  out << "#include \"backends/vulkan/dispatch/shaders.h\"\n\nnamespace librt::vulkan {\nnamespace {\n\n";
  std::string table, streams;
  std::string family;  // of the words that follow
  std::vector<uint32_t> gathered;
  int families = 0;
  const auto end_family = [&] {
    if (gathered.empty()) return true;
    const auto bytes = compressed(xz, std::string(argv[1]) + ".words", gathered);
    const std::string name = "s_" + std::to_string(families++);
    write_array(out, "uint8_t", name, bytes);
    streams += "    {" + name + ", " + std::to_string(gathered.size()) + "},\n";
    gathered.clear();
    return !bytes.empty();
  };
  uint64_t hash = 1469598103934665603ull;
  const auto leave_out = [&](const std::string& name) {
    table += "    {\"" + name + "\", 0, nullptr, 0, 0, \"\", 0, 0, {}},\n";
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
    for (const uint32_t word : words) hash = (hash ^ word) * 1099511628211ull;
    std::string place = "k_" + name + ", 0, 0";
    if (compresses) {
      if (const std::string start = name.substr(0, name.find('_')); start != family) {
        if (!end_family()) return 2;
        family = start;
      }
      place = "nullptr, " + std::to_string(families) + ", " + std::to_string(gathered.size());
      gathered.insert(gathered.end(), words.begin(), words.end());
    } else {
      write_array(out, "uint32_t", "k_" + name, words);
    }
    std::string capabilities = "{}";
    if (!interface.capabilities.empty()) {
      capabilities = "c_" + name;
      out << "const uint32_t " << capabilities << "[] = {";
      for (const uint32_t capability : interface.capabilities) out << capability << ",";
      out << "};\n";
    }
    table += "    {\"" + name + "\", " + std::to_string(words.size()) + ", " + place + ", \"" +
             interface.push + "\", " + std::to_string(interface.constants) + ", " +
             std::to_string(interface.bindings) + ", " + capabilities + "},\n";
  }
  if (!end_family()) {
    std::fprintf(stderr, "embed: %s failed\n", xz.c_str());
    return 2;
  }
  if (compresses) out << "\nconst ShaderStream kStreams[] = {\n" << streams << "};\n";
  out << "\nconst ShaderCode kCodes[] = {\n" << table;
  out << "};\n\n}  // namespace\n\n"
      << "const ShaderCode& shader_code(Shader shader) noexcept { return "
         "kCodes[static_cast<size_t>(shader)]; }\n"
      << "std::span<const ShaderStream> shader_streams() noexcept { return "
      << (compresses ? "kStreams" : "{}") << "; }\n"
      << "uint64_t shader_build_hash() noexcept { return " << hash
      << "ull; }\n\n}  // namespace librt::vulkan\n";
  return out.good() ? 0 : 2;
}
