#include "tools/data/digest.h"

#include <unistd.h>

#include <cerrno>
#include <vector>

#include "tools/data/file.h"

namespace librt::tools {

Result<std::string> digest_of_file(const std::string& path) {
  constexpr size_t kPart = size_t{1} << 20;
  RT_ASSIGN(const Descriptor file, open_regular(path));
  std::vector<std::byte> part(kPart);
  Digest digest;
  for (;;) {
    const ssize_t got = read(file.number(), part.data(), part.size());
    if (got == 0) return digest.text();
    if (got > 0)
      digest.add(part.data(), static_cast<size_t>(got));
    else if (errno != EINTR)
      return system_error(path, "cannot be read", errno);
  }
}

}  // namespace librt::tools
