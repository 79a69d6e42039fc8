# Flags for every target, and helpers for the CMakeLists of the modules.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
# librt and its modules are in the same directory, as when installed (lib/librt).
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/librt")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")

find_program(RT_CCACHE ccache)
if(RT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${RT_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${RT_CCACHE}")
endif()

# nvcc has separate options (backends/cuda).
add_compile_options("$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-missing-field-initializers;-Werror;-ffunction-sections;-fdata-sections>")
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # A loop that clang does not vectorize despite a pragma is slow, not wrong.
  add_compile_options(-Wno-missing-braces -Wno-pass-failed)
endif()
# Without instructions for both, as on x86-64, a product is rounded before it is added to. Other compilers would fuse them: what pages
# compute and what the compiler folds is the same everywhere. The loops of the CPU backend choose for themselves.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options("$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-ffp-contract=off>")
endif()
# Without exceptions (runtime/core/exception.h) for small programs: what else is built needs them.
option(RT_EXCEPTIONS "Without exceptions, a failed allocation ends the program; OFF for builds with RT_TRIM" ON)
if(NOT RT_EXCEPTIONS)
  if(NOT RT_TRIM)
    message(FATAL_ERROR "RT_EXCEPTIONS=OFF is for builds with RT_TRIM: programs, tests and the compiler use exceptions")
  endif()
  if(RT_ONEDNN AND NOT RT_ONEDNN STREQUAL "AUTO")
    message(FATAL_ERROR "RT_EXCEPTIONS=OFF needs RT_ONEDNN=OFF: oneDNN throws exceptions")
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti;-fno-asynchronous-unwind-tables>")
endif()
add_link_options(-Wl,--gc-sections)
# Files larger than 2 GiB are read in parts, or refused with their size. (Times stay 32 bits wide: packages of Debian 12 have them
# in their structs.)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  add_compile_definitions(_FILE_OFFSET_BITS=64)
endif()
# GCC before 13 calls a library for atomic operations on single bytes there.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "riscv64")
  link_libraries(atomic)
endif()
# librt.so uses LTO (runtime/CMakeLists.txt). The objects contain machine code as well, which everything that links them
# statically uses: otherwise every test would wait for a second compilation.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE MATCHES "^(Release|MinSizeRel)$" AND NOT RT_SANITIZE)
  set(RT_WHOLE_LIBRARY ON)
  add_link_options("$<$<NOT:$<OR:$<STREQUAL:$<TARGET_PROPERTY:NAME>,rt_runtime>,$<STREQUAL:$<TARGET_PROPERTY:NAME>,minimal>>>:-fno-lto>")
endif()
if(RT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "RT_FUZZ=ON needs clang: the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  if(NOT RT_SANITIZE)
    set(RT_SANITIZE address,undefined)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O1")  # half the time to build
  add_compile_options(-fsanitize=fuzzer-no-link -UNDEBUG)
endif()
# A shared library must link completely, except for the sanitizers' runtime, which clang links only into programs.
if(NOT (RT_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang))
  set(RT_LINK_COMPLETE -Wl,-z,defs)
endif()
if(RT_SANITIZE)
  add_compile_options(-fsanitize=${RT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${RT_SANITIZE})
endif()

# rt_sources(<variable> <pattern>...): the sources of a module, by pattern, so that new files need no list.
macro(rt_sources variable)
  file(GLOB_RECURSE ${variable} CONFIGURE_DEPENDS ${ARGN})
endmacro()

# rt_generate_list(<file> <macro> <source>...): writes `macro(stem)` for each source file, for families of kernels
# or importers that a table collects without listing their names.
function(rt_generate_list file macro)
  set(content "")
  foreach(source IN LISTS ARGN)
    get_filename_component(stem "${source}" NAME_WE)
    string(APPEND content "${macro}(${stem})\n")
  endforeach()
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/${file}" CONTENT "${content}")
endfunction()

# rt_families_in_build(<variable>): leaves out those of the kernel families, source files, that have no row of an operator of the build.
# Rows name their operator, or come from a list of functions that the file includes (tests/house/stems.sh).
function(rt_families_in_build variable)
  if(RT_TRIM)
    list(JOIN RT_OPERATORS_IN_BUILD "|" names)
    set(kept "")
    foreach(source IN LISTS ${variable})
      file(STRINGS "${source}" rows REGEX "(OpKind::|RT_[A-Z_]+[(])(${names})[,)]|^#include .*[.]inc\"" LIMIT_COUNT 1)
      if(rows)
        list(APPEND kept "${source}")
      endif()
    endforeach()
    set(${variable} "${kept}" PARENT_SCOPE)
  endif()
endfunction()

# rt_host_program(<name> <source>...): a program that the build runs; sets <name> to what a COMMAND and DEPENDS take. When cross-compiling
# it is made by the host's compiler in one command, so its sources include nothing but headers of their folder and the standard library.
function(rt_host_program name)
  if(NOT CMAKE_CROSSCOMPILING)
    add_executable(${name} ${ARGN})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    set(${name} ${name} PARENT_SCOPE)
    return()
  endif()
  find_program(RT_HOST_COMPILER NAMES g++ clang++ REQUIRED)
  set(program "${PROJECT_BINARY_DIR}/host/${name}")
  set(headers "")
  foreach(source IN LISTS ARGN)
    get_filename_component(folder "${source}" DIRECTORY)
    file(GLOB found CONFIGURE_DEPENDS "${folder}/*.h")
    list(APPEND headers ${found})
  endforeach()
  list(REMOVE_DUPLICATES headers)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/host")
  add_custom_command(OUTPUT "${program}"
    COMMAND "${RT_HOST_COMPILER}" -std=c++20 -O1 "-I${PROJECT_SOURCE_DIR}" ${ARGN} -o "${program}"
    DEPENDS ${ARGN} ${headers} COMMENT "Building ${name} for the host" VERBATIM)
  set(${name} "${program}" PARENT_SCOPE)
endfunction()
