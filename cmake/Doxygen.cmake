# The target `api_reference`: HTML reference of the public headers in api_reference/html (docs/Doxyfile.in). Never part of `all`.
find_program(RT_DOXYGEN doxygen)
if(NOT RT_DOXYGEN)
  message(STATUS "Target api_reference: left out, it needs doxygen")
  return()
endif()
set(RT_API_REFERENCE "${PROJECT_BINARY_DIR}/api_reference")
configure_file("${PROJECT_SOURCE_DIR}/docs/Doxyfile.in" "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
add_custom_target(api_reference
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${RT_API_REFERENCE}"
  COMMAND "${RT_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
  COMMENT "Writing ${RT_API_REFERENCE}/html" VERBATIM)
