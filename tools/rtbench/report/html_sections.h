// The parts of the HTML report, in the order in which they stand there. An absent part is empty, or says why
// it is absent.
//
// A chart is a <canvas data-chart="KIND"> that page/page.js draws from the page's JSON.
#pragma once

#include "tools/rtbench/report/html_text.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

Html header_section(const Study& study);
Html verdict_section(const Study& study);
/// One row for each series.
Html overview_section(const Study& study);
/// For each mode: throughput, latency, and one against the other.
Html sweep_sections(const Study& study);
Html energy_section(const Study& study);
Html cost_section(const Study& study);
/// Parts of a run, and nodes.
Html time_section(const Study& study);
Html roofline_section(const Study& study);
Html memory_section(const Study& study);
Html precision_section(const Study& study);
Html target_section(const Study& study);
Html omissions_section(const Study& study);
Html machine_section(const Study& study);

}  // namespace librt::bench
