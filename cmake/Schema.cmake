# Generated from schema/*.fbs into build/generated/schema: ops_attributes.h (included by nearly all files), ops_union.cpp,
# ops_generated.h and model_generated.h (the FlatBuffers tables), op_fields.inc; and the
# ABI stamp of backend modules.
find_package(FlatBuffers CONFIG QUIET)
find_program(RT_FLATC flatc REQUIRED)
find_path(RT_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)

set(generated "${PROJECT_BINARY_DIR}/generated")
set(schema "${PROJECT_SOURCE_DIR}/schema")
file(MAKE_DIRECTORY "${generated}/schema")

find_program(RT_AWK NAMES mawk gawk awk REQUIRED)
add_custom_command(
  OUTPUT "${generated}/schema/ops_generated.h" "${generated}/schema/ops_attributes.h" "${generated}/schema/ops_union.cpp"
         "${generated}/schema/op_fields.inc"
  COMMAND ${RT_FLATC} --cpp --gen-object-api --object-suffix Attributes --gen-compare --scoped-enums
          --cpp-std c++17 -o "${generated}/flatc" "${schema}/ops.fbs"
  COMMAND ${RT_AWK} -v "attributes=${generated}/schema/ops_attributes.h" -v "tables=${generated}/schema/ops_generated.h"
          -v "functions=${generated}/schema/ops_union.cpp" -v "fields=${generated}/schema/op_fields.inc" -f "${PROJECT_SOURCE_DIR}/cmake/split_ops.awk"
          "${generated}/flatc/ops_generated.h"
  DEPENDS "${schema}/ops.fbs" "${PROJECT_SOURCE_DIR}/cmake/split_ops.awk" VERBATIM)
add_custom_command(
  OUTPUT "${generated}/schema/model_generated.h"
  COMMAND ${RT_FLATC} --cpp --scoped-enums --reflect-names --cpp-std c++17 -I "${schema}" -o "${generated}/schema"
          "${schema}/model.fbs"
  DEPENDS "${schema}/ops.fbs" "${schema}/model.fbs" VERBATIM)
add_custom_command(
  OUTPUT "${generated}/schema/checkpoint_generated.h"
  COMMAND ${RT_FLATC} --cpp --scoped-enums --reflect-names --cpp-std c++17 -o "${generated}/schema"
          "${schema}/checkpoint.fbs"
  DEPENDS "${schema}/checkpoint.fbs" VERBATIM)

rt_sources(abi_headers "${PROJECT_SOURCE_DIR}/runtime/core/*.h" "${PROJECT_SOURCE_DIR}/runtime/graph/*.h"
  "${PROJECT_SOURCE_DIR}/runtime/backend/*.h" "${PROJECT_SOURCE_DIR}/runtime/include/rt/hooks.h"
  "${PROJECT_SOURCE_DIR}/runtime/include/rt/custom.h" "${schema}/*.fbs")
list(FILTER abi_headers EXCLUDE REGEX "/frozen/")
string(REPLACE ";" "|" abi_list "${abi_headers}")
add_custom_command(
  OUTPUT "${generated}/runtime/backend/abi.h"
  COMMAND ${CMAKE_COMMAND} "-DINPUTS=${abi_list}" -DOUTPUT=${generated}/runtime/backend/abi.h
          -DVERSION=${PROJECT_VERSION} "-DCOMPILER=${CMAKE_CXX_COMPILER_ID}" -P "${PROJECT_SOURCE_DIR}/cmake/AbiStamp.cmake"
  DEPENDS ${abi_headers} "${PROJECT_SOURCE_DIR}/cmake/AbiStamp.cmake" VERBATIM)

add_custom_target(rt_generated DEPENDS "${generated}/schema/ops_generated.h" "${generated}/schema/ops_attributes.h"
  "${generated}/schema/ops_union.cpp" "${generated}/schema/model_generated.h"
  "${generated}/schema/checkpoint_generated.h" "${generated}/schema/op_fields.inc" "${generated}/runtime/backend/abi.h")

# All includes are relative to the root; generated headers are system headers, to suppress their warnings.
add_library(rt_headers INTERFACE)
target_include_directories(rt_headers INTERFACE "${PROJECT_SOURCE_DIR}")
target_include_directories(rt_headers SYSTEM INTERFACE "${generated}" "${RT_FLATBUFFERS_INCLUDE}")
add_dependencies(rt_headers rt_generated)
