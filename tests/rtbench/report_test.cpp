// Reports as HTML, Markdown and CSV, and the folder of studies.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/rtbench/example_study.h"
#include "tools/cli/process.h"
#include "tools/rtbench/report/html.h"
#include "tools/rtbench/report/html_text.h"
#include "tools/rtbench/report/markdown.h"
#include "tools/rtbench/report/output.h"
#include "tools/rtbench/report/page_files.h"
#include "tools/rtbench/report/store.h"

namespace librt::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHostile = "</script><img src=x onerror=alert(1)>|`=1+2\x01\xff";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Html, TextIsNoMarkup) {
  EXPECT_EQ(escaped("<b a='1' c=\"2\">&\x02\xff"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(json_in_script(R"({"a":"</script>&"})"), R"({"a":"\u003c/script\u003e\u0026"})");
  Html html;
  html << "<p>" << std::string("1 < 2") << "</p>";
  EXPECT_EQ(html.text(), "<p>1 &lt; 2</p>");
}

TEST(Html, AHostileNameStaysText) {
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  const auto page = study_html(example_study(kHostile));
  const auto plain = study_html(example_study("resnet18"));
  ASSERT_TRUE(page.ok() && plain.ok());
  // The name adds no element to the page.
  EXPECT_EQ(count(*page, "<script"), count(*plain, "<script"));
  EXPECT_EQ(count(*page, "</script"), count(*plain, "</script"));
  EXPECT_EQ(count(*page, "<img"), 0u);
  EXPECT_GT(count(*page, "&lt;/script&gt;&lt;img"), 2u);
  EXPECT_GT(count(*page, "\\u003c/script\\u003e\\u003cimg"), 2u);
}

TEST(Html, NeedsNoNetwork) {
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  const auto page = study_html(example_study());
  ASSERT_TRUE(page.ok());
  for (const char* reference : {" src=", "<link", "@import", "url("})
    EXPECT_EQ(page->find(reference), std::string::npos) << reference;
  EXPECT_NE(page->find("Content-Security-Policy"), std::string::npos);
}

TEST(Html, SaysWhyThereIsNoEnergy) {
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  Study study = example_study();
  study.energy_reason = "this machine has no powercap zone";
  for (Series& series : study.series)
    for (Point& point : series.points) {
      point.energy = {};
      point.cost = {.reason = "no --price was given"};
    }
  const auto page = study_html(study);
  ASSERT_TRUE(page.ok());
  EXPECT_NE(page->find("No energy was measured: this machine has no powercap zone."), std::string::npos);
  EXPECT_NE(page->find("No cost was computed: no --price was given."), std::string::npos);
}

TEST(Markdown, ShowsEverySeriesAndNoMarkupOfNames) {
  const std::string text = study_markdown(example_study(kHostile));
  EXPECT_NE(text.find("| cpu:0 | fp32 | 1 |"), std::string::npos);
  EXPECT_NE(text.find("failed: there is no memory for 512 MiB"), std::string::npos);
  EXPECT_EQ(text.find("<img"), std::string::npos);
  // Every row of a table has as many cells as its head.
  size_t cells = 0, line_number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); ++line_number) {
    if (!line.starts_with("|")) {
      cells = 0;
      continue;
    }
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    if (cells == 0) cells = bars;
    EXPECT_EQ(bars, cells) << "line " << line_number << ": " << line;
  }
}

TEST(Csv, EveryLineHasTheColumnsOfTheHead) {
  const std::string text = study_csv(example_study("a,\"b\"\r\n=c"));
  EXPECT_EQ(text.find("\na,"), std::string::npos);
  size_t fields = 1, expected = 0, lines = 0;
  bool quoted = false;
  for (const char byte : text) {
    if (byte == '"') quoted = !quoted;
    if (quoted) continue;
    fields += byte == ',' ? 1 : 0;
    if (byte != '\n') continue;
    if (expected == 0) expected = fields;
    EXPECT_EQ(fields, expected) << "line " << lines;
    fields = 1;
    ++lines;
  }
  EXPECT_EQ(lines, 1u + 7 * 7);
  EXPECT_NE(study_csv(example_study("=1+2")).find("\n'=1+2,"), std::string::npos);
}

class Store : public testing::Test {
 protected:
  const tools::TemporaryFolder scratch_{"librt-store"};
  const std::string folder_ = scratch_.path();
};

TEST_F(Store, KeepsEachStudy) {
  const std::string folder = folder_ + "/new/studies";
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    const auto path = save_study(folder, example_study("../a b/\xff"));
    ASSERT_TRUE(path.ok()) << path.status().message();
    paths.push_back(*path);
    EXPECT_EQ(fs::path(*path).parent_path(), folder);
  }
  EXPECT_EQ(fs::path(paths[0]).filename(), "20250131T123456Z-_.._a_b__-9f86d081.json");
  struct stat info {};
  ASSERT_EQ(stat(paths[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  const auto stored = stored_studies(folder);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->studies.size(), 3u);
  EXPECT_TRUE(stored->unusable.empty());
}

TEST_F(Store, LeavesOutWhatIsNoStudy) {
  ASSERT_TRUE(save_study(folder_, example_study()).ok());
  std::ofstream(folder_ + "/broken.json") << "{\"schema\":";
  fs::create_symlink("/etc/hostname", folder_ + "/link.json");
  ASSERT_EQ(mkfifo((folder_ + "/pipe.json").c_str(), 0600), 0);
  fs::create_directory(folder_ + "/folder.json");
  std::ofstream(folder_ + "/other.txt") << "x";
  const auto stored = stored_studies(folder_);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->studies.size(), 1u);
  EXPECT_EQ(stored->unusable.size(), 4u);
  EXPECT_TRUE(stored_studies(folder_ + "/absent")->studies.empty());
  EXPECT_FALSE(stored_studies(folder_ + "/other.txt").ok());
}

TEST_F(Store, ALinkInItsPlaceIsNotFollowed) {
  const auto first = save_study(folder_, example_study());
  ASSERT_TRUE(first.ok());
  fs::remove(*first);
  std::ofstream(folder_ + "/victim") << "precious";
  fs::create_symlink(folder_ + "/victim", *first);
  const auto second = save_study(folder_, example_study());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*second, *first);
  EXPECT_EQ(fs::file_size(folder_ + "/victim"), 8u);
}

TEST(ReportOptions, AreCheckedBeforeMeasuring) {
  EXPECT_EQ(problem_of({}), "");
  EXPECT_NE(problem_of({.markdown = "-", .json = true}).find("choose one"), std::string::npos);
  EXPECT_NE(problem_of({.csv = "/nonexistent/a.csv"}).find("there is no folder /nonexistent"),
            std::string::npos);
  EXPECT_NE(problem_of({.csv = "/tmp"}).find("expected a file, found the folder"), std::string::npos);
  EXPECT_NE(problem_of({.save = "/tmp", .no_save = true}).find("exclude"), std::string::npos);
}

}  // namespace
}  // namespace librt::bench
