#include "tools/rtbench/report/text.h"

namespace librt::bench {

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& byte : out)
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = '?';
  return out;
}

}  // namespace librt::bench
