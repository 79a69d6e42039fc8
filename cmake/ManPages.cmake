# The target `man`: man pages of the programs in man/man1, from their --help. Never part of `all`; installed if they were made.
if(NOT RT_TOOLS)
  return()
endif()
if(CMAKE_CROSSCOMPILING)
  message(STATUS "Target man: left out, its texts come from the programs, which this machine does not run")
  return()
endif()
find_program(RT_HELP2MAN help2man)
if(NOT RT_HELP2MAN)
  message(STATUS "Target man: left out, it needs help2man")
  return()
endif()

set(rt_man "${PROJECT_BINARY_DIR}/man/man1")
# rt_man_page(<program> <name line> <option that prints all options>)
function(rt_man_page program name help)
  add_custom_command(OUTPUT "${rt_man}/${program}.1"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${rt_man}"
    COMMAND "${CMAKE_COMMAND}" -E env "RT_PROGRAM=$<TARGET_FILE:${program}>" "${RT_HELP2MAN}" --no-info "--name=${name}"
      "--source=librt ${PROJECT_VERSION}" "--help-option=${help}" "--include=${PROJECT_SOURCE_DIR}/cmake/man_page.inc"
      "--output=${rt_man}/${program}.1" "${PROJECT_SOURCE_DIR}/cmake/help_for_man"
    DEPENDS ${program} "${PROJECT_SOURCE_DIR}/cmake/man_page.inc" "${PROJECT_SOURCE_DIR}/cmake/help_for_man"
    COMMENT "Writing ${rt_man}/${program}.1" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY RT_MAN_PAGES "${rt_man}/${program}.1")
  install(FILES "${rt_man}/${program}.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT librt-tools OPTIONAL)
endfunction()
rt_man_page(rtconvert "compile an ONNX model for librt" --help-all)
rt_man_page(rtrun "run a compiled model on files" --help)
rt_man_page(rtbench "measure models on the devices of this machine" --help)
rt_man_page(rttrain "train a compiled model" --help)
get_property(rt_man_pages GLOBAL PROPERTY RT_MAN_PAGES)
add_custom_target(man DEPENDS ${rt_man_pages})
