# Install rules: librt in its own directory together with its modules, headers, programs, CMake package, pkg-config.
#
# lib/librt contains librt.so and the backend modules, which find each other there; programs find it by RPATH. Linking
# with -lrt from a default folder would find glibc's library of that name, hence the directory and the full paths.
#
# COMPONENT names the Debian package that a file belongs to (Packages.cmake).
#
# What is installed is linked with its final RPATH. If CMake rewrote it during the installation, it would fill up the one
# of the build tree with colons, that is with empty entries, and libraries would be loaded from the current directory.
include(CMakePackageConfigHelpers)

set(rt_libdir "${CMAKE_INSTALL_LIBDIR}/librt")
set(rt_final_rpath BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(rt_runtime PROPERTIES ${rt_final_rpath})
install(TARGETS rt_runtime EXPORT librtTargets
  LIBRARY DESTINATION "${rt_libdir}" COMPONENT librt0 NAMELINK_COMPONENT librt-dev
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/rt" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT librt-dev)

# librt.a, in the same folder: libc6-dev has another of that name.
if(TARGET rt_static)
  install(TARGETS rt_static EXPORT librtTargets ARCHIVE DESTINATION "${rt_libdir}" COMPONENT librt-dev
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# librt_compiler, beside librt.so, which it finds there.
if(TARGET rt_compiler_library)
  set_target_properties(rt_compiler_library PROPERTIES INSTALL_RPATH "$ORIGIN" ${rt_final_rpath})
  install(TARGETS rt_compiler_library EXPORT librtTargets
    LIBRARY DESTINATION "${rt_libdir}" COMPONENT librt-compiler0 NAMELINK_COMPONENT librt-dev)
endif()

# The modules that were built.
set(rt_package_of_rt_reference librt0)
set(rt_package_of_rt_cpu librt0)
set(rt_package_of_rt_vulkan librt-vulkan)
set(rt_package_of_rt_cuda librt-cuda)
set(rt_package_of_rt_communicator_mpi librt-mpi)
foreach(module rt_reference rt_cpu rt_vulkan rt_cuda rt_communicator_mpi)
  if(TARGET ${module})
    get_target_property(type ${module} TYPE)
    if(type STREQUAL "MODULE_LIBRARY" OR type STREQUAL "SHARED_LIBRARY")
      set_target_properties(${module} PROPERTIES ${rt_final_rpath})
      install(TARGETS ${module} LIBRARY DESTINATION "${rt_libdir}" COMPONENT ${rt_package_of_${module}} NAMELINK_SKIP)
    endif()
  endif()
endforeach()

file(RELATIVE_PATH rt_from_bin "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${rt_libdir}")
set(rt_program_rpath "$ORIGIN/${rt_from_bin}")
if(NOT rt_from_bin STREQUAL "../lib/librt") # where it is in the build tree
  list(APPEND rt_program_rpath "$ORIGIN/../lib/librt")
endif()
# The dynamic linker knows a program's $ORIGIN by /proc. Debian's packages, which are always at one place, work without.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  list(APPEND rt_program_rpath "/usr/${rt_libdir}")
endif()
foreach(program rtconvert rtbench rtrun rttrain)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "${rt_program_rpath}" ${rt_final_rpath})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT librt-tools)
  endif()
endforeach()

if(TARGET rtbench)
  install(FILES "${PROJECT_SOURCE_DIR}/tools/rtbench/catalogue/devices.json"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/librt" COMPONENT librt-tools)
endif()

# find_package(librt) -> librt::runtime, librt::compiler (COMPONENTS compiler), librt::runtime_static (COMPONENTS static)
set(rt_cmakedir "${CMAKE_INSTALL_LIBDIR}/cmake/librt")
install(EXPORT librtTargets NAMESPACE librt:: DESTINATION "${rt_cmakedir}" COMPONENT librt-dev)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/librtConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/librtConfig.cmake" INSTALL_DESTINATION "${rt_cmakedir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/librtConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/librtConfig.cmake" "${PROJECT_BINARY_DIR}/librtConfigVersion.cmake"
  DESTINATION "${rt_cmakedir}" COMPONENT librt-dev)

# pkg-config: paths are relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH rt_prefix_from_pc "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" rt_prefix_from_pc "${rt_prefix_from_pc}")
set(rt_pc librt)
if(TARGET rt_compiler_library)
  list(APPEND rt_pc librt-compiler)
endif()
if(TARGET rt_static)
  list(APPEND rt_pc librt-static)
  list(TRANSFORM rt_static_libraries PREPEND "-l" OUTPUT_VARIABLE rt_static_flags)
  list(JOIN rt_static_flags " " rt_static_flags)
endif()
foreach(name IN LISTS rt_pc)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT librt-dev)
endforeach()
