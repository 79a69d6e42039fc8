#include "tools/rtbench/report/html.h"

#include <algorithm>
#include <random>

#include "tools/rtbench/report/html_sections.h"
#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/report/page_files.h"
#include "tools/rtbench/report/study_json.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

/// Only scripts with this word run: not what a name in a model might smuggle in.
std::string script_nonce() {
  std::random_device device;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += format("%08x", static_cast<unsigned>(device()));
  return nonce;
}

Html head(const Study& study, const std::string& nonce) {
  Html out;
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; img-src data:; script-src 'nonce-"
      << nonce
      << "'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>"
      << study.model.name << " - rtbench study</title>\n<style>\n";
  out.markup(page_style());
  out << "</style>\n</head>\n";
  return out;
}

}  // namespace

Result<std::string> study_html(const Study& study) {
  if (chart_library().empty())
    return unsupported(
        "--html: this rtbench was built without Chart.js, which draws the charts; install libjs-chart.js and "
        "build it again, or use --markdown, --csv or --json");
  const std::string nonce = script_nonce();
  Html out = head(study, nonce);
  out << "<body>\n"
      << header_section(study) << "<main>\n"
      << verdict_section(study) << overview_section(study) << sweep_sections(study) << energy_section(study)
      << cost_section(study) << time_section(study) << roofline_section(study) << memory_section(study)
      << precision_section(study) << target_section(study) << omissions_section(study)
      << machine_section(study)
      << "</main>\n<footer>Written by rtbench, which is part of librt. The data of this page is in it as "
         "JSON "
         "(<code>study.schema.json</code>): the element with the id <code>study</code>.</footer>\n";
  out << "<script type=\"application/json\" id=\"study\" nonce=\"" << nonce << "\">";
  out.markup(json_in_script(study_json(study, -1)));
  out << "</script>\n<script nonce=\"" << nonce << "\">\n";
  out.markup(chart_library());
  out << "\n</script>\n<script nonce=\"" << nonce << "\">\n";
  out.markup(page_script());
  out << "</script>\n</body>\n</html>\n";
  return out.text();
}

}  // namespace librt::bench
