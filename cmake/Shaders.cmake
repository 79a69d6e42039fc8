# Compiles the variants of the shaders to SPIR-V, one command each, and embeds them; sets RT_SHADER_CODE.
#
# The head of a shader says which variants it has (shaders/README.md):
#   // variants: copy_{1 T=uint8_t|4 T=uint}_{buffer|texel TEXEL} WIDE
# makes copy_1_buffer (-DT=uint8_t -DWIDE=1), copy_1_texel, copy_4_buffer and copy_4_texel. A shader without such a line has one
# variant with the file's name.
set(shader_folder "${PROJECT_SOURCE_DIR}/shaders")
set(shader_tools "${PROJECT_SOURCE_DIR}/tools/shaders")
set(spirv_folder "${PROJECT_BINARY_DIR}/shaders")
file(MAKE_DIRECTORY "${spirv_folder}")
rt_sources(shader_includes "${shader_folder}/*.glsl")

# kFunctionRelu, kBinaryAdd, kCompareLess, ...: the values of Function, BinaryFunction and CompareFunction for the shaders. Macros,
# because constants would be part of every SPIR-V module.
set(function_numbers "")
foreach(list IN ITEMS "Function function_list" "Binary binary_function_list" "Compare binary_function_list")
  string(REGEX MATCH "^([A-Za-z]+) (.*)$" list "${list}")
  set(kind "${CMAKE_MATCH_1}")
  set(file "${PROJECT_SOURCE_DIR}/runtime/core/${CMAKE_MATCH_2}.inc")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  string(TOUPPER "RT_${kind}_FUNCTION" macro)
  string(REPLACE "FUNCTION_FUNCTION" "FUNCTION" macro "${macro}")
  file(STRINGS "${file}" rows REGEX "^${macro}.")
  set(number 0)
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^${macro}.([A-Za-z]+).*" "#define k${kind}\\1 ${number}\n" row "${row}")
    string(APPEND function_numbers "${row}")
    math(EXPR number "${number} + 1")
  endforeach()
endforeach()
set(generated_shaders "${PROJECT_BINARY_DIR}/generated/shaders")
file(GENERATE OUTPUT "${generated_shaders}/function_numbers.glsl" CONTENT "${function_numbers}")
list(APPEND shader_includes "${generated_shaders}/function_numbers.glsl")

# rt_shader(<spirv> <source> <definition>...): the command that compiles a variant.
function(rt_shader spirv source)
  set(validate "")
  if(RT_SPIRV_VAL)
    set(validate COMMAND ${RT_SPIRV_VAL} --target-env vulkan1.1 "${spirv}")
  endif()
  add_custom_command(
    OUTPUT "${spirv}"
    COMMAND ${RT_GLSLANG} --quiet --target-env vulkan1.1 -S comp "-I${shader_folder}" "-I${generated_shaders}" ${ARGN} -o "${spirv}" "${source}"
    ${validate}
    DEPENDS "${source}" ${shader_includes}
    COMMENT "Shader ${spirv}" VERBATIM)
endfunction()
# A variant with cooperative matrices: compiled and validated as GL_NV_cooperative_matrix, then rewritten.
rt_host_program(rt_rewrite_shaders "${shader_tools}/rewrite.cpp" "${shader_tools}/khr_matrices.cpp")
function(rt_matrix_shader spirv source)
  string(REGEX REPLACE "\\.spv$" ".nv.spv" compiled "${spirv}")
  rt_shader("${compiled}" "${source}" ${ARGN})
  add_custom_command(
    OUTPUT "${spirv}"
    COMMAND ${rt_rewrite_shaders} "${compiled}" "${spirv}"
    DEPENDS ${rt_rewrite_shaders} "${compiled}"
    COMMENT "Shader ${spirv}" VERBATIM)
endfunction()

# rt_variants(<command> <source> <name> <definition>...): replaces the braces of the name by each of their alternatives, whose
# first word is part of the name and whose others are definitions; calls the command for each name without braces.
function(rt_variants command source name)
  if(NOT name MATCHES "^([^{]*){([^}]*)}(.*)$")
    set(definitions "")
    foreach(definition IN LISTS ARGN)
      if(NOT definition MATCHES "=")
        string(APPEND definition "=1")
      endif()
      list(APPEND definitions "-D${definition}")
    endforeach()
    cmake_language(CALL ${command} "${spirv_folder}/${name}.spv" "${source}" ${definitions})
    set_property(GLOBAL APPEND PROPERTY RT_SHADERS "${name}")
    return()
  endif()
  set(before "${CMAKE_MATCH_1}")
  set(after "${CMAKE_MATCH_3}")
  string(REPLACE "|" ";" alternatives "${CMAKE_MATCH_2}")
  foreach(alternative IN LISTS alternatives)
    string(REPLACE " " ";" definitions "${alternative}")
    list(POP_FRONT definitions word)
    rt_variants(${command} "${source}" "${before}${word}${after}" ${definitions} ${ARGN})
  endforeach()
