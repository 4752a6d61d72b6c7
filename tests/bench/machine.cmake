# SPDX-License-Identifier: MIT
# Benchmarks of the whole: daemon, programs with agents, software APU. Not below a sanitizer.
if(NOT APUSCHED_SANITIZE)
  add_executable(wake_floor wake_floor.cpp)
  target_link_libraries(wake_floor PRIVATE softapu_model)
  set(bench_mask_arguments --rounds 1)
  set(bench_softapu_arguments --seconds 1 --repetitions 1)
  set(bench_gpu_contention_arguments --repetitions 1 --seconds 1 --settle 1)
  foreach(name mask softapu gpu_contention)
    add_test(NAME bench.${name}
      COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/bench_${name}.py ${bench_${name}_arguments})
    set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 120 RUN_SERIAL ON
      ENVIRONMENT "APUSCHED_BUILD_DIR=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endif()
