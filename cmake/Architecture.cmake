# The target `architecture`: draws the graph of directories (tools/dev/draw_includes, docs/architecture.md). Never part of `all`.
find_program(RT_DOT dot)
find_program(RT_PYTHON3 python3)
if(NOT RT_DOT OR NOT RT_PYTHON3)
  message(STATUS "Target architecture: left out, it needs dot (graphviz) and python3")
  return()
endif()
add_custom_target(architecture
  COMMAND "${RT_PYTHON3}" "${PROJECT_SOURCE_DIR}/tools/dev/draw_includes" "${PROJECT_SOURCE_DIR}" > architecture.dot
  COMMAND "${RT_DOT}" -Tsvg architecture.dot -o architecture.svg
  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
  BYPRODUCTS "${PROJECT_BINARY_DIR}/architecture.dot" "${PROJECT_BINARY_DIR}/architecture.svg"
  COMMENT "Drawing ${PROJECT_BINARY_DIR}/architecture.svg" VERBATIM)
