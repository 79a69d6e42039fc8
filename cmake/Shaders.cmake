# Compiles the variants of variants.cmake to SPIR-V, one command each, and embeds them; sets RT_SHADER_CODE.
set(shader_folder "${PROJECT_SOURCE_DIR}/shaders")
set(shader_tools "${PROJECT_SOURCE_DIR}/tools/shaders")
set(spirv_folder "${PROJECT_BINARY_DIR}/shaders")
file(MAKE_DIRECTORY "${spirv_folder}")
rt_sources(shader_includes "${shader_folder}/*.glsl")

set(shader_names "")
set(shader_files "")
macro(rt_shader name source)
  set(spirv "${spirv_folder}/${name}.spv")
  set(validate "")
  if(RT_SPIRV_VAL)
    set(validate COMMAND ${RT_SPIRV_VAL} --target-env vulkan1.1 "${spirv}")
  endif()
  add_custom_command(
    OUTPUT "${spirv}"
    COMMAND ${RT_GLSLANG} --quiet --target-env vulkan1.1 -S comp "-I${shader_folder}" ${ARGN} -o "${spirv}"
            "${shader_folder}/${source}"
    ${validate}
    DEPENDS "${shader_folder}/${source}" ${shader_includes}
    COMMENT "Shader ${name}" VERBATIM)
  list(APPEND shader_names "${name}")
  list(APPEND shader_files "${spirv}")
endmacro()
# A variant with cooperative matrices: compiled and validated as GL_NV_cooperative_matrix, then rewritten.
add_executable(rt_rewrite_shaders "${shader_tools}/rewrite.cpp" "${shader_tools}/khr_matrices.cpp")
target_include_directories(rt_rewrite_shaders PRIVATE "${PROJECT_SOURCE_DIR}")
macro(rt_matrix_shader name source)
  rt_shader(${name}.nv ${source} ${ARGN})
  list(POP_BACK shader_names)
  list(POP_BACK shader_files)
  set(spirv "${spirv_folder}/${name}.spv")
  add_custom_command(
    OUTPUT "${spirv}"
    COMMAND rt_rewrite_shaders "${spirv_folder}/${name}.nv.spv" "${spirv}"
    DEPENDS rt_rewrite_shaders "${spirv_folder}/${name}.nv.spv"
    COMMENT "Shader ${name}" VERBATIM)
  list(APPEND shader_names "${name}")
  list(APPEND shader_files "${spirv}")
endmacro()
include("${shader_folder}/variants.cmake")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${shader_folder}/variants.cmake")

set(list_inc "")
set(list_txt "")
foreach(name file IN ZIP_LISTS shader_names shader_files)
  string(APPEND list_inc "RT_SHADER(${name})\n")
  string(APPEND list_txt "${name} ${file}\n")
endforeach()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/backends/vulkan/shader_list.inc" CONTENT "${list_inc}")
file(GENERATE OUTPUT "${spirv_folder}/list.txt" CONTENT "${list_txt}")

add_executable(rt_embed_shaders "${shader_tools}/embed.cpp" "${shader_tools}/interface.cpp")
target_include_directories(rt_embed_shaders PRIVATE "${PROJECT_SOURCE_DIR}")
set(RT_SHADER_CODE "${spirv_folder}/shader_code.cpp")
add_custom_command(
  OUTPUT "${RT_SHADER_CODE}"
  COMMAND rt_embed_shaders "${RT_SHADER_CODE}" "${spirv_folder}/list.txt"
  DEPENDS rt_embed_shaders ${shader_files} "${spirv_folder}/list.txt"
  COMMENT "Embedding shaders" VERBATIM)
