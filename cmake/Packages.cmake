# Packages: Debian packages, one for each COMPONENT of the install rules, and an archive of everything that is installed.
# tools/dev/package builds them; docs/packages.md says what is in them.
#
# Names are Debian's: librt0 and librt-compiler0 have the SOVERSION of their library. None has a file in a folder that the linker
# searches by itself: `-lrt` stays glibc's.
set(RT_PACKAGE_CONTACT "librt maintainers <librt@localhost>" CACHE STRING "Maintainer of the Debian packages: name <address>")

set(CPACK_PACKAGE_NAME librt)
set(CPACK_PACKAGE_VENDOR librt)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "librt built using CMake")  # CPack's default text, which it does not put before ours
set(CPACK_PACKAGE_CONTACT "${RT_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_GENERATOR "DEB;TXZ")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Where dpkg-shlibdeps finds our own libraries, which no other package provides: packages depend on those by name, below.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(rt_same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(rt_packages "")

# rt_package(<name> SUMMARY <line> TEXT <text> SECTION <Debian section> [DEPENDS ..] [RECOMMENDS ..] [SUGGESTS ..])
macro(rt_package name)
  cmake_parse_arguments(P "" "SUMMARY;TEXT;SECTION;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER "${name}" upper)
  list(APPEND rt_packages ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${P_SUMMARY}\n${P_TEXT}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION "${P_SECTION}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${P_DEPENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${P_RECOMMENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS "${P_SUGGESTS}")
  # Only in packages: an installation into a prefix has one copy, below.
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" RENAME copyright
    COMPONENT ${name} EXCLUDE_FROM_ALL)
endmacro()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/librt" COMPONENT prefix-only)

set(rt_text "librt runs and trains models compiled from ONNX on CPU, CUDA and Vulkan.")
rt_package(librt0 SECTION libs SUGGESTS "librt-vulkan, librt-cuda, librt-mpi"
  SUMMARY "runs and trains compiled models" TEXT "${rt_text}\nThis package has the library and its CPU and reference backends.")
set(rt_dev_depends "librt0 ${rt_same}")
set(rt_tools_depends "librt0 ${rt_same}")
if(TARGET rt_compiler_library)
  rt_package(librt-compiler0 SECTION libs DEPENDS "librt0 ${rt_same}"
    SUMMARY "compiles ONNX models for librt" TEXT "${rt_text}\nThis package has the compiler as a library.")
  string(APPEND rt_dev_depends ", librt-compiler0 ${rt_same}")
  string(APPEND rt_tools_depends ", librt-compiler0 ${rt_same}")
endif()
rt_package(librt-dev SECTION libdevel DEPENDS "${rt_dev_depends}" SUGGESTS libdnnl-dev
  SUMMARY "headers for programs that use librt"
  TEXT "${rt_text}\nThis package has headers, a static library, and files for CMake and pkg-config.")
if(TARGET rtconvert)
  rt_package(librt-tools SECTION utils DEPENDS "${rt_tools_depends}" RECOMMENDS librt-vulkan
    SUMMARY "compile, run, measure and train models" TEXT "${rt_text}\nThis package has rtconvert, rtrun, rtbench and rttrain.")
endif()
# The drivers' libraries are loaded at run time, so that dpkg-shlibdeps does not see them.
if(TARGET rt_vulkan)
  rt_package(librt-vulkan SECTION libs DEPENDS "librt0 ${rt_same}, libvulkan1" RECOMMENDS "mesa-vulkan-drivers"
    SUMMARY "Vulkan backend of librt" TEXT "${rt_text}\nThis package lets it use Vulkan devices.")
endif()
if(TARGET rt_cuda)
  rt_package(librt-cuda SECTION libs DEPENDS "librt0 ${rt_same}" SUGGESTS "libcuda1"
    SUMMARY "CUDA backend of librt" TEXT "${rt_text}\nThis package lets it use NVIDIA GPUs, with NVIDIA's driver.")
endif()
if(TARGET rt_communicator_mpi)
  rt_package(librt-mpi SECTION libs DEPENDS "librt0 ${rt_same}" RECOMMENDS "librt-tools, openmpi-bin"
    SUMMARY "training in several processes with librt" TEXT "${rt_text}\nThis package lets rttrain run under mpirun.")
endif()
if(TARGET rt_python)
  # The extension is for one version of CPython (nanobind has the stable ABI from 3.12 on, which Debian's packages do not rely on either).
  get_property(rt_python GLOBAL PROPERTY RT_PYTHON_VERSION)
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)$" rt_python "${rt_python}")
  math(EXPR rt_next_python "${CMAKE_MATCH_2} + 1")
  rt_package(python3-librt SECTION python
    DEPENDS "librt0 ${rt_same}, librt-tools ${rt_same}, python3 (>= ${rt_python}~), python3 (<< ${CMAKE_MATCH_1}.${rt_next_python}), python3-numpy"
    SUMMARY "run, train and compile models in Python" TEXT "${rt_text}\nThis package has the Python package librt.")
  # Debian's way with bytecode: written when the package is installed, removed with it.
  foreach(script postinst:py3compile prerm:py3clean)
    string(REPLACE ":" ";" script "${script}")
    list(POP_BACK script program)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/python3-librt/${script}" CONTENT
      "#!/bin/sh\nset -e\nif command -v ${program} >/dev/null; then ${program} -p python3-librt; fi\n" @ONLY)
    file(CHMOD "${PROJECT_BINARY_DIR}/python3-librt/${script}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
      WORLD_READ WORLD_EXECUTE)
    list(APPEND CPACK_DEBIAN_PYTHON3-LIBRT_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/python3-librt/${script}")
  endforeach()
endif()
set(CPACK_COMPONENTS_ALL ${rt_packages})
include(CPack)
