# The members of the union in ops.fbs: as RT_OPERATORS, and as RT_OP(Name) in op_list.inc.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/schema/ops.fbs")
file(READ "${PROJECT_SOURCE_DIR}/schema/ops.fbs" text)
string(REGEX REPLACE "//[^\n]*" "" text "${text}")
string(REGEX MATCH "union Op {([^}]*)}" found "${text}")
if(NOT found)
  message(FATAL_ERROR "schema/ops.fbs: no `union Op { ... }`")
endif()
string(REGEX MATCHALL "[A-Za-z0-9]+" RT_OPERATORS "${CMAKE_MATCH_1}")

# rt_list_operators(<file> <name>...): writes RT_OP(Name) for each.
function(rt_list_operators file)
  list(TRANSFORM ARGN REPLACE "(.+)" "RT_OP(\\1)\n" OUTPUT_VARIABLE rows)
  list(JOIN rows "" rows)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/schema/${file}" CONTENT "${rows}" @ONLY)
endfunction()
rt_list_operators(op_list.inc ${RT_OPERATORS})
