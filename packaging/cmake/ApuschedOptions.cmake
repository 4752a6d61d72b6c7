# SPDX-License-Identifier: MIT
# One INTERFACE target carries what every target of the project is compiled with.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers: ccache must be told that they are compared by content.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(apusched_options INTERFACE)
add_library(apusched::options ALIAS apusched_options)
target_compile_options(apusched_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<BOOL:${APUSCHED_WERROR}>:-Werror>
  -fstack-protector-strong)
target_link_options(apusched_options INTERFACE -Wl,-z,relro -Wl,-z,now)
if(NOT APUSCHED_SANITIZE)
  # Needs optimisation, and hides bugs from the sanitizers.
  target_compile_definitions(apusched_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()
if(APUSCHED_SANITIZE)
  target_compile_options(apusched_options INTERFACE
    -fsanitize=${APUSCHED_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(apusched_options INTERFACE -fsanitize=${APUSCHED_SANITIZE})
endif()
if(APUSCHED_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "APUSCHED_FUZZ needs clang: configure with the 'fuzz' preset")
  endif()
  target_compile_options(apusched_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# apusched_layer(<name> SOURCES ... LINK ...): one static library per folder of daemon/.
# The layer's links are its only allowed dependencies, so that a forbidden one fails to link.
function(apusched_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(apusched_${name} STATIC ${arg_SOURCES})
  add_library(apusched::${name} ALIAS apusched_${name})
  target_include_directories(apusched_${name} PUBLIC ${PROJECT_SOURCE_DIR}/daemon)
  target_link_libraries(apusched_${name} PUBLIC apusched::options ${arg_LINK})
endfunction()
