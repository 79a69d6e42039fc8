// write_example FOLDER: an example study in every form, for tests that read the files.
#include <cstdio>
#include <span>
#include <string>

#include "tests/rtbench/example_study.h"
#include "tools/data/file.h"
#include "tools/rtbench/report/html.h"
#include "tools/rtbench/report/study_json.h"

namespace {

using namespace librt;

/// A model's name that tries to become markup.
constexpr const char* kHostile = "</script><script>document.title='taken'</script><b>'\"&<!--\x01\xff";

bool write(const std::string& path, const std::string& text) {
  const Status status = tools::write_file(path, std::as_bytes(std::span(text)));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const auto html = [](const bench::Study& study) {
    auto text = bench::study_html(study);
    if (!text.ok()) std::fprintf(stderr, "%s\n", text.status().message().c_str());
    return text.ok() ? *text : std::string();
  };
  const bool written = write(folder + "example.html", html(bench::example_study())) &&
                       write(folder + "hostile.html", html(bench::example_study(kHostile))) &&
                       write(folder + "empty.html", html(bench::Study{})) &&
                       write(folder + "example.json", bench::study_json(bench::example_study())) &&
                       write(folder + "empty.json", bench::study_json(bench::Study{}));
  return written ? 0 : 3;
}
