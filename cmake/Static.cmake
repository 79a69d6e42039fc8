# librt.a: librt and chosen backends in one static library, for programs that load nothing of librt at run time.
#
# RT_STATIC_BACKENDS names the backends; others are still loaded as modules where they are found (RT_MODULE_PATH). It is the code of
# librt.so and of the modules: their objects, and a list of what was linked. The target is librt::runtime_static.
set(RT_STATIC ON CACHE BOOL "Build librt.a, a static library with the backends of RT_STATIC_BACKENDS")
set(static_backends cpu reference)
if(RT_TRIM)
  set(static_backends cpu)  # the reference backend computes every operator
endif()
set(RT_STATIC_BACKENDS "${static_backends}" CACHE STRING "Backends in librt.a: cpu, reference, vulkan")
if(RT_SANITIZE OR NOT RT_STATIC)
  return()
endif()
if(NOT CMAKE_OBJCOPY)
  message(STATUS "Static library: left out, it needs objcopy (binutils)")
  return()
endif()

set(parts_cpu rt_cpu_static)
foreach(isa baseline avx2 avx512)
  if(TARGET rt_cpu_${isa})
    list(APPEND parts_cpu rt_cpu_${isa})
  endif()
endforeach()
set(libraries_cpu "")
if(RT_HAS_ONEDNN)
  set(libraries_cpu dnnl)
endif()
set(parts_reference rt_reference_static rt_compiler_pages)
set(parts_vulkan rt_vulkan_parts)
set(libraries_vulkan "")
if(RT_COMPRESS_SHADERS)
  set(libraries_vulkan lzma)
endif()
set(parts rt_core rt_pages rt_sessions rt_api)
set(rt_static_libraries "")
set(declarations "")
set(names "")
foreach(backend IN LISTS RT_STATIC_BACKENDS)
  if(NOT backend MATCHES "^(cpu|reference|vulkan)$")
    message(FATAL_ERROR "RT_STATIC_BACKENDS: expected cpu, reference or vulkan, found '${backend}'; the CUDA backend is a module only")
  endif()
  if(NOT TARGET rt_${backend})
    message(FATAL_ERROR "RT_STATIC_BACKENDS: the backend '${backend}' is not built; take it out of the list or see above what it needs")
  endif()
  # Its one symbol, under a name of its own.
  add_library(rt_${backend}_linked OBJECT "${PROJECT_SOURCE_DIR}/backends/${backend}/module.cpp")
  target_compile_definitions(rt_${backend}_linked PRIVATE rt_backend_module=rt_backend_module_${backend})
  target_link_libraries(rt_${backend}_linked PRIVATE rt_headers)
  list(APPEND parts ${parts_${backend}} rt_${backend}_linked)
  list(APPEND rt_static_libraries ${libraries_${backend}})
  string(APPEND declarations "extern \"C\" const librt::BackendModule* rt_backend_module_${backend}(void);\n")
  string(APPEND names "rt_backend_module_${backend}(), ")
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/linked_modules.cpp" CONTENT [[
#include "runtime/backend/loader.h"
@declarations@
namespace librt {
std::span<const BackendModule* const> linked_modules() noexcept {
  static const BackendModule* const kModules[] = {@names@};
  return kModules;
}
}  // namespace librt
]] @ONLY)

list(REMOVE_DUPLICATES parts)
list(TRANSFORM parts PREPEND "$<TARGET_OBJECTS:" OUTPUT_VARIABLE objects)
list(TRANSFORM objects APPEND ">")
add_library(rt_static STATIC ${objects} "${PROJECT_BINARY_DIR}/generated/linked_modules.cpp")
add_library(librt::runtime_static ALIAS rt_static)
set_target_properties(rt_static PROPERTIES OUTPUT_NAME rt EXPORT_NAME runtime_static LINKER_LANGUAGE CXX)
target_link_libraries(rt_static PRIVATE $<BUILD_INTERFACE:rt_headers>)
# By name: where the library is installed is the business of whoever links.
list(APPEND rt_static_libraries pthread ${CMAKE_DL_LIBS} m)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "riscv64")
  list(APPEND rt_static_libraries atomic)
endif()
target_link_libraries(rt_static INTERFACE ${rt_static_libraries})
target_compile_features(rt_static INTERFACE cxx_std_20)
# Intermediate code is only for the compiler that wrote it, which that of a build for some models is. The OpenMP functions that the CPU module defines for oneDNN stay its own: in
# a program they would take the place of the program's OpenMP runtime. oneDNN uses libgomp there (backends/cpu/device/openmp.h).
set(local_symbols "")
foreach(symbol omp_get_max_threads omp_get_num_threads omp_get_thread_num omp_in_parallel GOMP_barrier GOMP_parallel)
  list(APPEND local_symbols "--localize-symbol=${symbol}")
endforeach()
set(removed_sections "--remove-section=.gnu.lto_*")
if(RT_TRIM)
  set(removed_sections "")
endif()
add_custom_command(TARGET rt_static POST_BUILD COMMAND "${CMAKE_OBJCOPY}" --wildcard ${removed_sections}
  ${local_symbols} "$<TARGET_FILE:rt_static>" VERBATIM)

# What such a library is for, and how small it gets: a program for the models of RT_TRIM, `minimal MODEL.rt`.
if(RT_TRIM)
  enable_language(C)
  add_executable(minimal "${PROJECT_SOURCE_DIR}/examples/memory.c")
  target_link_libraries(minimal PRIVATE librt::runtime_static)
  target_include_directories(minimal PRIVATE "${PROJECT_SOURCE_DIR}/runtime/include")
  target_link_options(minimal PRIVATE ${RT_SMALL_LINK})
  set_target_properties(minimal PROPERTIES LINKER_LANGUAGE CXX)
  add_custom_command(TARGET minimal POST_BUILD COMMAND "${CMAKE_STRIP}" "$<TARGET_FILE:minimal>" VERBATIM)
endif()
