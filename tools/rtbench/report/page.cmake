# Files that are put into the program, which then needs them nowhere: the report's page, Chart.js, the script that runs peers.
# Sets page_code.
find_file(RT_CHART_JS NAMES chart.min.js Chart.min.js chart.umd.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
  DOC "Chart.js, for the reports of rtbench study --html" NO_DEFAULT_PATH)
set(chart_library "")
if(RT_CHART_JS)
  set(chart_library "${RT_CHART_JS}")
else()
  message(STATUS "rtbench study --html: left out, Chart.js (libjs-chart.js) not found")
endif()

set(page_code "${PROJECT_BINARY_DIR}/generated/rtbench/page_files.cpp")
set(page_folder "${CMAKE_CURRENT_LIST_DIR}")
add_custom_command(OUTPUT "${page_code}"
  COMMAND "${CMAKE_COMMAND}" "-DOUT=${page_code}" "-DSTYLE=${page_folder}/page/page.css" "-DSCRIPT=${page_folder}/page/page.js"
    "-DCHARTS=${chart_library}" "-DPEER=${page_folder}/../peer/peer.py" -P "${page_folder}/embed.cmake"
  DEPENDS "${page_folder}/page/page.css" "${page_folder}/page/page.js" "${page_folder}/embed.cmake"
    "${page_folder}/../peer/peer.py" ${chart_library}
  COMMENT "Files of the report's page" VERBATIM)
