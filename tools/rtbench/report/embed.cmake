# Writes files as C++. Variables: OUT, and the paths STYLE, SCRIPT, CHARTS (may be empty), PEER.
set(code "// Made by embed.cmake.\n#include \"tools/rtbench/report/page_files.h\"\n\nnamespace librt::bench {\nnamespace {\n")
foreach(name STYLE SCRIPT CHARTS PEER)
  set(bytes "")
  if(${name})
    file(READ "${${name}}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(REGEX REPLACE "(('..x..',)('..x..',)('..x..',)('..x..',)('..x..',)('..x..',)('..x..',)('..x..',))" "\\1\n" bytes "${bytes}")
  endif()
  string(APPEND code "constexpr char k${name}[] = {${bytes}'\\0'};\n")
endforeach()
string(APPEND code "}  // namespace\n
std::string_view page_style() noexcept { return {kSTYLE, sizeof kSTYLE - 1}; }
std::string_view page_script() noexcept { return {kSCRIPT, sizeof kSCRIPT - 1}; }
std::string_view chart_library() noexcept { return {kCHARTS, sizeof kCHARTS - 1}; }
std::string_view peer_script() noexcept { return {kPEER, sizeof kPEER - 1}; }

}  // namespace librt::bench\n")
file(WRITE "${OUT}" "${code}")
