# SPDX-License-Identifier: MIT
# Assembles the no-op kernel for every ISA of the list that the clang found here knows. No clang
# or no lld: an empty table, and the helper says that it has no kernel for its ISA.
set(APUSCHED_KERNEL_ISAS gfx902 gfx909 gfx90c gfx1033 gfx1035 gfx1036 gfx1103 gfx1150 gfx1151 gfx942
  CACHE STRING "ISAs to build the probe's no-op kernel for")
find_program(APUSCHED_GPU_CLANG NAMES clang-22 clang-21 clang-20 clang-19 clang-18 clang-17
  clang-16 clang-15 clang-14 clang)

# Code object version 4 is the newest that ROCr 5.2 loads, and every later one loads it too.
set(gpu_flags --target=amdgcn-amd-amdhsa -mcode-object-version=4 -nostdlib -x assembler)

set(embed_inputs "")
set(code_objects "")
foreach(isa IN LISTS APUSCHED_KERNEL_ISAS)
  if(NOT APUSCHED_GPU_CLANG)
    break()
  endif()
  set(wave_size 64)
  set(extra_directives "")
  if(isa MATCHES "^gfx1[0-9]")
    set(wave_size 32)
    set(extra_directives "    .amdhsa_wavefront_size32 1")
  elseif(isa MATCHES "^gfx9(0a|4[0-9])$")
    set(extra_directives "    .amdhsa_accum_offset 4")
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels/noop_${isa}.s)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/noop_${isa}.co)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/noop.s.in ${source} @ONLY)
  # Asked of the very command that will build it, once per compiler and ISA.
  set(answer_name APUSCHED_CLANG_ASSEMBLES_${isa})
  if(NOT DEFINED ${answer_name})
    execute_process(
      COMMAND ${APUSCHED_GPU_CLANG} ${gpu_flags} -mcpu=${isa} ${source} -o ${object}
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(${answer_name} OFF CACHE INTERNAL "")
      message(STATUS "apusched: ${APUSCHED_GPU_CLANG} makes no code object for ${isa}")
    else()
      set(${answer_name} ON CACHE INTERNAL "")
    endif()
  endif()
  if(${answer_name})
    add_custom_command(OUTPUT ${object}
      COMMAND ${APUSCHED_GPU_CLANG} ${gpu_flags} -mcpu=${isa} ${source} -o ${object}
      DEPENDS ${source} VERBATIM COMMENT "Assembling the no-op kernel for ${isa}")
    list(APPEND code_objects ${object})
    list(APPEND embed_inputs ${isa}=${object})
  endif()
endforeach()

list(JOIN embed_inputs "," embed_inputs)
set(embedded ${CMAKE_CURRENT_BINARY_DIR}/kernels/noop_kernels.cpp)
add_custom_command(OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${embedded} "-DINPUTS=${embed_inputs}"
          -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${code_objects} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake VERBATIM
  COMMENT "Embedding the no-op kernels")