endfunction()

rt_sources(shader_sources "${shader_folder}/*.comp")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader_sources})
foreach(source IN LISTS shader_sources)
  file(STRINGS "${source}" lines REGEX "^// (matrix )?variants: ")
  if(NOT lines)
    get_filename_component(stem "${source}" NAME_WE)
    set(lines "// variants: ${stem}")
  endif()
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^// (matrix )?variants: (([^ {]*{[^}]*})*[^ {]+|([^ {]*{[^}]*})+)(( [A-Za-z0-9_]+(=[^ ]+)?)*)$")
      message(FATAL_ERROR "${source}: expected '// variants: NAME_{A DEFINITION|B}.. DEFINITION..', found '${line}'")
    endif()
    set(command rt_shader)
    if(CMAKE_MATCH_1)
      set(command rt_matrix_shader)
    endif()
    set(name "${CMAKE_MATCH_2}")
    string(REPLACE " " ";" definitions "${CMAKE_MATCH_5}")
    rt_variants(${command} "${source}" "${name}" ${definitions})
  endforeach()
endforeach()
get_property(shader_names GLOBAL PROPERTY RT_SHADERS)
list(TRANSFORM shader_names REPLACE "(.+)" "${spirv_folder}/\\1.spv" OUTPUT_VARIABLE shader_files)

# A build for some models embeds the variants that its sources name: `Shader::NAME`, or a macro's `Shader::START##`. Those with types
# that it does not have go by the capabilities of their SPIR-V (storage of 8 and of 16 bits, f16).
set(unwanted_capabilities "")
if(RT_TRIM)
  set(exact "")
  set(starts "")
  foreach(source IN LISTS vulkan_sources vulkan_headers)
    file(READ "${source}" text)
    string(REGEX MATCHALL "Shader::[a-z0-9_]+(##)?" tokens "${text}")
    foreach(token IN LISTS tokens)
      string(REPLACE "Shader::" "" token "${token}")
      if(token MATCHES "^(.*)##$")
        list(APPEND starts "${CMAKE_MATCH_1}")
      else()
        list(APPEND exact "${token}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES starts)
  list(JOIN starts "|" starts)
  if(NOT ("f16" IN_LIST trim_types OR "bf16" IN_LIST trim_types OR "i16" IN_LIST trim_types OR "u16" IN_LIST trim_types))
    list(APPEND unwanted_capabilities 4433 9)
  endif()
  if(NOT ("i8" IN_LIST trim_types OR "u8" IN_LIST trim_types OR "bool" IN_LIST trim_types))
    list(APPEND unwanted_capabilities 4448)
  endif()
endif()
set(list_inc "")
set(list_txt "")
set(embedded_files "")
foreach(name file IN ZIP_LISTS shader_names shader_files)
  string(APPEND list_inc "RT_SHADER(${name})\n")
  if(RT_TRIM AND NOT name IN_LIST exact AND NOT (starts AND name MATCHES "^(${starts})"))
    set(file "-")
  else()
    list(APPEND embedded_files "${file}")
  endif()
  string(APPEND list_txt "${name} ${file}\n")
endforeach()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/backends/vulkan/shader_list.inc" CONTENT "${list_inc}")
file(GENERATE OUTPUT "${spirv_folder}/list.txt" CONTENT "${list_txt}")

# A build for some models is small before it is fast: decompressing the shaders that a net needs takes some 10 ms.
option(RT_COMPRESS_SHADERS "Compress the Vulkan backend's shaders (xz, liblzma)" ${trimmed})
set(compression "")
if(RT_COMPRESS_SHADERS)
  find_program(RT_XZ xz)
  find_path(RT_LZMA_INCLUDE lzma.h)
  find_library(RT_LZMA_LIBRARY lzma)
  if(NOT RT_XZ OR NOT RT_LZMA_INCLUDE OR NOT RT_LZMA_LIBRARY)
    message(FATAL_ERROR "RT_COMPRESS_SHADERS=ON needs xz (xz-utils) and liblzma (liblzma-dev); OFF leaves the shaders as they are, 1.5 MB larger for LeNet-5")
  endif()
  set(compression --xz "${RT_XZ}")
endif()

rt_host_program(rt_embed_shaders "${shader_tools}/embed.cpp" "${shader_tools}/interface.cpp")
set(RT_SHADER_CODE "${spirv_folder}/shader_code.cpp")
add_custom_command(
  OUTPUT "${RT_SHADER_CODE}"
  COMMAND ${rt_embed_shaders} "${RT_SHADER_CODE}" "${spirv_folder}/list.txt" ${compression} ${unwanted_capabilities}
  DEPENDS ${rt_embed_shaders} ${embedded_files} "${spirv_folder}/list.txt"
  COMMENT "Embedding shaders" VERBATIM)
